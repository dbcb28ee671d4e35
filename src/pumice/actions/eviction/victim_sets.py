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
from pumice.actions.eviction.judge import Door
from pumice.actions.eviction.set_order import Choice
from pumice.actions.eviction.units import Unit

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.queue_protections import QueueProtections
    from pumice.actions.eviction.ranking import Rank
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
        self, plan: Plan, member: Task, protections: QueueProtections | None, passed: dict[Hashable, bool]
    ) -> None:
        self._plan = plan
        self._protections = protections
        self._member = member
        self._losses = ranking.losses(plan.session)
        self._in_vain = 0
        self.ordered: Sequence[Task] = ()  # the candidates of the node that was looked at last
        self.refused: dict[int, Unit] = {}  # its units that would not even be given alone, where somebody has asked
        self.door = Door(plan, member, passed)

    def in_order(self, row: int) -> list[Task]:
        """Return the pods of a node that are neither out of reach nor protected, in victim order."""
        found = self._candidates(self._plan.session.cluster.nodes.records[row])
        return self._plan.rules.in_order(self._member, found) if len(found) > 1 else found

    def cheapest(self, row: int) -> tuple[Rank, tuple[Unit, ...]] | None:
        """Return the cheapest set on a node with its rank, leaving everything as it was; None if there is none."""
        found = self._cheapest(row)
        self._in_vain += found is None
        return found

    def _cheapest(self, row: int) -> tuple[Rank, tuple[Unit, ...]] | None:
        plan, request = self._plan, self._member.shape.request
        ordered = self.in_order(row)
        self.ordered, self.refused = ordered, {}
        lacking = (request.vector - plan.session.cluster.nodes.future_idle_at(row))[request.asked]
        if request.unoffered or not self._are_enough(ordered, lacking, request.asked):
            return None
        choices = self.choices(ordered, row)
        taken = self._first_that_works(set_order.sets_by_rank(choices, lacking, request.asked), choices, ordered, row)
        return (set_order.rank(taken), tuple([choice.unit for choice in taken])) if taken else None

    def _first_that_works(
        self, sets: Iterator[list[Choice] | None], choices: Sequence[Choice], ordered: Sequence[Task], row: int
    ) -> Sequence[Choice]:
        """Try sets by rank, without units that were refused alone; after too many, or where not all are looked at, take one in victim order."""
        most = TRIES if self._in_vain < MANY_IN_VAIN else FEW_TRIES
        asked: dict[int, None] = {}
        tries = 0
        for chosen in sets:
            if chosen is not None and self._is_out(chosen):
                continue
            if chosen is None or tries == most:
                taken = self._taken_in_order(choices, ordered, row)
            else:
                taken = chosen if self.door.lets([choice.unit for choice in chosen], ordered, row) else []
            if taken:
                return taken
            if not tries and not self.door.by_numbers and not self._could_fit(choices, row):
                return []
            if tries == most:
                self._plan.bounds[CUT_SHORT if most == TRIES else CUT_SHORTER] = None
                break
            tries += 1
            for choice in chosen or ():
                if id(choice.unit) not in asked:
                    asked[id(choice.unit)] = None
                    if not self.door.are_given([choice.unit], ordered, row):
                        self.refused[id(choice.unit)] = choice.unit
        return []

    def _is_out(self, chosen: Sequence[Choice]) -> bool:
        """Tell without asking that a set does not go."""
        if any(id(choice.unit) in self.refused for choice in chosen):
            return True
        going = [choice.unit for choice in chosen]
        return self._plan.leaves_out(going) or (len(going) > 1 and not self._plan.can_spare(going))

    def _could_fit(self, choices: Sequence[Choice], row: int) -> bool:
        """Tell whether the member might fit with everybody gone who could go; who minds others may need one of them to stay."""
        plan = self._plan
        if plan.rules.simulation is not None or plan.evaluation(self._member).minds_others(released=True):
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
        rules, member, known = self._plan.rules, self._member, self._protections
        tasks = [task for task in record.tasks.values() if known is None or not known.is_kept(task)]
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
                found.append(self._of(units.whole_job(job, (*here, *units.rest_of(job, here))), row))
        return [choice for choice in found if not self._plan.leaves_out([choice.unit])]

    def _single(self, task: Task) -> Choice:
        priority = (task.job.priority if task.job is not None else 0, task.priority)
        loss = self._losses.of(task.shape)
        return Choice(Unit((task,), whole=False), task.shape.request.vector, priority, 1, loss)

    def _of(self, unit: Unit, row: int) -> Choice:
        here = [t.shape.request.vector for t in unit.tasks if t.node is not None and t.node.row == row]
        freed = here[0] if len(here) == 1 else np.sum(here, axis=0)
        return Choice(unit, freed, unit.priority, len(unit.tasks), self._losses.sum(unit.tasks, ends=unit.ends))

    # -- many --------------------------------------------------------------------------------------------------

    def _taken_in_order(self, choices: Sequence[Choice], ordered: Sequence[Task], row: int) -> list[Choice]:
        """Take units, the lowest first and no gang before there is need, until the member fits; then give back whoever is not needed."""
        plan = self._plan
        given: list[Choice] = []
        for choice in sorted(choices, key=lambda c: (c.priority, c.unit.breaks)):
            gone = {task.uid for other in given for task in other.unit.tasks}
            if any(task.uid in gone for task in choice.unit.tasks):
                continue
            if self.door.are_given([*(other.unit for other in given), choice.unit], ordered, row):
                given.append(choice)
        taken: list[Choice] = []
        with plan.statement.trial():
            for choice in given:
                if not units.may_all_go(plan.rules, plan.statement, self._member, choice.unit.tasks):
                    continue
                plan.statement.evict(choice.unit.tasks, plan.rules.name)
                taken.append(choice)
                if plan.fits(self._member, row) and plan.leaves_gangs_whole([c.unit for c in taken]):
                    break
            else:
                return []
        for choice in taken[-2::-1]:
            rest = [other for other in taken if other is not choice]
            if self.door.lets([other.unit for other in rest], ordered, row):
                taken = rest
        return taken if self.door.lets([choice.unit for choice in taken], ordered, row) else []
