"""Bundles: what a job can spare, and the rest of it as a whole. The gang forms of eviction take bundles instead of single pods."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import units
from pumice.actions.eviction.asking import least_need, members_lacking, orders
from pumice.actions.eviction.queue_protections import reads_more, reads_only_queues
from pumice.actions.eviction.rules import Rules, jobs_of_other_queues
from pumice.actions.eviction.search import Search
from pumice.actions.eviction.units import Unit
from pumice.framework.subject import EvictionContext, Subject
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any

    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.successors import Successors
    from pumice.framework.evaluation import Mask
    from pumice.framework.extensions import Extension
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class GangRules(Rules):
    """What both gang forms share: victims whose PodGroup does not forbid it, judged by UnifiedEvictable."""

    node_by_node = False

    def protection(self, claimant: Task | None, candidate: Task) -> str | None:
        """Add the explicit mark of the PodGroup to the protections."""
        job = candidate.job
        if job is not None and job.preemptable_set and not job.preemptable:
            return f"PodGroup {job.key} is marked as not preemptable"
        return super().protection(claimant, candidate)

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Look at jobs; which of their pods is meant does not matter."""
        own, other = claimant.job, candidate.job
        return own is not None and other is not None and self.concerns_job(own, other)

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Tell whether the action may look at a job at all."""
        raise NotImplementedError  # pragma: no cover  both forms have their own

    def leaving(self, claimant: Task) -> list[Task]:
        """Return whoever may go for a claimant."""
        return self.candidates(claimant)

    def candidates(self, claimant: Task, domain: HyperNode | None = None, highest: int | None = None) -> list[Task]:
        """Return everybody who may go, on the nodes of a domain or anywhere, of jobs up to a priority: what `may_go` says, with each job and queue asked about once."""
        jobs = {
            id(job): job
            for job in self.sources(claimant)
            if (highest is None or job.priority <= highest) and self._is_open(claimant, job)
        }
        tasks: Iterable[Task]
        if domain is None:
            tasks = (task for job in jobs.values() for task in job.tasks.values())
        else:
            records = self.session.cluster.nodes.records
            here = (task for row in domain.rows.tolist() for task in records[row].tasks.values())
            tasks = (task for task in here if id(task.job) in jobs)
        own = claimant.job.queue if claimant.job is not None else ""
        guarded = {key for key, job in jobs.items() if self._is_guarded(own, job)}
        protection = self.session.protection
        shared = self._asked_once(claimant)
        found = []
        for task in tasks:
            if task.status not in self.statuses or not task.preemptable:
                continue
            if self.is_spared(task) or (claimant.best_effort and not task.best_effort):
                continue
            if guarded and id(task.job) in guarded and self._queue_protection(own, task) is not None:
                continue
            if not shared(task) and protection.among(reads_more, claimant, task, self.name) is None:
                found.append(task)
        return found

    def _asked_once(self, claimant: Task) -> Callable[[Task], bool]:
        """Return what tells whether the protections of queues keep a pod, asked once for all to which they give one answer."""
        protection = self.session.protection
        known: dict[Hashable, bool] = {}
        spared: dict[int, bool] = {}

        def kept(task: Task) -> bool:
            job = task.job
            if job is None:
                return False
            key: Hashable = task.uid
            if not (job.roles_enforced or job.policies):
                if id(job) not in spared:
                    spared[id(job)] = not self.keeps_gangs or units.keeps_its_minimum(job, (task,))
                key = (job.queue, task.shape.serial) if spared[id(job)] else job.key
            if key not in known:
                known[key] = protection.among(reads_only_queues, claimant, task, self.name) is not None
            return known[key]

        return kept

    def _is_open(self, claimant: Task, job: Job) -> bool:
        """Tell whether nothing about a job as a whole speaks against taking from it."""
        if claimant.job is None or job.group is None or job.queue not in self.session.cluster.queues:
            return False
        return self.concerns_job(claimant.job, job) and not (job.preemptable_set and not job.preemptable)

    def _is_guarded(self, own: str, job: Job) -> bool:
        """Tell whether the queue of a job may protect its pods."""
        owner = self.session.cluster.queues[job.queue]
        return owner.name != own and (bool(owner.guarantee) or not owner.reclaimable)

    def ask(self, claimant: Task, candidates: Sequence[Task], domain: HyperNode | None = None) -> list[Task]:
        """Ask who is evictable."""
        return (
            self.session.unified_evictable(EvictionContext(self.name, claimant.job, domain), candidates)
            if claimant.job is not None
            else []
        )

    def asking(self, claimant: Task) -> object:
        """Return what the functions are asked about: the whole gang."""
        return EvictionContext(self.name, claimant.job) if claimant.job is not None else None

    def extension(self) -> Extension[..., Any]:
        """Return UnifiedEvictable."""
        return self.session.unified_evictable


class GangPreempt(GangRules):
    """Take from jobs of lower priority in the same queue."""

    name = "gangpreempt"
    own_queue = True
    statuses = frozenset({Status.BOUND, Status.RUNNING})

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of the same queue with lower priority."""
        return other.queue == own.queue and other.priority < own.priority

    def sources(self, claimant: Task) -> list[Job]:
        """Return the jobs of lower priority in the queue."""
        cluster, own = self.session.cluster, claimant.job
        queue = cluster.queues.get(own.queue) if own is not None else None
        if queue is None or own is None:
            return []
        return [job for key in queue.jobs if (job := cluster.jobs.get(key)) is not None and job.priority < own.priority]


