"""overcommit: let no more wait for room than the cluster could come to have."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.model import resources
from pumice.plugins.sharing import admission, minima, queue_limits

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.resources import Vector

FACTOR = Fraction(6, 5)


class OvercommitSettings(Settings):
    """How much may be promised."""

    factor = settings.number(
        "overcommit-factor",
        FACTOR,
        minimum=1,
        replacement=FACTOR,
        help="how many times the cluster may be promised; below 1, 1.2 is used",
    )


class Lack(msgspec.Struct, frozen=True, gc=False):
    """Of what less may be promised than a job asks for; written out when somebody reads it."""

    name: str
    asked: int
    left: int

    def __str__(self) -> str:
        left, asked = (resources.shown(self.name, units) for units in (self.left, self.asked))
        return f"{left} {self.name} may still be promised to jobs that wait, the job asks for {asked}"


class Overcommit(Plugin):
    """Let a group in only while what was let in and is not yet placed fits the cluster, taken somewhat larger than it is.

    The budget is what all nodes offer times `overcommit-factor`, less what is used. A group counts with its `minResources`, without what its gated pods ask
    for; one that runs with all its members counts with what it still lacks. Only resources that the group names are compared. A group without `minResources`
    is not asked about.
    """

    name = "overcommit"
    points = frozenset({"JobEnqueueable", "JobEnqueued"})
    settings = Configured(OvercommitSettings)

    def open(self, session: Session) -> None:
        """Register the vote; what it counts is counted when it is first asked."""
        self.factor = self.settings.factor
        self.factor_text = f"{float(self.factor):g}"
        self.cluster = session.cluster
        self.minima = minima.shared(session)
        self._counted: tuple[Vector, Vector] | None = None
        self._lightened = False
        session.job_enqueueable.add(lambda job: self.vote(session, job))
        session.job_enqueued.add(self.enter)

    def vote(self, session: Session, job: Job) -> Vote:
        """Vote whether a job's minimum fits the budget."""
        if job.min_resources is None:
            return PERMIT
        budget, waiting = self._count()
        if not admission.shortage(self.cluster, job.min_resources, (budget - waiting).tolist()):
            return PERMIT
        waiting = self._without_idle_claims(session, job)
        # Only who does not fit as things are has to count on eviction.
        freed = admission.freed_by_eviction(session, job, None)
        lacking = admission.shortage(self.cluster, job.min_resources, (budget + freed - waiting).tolist())
        if not lacking:
            return PERMIT
        listed = ", ".join(f"overused {name}" for name in lacking)
        session.findings.notice(job, f"resource in cluster is overused: {listed}")
        said = [self._said(name, job.min_resources[name], budget + freed, waiting) for name in lacking]
        return reject(
            f"minResources exceed what may wait for room: {'; '.join(said)}",
            self._cause(lacking[0], job.min_resources[lacking[0]], budget + freed - waiting),
        )

    def _without_idle_claims(self, session: Session, job: Job) -> Vector:
        """Return what waits without groups that can never run, or that only guarantees keep out if the job is within its queue's own."""
        _, waiting = self._count()
        if not self._lightened:
            self._lightened = True
            idle = admission.never_running(session)
            waiting -= self.minima.asked_by(idle).sum(axis=0)
        kept_out = admission.kept_out_for(session, job)
        lighter: Vector = waiting - self.minima.asked_by(kept_out).sum(axis=0)
        return lighter

    def _said(self, name: str, asked: int, budget: Vector, waiting: Vector) -> str:
        column = self.cluster.vocabulary.columns.get(name)
        if column is None:
            return f"no node offers {name}"
        shown = [resources.shown(name, int(units)) for units in (asked, waiting[column], budget[column])]
        return f"{name} {shown[0]} + {shown[1]} let in, budget {shown[2]} ({self.factor_text} x all nodes less what is used)"

    def _cause(self, name: str, asked: int, left: Vector) -> Lack | str:
        column = self.cluster.vocabulary.columns.get(name)
        return self._said(name, asked, left, left) if column is None else Lack(name, asked, max(0, int(left[column])))

    def enter(self, job: Job) -> None:
        """Count a job that has just been let in."""
        if job.min_resources is not None:
            _, waiting = self._count()
            waiting += self.minima.asked(job)

    def _count(self) -> tuple[Vector, Vector]:
        """Return the budget, and what was let in and may still be taken."""
        if self._counted is None:
            self.minima.refresh(self.cluster)
            # Only whole units can be exceeded, so the budget may be rounded down.
            total = queue_limits.total(self.cluster).tolist()
            offered = [min(int(units * self.factor), queue_limits.UNLIMITED) for units in total]
            left = np.array(offered, dtype=np.int64) - self.cluster.nodes.total("taken")
            self._counted = (left, self._waiting(self.cluster))
        return self._counted

    def _waiting(self, cluster: Cluster) -> Vector:
        inside = admission.let_in(cluster)
        # A group that is Inqueue counts in full, though some of its pods may be placed already, as in Volcano (test_inqueue_counts_in_full).
        waiting: Vector = self.minima.asked_by(inside).sum(axis=0) + self.minima.lacking_anywhere
        return waiting
