"""Bundles: what a job can spare, and the rest of it as a whole. The gang forms of eviction take bundles instead of single pods."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import units, votes
from pumice.actions.eviction.asking import least_need, members_lacking
from pumice.actions.eviction.plan import orders
from pumice.actions.eviction.search import Search
from pumice.actions.eviction.supply import Supply
from pumice.actions.eviction.units import Unit
from pumice.framework.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from pumice.actions.eviction.gang_rules import GangRules
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.successors import Successors
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class Bundle(msgspec.Struct, frozen=True):
    """Victims of one job: pods that it can spare, or all the others; a job below its minimum has nothing to lose."""

    job: Job
    tasks: tuple[Task, ...]
    whole: bool
    broken: bool = False

    @property
    def priority(self) -> tuple[int, int]:
        """The highest priority among the victims: that of the job, then that of the pod."""
        return self.job.priority, max(task.priority for task in self.tasks)

    @property
    def safe(self) -> bool:
        """Whether no gang that could run is lost with it."""
        return self.broken or not self.whole

    def units(self) -> list[Unit]:
        """Return what can be spared on its own: each pod of a safe bundle, a whole bundle only whole."""
        if self.whole:
            ends = not self.broken
            return [Unit(self.tasks, whole=True, breaks=ends and self.job.min_member > 1, ends=ends)]
        return [Unit((task,), whole=False) for task in self.tasks]


class BundleSearch(Search):
    """Fills plans from bundles: as few as make room for all members."""

    def __init__(self, session: Session, rules: GangRules, successors: Successors | None = None) -> None:
        super().__init__(session, rules, successors)
        self._gang_rules = rules

    def fresh(self) -> BundleSearch:
        """Return a search by the same rules that remembers nothing."""
        return BundleSearch(self.session, self._gang_rules)

    def fill(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Add bundles until the members fit: no more important ones than it takes, the safest of those first."""
        if plan.arrange_enough(tasks, done):
            return True
        # The demand is that of pods with requests; pods without any are for those to ask who have no others.
        asking = [task for task in tasks if not task.best_effort] or list(tasks)
        if self.rules.allows_whole and any(
            self._fill_in_order(plan, ordered, done) for ordered in orders(plan, asking)
        ):
            return True
        need = sum(
            (task.shape.request.vector for task in members_lacking(plan.job, asking)),
            start=np.zeros(len(self.session.cluster.vocabulary), dtype=np.int64),
        )
        least, room = least_need(plan.job, asking), self._room(plan)
        # More important jobs are not even looked at while less important ones are enough.
        candidates: list[Task] = []
        for level in sorted({job.priority for job in self._gang_rules.sources(asking[0])}):
            more = self._gang_rules.candidates(asking[0], plan.domain, level)
            if not more:
                continue
            candidates += more
            bundles = self._sorted(plan, self._bundles(plan, asking, candidates), need)
            freed = _freed([[task for task in bundle.tasks if plan.covers(task)] for bundle in bundles], len(room))
            ranks = [bundle.priority for bundle in bundles]
            for highest in sorted({rank for rank in ranks if rank[0] == level}):
                places = [place for place, rank in enumerate(ranks) if rank <= highest]
                if (least <= room + freed[places].sum(axis=0)).all() and self._fill_from(
                    plan, [bundles[place] for place in places], asking, done
                ):
                    return True
        return False

    def _fill_from(
        self, plan: Plan, bundles: Sequence[Bundle], tasks: Sequence[Task], done: Callable[[], bool]
    ) -> bool:
        """Add one bundle after the other until the members fit; if they never do, nothing stays.

        Units are counted in first, and evicted once all members could have room by the numbers: then those on nodes where a member would fit. The others
        can only help with limits that reach across nodes, and go last.
        """
        mark, count = plan.statement.checkpoint(), len(plan.units)
        plan.is_admitted = False
        supply = Supply(self.session, plan, tasks)
        waiting: list[Unit] = []
        pause = tries = 0
        for unit in (unit for bundle in bundles for unit in bundle.units()):
            supply.add(unit)
            waiting.append(unit)
            pause -= 1
            if pause <= 0 and supply.may_do():
                # What did not do is tried again with twice as many, so that a claim that cannot be met costs few trials.
                tries += 1
                pause = 1 << min(tries - 1, 20)
                waiting, taken = supply.divided(waiting, len(tasks) << tries)
                if self._take_all(plan, tasks[0], taken) and plan.arrange_enough(tasks, done):
                    return True
        if supply.is_enough() and (pause > 0 or self._reaches_far(plan, tasks)):
            useless, useful = supply.divided(waiting)
            rest = [*useful, *useless] if self._reaches_far(plan, tasks) else useful
            if self._take_all(plan, tasks[0], rest) and plan.arrange_enough(tasks, done):
                return True
        plan.statement.rollback(mark)
        del plan.units[count:]
        return False

    def _reaches_far(self, plan: Plan, tasks: Sequence[Task]) -> bool:
        """Tell whether somebody who goes may help a member on another node: by a limit of its queue that is in the way now, or by rules about other pods."""
        kinds = {task.likeness: task for task in tasks}.values()
        return any(not plan.is_allowed(member) for member in kinds) or any(
            plan.evaluation(member).minds_others(released=True) for member in kinds
        )

    def _take_all(self, plan: Plan, claimant: Task, wanted: Sequence[Unit]) -> bool:
        """Evict units as far as they may go; tells whether any went. Of whom a queue keeps one, it keeps the like: it has only less by now."""
        kept: dict[Hashable, None] = {}
        taken = False
        for unit in wanted:
            key = _group(unit)
            if key in kept:
                continue
            if self._take(plan, claimant, unit):
                taken = True
            elif key is not None and self._gang_rules.is_kept_by_queue(claimant, unit.tasks[0]):
                kept[key] = None
        return taken

    def _take(self, plan: Plan, claimant: Task, unit: Unit) -> bool:
        """Evict a unit, unless by now somebody in it is protected or it would leave a part of its gang behind."""
        if not units.may_all_go(plan.rules, plan.statement, claimant, unit.tasks):
            return False
        plan.evict(unit)
        if plan.leaves_gangs_whole([unit]):
            return True
        plan.units.pop()
        for task in unit.tasks:
            plan.statement.undo(task)
        return False

    def _room(self, plan: Plan) -> Vector:
        table = self.session.cluster.nodes
        n = table.rows if plan.domain is None else plan.domain.rows
        free = table.future_idle_at(n)
        total: Vector = np.maximum(free, 0).sum(axis=0)
        return total

    def _bundles(self, plan: Plan, asking: Sequence[Task], candidates: Sequence[Task]) -> list[Bundle]:
        """Cut the candidates that the plugins allow into what their jobs can spare and the rest."""
        claimant = asking[0]
        ordered = self.rules.in_order(claimant, [task for task in candidates if task.uid not in plan.excluded])
        allowed = {task.uid for task in votes.ask(self.rules, claimant, ordered, plan.domain)} if ordered else set()
        by_job: dict[str, list[Task]] = {}
        for task in ordered:
            if task.job is not None and task.uid in allowed:
                by_job.setdefault(task.job.key, []).append(task)
        bundles = []
        useful = self._useful_rows(plan, asking, by_job)
        for key, tasks in by_job.items():
            bundles += self._cut(plan, self.session.cluster.jobs[key], tasks, useful)
        return bundles

    def _useful_rows(self, plan: Plan, asking: Sequence[Task], by_job: Mapping[str, Sequence[Task]]) -> frozenset[int]:
        """Return the nodes that would take one of the members with all candidates gone, as far as that can be told from numbers and Node objects."""
        table = self.session.cluster.nodes
        n = table.rows
        room = table.future_idle_at(n)
        for tasks in by_job.values():
            for task in tasks:
                if task.node is not None and task.node.row < len(room):
                    room[task.node.row] += task.shape.request.vector
        useful = np.zeros(len(room), dtype=np.bool_)
        for member in {task.likeness: task for task in asking}.values():
            request = member.shape.request
            if not request.unoffered:
                fits = (room[:, request.asked] >= request.needed).all(axis=1)
                useful |= fits & self.session.evaluator.static_mask(Subject(member, plan.queue))
        return frozenset(np.flatnonzero(useful).tolist())

    def _cut(self, plan: Plan, job: Job, tasks: list[Task], useful: frozenset[int]) -> list[Bundle]:
        """Cut one job's victims: those it can spare, where they help and in victim order, then everybody; a job below its minimum goes in one piece."""
        if not units.keeps_its_minimum(job):
            return self._everybody(plan, job, tasks, broken=True)
        safe = units.spared(job, sorted(tasks, key=lambda task: task.node is None or task.node.row not in useful))
        bundles = [Bundle(job, tuple(safe), whole=False)] if safe else []
        kept = {task.uid for task in safe}
        rest = [task for task in tasks if task.uid not in kept]
        return bundles + (self._everybody(plan, job, rest, broken=False) if rest else [])

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
        return [Bundle(job, (*tasks, *elsewhere), whole=True, broken=broken)]

    def _sorted(self, plan: Plan, bundles: list[Bundle], need: Vector) -> list[Bundle]:
        """Sort bundles: safe ones first, then victim order of their jobs, then the return on what is evicted, then the newest and the larger name."""
        ranks = {bundle.job.key: self.session.job_order.parts(bundle.job) for bundle in bundles}
        places = self._queue_places(plan, {bundle.job.queue for bundle in bundles})
        # Each pass keeps the order of the passes before among those that it finds equal.
        ordered = sorted(bundles, key=lambda bundle: (bundle.job.creation, bundle.job.key), reverse=True)
        gains = dict(zip(map(id, ordered), _gains(ordered, need), strict=True))
        ordered.sort(key=lambda bundle: gains[id(bundle)], reverse=True)
        ordered.sort(key=lambda bundle: ranks[bundle.job.key], reverse=True)
        ordered.sort(key=lambda bundle: (not bundle.safe, places[bundle.job.queue]))
        return ordered

    def _queue_places(self, plan: Plan, names: Iterable[str]) -> dict[str, int]:
        """Return the place of each queue in the order in which queues lose; queues that nothing tells apart share one."""
        session, queues = self.session, self.session.cluster.queues
        own = queues[plan.job.queue]

        def compare(left: str, right: str) -> int:
            return session.victim_queue_compare(queues[left], queues[right], own)

        places: dict[str, int] = {}
        before = ""
        for name in sorted(sorted(names), key=functools.cmp_to_key(compare)):
            places[name] = places[before] + (compare(before, name) != 0) if before else 0
            before = name
        return places


