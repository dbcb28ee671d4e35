"""`pumice admission` beside an API server, a real one or that of `pumice up`, with the account, the roles and the arguments of its manifests; the API server finds it by its address."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Self

from audited import use

from contract.contract_up import UpServer
from pumice.admission import rules
from pumice.kube import admission_permissions
from pumice.manifests import admission, installation, objects, release, text
from testbed import processes, waiting
from testbed.server import ApiServer, KubectlError

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = release.Release(parts=("admission",), admission_paths=tuple(rules.BY_PATH))
ACCOUNT = f"system:serviceaccount:{RELEASE.namespace}:{RELEASE.admission}"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}


class AdmissionServer:
    """An API server that writes down what the webhooks' account asks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "audit.log"
        self.kubeconfig = folder / "kubeconfig"
        (folder / "policy.yaml").write_text(json.dumps(POLICY), encoding="utf-8")
        self.server = ApiServer(
            arguments=(f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={self._log}")
        )

    def install(self, crds: Path) -> None:
        """Install the webhooks and write a kubeconfig for their account."""
        self.server.crds(crds)
        self.apply(objects.namespace(RELEASE), *installation.manifests(RELEASE))
        token = self.server.kubectl("create", "token", RELEASE.admission, "-n", RELEASE.namespace).strip()
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

    def apply(self, *manifests: dict) -> str:
        return self.server.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", input=text.stream(manifests)
        )

    def get(self, *query: str) -> dict:
        return json.loads(self.server.kubectl("get", *query, "-o", "json"))

    def entries(self) -> list[dict]:
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]

    def forbidden(self) -> list[str]:
        refused = [entry for entry in self.entries() if entry.get("responseStatus", {}).get("code") == 403]
        return [f"{entry['verb']} {entry['requestURI']}" for entry in refused]

    def used(self) -> set:
        return {use(entry) for entry in self.entries() if "objectRef" in entry}


class UpCluster(UpServer):
    """The API server of `pumice up`, asked as a real one is."""

    @property
    def ca_file(self) -> Path:
        return self._access.certificates.authority

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # as subprocess names it
        try:
            return super().kubectl(*arguments, input=input)
        except AssertionError as error:
            raise KubectlError(str(error)) from None


class UpAdmission(AdmissionServer):
    """The API server of `pumice up`, which has rules of its own turned off and asks webhooks as any other; it writes nothing down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "account"
        self.server = UpCluster(folder, controllers_too=True, admission="none")

    def install(self, crds: Path) -> None:
        self.server.kubectl("delete", "queues", "--all")  # a scheduler that comes first is to make them
        super().install(crds)

    def forbidden(self) -> list[str]:
        return []

    def used(self) -> set:
        return granted()


def granted() -> set:
    table = (*admission_permissions.PERMISSIONS, admission_permissions.NAMESPACES)
    return {each for permission in table for each in permission.uses}


class Running:
    """A process of ours with its log."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("wb") as stream:
            command = [sys.executable, "-c", "from pumice.cli import main; main()", *arguments]
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=waiting.PATIENCE)

    def until(self, condition) -> None:
        """Wait for something, and show the log if it does not come."""
        wait_until(condition, lambda: self.log[-4000:], ended=lambda: self.process.poll() is not None)


def wait_until(condition, tell=str, **more) -> None:
    """Ask again and again until something is so; whoever cannot be reached yet has not answered."""

    def answer():
        with contextlib.suppress(OSError):
            return condition()

    waiting.until(answer, tell, every=0.1, **more)


class SchedulerBefore(Running):
    """A scheduler on the same API server."""

    def __init__(self, rig: AdmissionServer) -> None:
        flags = (f"--kubeconfig={rig.server.kubeconfig}", "--leader-elect=false")
        super().__init__(rig.folder / "scheduler.log", "scheduler", *flags)


class RunningAdmission(Running):
    """The webhooks, with the arguments of their Deployment; addresses and the mounted file are this machine's."""

    def __init__(self, rig: AdmissionServer, *more: str) -> None:
        self.port, self.health = (processes.free_port() for _ in range(2))
        conf = rig.folder / "volcano-admission.conf"
        conf.write_text(admission.CONFIGURATION, encoding="utf-8")
        replaced = {
            "/admission.local.config/configmap": str(rig.folder),
            "[$(POD_IP)]": "127.0.0.1",
            ":11251": f":{self.health}",
            "--port=8443": f"--port={self.port}",
        }
        arguments = admission.arguments(RELEASE)
        for old, new in replaced.items():
            arguments = [argument.replace(old, new) for argument in arguments]
        arguments += [f"--kubeconfig={rig.kubeconfig}", f"--webhook-url=https://127.0.0.1:{self.port}", *more]
        super().__init__(rig.folder / f"admission-{self.port}.log", "admission", *arguments)

    def __enter__(self) -> Self:
        try:
            self.until(lambda: self.ready()[0] == 200)
        except BaseException:
            self.__exit__()
            raise
        return self

    def ready(self) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.health}/readyz?verbose", timeout=waiting.PATIENCE
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
