"""Claimants of one pod that are like the one before them: on which node room is made for each is known ahead.

Where a plan changes nothing but its own node, all others cost what they did. So nodes are put in order once, and each claimant takes the first that is left, if the victims
there are what they were expected to be. A node that was taken comes back into the order if it could make room for another. Whatever else happens, nodes are looked at anew. The workload preemption-1000 takes twice as long without.
"""

from __future__ import annotations

import heapq
import operator
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction.victim_sets import VictimSets
from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pumice.actions.eviction.asking import Wanted
    from pumice.actions.eviction.offers import KindBounds, Offers, OpenNodes
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.ranking import Rank
    from pumice.actions.eviction.units import Unit
    from pumice.framework.session import Session
    from pumice.model.task import Task


# After so many claimants in a row that were like the last one and had to be served in another way, it is not tried any more.
IN_VAIN = 4


class NodeOrder:
    """The nodes that claimants of one kind are sent to, in that order."""

    def __init__(self, ahead: OpenNodes) -> None:
        self.kind = ahead.kind
        self.evaluation = ahead.evaluation
        self._scores = ahead.scores
        self._places = ahead.kind.bounds.in_order(ahead.left, ahead.scores)[::-1]
        self.back: list[tuple[Rank, int, int]] = []  # nodes that were taken, in the order of a heap

    def first(self) -> tuple[Rank, int, int] | None:
        """Return what the first node costs, its score and its row, as offers are ranked; None if none is left, or if what it costs is not known yet."""
        listed = self._ranked(self._places[-1]) if self._places else None
        if self.back and (listed is None or self.back[0] < listed):
            return self.back[0]
        return listed if listed is not None and self.kind.bounds.settled[self._places[-1]] else None

    def remove(self, first: tuple[Rank, int, int]) -> None:
        """Take the first node out of the order."""
        if self.back and self.back[0] is first:
            heapq.heappop(self.back)
        else:
            self._places.pop()

    def put_back(self, ahead: OpenNodes, row: int) -> None:
        """Put a node that was taken back in its place, if somebody there can still help."""
        bounds = self.kind.bounds
        if not bounds.settled[row]:
            places = np.array([row], dtype=np.int64)
            bounds.tighten(places, self.kind.lacking(places), self.kind.usable)
        if ahead.left[row] and bounds.possible[row]:
            self._scores[row] = ahead.scores[row]
            heapq.heappush(self.back, self._ranked(row))

    def _ranked(self, row: int) -> tuple[Rank, int, int]:
        return self.kind.bounds.rank(row), -int(self._scores[row]), row


class EqualClaimants:
    """Follows the plans of one search, and makes the next one like the last."""

    def __init__(self, session: Session, offers: Offers) -> None:
        self._session = session
        self._table = session.cluster.nodes
        self._offers = offers
        # The claimant for which a plan was made last, the order that it was made by, and the position of the log since when nothing else has happened.
        self._last: Hashable = None
        self._order: NodeOrder | None = None
        self._position = -1
        self._taken = -1  # the node of that plan
        self._in_vain = 0

    def made(self, plan: Plan) -> None:
        """Remember a plan that was carried out."""
        self._last = _kind(plan, plan.members)
        if not plan.is_trimmed:
            self._order = None
        self._position = self._table.position

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Place the pod of a claimant that is like the last one."""
        if self.place(plan, wanted.tasks, wanted.done):
            yield

    def place(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place the pod of a claimant that is like the last one; False, with what was tried still in the plan, if it has to be looked for a node in full."""
        order, self._order = self._order, None
        usual = self._in_vain < IN_VAIN and plan.session.shortcuts.equal_claimants
        kind = _kind(plan, tasks) if usual else None
        if kind is None or kind != self._last or plan.excluded or plan.is_small(tasks):
            return False
        self._in_vain += 1
        order = self._up_to_date(order, plan, tasks[0])
        first = None if order is None else order.first()
        if order is None or first is None or not self._is_welcome(plan, tasks[0]):
            return False
        found = self._cheapest(order, plan, tasks[0], first)
        if not found:
            return False
        row = first[2]
        if not plan.add_step(tasks[0], row, found) or not self._is_full(plan, row) or not done():
            return False
        plan.is_trimmed = True
        order.remove(first)
        self._order, self._taken, self._in_vain = order, row, 0
        return True

    def _up_to_date(self, order: NodeOrder | None, plan: Plan, member: Task) -> NodeOrder | None:
        """Return the order of nodes for a claimant as things stand; None if there is none."""
        if order is None or self._position != self._table.position:
            ahead = self._offers.look_ahead(plan, member)
            return None if ahead is None or _protects(ahead.kind, member) else NodeOrder(ahead)
        if order.evaluation is not plan.evaluation(member) or _protects(order.kind, member):
            return None
        if self._may_help_again(member, self._taken):
            ahead = self._offers.look_ahead(plan, member)
            if ahead is None or ahead.kind is not order.kind:
                return None
            order.put_back(ahead, self._taken)
        return order

    def _may_help_again(self, member: Task, row: int) -> bool:
        """Tell by numbers whether a node would have room for another claimant with everybody gone."""
        request, table = member.shape.request, self._table
        most = table.allocatable[row] - table.pipelined[row]
        return bool((most[request.asked] >= request.needed).all())

    def _is_welcome(self, plan: Plan, member: Task) -> bool:
        """Ask whether nothing speaks against a member wherever it goes."""
        session, queue = self._session, plan.queue
        return (
            plan.is_allowed(member)
            and session.pre_predicate(subject.Subject(member, queue)) is None
            and plan.rules.may_ask(queue, member) is None
        )

    def _cheapest(
        self, order: NodeOrder, plan: Plan, member: Task, first: tuple[Rank, int, int]
    ) -> tuple[Unit, ...] | None:
        """Return who goes for a member on the first node, if that is what was expected and changes no other node."""
        columns = order.kind.columns
        sets = VictimSets(plan, member, columns.protections, order.kind.passed)
        found = sets.cheapest(first[2]) if sets.door.by_numbers else None
        if found is None or found[0] != first[0]:
            return None
        if any(len(unit.tasks) > 1 for unit in found[1]):
            return None
        return found[1] if columns.leave_others_alone([unit.tasks[0] for unit in found[1]]) else None

    def _is_full(self, plan: Plan, row: int) -> bool:
        """Tell whether a node has no room for another like the member that was placed there, and none for it without each of its victims."""
        request = plan.members[0].shape.request
        idle = self._table.future_idle_at(row)[request.asked].tolist()
        if not any(map(operator.lt, idle, request.needed.tolist())):
            return False
        gone = {id(unit.tasks[0].shape): unit.tasks[0].shape.request for unit in plan.units}
        return all(any(map(operator.gt, each.vector[request.asked].tolist(), idle)) for each in gone.values())


def _protects(kind: KindBounds, member: Task) -> bool:
    """Tell whether anybody is known to be protected by a queue."""
    return kind.columns.protected(member) is not None


def _kind(plan: Plan, tasks: Sequence[Task]) -> Hashable:
    """Return what a claimant of one pod shares with its equals; None of others."""
    job, member = plan.job, tasks[0]
    if len(job.tasks) > 1 or plan.domain is not None or job.policies or job.topology is not None:
        return None
    shape = member.shape
    # Who minds other pods may come to mind those that are placed before it.
    likeness = member.likeness
    if member.best_effort or shape.request.unoffered or shape.constraints.has_volumes or likeness[1] is not None:
        return None
    return shape.serial, member.priority, job.queue, job.priority
