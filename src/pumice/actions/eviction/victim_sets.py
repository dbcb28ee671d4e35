"""The cheapest set of victims on one node, for one member of a claimant.

What can go on a node are units: pods that their jobs can spare, and jobs that would have to go whole. Sets of units that give room enough are tried in the order of
their rank until one may go and the member fits. Of few units every set is looked at; of many every set of up to three, and then one that is found by taking in
victim order. Whether a set may go is asked of the set, so that pods which stay use up nobody's allowance.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import ranking, set_order, units
from pumice.actions.eviction.set_order import Choice
from pumice.actions.eviction.units import Unit
from pumice.model.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.queue_protections import QueueProtections
    from pumice.actions.eviction.ranking import Rank
    from pumice.actions.eviction.refused_jobs import RefusedJobs
    from pumice.framework.evaluation import Evaluation
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Vector
    from pumice.model.task import Task

# How many sets of one node are tried out in full.
TRIES = 64
# After so many nodes on which nobody helped, few sets are tried on the others.
MANY_IN_VAIN = 100
FEW_TRIES = 4
CUT_SHORT = f"no more than {TRIES} sets of pods on a node were tried"
CUT_SHORTER = (
    f"no more than {FEW_TRIES} sets of pods on a node were tried after {MANY_IN_VAIN} nodes on which nobody helped"
)


class VictimSets:
    """The search for one member in the state that a plan has reached."""

    def __init__(
        self,
        plan: Plan,
        member: Task,
        evaluation: Evaluation,
        protections: QueueProtections | None = None,
        *,
        refused: RefusedJobs | None = None,
        passed: dict[Hashable, bool] | None = None,
    ) -> None:
        self._plan = plan
        self._refused = refused
        self._protections = protections
        # Whether nobody on the node that was asked last can help, whatever else is evicted.
        self.hopeless = False
        self._member = member
        self._evaluation = evaluation
        self._losses = ranking.losses(plan.session)
        self._in_vain = 0
        # What filters that know nothing but amounts said, by the amounts of a node and the shapes of who would be gone.
        self._passed = {} if passed is None else passed
        # Where only room decides, numbers tell whether the member fits.
        self._by_numbers = (
            plan.rules.simulation is None
            and not evaluation.is_stepwise(released=True)
            and not evaluation.minds_others(released=True)
            and plan.is_allowed(member)
        )

    @property
    def lasts(self) -> bool:
        """Whether a node where nobody helps stays so, whatever else is evicted."""
        return self._by_numbers

    def in_order(self, row: int) -> list[Task]:
        """Return the pods of a node that are neither out of reach nor protected, in victim order."""
        found = self._candidates(self._plan.session.cluster.nodes.records[row])
        return self._plan.rules.in_order(self._member, found) if len(found) > 1 else found

    def cheapest(
        self, row: int, ordered: Sequence[Task] | None = None, choices: Sequence[Choice] | None = None
    ) -> tuple[Rank, tuple[Unit, ...]] | None:
        """Return the cheapest set on a node with its rank, leaving everything as it was; None if there is none. Who could go in which order may be known, and what could."""
        self.hopeless = False
        found = self._cheapest(row, self.in_order(row) if ordered is None else ordered, choices)
        self._in_vain += found is None
        return found

    def _cheapest(
        self, row: int, ordered: Sequence[Task], choices: Sequence[Choice] | None
    ) -> tuple[Rank, tuple[Unit, ...]] | None:
        plan, member = self._plan, self._member
        request = member.shape.request
        table = plan.session.cluster.nodes
        free = table.allocatable[row] - table.used[row] + table.releasing[row] - table.pipelined[row]
        lacking = (request.vector - free)[request.asked]
        if request.unoffered or not self._are_enough(ordered, lacking, request.asked):
            self.hopeless = True
            return None
        if choices is None:
            choices = self.choices(ordered, row)
        if not self._by_numbers and not self._could_fit(choices, row):
            return None
        taken = self._first_that_works(set_order.sets_by_rank(choices, lacking, request.asked), choices, ordered, row)
        return (set_order.rank(taken), tuple([choice.unit for choice in taken])) if taken else None

    def _first_that_works(
        self, sets: Iterator[list[Choice] | None], choices: Sequence[Choice], ordered: Sequence[Task], row: int
    ) -> Sequence[Choice]:
        """Try sets by rank; after too many, or where not all are looked at, take one in victim order."""
        most = TRIES if self._in_vain < MANY_IN_VAIN else FEW_TRIES
        for tries, chosen in enumerate(sets):
            if chosen is None or tries == most:
                taken = self._taken_in_order(choices, ordered, row)
            else:
                taken = chosen if self._works(chosen, ordered, row) else []
            if taken:
                return taken
            if tries == most:
                self._plan.bounds[CUT_SHORT if most == TRIES else CUT_SHORTER] = None
                break
        return []

    def _could_fit(self, choices: Sequence[Choice], row: int) -> bool:
        """Tell whether the member might fit with everybody gone who could go; who minds others may need one of them to stay."""
        plan = self._plan
        if plan.rules.simulation is not None or self._evaluation.minds_others(released=True):
            return True
        tasks = {task.uid: task for choice in choices for task in choice.unit.tasks}
        with plan.statement.trial():
            plan.statement.evict(list(tasks.values()), plan.rules.name)
            return plan.fits(self._member, row)

    # -- what can go -------------------------------------------------------------------------------------------

    def _are_enough(self, found: Sequence[Task], lacking: Vector, asked: Vector) -> bool:
        """Tell whether a node would have room with all of some pods gone."""
        if not found:
            return False
        freed: Vector = functools.reduce(operator.add, [task.shape.request.vector for task in found])
        return bool((freed[asked] >= lacking).all())

    def _candidates(self, record: NodeRecord) -> list[Task]:
        """Return the pods of a node that are neither out of reach nor protected."""
        rules, member, excluded, known = self._plan.rules, self._member, self._plan.excluded, self._protections
        tasks = [t for t in record.tasks.values() if t.uid not in excluded and (known is None or not known.is_kept(t))]
        if (refused := self._refused) is not None:
            tasks = [task for task in tasks if not refused.holds(task)]
        return [task for task in tasks if rules.may_go(member, task)]

    def choices(self, ordered: Sequence[Task], row: int) -> list[Choice]:
        """Return the units that could go: single pods, and jobs that cannot spare all of theirs as a whole, in victim order."""
        found: list[Choice] = []
        by_job: dict[str, list[Task]] = {}
        for task in ordered:
            by_job.setdefault(task.job_key, []).append(task)
        for task in ordered:
            job = task.job
            if job is None or not self._plan.gangs or job is self._member.job:
                found.append(self._single(task))
                continue
            is_spared = units.keeps_its_minimum(job, (task,))
            if is_spared:
                found.append(self._single(task))
            here = by_job[job.key]
            if here[0] is task and not (is_spared if len(here) == 1 else units.keeps_its_minimum(job, here)):
                whole = self._whole(job, here)
                if whole is not None:
                    found.append(self._of(whole, row))
        return found

    def _whole(self, job: Job, here: Sequence[Task]) -> Unit | None:
        """Return all that is left of a job, those on the node first; None if one of them must not be taken again."""
        rest = units.rest_of(job, here)
        if any(task.uid in self._plan.excluded for task in rest):
            return None
        return units.whole_job(job, (*here, *rest))

    def _single(self, task: Task) -> Choice:
        priority = (task.job.priority if task.job is not None else 0, task.priority)
        loss = self._losses.of(task.shape)
        return Choice(Unit((task,), whole=False), task.shape.request.vector, priority, 1, loss)

    def _of(self, unit: Unit, row: int) -> Choice:
        here = [t.shape.request.vector for t in unit.tasks if t.node is not None and t.node.row == row]
        freed = here[0] if len(here) == 1 else np.sum(here, axis=0)
        return Choice(unit, freed, unit.priority, len(unit.tasks), self._losses.sum(unit.tasks, ends=unit.ends))

    # -- what may go together ----------------------------------------------------------------------------------

    def _works(self, chosen: Sequence[Choice], ordered: Sequence[Task], row: int) -> bool:
        """Tell whether a set may go and the member fits without it."""
        if not self._is_offered(chosen, ordered, row):
            return False
        plan = self._plan
        if self._by_numbers and self._go_apart(chosen):
            return self._passes(row, chosen)
        with plan.statement.trial():
            for choice in chosen:
                if not units.may_all_go(plan, self._member, choice.unit.tasks):
                    return False
                plan.statement.evict(choice.unit.tasks, plan.rules.name)
            return plan.leaves_gangs_whole([c.unit for c in chosen]) and plan.fits(self._member, row)

    def _go_apart(self, chosen: Sequence[Choice]) -> bool:
        """Tell without trying that a set leaves no part of a gang behind and that nobody in it is protected by the others' going: pods that may go one by one."""
        if any(choice.unit.whole and not choice.unit.is_job_of_one for choice in chosen):
            return False
        if len(chosen) == 1:
            return True
        if not self._plan.rules.judges_apart:
            return False
        if not self._plan.gangs:
            return True
        losing: dict[str, list[Task]] = {}
        for choice in chosen:
            task = choice.unit.tasks[0]
            losing.setdefault(task.job_key, []).append(task)
        return all(len(tasks) == 1 or _is_left_whole(tasks) for tasks in losing.values())

    def _is_offered(self, chosen: Sequence[Choice], ordered: Sequence[Task], row: int) -> bool:
        """Ask the plugins of the node's tier about a set: all of it must be offered, of a job that goes whole so much that the rest goes with it."""
        going = {task.uid for choice in chosen for task in choice.unit.tasks}
        asked = [task for task in ordered if task.uid in going]
        tier = self._plan.deciding_tier(self._member, row, ordered)
        offered = {task.uid for task in self._plan.rules.ask_tier(tier, self._member, asked)}
        if len(offered) == len(asked):
            return True
        for choice in chosen:
            tasks = choice.unit.tasks
            part = [task for task in tasks if task.uid in offered]
            job = tasks[0].job
            if len(part) == len(tasks):
                continue
            if not part or not choice.unit.whole or job is None or units.keeps_its_minimum(job, part):
                return False
        return True

    def _passes(self, row: int, chosen: Sequence[Choice]) -> bool:
        """Ask the filters that read amounts about the node with victims gone."""
        table = self._plan.session.cluster.nodes
        state = (table.state(row), *(choice.unit.tasks[0].shape.serial for choice in chosen))
        freed = sum((choice.freed for choice in chosen[1:]), start=chosen[0].freed)
        return self._is_let_in(state, row, table.used[row] - freed, table.pipelined[row])

    def _is_let_in(self, state: Hashable, row: int, used: Vector, pipelined: Vector) -> bool:
        """Ask the filters about a node with other amounts, once for all nodes in a state."""
        known = self._passed.get(state)
        if known is None:
            table = self._plan.session.cluster.nodes
            rows = np.array([row], dtype=np.int64)
            nodes = Nodes(table, rows, used[None], table.non_zero[rows], pipelined[None], released=True)
            passed = self._evaluation.passes_ahead(nodes)
            known = passed is None or bool(passed[0])
            if self._evaluation.is_by_amounts(released=True):
                self._passed[state] = known
        return known

    def how_many_pass(self, row: int, choices: Sequence[Choice]) -> int:
        """Return how many single pods of one shape make room for one member each, with those before them gone and as many members there, as far as filters let these in."""
        if not choices:
            return 0
        table, request, first = self._plan.session.cluster.nodes, self._member.shape.request, choices[0]
        serial, asked, given = first.unit.tasks[0].shape.serial, request.asked, first.freed
        lacking, more = request.vector - table.future_idle_at(row), request.vector - given
        amounts, step = table.amounts(row), table.exchanged(given, request.vector)
        for count in range(len(choices)):
            short = (lacking + count * more)[asked]
            if not (short > 0).any() or (short > given[asked]).any():
                return count
            state = ((amounts + count * step).tobytes(), serial)
            used, pipelined = table.used[row] - (count + 1) * given, table.pipelined[row] + count * request.vector
            if not self._is_let_in(state, row, used, pipelined):
                return count
        return len(choices)

    # -- many --------------------------------------------------------------------------------------------------

    def _taken_in_order(self, choices: Sequence[Choice], ordered: Sequence[Task], row: int) -> list[Choice]:
        """Take units, the lowest first and no gang before there is need, until the member fits; then give back whoever is not needed."""
        plan, taken = self._plan, list[Choice]()
        with plan.statement.trial():
            for choice in sorted(choices, key=lambda c: (c.priority, c.unit.breaks)):
                gone = {task.uid for other in taken for task in other.unit.tasks}
                if any(task.uid in gone for task in choice.unit.tasks):
                    continue
                if not self._is_offered([*taken, choice], ordered, row):
                    continue
                if not units.may_all_go(plan, self._member, choice.unit.tasks):
                    continue
                plan.statement.evict(choice.unit.tasks, plan.rules.name)
                taken.append(choice)
                if plan.fits(self._member, row) and plan.leaves_gangs_whole([c.unit for c in taken]):
                    break
            else:
                return []
        for choice in taken[-2::-1]:
            rest = [other for other in taken if other is not choice]
            if self._works(rest, ordered, row):
                taken = rest
        return taken


def _is_left_whole(tasks: Sequence[Task]) -> bool:
    """Tell whether a job keeps its minimum without some of its pods."""
    job = tasks[0].job
    return job is not None and units.keeps_its_minimum(job, tasks)
