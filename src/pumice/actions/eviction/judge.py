"""The judge: what a plan does, tried out inside its statement, against every rule. Whatever proposed it, nothing is committed that has not passed.

A step, which is a member on a node with the units that go for it, passes the `Door` when it is made: protections, votes, gangs, filters, limits. A plan that was changed since,
by sparing somebody or moving a member, is played again from its beginning, step by step, in its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import trimming, units, votes
from pumice.framework import subject
from pumice.model.nodes import Nodes
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.units import Unit
    from pumice.framework.evaluation import Evaluation
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class Door:
    """Lets sets of victims go for one member, one node after the other, in the state that a plan has reached."""

    def __init__(self, plan: Plan, member: Task, passed: dict[Hashable, bool] | None = None) -> None:
        self.plan = plan
        self.member = member
        self._evaluation: Evaluation = plan.evaluation(member)
        # What filters that know nothing but amounts said, by the amounts of a node and the shapes of who would be gone.
        self._passed = {} if passed is None else passed
        # Where only room decides, numbers tell whether the member fits.
        self.by_numbers = (
            plan.rules.simulation is None
            and not self._evaluation.is_stepwise(released=True)
            and not self._evaluation.minds_others(released=True)
            and plan.is_allowed(member)
        )

    def lets(self, going: Sequence[Unit], ordered: Sequence[Task], row: int) -> bool:
        """Tell whether units may go from a node, of which these are the candidates in victim order, and whether the member passes everything there without them."""
        plan, member = self.plan, self.member
        if not self.are_given(going, ordered, row):
            return False
        if self.by_numbers and going and self.go_apart(going):
            return self.passes(row, going)
        with plan.statement.trial():
            for unit in going:
                if not units.may_all_go(plan.rules, plan.statement, member, unit.tasks):
                    return False
                plan.statement.evict(unit.tasks, plan.rules.name)
            return plan.leaves_gangs_whole(going) and plan.fits(member, row)

    def are_given(self, going: Sequence[Unit], ordered: Sequence[Task], row: int) -> bool:
        """Ask the tier of the node about those of the units who are there."""
        if not going:
            return True
        uids = {task.uid for unit in going for task in unit.tasks}
        asked = [task for task in ordered if task.uid in uids]
        tier = self.plan.tier(self.member, row, ordered)
        return self.plan.votes.give(tier, self.member, asked, going)

    def go_apart(self, going: Sequence[Unit]) -> bool:
        """Tell without trying that a set leaves no part of a gang behind and that nobody in it is protected by the others' going: pods that may go one by one."""
        if any(unit.whole and not unit.is_job_of_one for unit in going):
            return False
        if len(going) > 1 and not self.plan.rules.judges_apart:
            return False
        return self.plan.can_spare(going)

    def passes(self, row: int, going: Sequence[Unit]) -> bool:
        """Ask about the room of a node with units gone, and, once for all nodes in a state, the filters that read amounts."""
        table, request = self.plan.session.cluster.nodes, self.member.shape.request
        freed: Vector = sum(
            (u.tasks[0].shape.request.vector for u in going[1:]), going[0].tasks[0].shape.request.vector
        )
        free = table.future_idle_at(row) + freed
        if request.unoffered or (free[request.asked] < request.needed).any():
            return False
        state = (table.state(row), *(unit.tasks[0].shape.serial for unit in going))
        known = self._passed.get(state)
        if known is None:
            rows = np.array([row], dtype=np.int64)
            used, waiting = table.used[rows] - freed, table.pipelined[rows]
            nodes = Nodes(table, rows, used, table.non_zero[rows], waiting, released=True)
            passed = self._evaluation.passes_ahead(nodes)
            known = passed is None or bool(passed[0])
            if self._evaluation.is_by_amounts(released=True):
                self._passed[state] = known
        return known


class Step(msgspec.Struct, frozen=True):
    """A member, the node where it waits, and who goes there for it."""

    member: Task
    record: NodeRecord
    going: list[Unit]


def passes(plan: Plan, done: Callable[[], bool]) -> bool:
    """Spare whoever can be spared, and tell whether the plan that is left does what it is for and stands against every rule; if it does not, it is undone."""
    trimming.trim(plan)
    if plan.is_admitted or not plan.units:
        return done()
    for steps in (steps_of(plan, first=False), steps_of(plan, first=True)):
        if replayed(plan, steps) and done():
            plan.is_admitted = True
            return True
    plan.start_again()
    return False


