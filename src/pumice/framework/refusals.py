"""What was refused is remembered from cycle to cycle, until something changes that the refusal rests on.

Whether anybody may go for a claimant is asked of every pod that holds room, for every kind of claimant. In a cluster that is full and settled the answer is no, cycle after
cycle; it rests on the pods that are placed, on what queues hold and say, and on what each plugin names as the basis of its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.framework import independence
from pumice.model.statuses import PLACED

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.framework.extensions import Registered
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job

MOST = 10_000  # refusals that are kept at a time


class PlacedPods:
    """Counts how often a pod that is on a node, or what its group says, has become another."""

    def __init__(self) -> None:
        self.count = 0
        self._cluster: Cluster | None = None
        self._position = 0
        self._seen: dict[int, object] = {}

    def follow(self, cluster: Cluster) -> int:
        """Look at the jobs that were touched since the last look, and return the count."""
        log = cluster.job_changes
        rows = log.since(self._position) if cluster is self._cluster else None
        if rows is None:
            self._cluster, self._seen, rows = cluster, {}, list(cluster.job_at)
            self.count += 1
        self._position = log.position
        for row in rows:
            job = cluster.job_at.get(row)
            now = None if job is None else _standing(job)
            # What was tried and undone has touched a job too, and left it as it was.
            if self._seen.get(row) != now:
                self.count += 1
            if now is None:
                self._seen.pop(row, None)
            else:
                self._seen[row] = now
        return self.count


def _standing(job: Job) -> object:
    """Return what there is to know of the placed pods of a job; None if it has none."""
    placed = [(task.pod, task.status, task.node) for task in job.tasks.values() if task.status in PLACED]
    group = job.group
    said = None if group is None else (group.spec, group.metadata.annotations)
    return (job.key, job.queue, job.bad, said, placed) if placed else None


class Refusals:
    """The claimants that were refused on one basis, by kind, each with what is to be said of it."""

    def __init__(self) -> None:
        self._basis: object = None
        self._kept: dict[Hashable, Any] = {}

    def at(self, basis: object) -> dict[Hashable, Any]:
        """Return what is known on a basis, to be added to; of None nothing is kept."""
        if basis is None or basis != self._basis or len(self._kept) > MOST:
            self._basis, self._kept = basis, {}
        return self._kept


def remembered(session: Session, what: str, functions: Iterable[Registered[..., Any]]) -> dict[Hashable, Any]:
    """Return the refusals of one kind of question that are known as things stand, given who answers it."""
    kept = session.lasting.setdefault(f"refusals: {what}", Refusals())
    assert isinstance(kept, Refusals)  # noqa: S101  nobody else has that name
    return kept.at(_basis(session, functions))


def _basis(session: Session, functions: Iterable[Registered[..., Any]]) -> object:
    """Return what the answers rest on; None if somebody reads the clock, or does not say what else he reads."""
    said = []
    for each in functions:
        if not independence.stays_with_its_basis(each):
            return None
        if each.basis is not None:
            said.append(each.basis())
    placed = session.lasting.setdefault("placed pods", PlacedPods())
    assert isinstance(placed, PlacedPods)  # noqa: S101  as above
    cluster = session.cluster
    sums, queues, classes = cluster.queue_sums, cluster.queues, cluster.priority_classes
    return (
        placed.follow(cluster),
        sums.allocated.tobytes(),
        sums.pipelined.tobytes(),
        [(queue.name, queue.object) for queue in queues.values()],
        list(classes.values()),
        said,
    )
