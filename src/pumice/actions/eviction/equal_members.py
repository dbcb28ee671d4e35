"""Equal members of a claimant: a node that surely comes first for several of them takes one after the other, and others are not looked at for each.

That can be told ahead where one pod makes room for one member, the pods are alike, and what happens on one node changes nothing on any other. `bench.eviction.thousand_victims` takes 1.7 times as
long without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction.victim_sets import VictimSets
from pumice.actions.placing import task_runs
from pumice.framework import foresight, subject
from pumice.model.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.eviction.offers import KindBounds, Offers, OpenNodes
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.set_order import Choice
    from pumice.actions.eviction.unit_columns import Item
    from pumice.framework.evaluation import Evaluation, Mask
    from pumice.model.nodes import Rows
    from pumice.model.task import Task

# For fewer it is not worth looking ahead.
FEWEST = 2


def place(plan: Plan, offers: Offers, tasks: Sequence[Task], at: int, done: Callable[[], bool]) -> tuple[int, bool]:
    """Place those that come next and are equal to the member before them, which was placed, as long as it can be told ahead where they go; returns how many were, and whether these are enough."""
    if at == len(tasks) or not plan.units:
        return 0, False
    run = task_runs.next_run(plan.session, tasks, at)
    if (run[0].likeness, run[0].priority) != (tasks[at - 1].likeness, tasks[at - 1].priority):
        return 0, False
    count = 0
    while count < len(run):
        ahead = offers.look_ahead(plan, run[count])
        first = None if ahead is None else ahead.kind.bounds.lowest(ahead.left, ahead.scores)
        if ahead is None or first is None:
            break
        node, before = NodeAhead(plan, ahead.kind, first), count
        for member in run[count : count + times(ahead, first)]:
            if not node.seat(member):
                return count, False
            count += 1
            if done():
                return count, True
        if count == before:
            break
    return count, False


class NodeAhead:
    """A node on which one pod makes room for one member, and its pods are alike."""

    def __init__(self, plan: Plan, kind: KindBounds, row: int) -> None:
        self.plan = plan
        self.row = row
        self._kind_bounds = kind
        self._rank = kind.bounds.rank(row)
        # Who could go there, in victim order, and what could go, as long as that is known.
        self._known: list[Task] = []
        self._choices: list[Choice] = []

    def seat(self, member: Task) -> bool:
        """Place one member, if it costs what was expected and the job that loses a pod could lose another anywhere."""
        plan, kind = self.plan, self._kind_bounds
        if not plan.is_allowed(member) or plan.rules.may_ask(plan.queue, member) is not None:
            return False
        if plan.session.pre_predicate(subject.Subject(member, plan.queue)) is not None:
            return False
        sets = VictimSets(plan, member, kind.columns.protections, kind.passed)
        if not sets.door.by_numbers:
            return False
        if not self._known:
            self._known = sets.in_order(self.row)
            self._choices = sets.choices(self._known, self.row)
        found = sets.cheapest(self.row, self._known, self._choices)
        if found is None or found[0] != self._rank or len(found[1]) > 1:
            return False
        unit = found[1][0]
        if unit.whole or not kind.columns.can_spare_more(unit.tasks[0]):
            return False
        mark, members = plan.statement.checkpoint(), len(plan.members)
        self._leave_out(unit.tasks[0])
        if plan.add_step(member, self.row, [unit]):
            return True
        plan.units.pop()
        plan.back_to(mark, members)
        return False

    def _leave_out(self, gone: Task) -> None:
        """Remember who could still go; a job that has lost a pod may stand elsewhere in the order."""
        self._known = [task for task in self._known if task is not gone]
        if any(task.job_key == gone.job_key for task in self._known):
            self._known = []
        self._choices = [choice for choice in self._choices if choice.unit.tasks[0] is not gone]


def times(ahead: OpenNodes, row: int) -> int:
    """Return how many equal members surely go to the node that comes first of those that are left, one after the other."""
    kind = ahead.kind
    bounds, columns = kind.bounds, kind.columns
    alike = _alike(kind, row)
    if len(alike) < FEWEST:
        return 0
    request = kind.request
    more = request.vector - alike[0].freed
    lacking = request.vector - columns.table.future_idle_at(row)
    steps = np.arange(len(alike))[:, None]
    short = (lacking + steps * more)[:, request.asked]
    # With what one pod gives back there is room for one member, and for none without.
    enough: Mask = np.logical_and.reduce(short <= alike[0].freed[request.asked], axis=1)
    fits: Mask = enough & np.logical_or.reduce(short > 0, axis=1)
    if (more[request.asked] < 0).any():
        return 0
    others = ahead.left.copy()
    others[row] = False
    other = bounds.lowest(others, ahead.scores)
    if other is not None:
        best = (bounds.rank(other), -int(ahead.scores[other]), other)
        scores = _scores_ahead(kind, ahead.evaluation, row, len(alike))
        rank = bounds.rank(row)
        fits &= np.array([(rank, -score, row) < best for score in scores.tolist()], dtype=np.bool_)
    return int(fits.argmin()) if not fits.all() else len(alike)


def _alike(kind: KindBounds, place: int) -> list[Item]:
    """Return the pods of a node that are as cheap as its bound, each of them enough, if they are alike."""
    bounds, columns = kind.bounds, kind.columns
    if bounds.breaks[place] or bounds.count[place] != 1 or not bounds.settled[place]:
        return []
    start, end = int(columns.starts[place]), int(columns.ends[place])
    listed = [columns.items[at] for at in range(start, end) if kind.usable[at]]
    rank = bounds.rank(place)
    code = int(bounds.priority[place])
    found = [i for i in listed if i is not None and (i.priority, i.breaks, i.count, i.loss) == (code, *rank[1:])]
    return found if found and all(item.freed is found[0].freed for item in found) else []


def _scores_ahead(kind: KindBounds, evaluation: Evaluation, row: int, count: int) -> Rows:
    """Return the scores of a node before each of some members that wait there for pods that go."""
    table = kind.columns.table
    rows = np.full(count, row, dtype=np.int64)
    waiting = table.pipelined[rows] + np.arange(count)[:, None] * kind.request.vector
    nodes = Nodes(table, rows, table.used[rows], table.non_zero[rows], waiting, released=False)
    return foresight.rounded(evaluation.plain_scores(nodes))