def steps_of(plan: Plan, *, first: bool) -> list[Step]:
    """Tell for which member each unit goes: the one that it was taken for, if that is still beside it, or the first that is beside most of it; in gang forms all go for the first."""
    steps = [Step(member, member.node, []) for member in plan.members if member.node is not None]
    for unit in plan.units:
        beside = [sum(task.node is step.record for task in unit.tasks) for step in steps]
        owner = None if first else plan.taken_for(unit)
        owned = (step for step, count in zip(steps, beside, strict=True) if count and step.member is owner)
        next(owned, steps[beside.index(max(beside))]).going.append(unit)
    return steps


def replayed(plan: Plan, steps: Sequence[Step]) -> bool:
    """Make a plan again, asking about every step in the state that those before it have reached."""
    plan.start_again()
    if not plan.rules.node_by_node:
        going = [unit for step in steps for unit in step.going]
        return _are_let_together(plan, steps[0].member, going) and all(is_placed(plan, step, ()) for step in steps)
    # What goes for one member may open the queue's limit for another: of few, whoever does not pass comes after the others.
    put_off = len(steps) if plan.is_small(steps) else 1
    waiting = list(steps)
    while waiting:
        passing = next((step for step in waiting[:put_off] if is_let(plan, step)), None)
        if passing is None:
            return False
        waiting.remove(passing)
    return True


def is_let(plan: Plan, step: Step) -> bool:
    """Make a step if it passes in the state that a plan has reached; if not, nothing stays of it."""
    record, member = step.record, step.member
    mark, members, count = plan.statement.checkpoint(), len(plan.members), len(plan.units)
    candidates = [task for task in record.tasks.values() if plan.rules.may_go(member, task)]
    if _may_be_asked_for(plan, step, candidates):
        ordered = plan.rules.in_order(member, candidates)
        going = in_order(step.going, ordered)
        if Door(plan, member).lets(going, ordered, record.row) and is_placed(plan, step, going):
            return True
    plan.back_to(mark, members)
    del plan.units[count:]
    return False


def in_order(going: Sequence[Unit], ordered: Sequence[Task]) -> list[Unit]:
    """Put units in the order in which they are asked about: that of those who are candidates."""
    places = {task.uid: place for place, task in enumerate(ordered)}
    return sorted(going, key=lambda unit: min(places.get(task.uid, len(places)) for task in unit.tasks))


def _may_be_asked_for(plan: Plan, step: Step, candidates: Sequence[Task]) -> bool:
    """Tell whether whoever goes alone, and somebody of each job that goes whole, is beside the member, and nobody who goes is protected: a proposal may overlook it."""
    return _are_among(candidates, step.going) and all(
        units.may_all_go(plan.rules, plan.statement, step.member, unit.tasks) for unit in step.going
    )


def _are_among(candidates: Sequence[Task], going: Sequence[Unit]) -> bool:
    """Tell whether whoever goes alone, and somebody of each job that goes whole, is a candidate."""
    known = {task.uid for task in candidates}
    return all((any if unit.whole else all)(task.uid in known for task in unit.tasks) for unit in going)


def is_placed(plan: Plan, step: Step, going: Sequence[Unit]) -> bool:
    """Let units go and the member wait on its node, if it passes everything there."""
    member, record = step.member, step.record
    if member.status != Status.PENDING:
        return False
    refusal = plan.rules.may_ask(plan.queue, member)
    if refusal is not None:
        plan.refusal = f"queue {plan.queue.name} may not take from others: {refusal}"
        return False
    plan.evict_all(going)
    if plan.session.pre_predicate(subject.Subject(member, plan.queue)) is not None:
        return False
    return plan.fits(member, record.row) and plan.settle(member, record.row)


def _are_let_together(plan: Plan, claimant: Task, going: Sequence[Unit]) -> bool:
    """Let the units of a gang form go: the tier of the domain is asked about all of them at once."""
    uids = {task.uid for unit in going for task in unit.tasks if plan.covers(task)}
    candidates = [
        task for unit in going for task in unit.tasks if task.uid in uids and plan.rules.may_go(claimant, task)
    ]
    if not _are_among(candidates, going):
        return False
    asked = plan.rules.in_order(claimant, candidates)
    tier = plan.tier(claimant, votes.DOMAIN, asked)
    if not plan.votes.give(tier, claimant, asked, going):
        return False
    for unit in in_order(going, asked):
        if not units.may_all_go(plan.rules, plan.statement, claimant, unit.tasks):
            return False
        plan.evict(unit)
    return plan.leaves_gangs_whole(going)
