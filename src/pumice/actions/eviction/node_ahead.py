"""A node that surely comes first for each of some equal members: who goes there for them, one after the other or, where nothing can come between them, together."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from pumice.actions.eviction import set_order
from pumice.actions.eviction.units import Unit
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.actions.placing import drafted, task_runs
from pumice.framework import subject
from pumice.framework.reads import Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.eviction.offers import Shelf
    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.set_order import Choice
    from pumice.model.task import Task


class NodeAhead:
    """A node on which one pod makes room for one member, and its pods are alike."""

    def __init__(self, plan: Plan, shelf: Shelf, row: int) -> None:
        self.plan = plan
        self.row = row
        self._shelf = shelf
        self._rank = shelf.bounds.rank(shelf.columns.segments[row])
        # Who could go there, in victim order, and what could go, as long as that is known.
        self._known: list[Task] = []
        self._choices: list[Choice] = []

    def place(self, run: Sequence[Task], done: Callable[[], bool]) -> tuple[int, bool]:
        """Place members there; returns how many were, and whether these are enough."""
        count = 0
        while count < len(run):
            together = self._take_together(run[count:], done)
            if not together and not self._take(run[count]):
                return count, False
            count += together or 1
            if done():
                return count, True
        return count, False

    def _look(self, sets: VictimSets) -> None:
        """Look who could go, unless that is known."""
        if not self._known:
            self._known = sets.in_order(self.row)
            self._choices = sets.choices(self._known, self.row)

    def _take(self, member: Task) -> bool:
        """Place one member, if it costs what was expected and the job that loses a pod could lose another anywhere."""
        plan, shelf = self.plan, self._shelf
        if not plan.is_allowed(member) or plan.rules.may_ask(plan.queue, member) is not None:
            return False
        if plan.session.pre_predicate(subject.Subject(member, plan.queue)) is not None:
            return False
        sets = VictimSets(plan, member, plan.evaluation(member), shelf.columns.protections, passed=shelf.passed)
        if not sets.lasts:
            return False
        self._look(sets)
        found = sets.cheapest(self.row, self._known, self._choices)
        if found is None or found[0] != self._rank or len(found[1]) > 1:
            return False
        unit = found[1][0]
        if unit.whole or not shelf.columns.can_spare_more(unit.tasks[0]):
            return False
        mark, members = plan.statement.checkpoint(), len(plan.members)
        plan.evict(unit)
        self._leave_out(unit.tasks)
        if plan.settle(member, self.row):
            return True
        plan.units.pop()
        plan.back_to(mark, members)
        return False

    def _leave_out(self, gone: Sequence[Task]) -> None:
        """Remember who could still go; a job that has lost a pod may stand elsewhere in the order."""
        uids, jobs = {task.uid for task in gone}, {task.job_key for task in gone}
        self._known = [task for task in self._known if task.uid not in uids]
        if any(task.job_key in jobs for task in self._known):
            self._known = []
        self._choices = [choice for choice in self._choices if choice.unit.tasks[0].uid not in uids]

    # -- together ----------------------------------------------------------------------------------------------

    def _take_together(self, run: Sequence[Task], done: Callable[[], bool]) -> int:
        """Place as many members as are told ahead to go one after the other, until these are enough; returns how many, none if they have to be placed one by one."""
        plan, session = self.plan, self.plan.session
        members = run[: task_runs.lacking(run[0])]
        if len(members) < 2 or not self._are_judged_together():
            return 0
        victims = self._first_to_go(members)
        members = members[: len(victims)]
        if len(members) < 2 or not self._are_welcome(members):
            return 0
        mark, record = plan.statement.checkpoint(), session.cluster.nodes.records[self.row]
        plan.statement.evict(victims, plan.rules.name)
        placed = plan.statement.pipeline(members, [record] * len(members), done, evicted=True)
        # Who has nothing to say before and after all of them are placed had nothing to say in between.
        if not placed or not self._are_welcome(members[:placed]):
            plan.statement.rollback(mark)
            return 0
        for task in victims[placed:]:
            plan.statement.undo(task)
        plan.units += [Unit((task,), whole=False) for task in victims[:placed]]
        plan.members += members[:placed]
        self._leave_out(victims[:placed])
        return placed

    def _are_judged_together(self) -> bool:
        """Tell whether nothing that is asked about one victim or member depends on those before it."""
        session, rules = self.plan.session, self.plan.rules
        return (
            drafted.are_usual(session)
            and not session.allocatable.active
            and all(each.reads == Reads(0) for each in rules.functions())
        )

    def _are_welcome(self, members: Sequence[Task]) -> bool:
        """Ask whether nothing speaks against members wherever they go."""
        session, queue = self.plan.session, self.plan.queue
        return all(
            not member.shape.constraints.has_volumes and session.pre_predicate(subject.Subject(member, queue)) is None
            for member in members
        )

    def _first_to_go(self, members: Sequence[Task]) -> list[Task]:
        """Return the pods that go for the first of some members, one for each, all of other jobs."""
        plan, shelf = self.plan, self._shelf
        member, columns = members[0], shelf.columns
        sets = VictimSets(plan, member, plan.evaluation(member), columns.protections, passed=shelf.passed)
        if not sets.lasts:
            return []
        self._look(sets)
        alike = self._alike()
        jobs = Counter(task.job_key for task in self._known)
        going = [choice.unit.tasks[0] for choice in alike[: sets.how_many_pass(self.row, alike[: len(members)])]]
        going = list(itertools.takewhile(lambda task: jobs[task.job_key] == 1 and columns.can_spare_more(task), going))
        if not going:
            return []
        tier = plan.deciding_tier(member, self.row, self._known)
        return going if len(plan.rules.ask_tier(tier, member, going)) == len(going) else []

    def _alike(self) -> list[Choice]:
        """Return the single pods of one shape that are tried first, being as cheap as the bound."""
        priority, _, _, loss = self._rank
        if any((choice.priority, choice.loss) < (priority, loss) for choice in self._choices):
            return []
        cheapest = [choice for choice in self._choices if set_order.rank((choice,)) == self._rank]
        freed = cheapest[0].freed if cheapest else None
        return list(itertools.takewhile(lambda choice: not choice.unit.whole and choice.freed is freed, cheapest))
