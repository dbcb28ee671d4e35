"""An API server that writes down what the scheduler's account asks for, with every role of the manifests in force."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pumice.kube import permissions
from pumice.manifests import objects, release, text
from testbed.server import ApiServer

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = release.Release()
ACCOUNT = f"system:serviceaccount:{RELEASE.namespace}:{RELEASE.scheduler}"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
CONFIGURATION_ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "configuration", "namespace": RELEASE.namespace},
    "rules": permissions.configuration_rules(RELEASE.config_map),
}


class Use(NamedTuple):
    """A verb on a resource of a group."""

    verb: str
    group: str
    resource: str


class AuditedServer:
    """Runs in a folder of its own; `kubeconfig` is that of the scheduler's account."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "audit.log"
        self.kubeconfig = folder / "kubeconfig"
        (folder / "policy.yaml").write_text(json.dumps(POLICY), encoding="utf-8")
        self.server = ApiServer(
            arguments=(f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={self._log}")
        )

    def install(self, crds: Path, *more: Path) -> None:
        """Install the scheduler's objects, and write a kubeconfig for its account."""
        self.server.crds(crds)
        for file in more:
            self.server.crds(file)
        binding = {
            **CONFIGURATION_ROLE,
            "kind": "RoleBinding",
            "subjects": [{"kind": "ServiceAccount", "name": RELEASE.scheduler, "namespace": RELEASE.namespace}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "configuration"},
        }
        del binding["rules"]
        manifests = [objects.namespace(RELEASE), *objects.scheduler(RELEASE), CONFIGURATION_ROLE, binding]
        self.server.kubectl("apply", "-f", "-", input=text.stream(manifests))
        token = self.server.kubectl("create", "token", RELEASE.scheduler, "-n", RELEASE.namespace).strip()
        cluster = {"server": self.server.url, "certificate-authority": str(self.server.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")

    def entries(self) -> list[dict]:
        """Return what was written down."""
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]

    def forbidden(self) -> list[str]:
        """Return what was asked for and refused."""
        refused = [entry for entry in self.entries() if entry.get("responseStatus", {}).get("code") == 403]
        return [f"{entry['verb']} {entry['requestURI']}" for entry in refused]

    def used(self) -> set[Use]:
        """Return every verb that was used on a resource."""
        return {use(entry) for entry in self.entries() if "objectRef" in entry}


def use(entry: dict) -> Use:
    """Return what an entry of the log is about."""
    reference = entry["objectRef"]
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    return Use(entry["verb"], reference.get("apiGroup", ""), resource)


def granted() -> set[Use]:
    """Return every verb of the table."""
    return {Use(*each) for permission in permissions.PERMISSIONS for each in permission.uses}
