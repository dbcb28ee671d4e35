"""drf: jobs that hold little go first, by the resource of which they hold most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model.resources import PODS
from pumice.plugins.drf import weight_tree
from pumice.plugins.sharing import queue_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

# Two shares that differ by less count as equal when a victim is judged (test_a_tie_within_a_millionth_is_accepted).
TOLERANCE = 1e-6
EXACT = 2**53
MANY = 64  # shares that are worked out sooner together than one by one


class Shares:
    """Dominant shares of one cluster total: the largest part that is held of anything the nodes offer."""

    __slots__ = ("_columns", "_known", "_totals", "_vector")

    def __init__(self, total: Vector) -> None:
        self._vector = total
        self._known: dict[bytes, float] = {}  # by the amounts: most jobs hold what many others do
        self._columns: list[int] = [column for column, units in enumerate(total.tolist()) if units > 0]
        self._totals: list[int] = [int(total[column]) for column in self._columns]

    def of(self, held: Vector) -> float:
        """Return the share of one sum. A quotient of integers is rounded correctly, so equal ratios are equal numbers."""
        key = held.tobytes()
        share = self._known.get(key)
        if share is None:
            amounts = held.tolist()
            share = max([amounts[c] / t for c, t in zip(self._columns, self._totals, strict=True)], default=0.0)
            self._known[key] = share
        return share

    def of_each(self, held: Matrix) -> npt.NDArray[np.float64]:
        """Return the share of every row, the same numbers: up to `EXACT` numpy takes integers for what they are."""
        if max(self._totals, default=0) > EXACT or int(held.max(initial=0)) > EXACT:
            return np.array([self.of(row) for row in held], dtype=np.float64)
        parts = held[:, self._columns] / self._vector[self._columns]
        shares: npt.NDArray[np.float64] = parts.max(axis=1, initial=0.0)
        return shares


class Drf(Plugin):
    """Serve jobs with a small dominant share first: the largest part of the cluster's total that a job holds of any one resource, pods included.

    A pod may be preempted if its job's share, without it, is still not below that of the claimant's job with the claimant.

    With `enableHierarchy: true` queues are ordered too, as a tree: the annotation `volcano.sh/hierarchy` (`root/eng/prod`) names the branches above a queue's
    jobs and `volcano.sh/hierarchy-weights` (`1/2/8`) weighs them. On each level branches that still want something come before
    saturated ones, then those with the smaller share per weight; shares follow every placement. A queue without the annotation hangs
    directly under the root with weight 1, a missing or bad weight is 1, and where queues disagree about a branch the oldest one with jobs is believed. Reclaim takes pods
    from queues that would still come after the claimant's.
    """

    name = "drf"
    points = frozenset({"JobOrder", "Preemptable", "QueueOrder", "Reclaimable", "Hierarchy"})

    def open(self, session: Session) -> None:
        """Register the order of jobs and the victim rule, and with hierarchy the same for queues."""
        cluster = session.cluster
        self._session = session
        self._sums = cluster.job_sums
        total = queue_limits.total(cluster)
        if session.configuration.rules == "kube-batch":
            total[PODS] = 0
        self._shares = Shares(total)
        self._known: dict[str, float] = {}
        # Whose share is not known and may be asked for: worked out together when the first is.
        self._unknown: dict[str, Job] = {}
        self._asked = False
        self.tree: weight_tree.WeightTree | None = None
        session.job_order.add(self.share)
        session.preemptable.add(self.preemptable, reads=Reads.COLUMNS | Reads.OTHER_NODES, basis=total.tobytes)
        self._left: weight_tree.WeightTree | None = None
        self._total = total
        if self.switches["enableHierarchy"]:
            self.tree = self._grow(session, total)
            session.queue_order.add_tree(self._path)
            session.reclaimable.add(self.reclaimable)
        # What a job waits for decides whether it is saturated.
        session.follow(self._follow, waiting=True, one_job=True)

    # -- jobs --------------------------------------------------------------------------------------------------

    def share(self, job: Job) -> float:
        """Return a job's share as it is now."""
        known = self._known.get(job.key)
        return known if known is not None else self._learned(job)

    def _learned(self, job: Job) -> float:
        """Compute the share of a job, with those of all others that are not known where they are many: in a round many change before any is asked for."""
        if not self._asked:
            self._asked = True
            session = self._session
            self._unknown.update(session.awake)
            self._unknown.update((each.key, each) for each in session.cluster.phases.jobs(names.PHASE_PENDING))
        if len(self._unknown) < MANY:
            self._unknown.pop(job.key, None)
            share = self._known[job.key] = self._shares.of(self._sums.held(job.row))
            return share
        self._unknown[job.key] = job
        rows = [each.row for each in self._unknown.values()]
        shares = self._shares.of_each(self._sums.allocated[rows] + self._sums.pipelined[rows])
        self._known.update(zip(self._unknown, shares.tolist(), strict=True))
        self._unknown.clear()
        return self._known[job.key]

    def _follow(self, runs: Sequence[Run], _sign: int) -> None:
        """Forget the shares of jobs that got or gave back something."""
        if not self._known and self.tree is None and self._left is None:
            return
        for run in runs:
            job = run.tasks[0].job
            if job is None:
                continue
            if self._known.pop(job.key, None) is not None:
                self._unknown[job.key] = job
            if self.tree is not None:
                self.tree.follow(job)
            if self._left is not None and self._left is not self.tree:
                self._left.follow(job)

    def preemptable(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates whose job, without them, is no poorer than the claimant's job with the claimant."""
        if claimant.job is None:
            return []
        own = self._shares.of(self._sums.held(claimant.job.row) + claimant.shape.request.vector)
        left: dict[str, Vector] = {}
        accepted = []
        for task in candidates:
            if task.job is None:
                continue
            # A candidate is taken off whether or not it is accepted, as in the peer (test_a_refused_candidate_is_taken_off_too).
            held = left.get(task.job.key)
            held = (self._sums.held(task.job.row) if held is None else held) - task.shape.request.vector
            left[task.job.key] = held
            if own <= self._shares.of(held) + TOLERANCE:
                accepted.append(task)
        return accepted

    # -- queues ------------------------------------------------------------------------------------------------

    def _grow(self, session: Session, total: Vector) -> weight_tree.WeightTree:
        """Hang every usable job into the tree."""
        members: dict[str, list[Job]] = {}
        for job in session.cluster.jobs.values():
            if session.usable(job):
                members.setdefault(job.queue, []).append(job)
        queues: Iterable[Queue] = (queue for queue in session.cluster.queues.values() if not queue.bad)
        return weight_tree.WeightTree(members, queues, self._sums, total)

    def _path(self, queue: Queue) -> tuple[weight_tree.Branch, ...]:
        """Return the branches above a queue as they are now."""
        tree = self._settled()
        return tree.path(queue) if tree is not None else ()

    def _settled(self) -> weight_tree.WeightTree | None:
        if self.tree is not None and self.tree.settle():
            self._session.queue_order.touch_all()
        return self.tree

    def _of_what_is_left(self) -> weight_tree.WeightTree | None:
        """Return the tree by which dues are judged: shares of what foreign pods leave, since nobody is above a due that the cluster cannot give."""
        own = self._settled()
        if self._left is None and own is not None:
            cluster = self._session.cluster
            taking_part = {name for name, queue in cluster.queues.items() if not queue.bad}
            left = queue_limits.available(cluster, taking_part)
            self._left = own if (left == self._total).all() else self._grow(self._session, left)
        if self._left is not None and self._left is not own:
            self._left.settle()
        return self._left

    def reclaimable(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates whose queue would still come after the claimant's, each judged by itself with the claimant placed."""
        tree, job = self._of_what_is_left(), claimant.job
        queue = self._session.queue_of(job) if job is not None else None
        if tree is None or job is None or queue is None:
            return []
        request = claimant.shape.request.vector
        tree.shift(job, request)
        accepted = [task for task in candidates if self._still_after(tree, queue, task)]
        tree.shift(job, -request)
        return accepted

    def _still_after(self, tree: weight_tree.WeightTree, queue: Queue, victim: Task) -> bool:
        other = self._session.queue_of(victim.job) if victim.job is not None else None
        if other is None or victim.job is None:
            return False
        request = victim.shape.request.vector
        tree.shift(victim.job, -request)
        accepted = tree.precedes(queue, other)
        tree.shift(victim.job, request)
        return accepted
