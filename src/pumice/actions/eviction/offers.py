"""What each node would cost a claimant, kept and brought up to date row by row.

An offer is found by evicting, in victim order, until the claimant fits, then giving back whoever is not needed. Claimants that nothing can tell apart share
their offers; after a change only the rows that changed are asked again, and the cheapest offer is asked again before it is taken, since budgets and
gangs elsewhere may have changed it.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import quick, units
from pumice.framework import foresight
from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.units import Unit
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task

Rank = tuple[tuple[int, int], int, int, int]


class Offer(msgspec.Struct, frozen=True):
    """What one node would cost one member."""

    row: int
    units: tuple[Unit, ...]
    rank: Rank


class Shelf:
    """The offers for claimants of one kind."""

    __slots__ = ("heap", "offers", "position")

    def __init__(self) -> None:
        self.offers: dict[int, Offer] = {}
        self.heap: list[tuple[Rank, int]] = []
        self.position = -1

    def put(self, row: int, offer: Offer | None) -> None:
        """Keep the offer of a row, or forget that it had one."""
        if offer is None:
            self.offers.pop(row, None)
        else:
            self.offers[row] = offer
            heapq.heappush(self.heap, (offer.rank, row))

    def first(self, within: frozenset[int] | None = None) -> Offer | None:
        """Return the cheapest offer, of all rows or of some."""
        aside: list[tuple[Rank, int]] = []
        found: Offer | None = None
        while self.heap and found is None:
            rank, row = self.heap[0]
            offer = self.offers.get(row)
            if offer is not None and offer.rank == rank and (within is None or row in within):
                found = offer
                break
            heapq.heappop(self.heap)
            if offer is not None and offer.rank == rank:
                aside.append((rank, row))
        for entry in aside:
            heapq.heappush(self.heap, entry)
        return found


class Market:
    """All offers of one action in one cycle."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._session = session
        self._rules = rules
        self._shelves: dict[Hashable, Shelf] = {}
        self._by_priority = all(not f.reads & Reads.JOB for f in rules.functions())

    def kind_of_job(self, job: Job) -> Hashable:
        """Return what the candidates for a job depend on."""
        return (job.queue, job.priority) if self._by_priority and not self._rules.within else job.key

    def key(self, plan: Plan, member: Task) -> Hashable:
        """Return what the offers for a member depend on, apart from the nodes."""
        job = plan.job
        parts: tuple[Hashable, ...] = (*member.likeness, job.queue, job.priority, tuple(plan.excluded))
        return parts if self._by_priority and not self._rules.within else (*parts, job.key, member.priority)

    def cheapest(self, plan: Plan, member: Task) -> Offer | None:
        """Return the cheapest offer for a member as things stand."""
        key = self.key(plan, member)
        evaluation = plan.evaluation(member)
        offer = self._first(self._shelves.setdefault(key, Shelf()), plan, member, evaluation)
        if offer is None and plan.units and self._reaches_far(evaluation):
            # What victims on other nodes gave back of a limit may help a node that has not changed.
            offer = self._first(Shelf(), plan, member, evaluation)
        return offer

    def _reaches_far(self, evaluation: Evaluation) -> bool:
        """Tell whether what goes on one node may change the verdict about another."""
        return self._session.allocatable.active or evaluation.minds_others(released=True)

    def _first(self, shelf: Shelf, plan: Plan, member: Task, evaluation: Evaluation) -> Offer | None:
        """Return the cheapest offer of a shelf, brought up to date."""
        self._refresh(shelf, plan, member, evaluation)
        rows = plan.rows(member)
        within = None if rows is None else frozenset(rows.tolist())
        while (offer := shelf.first(within)) is not None:
            again = self._assess(plan, member, evaluation, offer.row)
            if again is not None and again.rank <= offer.rank:
                return again
            shelf.put(offer.row, again)
        return None

    def _refresh(self, shelf: Shelf, plan: Plan, member: Task, evaluation: Evaluation) -> None:
        table = self._session.cluster.nodes
        rows = table.changed_since(shelf.position) if shelf.position >= 0 else None
        shelf.position = table.position
        if rows is None:
            rows = self._rules.rows(member)
        if not len(rows):
            return
        curable = evaluation.curable()
        for row in rows.tolist():
            shelf.put(row, self._assess(plan, member, evaluation, row) if curable[row] else None)
        # Trying out leaves everything as it was, but not the log of rows.
        shelf.position = table.position

    def _assess(self, plan: Plan, member: Task, evaluation: Evaluation, row: int) -> Offer | None:
        """Find out what a node would cost a member, leaving everything as it was."""
        record = self._session.cluster.nodes.records[row]
        offered = self._rules.offered(member, record) if record.tasks else []
        if plan.excluded:
            offered = [task for task in offered if task.uid not in plan.excluded]
        if not offered or not could_fit(member, record, offered, plan):
            return None
        taken = quick.assess(plan, member, evaluation, record, offered)
        if taken is None:
            mark = plan.statement.checkpoint()
            taken = self._take_until_it_fits(plan, member, record, offered)
            if len(taken) > 1:
                taken = self._give_back(plan, member, row, taken)
            plan.statement.rollback(mark)
        if not taken:
            return None
        priority = max(unit.priority for unit in taken)
        count = sum(len(unit.tasks) for unit in taken)
        evaluation.refresh_scores()
        only = np.array([row], dtype=np.int64)
        score = int(foresight.rounded(evaluation.plain[only] + evaluation.normalised(only))[0])
        return Offer(row, tuple(taken), (priority, count, -score, row))

    def _take_until_it_fits(self, plan: Plan, member: Task, record: NodeRecord, offered: Sequence[Task]) -> list[Unit]:
        """Evict what the plugins offer, first to go first, until the member fits; nobody if it never does.

        At equal priority whoever can be spared goes before a gang is broken.
        """
        taken: list[Unit] = []
        gone: set[str] = set()
        for _, equals in itertools.groupby(offered, key=lambda task: task.job.priority if task.job is not None else 0):
            peers = list(equals)
            for breaking in (False, True):
                for victim in peers:
                    if victim.uid in gone or not self._rules.may_go(member, victim):
                        continue
                    unit = units.unit_of(plan, member, victim)
                    if unit is None or unit.whole is not breaking or any(t.uid in plan.excluded for t in unit.tasks):
                        continue
                    plan.statement.evict(unit.tasks, self._rules.name)
                    gone.update(task.uid for task in unit.tasks)
                    taken.append(unit)
                    if plan.fits(member, record.row):
                        return taken
        return []

    def _give_back(self, plan: Plan, member: Task, row: int, taken: list[Unit]) -> list[Unit]:
        """Give back, dearest first, every unit without which the member still fits."""
        kept = list(taken)
        for unit in reversed(taken[:-1]):
            for task in unit.tasks:
                plan.statement.undo(task)
            rest = [other for other in kept if other is not unit]
            if plan.fits(member, row) and plan.leaves_gangs_whole(rest):
                kept = rest
            else:
                plan.statement.evict(unit.tasks, self._rules.name)
        return kept


def could_fit(member: Task, record: NodeRecord, offered: Sequence[Task], plan: Plan) -> bool:
    """Tell whether a node would have room if everybody who is offered, and whoever goes with them, were gone."""
    table = plan.session.cluster.nodes
    row = record.row
    request = member.shape.request
    if request.unoffered:
        return False
    free = table.future_idle_at(row)
    jobs = {task.job.key for task in offered if task.job is not None}
    leaving = (
        [task for task in record.tasks.values() if task.job is not None and task.job.key in jobs]
        if plan.gangs
        else offered
    )
    for task in leaving:
        free = free + task.shape.request.vector
    return bool((free[request.asked] >= request.needed).all())
