"""The plugin pytorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.controllers.volcano.job_plugins import flags, hosts, pods
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import kinds
    from pumice.controllers.volcano.job_plugins.protocol import Beside, Place
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]


class PyTorch:
    """Tells PyTorch its cluster: `MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK` in every container, the rank in those of masters and workers only. A Job without a master is left alone.

    `--master` (master), `--worker` (worker): which task is which. `--port` (23456): where the master listens. `--wait-master-enabled` (false): workers begin
    with a container that waits for the master, at most `--wait-master-timeout` (300) seconds, in `--wait-master-image` (busybox:1.36.1).
    """

    name: ClassVar[str] = "pytorch"
    makes: ClassVar[tuple[kinds.Kind, ...]] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        defaults: dict[str, flags.Value] = {
            "master": "master",
            "worker": "worker",
            "port": 23456,
            "wait-master-enabled": False,
            "wait-master-timeout": 300,
            "wait-master-image": "busybox:1.36.1",
        }
        self._flags = flags.parse(self.name, arguments, defaults)
        self._master, self._worker = self._flags.text("master"), self._flags.text("worker")
        self._port = self._flags.port("port")

    def objects(self, job: Job) -> list[Beside]:
        """Need nothing."""
        del job
        return []

    def complete(self, pod: Manifest, place: Place) -> None:
        """Set the variables and declare the port."""
        job, role = place.job, place.role
        master, workers = job.by_name.get(self._master), job.by_name.get(self._worker)
        if master is None:
            return
        size = master.replicas + (workers.replicas if workers is not None else 0)
        address, is_worker = hosts.address(job, master, 0), role.name == self._worker
        variables = {
            "MASTER_ADDR": address,
            "MASTER_PORT": str(self._port),
            "WORLD_SIZE": str(size),
        }
        if role.name in (self._master, self._worker):
            variables["RANK"] = str(place.index + 1 if is_worker else 0)
        for container in pods.containers(pod):
            pods.add_port(container, "pytorchjob-port", self._port)
            for name, value in variables.items():
                pods.set_variable(container, name, value)
        if is_worker and self._flags.switch("wait-master-enabled"):
            pod["spec"]["initContainers"] = [self._waiting(address), *manifests.items(pod, "spec", "initContainers")]

    def _waiting(self, address: str) -> Manifest:
        seconds = self._flags.number("wait-master-timeout")
        script = (
            f"end=$(( $(date +%s) + {seconds} )); "
            f"until nc -z {address} {self._port}; do "
            f'if [ "$(date +%s)" -ge "$end" ]; then echo "{address}:{self._port} does not answer after {seconds} s"; exit 1; fi; '
            "sleep 2; done"
        )
        return {
            "name": "wait-for-master",
            "image": self._flags.text("wait-master-image"),
            "command": ["sh", "-c", script],
        }
