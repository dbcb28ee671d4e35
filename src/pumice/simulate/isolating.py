"""A queue alone on its deserved part of the cluster, for finish-time fairness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from pumice.api import core, kinds
from pumice.model import resources
from pumice.simulate import metrics
from pumice.simulate.loading import Loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.results import JobResult
    from pumice.simulate.trace import Given


def alone(loaded: Loaded, queue: str, share: float) -> Loaded:
    """Return the jobs of one queue, on a part of the cluster."""
    trace = structs.replace(loaded.trace, jobs=[job for job in loaded.trace.jobs if job.queue == queue])
    return Loaded(trace, part(loaded.cluster, share))


def part(cluster: Sequence[Given], share: float) -> list[Given]:
    """Return a part of a cluster: whole nodes in the order of their names, and of the last one as much as is missing."""
    nodes = sorted((found for _, found in cluster if isinstance(found, core.Node)), key=lambda node: node.metadata.name)
    left, kept = share * len(nodes), {}
    for node in nodes:
        if left >= 1:
            kept[node.metadata.name] = node
        elif left > 0:
            offered = resources.parse(node.status.allocatable, "allocatable")
            shrunk = {
                name: resources.shown(name, units if name == "pods" else int(units * left))
                for name, units in offered.items()
            }
            kept[node.metadata.name] = structs.replace(node, status=structs.replace(node.status, allocatable=shrunk))
        left -= 1
    return [
        (kind, kept.get(found.metadata.name, found) if kind is kinds.NODE else found)
        for kind, found in cluster
        if kind is not kinds.NODE or found.metadata.name in kept
    ]


def rho(shared: Sequence[JobResult], isolated: Sequence[JobResult]) -> float | None:
    """Return how many times as long the jobs of a queue took together with others as alone, of those that ended both times."""
    pairs = [
        (one.end - one.submit, other.end - other.submit)
        for one, other in zip(shared, isolated, strict=True)
        if one.end is not None and other.end is not None
    ]
    together, by_itself = metrics.mean([one for one, _ in pairs]), metrics.mean([other for _, other in pairs])
    return together / by_itself if together is not None and by_itself else None
