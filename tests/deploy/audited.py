"""An API server that writes down what the scheduler's account asks for, with every role of the manifests in force."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pumice.kube import permissions
from pumice.manifests import objects, release, text
from testbed.server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RELEASE = release.Release()
SCHEDULER, CONTROLLERS = RELEASE.scheduler, f"{RELEASE.name}-controllers"


def account(name: str) -> str:
    return f"system:serviceaccount:{RELEASE.namespace}:{name}"


POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [account(SCHEDULER), account(CONTROLLERS)]}, {"level": "None"}],
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
    """Runs in a folder of its own; `kubeconfig` is that of the scheduler's account, `controllers_kubeconfig` that of the controllers'."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "audit.log"
        self.kubeconfig = folder / "kubeconfig"
        self.controllers_kubeconfig = folder / "controllers-kubeconfig"
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
        manifests = [
            objects.namespace(RELEASE),
            *objects.scheduler(RELEASE),
            *objects.controllers(RELEASE),
            CONFIGURATION_ROLE,
            binding,
        ]
        self.server.kubectl("apply", "-f", "-", input=text.stream(manifests))
        self._write(self.kubeconfig, SCHEDULER)
        self._write(self.controllers_kubeconfig, CONTROLLERS)

    def _write(self, file: Path, name: str) -> None:
        token = self.server.kubectl("create", "token", name, "-n", RELEASE.namespace).strip()
        cluster = {"server": self.server.url, "certificate-authority": str(self.server.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        file.write_text(json.dumps(config), encoding="utf-8")

    def entries(self, name: str = SCHEDULER) -> list[dict]:
        """Return what was written down of an account."""
        found = [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]
        return [entry for entry in found if entry["user"]["username"] == account(name)]

    def forbidden(self, name: str = SCHEDULER) -> list[str]:
        """Return what was asked for and refused."""
        refused = [entry for entry in self.entries(name) if entry.get("responseStatus", {}).get("code") == 403]
        return [f"{entry['verb']} {entry['requestURI']}" for entry in refused]

    def used(self, name: str = SCHEDULER) -> set[Use]:
        """Return every verb that was used on a resource."""
        return {use(entry) for entry in self.entries(name) if "objectRef" in entry}


def use(entry: dict) -> Use:
    """Return what an entry of the log is about."""
    reference = entry["objectRef"]
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    return Use(entry["verb"], reference.get("apiGroup", ""), resource)


def granted(table: Iterable[permissions.Permission] = permissions.PERMISSIONS) -> set[Use]:
    """Return every verb of a table."""
    return {Use(*each) for permission in table for each in permission.uses}