def _group(unit: Unit) -> Hashable:
    """Return what queues tell pods apart by that can be spared; None of a unit about which they know more."""
    job = unit.tasks[0].job
    if unit.whole or job is None or job.roles_enforced or job.policies or not units.keeps_its_minimum(job, unit.tasks):
        return None
    return job.queue, unit.tasks[0].shape.serial


def _freed(sets: Sequence[Sequence[Task]], width: int) -> Matrix:
    """Return what each of some sets of tasks gives back, as rows."""
    freed: Matrix = np.zeros((len(sets), width), dtype=np.int64)
    vectors = [task.shape.request.vector for tasks in sets for task in tasks]
    if vectors:
        np.add.at(freed, np.repeat(np.arange(len(sets)), [len(tasks) for tasks in sets]), np.stack(vectors))
    return freed


def _gains(bundles: Sequence[Bundle], need: Vector) -> list[float]:
    """Return how much of the need each bundle covers for each share of it that is evicted."""
    asked = need > 0
    freed = _freed([bundle.tasks for bundle in bundles], len(need))[:, asked]
    useful = (np.minimum(freed, need[asked]) / need[asked]).sum(axis=1)
    costs = (freed / need[asked]).sum(axis=1)
    return [gain / cost if cost else float("inf") for gain, cost in zip(useful.tolist(), costs.tolist(), strict=True)]
