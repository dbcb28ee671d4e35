"""Bundles: what a job can spare, and the rest of it as a whole. The gang forms of eviction take bundles instead of single pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import units, votes
from pumice.actions.eviction.asking import least_need
from pumice.actions.eviction.units import Unit
from pumice.actions.placing import likeness
from pumice.framework.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.actions.eviction.asking import Wanted
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class Bundle(msgspec.Struct, frozen=True):
    """Units of one job: pods that it can spare, or all the others in one piece; safe if no gang that could run is lost with it."""

    units: tuple[Unit, ...]
    safe: bool

    @property
    def tasks(self) -> list[Task]:
        """Everybody in it."""
        return [task for unit in self.units for task in unit.tasks]

    @property
    def priority(self) -> tuple[int, int]:
        """The highest priority among the victims: that of the job, then that of the pod."""
        return max(unit.priority for unit in self.units)


class Bundles:
    """Fills plans from bundles: as few as make room for all members."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self.session = session
        self.rules = rules

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Add bundles: no more important ones than it takes, the safest of those first."""
        tasks = wanted.with_requests
        helpful = self._bundles(plan, tasks)
        least, room = least_need(plan.job, tasks), self._room(plan)
        for highest in sorted({bundle.priority for bundle in helpful}):
            chosen = [bundle for bundle in helpful if bundle.priority <= highest]
            gone = [task.shape.request.vector for bundle in chosen for task in bundle.tasks if plan.covers(task)]
            if (least <= sum(gone, start=room)).all() and self._is_filled(plan, chosen, tasks, wanted.done):
                yield
            plan.start_again()

    def _is_filled(
        self, plan: Plan, bundles: Sequence[Bundle], tasks: Sequence[Task], done: Callable[[], bool]
    ) -> bool:
        """Add one unit after the other until the members fit, which is tried each time that twice as many have gone."""
        plan.is_admitted = False
        ordered = [unit for bundle in bundles for unit in bundle.units]
        tried = 0
        for place, unit in enumerate(ordered):
            self._take(plan, tasks[0], unit)
            taken = len(plan.units)
            if taken and (taken >= 2 * tried or place == len(ordered) - 1):
                tried = taken
                if plan.arrange_enough(tasks, done):
                    return True
        return False

    def _take(self, plan: Plan, claimant: Task, unit: Unit) -> None:
        """Evict a unit, unless by now somebody in it is protected or it would leave a part of its gang behind."""
        if not units.may_all_go(plan.rules, plan.statement, claimant, unit.tasks):
            return
        plan.evict(unit)
        if not plan.leaves_gangs_whole([unit]):
            plan.units.pop()
            for task in unit.tasks:
                plan.statement.undo(task)

    def _room(self, plan: Plan) -> Vector:
        table = self.session.cluster.nodes
        free = table.future_idle_at(table.rows if plan.domain is None else plan.domain.rows)
        total: Vector = np.maximum(free, 0).sum(axis=0)
        return total

    def _bundles(self, plan: Plan, asking: Sequence[Task]) -> list[Bundle]:
        """Cut the candidates that the plugins allow into what their jobs can spare and the rest: safe ones first, then in victim order; left out where nothing of it helps."""
        claimant, rules = asking[0], self.rules
        found = rules.candidates(claimant, plan.domain)
        allowed = votes.ask(rules, claimant, rules.in_order(claimant, found), plan.domain) if found else []
        by_job: dict[str, list[Task]] = {}
        for task in rules.in_order(claimant, [task for task in allowed if task.uid not in plan.excluded]):
            by_job.setdefault(task.job_key, []).append(task)
        useful, far = self._useful_rows(plan, asking, allowed), self._reaches_far(plan, asking)
        bundles: list[Bundle] = []
        for key, tasks in by_job.items():
            for bundle in self._cut(plan, self.session.cluster.jobs[key], tasks, useful):
                helping = tuple(unit for unit in bundle.units if far or _is_on(unit, useful))
                bundles += [Bundle(helping, bundle.safe)] if helping else []
        return sorted(bundles, key=lambda bundle: not bundle.safe)

    def _reaches_far(self, plan: Plan, tasks: Sequence[Task]) -> bool:
        """Tell whether somebody who goes may help a member on another node: by a limit of its queue that is in the way now, or by rules about other pods."""
        kinds = {likeness.of_member(self.session, task): task for task in tasks}.values()
        return any(not plan.is_allowed(member) for member in kinds) or any(
            plan.evaluation(member).minds_others(released=True) for member in kinds
        )

    def _useful_rows(self, plan: Plan, asking: Sequence[Task], going: Sequence[Task]) -> Mask:
        """Mark the nodes that would take one of the members with all candidates gone, as far as that can be told from numbers and Node objects."""
        table = self.session.cluster.nodes
        room = table.future_idle_at(table.rows)
        for task in going:
            if task.node is not None and task.node.row < len(room):
                room[task.node.row] += task.shape.request.vector
        useful = np.zeros(len(room), dtype=np.bool_)
        for member in {likeness.of_member(self.session, task): task for task in asking}.values():
            request = member.shape.request
            if not request.unoffered:
                fits = (room[:, request.asked] >= request.needed).all(axis=1)
                useful |= fits & self.session.evaluator.static_mask(Subject(member, plan.queue))
        return useful

    def _cut(self, plan: Plan, job: Job, tasks: list[Task], useful: Mask) -> list[Bundle]:
        """Cut one job's victims: those it can spare, where they help and in victim order, then everybody; a job below its minimum goes in one piece."""
        if not units.keeps_its_minimum(job):
            return self._everybody(plan, job, tasks, broken=True)
        singles = [Unit((task,), whole=False) for task in tasks]
        singles.sort(key=lambda unit: not _is_on(unit, useful))
        safe = units.spared(job, [unit.tasks[0] for unit in singles])
        bundles = [Bundle(tuple(Unit((task,), whole=False) for task in safe), safe=True)] if safe else []
        kept = {task.uid for task in safe}
        rest = [task for task in tasks if task.uid not in kept]
        bundles += self._everybody(plan, job, rest, broken=False) if rest else []
        return bundles[:1] if plan.leaves_out([unit for bundle in bundles for unit in bundle.units]) else bundles

    def _everybody(self, plan: Plan, job: Job, tasks: list[Task], *, broken: bool) -> list[Bundle]:
        """Return the rest of a job as a whole, unless somebody in it must stay or whole bundles are not wanted."""
        others = units.rest_of(job, tasks)
        for task in others:
            if task.uid in plan.excluded or self.rules.protection(None, task) is not None:
                return []
        if not self.rules.allows_whole and not broken:
            return []
        # No part of a gang is left behind outside the domain.
        elsewhere = [task for task in others if not plan.covers(task)] if plan.gangs else []
        whole = Unit((*tasks, *elsewhere), whole=True, breaks=not broken and job.min_member > 1, ends=not broken)
        return [Bundle((whole,), safe=broken)]


def _is_on(unit: Unit, rows: Mask) -> bool:
    """Tell whether somebody of a unit is on one of the marked nodes."""
    return any(task.node is not None and task.node.row < len(rows) and rows[task.node.row] for task in unit.tasks)
