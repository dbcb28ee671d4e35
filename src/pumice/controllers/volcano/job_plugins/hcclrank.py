"""The plugin hcclrank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.api import names
from pumice.controllers.volcano.job_plugins import flags, pods
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import kinds
    from pumice.controllers.volcano.job_plugins.protocol import Beside, Place
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]


class HcclRank:
    """Numbers the pods for Ascend's collective communication: the annotation `hccl/rankIndex`.

    A value that the template states stays; else it is the variable `RANK` of a container, else the index, workers after the masters. Other tasks are left alone.

    `--master` (master), `--worker` (worker): which task is which.
    """

    name: ClassVar[str] = "hcclrank"
    makes: ClassVar[tuple[kinds.Kind, ...]] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        found = flags.parse(self.name, arguments, {"master": "master", "worker": "worker"})
        self._master, self._worker = found.text("master"), found.text("worker")

    def objects(self, job: Job) -> list[Beside]:
        """Need nothing."""
        del job
        return []

    def complete(self, pod: Manifest, place: Place) -> None:
        """Annotate the pod."""
        annotations = pod["metadata"].setdefault("annotations", {})
        if names.RANK_INDEX in annotations:
            return
        rank = _stated(pod) or self._counted(place)
        if rank:
            annotations[names.RANK_INDEX] = rank

    def _counted(self, place: Place) -> str:
        if place.role.name == self._master:
            return str(place.index)
        if place.role.name != self._worker:
            return ""
        master = place.job.by_name.get(self._master)
        return str(place.index + (master.replicas if master is not None else 0))


def _stated(pod: Manifest) -> str:
    variables = (each for container in pods.containers(pod) for each in manifests.items(container, "env"))
    found = (manifests.mapping(each) for each in variables)
    return next((str(each.get("value", "")) for each in found if each.get("name") == "RANK"), "")
