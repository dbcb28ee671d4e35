"""The plugin mpi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.controllers.volcano.job_plugins import flags, hosts, pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import kinds
    from pumice.controllers.volcano.job_plugins.protocol import Beside, Place
    from pumice.controllers.volcano.jobs.reading import Job


class Mpi:
    """Tells the master of an MPI Job its workers, in the variable `MPI_HOST`, and declares the port of ssh in every container.

    `--master` (master), `--worker` (worker): which task is which. `--port` (22): where ssh listens.
    """

    name: ClassVar[str] = "mpi"
    makes: ClassVar[tuple[kinds.Kind, ...]] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        found = flags.parse(self.name, arguments, {"master": "master", "worker": "worker", "port": 22})
        self._master, self._worker = found.text("master"), found.text("worker")
        self._port = found.port("port")

    def objects(self, job: Job) -> list[Beside]:
        """Need nothing."""
        del job
        return []

    def complete(self, pod: dict[str, Any], place: Place) -> None:
        """Declare the port; tell the master its workers."""
        workers = place.job.by_name.get(self._worker)
        is_master = place.role.name == self._master
        if is_master and workers is None:
            return
        listed = ",".join(hosts.addresses(place.job, workers)) if workers is not None else ""
        for container in pods.containers(pod, init=True):
            pods.add_port(container, "mpijob-port", self._port)
            if is_master:
                pods.set_variable(container, "MPI_HOST", listed)
