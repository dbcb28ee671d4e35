"""A node that surely comes first for each of some equal members: who goes there for them, one after the other or, where nothing can come between them, together."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from pumice.actions.eviction import offers_ahead, set_order
from pumice.actions.eviction.units import Unit
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.actions.placing import drafted, task_runs
from pumice.framework import subject
from pumice.framework.reads import Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.eviction.offers import KindBounds, Offers
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.set_order import Choice
    from pumice.model.task import Task


def place_equals(
    plan: Plan, offers: Offers, tasks: Sequence[Task], at: int, done: Callable[[], bool]
) -> tuple[int, bool]:
    """Place those that come next and are equal to the member before them, which was placed, as long as it can be told ahead where they go; returns how many were, and whether these are enough."""
    if at == len(tasks) or not plan.units:
        return 0, False
    run = task_runs.next_run(plan.session, tasks, at)
    if (run[0].likeness, run[0].priority) != (tasks[at - 1].likeness, tasks[at - 1].priority):
        return 0, False
    count, enough = 0, False
    while count < len(run) and not enough:
        node = _first(plan, offers, run[count])
        placed, enough = (0, False) if node is None else node[0].place(run[count : count + node[1]], done)
        if not placed:
            break
        count += placed
    return count, enough


def _first(plan: Plan, offers: Offers, member: Task) -> tuple[NodeAhead, int] | None:
    """Return the node that comes first now, and how many members surely go there."""
    ahead = offers.look_ahead(plan, member)
    place = None if ahead is None else ahead.kind.bounds.lowest(ahead.left, ahead.scores)
    if ahead is None or place is None:
        return None
    kind = ahead.kind
    count = offers_ahead.times(kind, ahead.evaluation, ahead.left, ahead.scores, place)
    return NodeAhead(plan, kind, int(kind.columns.rows[place])), count


class NodeAhead:
    """A node on which one pod makes room for one member, and its pods are alike."""

    def __init__(self, plan: Plan, kind: KindBounds, row: int) -> None:
        self.plan = plan
        self.row = row
        self._kind_bounds = kind
        self._rank = kind.bounds.rank(kind.columns.segments[row])
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
        plan, kind = self.plan, self._kind_bounds
        if not plan.is_allowed(member) or plan.rules.may_ask(plan.queue, member) is not None:
            return False
        if plan.session.pre_predicate(subject.Subject(member, plan.queue)) is not None:
            return False
        sets = VictimSets(plan, member, kind.columns.protections, kind.passed)
        if not sets.door.by_numbers:
            return False
        self._look(sets)
        found = sets.cheapest(self.row, self._known, self._choices)
        if found is None or found[0] != self._rank or len(found[1]) > 1:
            return False
        unit = found[1][0]
        if unit.whole or not kind.columns.can_spare_more(unit.tasks[0]):
            return False
        mark, members = plan.statement.checkpoint(), len(plan.members)
        self._leave_out(unit.tasks)
        if plan.add_step(member, self.row, [unit]):
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
        plan, kind = self.plan, self._kind_bounds
        member, columns = members[0], kind.columns
        sets = VictimSets(plan, member, columns.protections, kind.passed)
        if not sets.door.by_numbers:
            return []
        self._look(sets)
        alike = self._alike()
        jobs = Counter(task.job_key for task in self._known)
        going = [choice.unit.tasks[0] for choice in alike[: self._how_many_pass(sets, member, alike[: len(members)])]]
        going = list(itertools.takewhile(lambda task: jobs[task.job_key] == 1 and columns.can_spare_more(task), going))
        if not going:
            return []
        tier = plan.tier(member, self.row, self._known)
        return going if len(plan.votes.ask_tier(tier, member, going)) == len(going) else []

    def _how_many_pass(self, sets: VictimSets, member: Task, choices: Sequence[Choice]) -> int:
        """Return how many single pods of one shape make room for one member each, with those before them gone and as many members there, as far as filters let these in."""
        if not choices:
            return 0
        table, request, row = self.plan.session.cluster.nodes, member.shape.request, self.row
        serial, asked, given = choices[0].unit.tasks[0].shape.serial, request.asked, choices[0].freed
        lacking, more = request.vector - table.future_idle_at(row), request.vector - given
        amounts, step = table.amounts(row), table.exchanged(given, request.vector)
        for count in range(len(choices)):
            short = (lacking + count * more)[asked]
            if not (short > 0).any() or (short > given[asked]).any():
                return count
            state = ((amounts + count * step).tobytes(), serial)
            used, pipelined = table.used[row] - (count + 1) * given, table.pipelined[row] + count * request.vector
            if not sets.door.is_open(state, row, used, pipelined):
                return count
        return len(choices)

    def _alike(self) -> list[Choice]:
        """Return the single pods of one shape that are tried first, being as cheap as the bound."""
        priority, _, _, loss = self._rank
        if any((choice.priority, choice.loss) < (priority, loss) for choice in self._choices):
            return []
        cheapest = [choice for choice in self._choices if set_order.rank((choice,)) == self._rank]
        freed = cheapest[0].freed if cheapest else None
        return list(itertools.takewhile(lambda choice: not choice.unit.whole and choice.freed is freed, cheapest))
