"""overcommit: let no more wait for room than the cluster could come to have."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pumice.framework.configuration import Argument
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.model import resources
from pumice.plugins import counters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.resources import Vector

FACTOR = Fraction(6, 5)


class Overcommit(Plugin):
    """Let a group in only while what was let in and is not yet placed fits the cluster, taken somewhat larger than it is.

    The budget is what all nodes offer times `overcommit-factor`, less what is used. A group counts with its `minResources`, without what its gated pods ask
    for; one that runs with all its members counts with what it still lacks. Only resources that the group names are compared. A group without `minResources`
    is not asked about.
    """

    name = "overcommit"
    points = frozenset({"JobEnqueueable", "JobEnqueued"})
    arguments = (
        Argument(
            name="overcommit-factor",
            kind="float",
            default=FACTOR,
            minimum=1,
            replacement=FACTOR,
            help="how many times the cluster may be promised; below 1, 1.2 is used",
        ),
    )

    def __init__(self, arguments: Mapping[str, Any], switches: Mapping[str, bool]) -> None:
        super().__init__(arguments, switches)
        self.minima = counters.Minima()

    def open(self, session: Session) -> None:
        """Register the vote; what it counts is counted when it is first asked."""
        self.factor = Fraction(self.settings["overcommit-factor"])
        self.cluster = session.cluster
        self._counted: tuple[Vector, Vector, Vector] | None = None
        session.job_enqueueable.add(lambda job: self.vote(session, job))
        session.job_enqueued.add(self.enter)

    def vote(self, session: Session, job: Job) -> Vote:
        """Vote whether a job's minimum fits the budget."""
        if job.min_resources is None:
            return PERMIT
        cluster = self.cluster
        total, used, waiting = self._count()
        names = cluster.vocabulary.names
        minimum = cluster.vocabulary.vector(job.min_resources)
        used = used - counters.freed_by_eviction(session, job, None)
        # Only whole units can be exceeded, so the budget may be rounded down.
        budget = [int(units * self.factor) - taken for units, taken in zip(total.tolist(), used.tolist(), strict=True)]
        beyond = [
            column
            for column, (asked, already) in enumerate(zip(minimum.tolist(), waiting.tolist(), strict=True))
            if asked and column != resources.PODS and asked + already > budget[column]
        ]
        missing = counters.unoffered(cluster, job.min_resources)
        if not beyond and not missing:
            return PERMIT
        lacking = [*(names[column] for column in beyond), *missing]
        listed = ", ".join(f"overused {name}" for name in lacking)
        session.notices.append((job, f"resource in cluster is overused: {listed}"))
        said = [
            f"{name} {resources.shown(name, int(minimum[c]))} + {resources.shown(name, int(waiting[c]))} let in, "
            f"{resources.shown(name, budget[c])} may wait ({float(self.factor):g} x {resources.shown(name, int(total[c]))} "
            f"less {resources.shown(name, int(used[c]))} used)"
            for c, name in zip(beyond, lacking, strict=False)
        ]
        said += [f"no node offers {name}" for name in missing]
        return reject(f"minResources exceed what may wait for room: {'; '.join(said)}")

    def enter(self, job: Job) -> None:
        """Count a job that has just been let in."""
        if job.min_resources is not None:
            _, _, waiting = self._count()
            waiting += self.minima.deducted(self.minima.minimum[[job.row]], [job])[0]

    def _count(self) -> tuple[Vector, Vector, Vector]:
        """Return what the nodes offer, what is used of it, and what was let in and may still be taken."""
        if self._counted is None:
            cluster = self.cluster
            nodes = cluster.nodes
            self.minima.refresh(cluster)
            used: Vector = nodes.used[: nodes.count].sum(axis=0)
            self._counted = (counters.total(cluster), used, self._waiting(cluster))
        return self._counted

    def _waiting(self, cluster: Cluster) -> Vector:
        inside, beyond = counters.let_in(cluster), counters.running(cluster)
        # A group that is Inqueue counts in full, though some of its pods may be placed already, as in Volcano (test_inqueue_counts_in_full).
        full = self.minima.deducted(self.minima.minimum[[job.row for job in inside]], inside)
        lacking = self.minima.deducted(self.minima.reserved(cluster, beyond), beyond)
        waiting: Vector = full.sum(axis=0) + lacking.sum(axis=0)
        return waiting