class GangReclaim(GangRules):
    """Take from other queues."""

    name = "gangreclaim"

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of other queues."""
        return other.queue != own.queue

    def sources(self, claimant: Task) -> list[Job]:
        """Return the jobs of the other queues that may be reclaimed from."""
        return jobs_of_other_queues(self.session, claimant)


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
            return [Unit(self.tasks, whole=True, breaks=not self.broken and self.job.min_member > 1)]
        return [Unit((task,), whole=False) for task in self.tasks]


class Supply:
    """What nodes would have with units gone, in numbers, and whether that could do for all members."""

    def __init__(self, session: Session, plan: Plan, tasks: Sequence[Task]) -> None:
        self._plan = plan
        self._table = session.cluster.nodes
        self._room: Matrix = self._table.future_idle_at(self._table.rows).copy()
        self._kinds = list({task.shape.serial: task for task in tasks if not task.shape.request.unoffered}.values())
        self._least = least_need(plan.job, tasks)
        self._rows: dict[int, None] = {}  # on which somebody goes, in the order of the first who does
        rows = self._table.rows if plan.domain is None else plan.domain.rows
        self._total: Vector = np.maximum(self._room[rows], 0).sum(axis=0)
        job = plan.job
        all_needed = job.min_member - job.tally.ready - job.tally.waiting >= len(tasks)
        alone = all_needed and not job.roles_enforced and not job.policies
        # Members that have room nowhere yet; as long as there is one, there is no plan.
        self._homeless = [member for member in self._kinds if not self._fits(member, rows).any()] if alone else []

    def _fits(self, member: Task, rows: Rows | slice) -> Mask:
        request = member.shape.request
        fits: Mask = np.logical_and.reduce(self._room[rows][:, request.asked] >= request.needed, axis=1)
        return fits

    def add(self, unit: Unit) -> None:
        """Count a unit as gone."""
        for task in unit.tasks:
            if task.node is None or not self._plan.covers(task) or task.node.row >= len(self._room):
                continue
            row, vector = task.node.row, task.shape.request.vector
            self._room[row] += vector
            self._rows[row] = None
            self._total = self._total + vector
            if self._homeless:
                here = np.array([row], dtype=np.int64)
                self._homeless = [member for member in self._homeless if not self._fits(member, here)[0]]

    def is_enough(self) -> bool:
        """Tell whether there is enough in sum."""
        return bool((self._least <= self._total).all())

    def may_do(self) -> bool:
        """Tell whether nothing in the numbers speaks against a plan."""
        return not self._homeless and self.is_enough()

    def divided(self, units: Sequence[Unit], most: int | None = None) -> tuple[list[Unit], list[Unit]]:
        """Tell units on nodes where a member would have room from the others, which come first; of each kind of member at most so many nodes, the first to lose first."""
        useful: dict[int, None] = {}
        for member in self._kinds:
            fits = self._fits(member, self._table.rows)
            found = (row for row in self._rows if fits[row])
            useful.update(dict.fromkeys(itertools.islice(found, most)))
        parts: tuple[list[Unit], list[Unit]] = ([], [])
        for unit in units:
            rows = (task.node.row for task in unit.tasks if task.node is not None)
            parts[any(row in useful for row in rows)].append(unit)
        return parts


class BundleSearch(Search):
    """Fills plans from bundles: as few as make room for all members."""

    def __init__(
        self, session: Session, rules: GangRules, successors: Successors | None = None, *, allow_whole: bool
    ) -> None:
        super().__init__(session, rules, successors)
        self._gang_rules = rules
        self._allow_whole = allow_whole

    def fresh(self) -> BundleSearch:
        """Return a search by the same rules that remembers nothing."""
        return BundleSearch(self.session, self._gang_rules, allow_whole=self._allow_whole)

    def fill(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Add bundles until the members fit: no more important ones than it takes, the safest of those first."""
        if plan.arrange_enough(tasks, done):
            return True
        # The demand is that of pods with requests; pods without any are for those to ask who have no others.
        asking = [task for task in tasks if not task.best_effort] or list(tasks)
        if self._allow_whole and any(self._fill_in_order(plan, ordered, done) for ordered in orders(plan, asking)):
            return True
        need = sum(
            (task.shape.request.vector for task in members_lacking(plan.job, asking)),
            start=np.zeros(len(self.session.cluster.vocabulary), dtype=np.int64),
        )
        least, room = least_need(plan.job, asking), self._room(plan)
        # More important jobs are not even looked at while less important ones are enough.
        for level in sorted({job.priority for job in self._gang_rules.sources(asking[0])}):
            bundles = self._sorted(plan, self._bundles(plan, asking, level), need)
            for highest in sorted({bundle.priority for bundle in bundles if bundle.priority[0] == level}):
                among = [bundle for bundle in bundles if bundle.priority <= highest]
                freed = (task.shape.request.vector for bundle in among for task in bundle.tasks if plan.covers(task))
                if (least <= sum(freed, start=room)).all() and self._fill_from(plan, among, asking, done):
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
        """Evict units as far as they may go; tells whether any went."""
        return bool(sum(self._take(plan, claimant, unit) for unit in wanted))

    def _take(self, plan: Plan, claimant: Task, unit: Unit) -> bool:
        """Evict a unit, unless by now somebody in it is protected or it would leave a part of its gang behind."""
        if not units.may_all_go(plan, claimant, unit.tasks):
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

    def _bundles(self, plan: Plan, asking: Sequence[Task], highest: int) -> list[Bundle]:
        """Cut the victims that the plugins allow, of jobs up to a priority, into what their jobs can spare and the rest."""
        claimant = asking[0]
        found = self._gang_rules.candidates(claimant, plan.domain, highest)
        ordered = self.rules.in_order(claimant, [task for task in found if task.uid not in plan.excluded])
        allowed = {task.uid for task in self.rules.ask(claimant, ordered, plan.domain)} if ordered else set()
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
        if not self._allow_whole and not broken:
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
        ordered.sort(key=lambda bundle: _gain(bundle, need), reverse=True)
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


def _gain(bundle: Bundle, need: Vector) -> float:
    """Return how much of the need a bundle covers for each share of it that is evicted."""
    asked = need > 0
    freed = sum((task.shape.request.vector for task in bundle.tasks), start=np.zeros(len(need), dtype=np.int64))
    useful = float((np.minimum(freed, need)[asked] / need[asked]).sum())
    cost = float((freed[asked] / need[asked]).sum())
    return useful / cost if cost else float("inf")
