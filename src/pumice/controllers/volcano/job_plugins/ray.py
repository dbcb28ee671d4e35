"""The plugin ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.api import kinds, names
from pumice.controllers.volcano.job_plugins import flags, hosts, pods
from pumice.controllers.volcano.job_plugins.protocol import Beside, PluginError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.controllers.volcano.job_plugins.protocol import Place
    from pumice.controllers.volcano.jobs.reading import Job, Role

Manifest = dict[str, Any]


class Ray:
    """Starts a Ray cluster: the commands of the head's and the workers' containers, the head's ports, and a Service `<job>-head-svc` in front of them.

    `--head` (head), `--worker` (worker): which task is which. `--headContainer` (head), `--workerContainer` (worker): whose command it is.
    `--port` (6379), `--dashboardPort` (8265), `--clientPort` (10001): where the head listens.
    """

    name: ClassVar[str] = "ray"
    makes: ClassVar[tuple[kinds.Kind, ...]] = (kinds.SERVICE,)

    def __init__(self, arguments: Sequence[str]) -> None:
        defaults: dict[str, flags.Value] = {
            "head": "head",
            "worker": "worker",
            "headContainer": "head",
            "workerContainer": "worker",
            "port": 6379,
            "dashboardPort": 8265,
            "clientPort": 10001,
        }
        self._flags = flags.parse(self.name, arguments, defaults)
        named = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))
        self._ports = {name: self._flags.port(flag) for name, flag in named}

    def objects(self, job: Job) -> list[Beside]:
        """Need a Service in front of the head."""
        head = self._head(job)
        selector = {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace, names.TASK_SPEC: head.name}
        ports = [
            {"name": name, "port": number, "protocol": "TCP", "targetPort": name}
            for name, number in self._ports.items()
        ]
        spec = {"selector": selector, "ports": ports}
        return [Beside(kind=kinds.SERVICE, name=f"{job.name}-head-svc", content={"spec": spec})]

    def complete(self, pod: Manifest, place: Place) -> None:
        """Start the head, or a worker that joins it."""
        head, ports = self._head(place.job), self._ports
        if place.role.name == head.name:
            command = (
                f"ray start --head --block --dashboard-host=0.0.0.0 --port={ports['gcs']} "
                f"--dashboard-port={ports['dashboard']} --ray-client-server-port={ports['client-server']}"
            )
            for container in self._started(pod, "headContainer", command):
                for name, number in ports.items():
                    pods.name_port(container, name, number)
        elif place.role.name == self._flags.text("worker"):
            address = hosts.address(place.job, head, 0)
            self._started(pod, "workerContainer", f"ray start --block --address={address}:{ports['gcs']}")

    def _started(self, pod: Manifest, flag: str, command: str) -> list[Manifest]:
        found = [each for each in pods.containers(pod) if each.get("name") == self._flags.text(flag)]
        for container in found:
            container["command"] = ["sh", "-c", command]
        return found

    def _head(self, job: Job) -> Role:
        name = self._flags.text("head")
        if name not in job.by_name:
            listed = ", ".join(job.by_name)
            raise PluginError(f"plugin ray: no task is named {name!r}; name the head with --head (tasks: {listed})")
        return job.by_name[name]
