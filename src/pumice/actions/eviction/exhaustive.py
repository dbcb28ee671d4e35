"""Every combination of what could go, where that is little: tried before it is said that there is no plan."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import asking, ranking, units, ways
from pumice.actions.eviction.plan import orders
from pumice.actions.eviction.rules import in_victim_order
from pumice.actions.eviction.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.actions.eviction.asking import Wanted
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.model.job import Job
    from pumice.model.resources import Vector
    from pumice.model.task import Task

MOST = 8  # units: pods that go alone, gangs that go whole


class EverySet:
    """Every combination of at most eight units, by rank."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Make a plan from each combination of what could go, wherever the members then fit; where members are one and nodes are asked one by one, that is done there."""
        tasks = wanted.tasks
        if len(tasks) == 1 and self._rules.node_by_node:
            return
        found = self._those_who_could_go(plan, tasks)
        for going in _combinations(plan, tasks, found):
            if _is_made(plan, tasks, wanted.done, going):
                plan.is_admitted = False
                yield
            plan.start_again()

    def _those_who_could_go(self, plan: Plan, tasks: Sequence[Task]) -> list[Unit]:
        """Return what could go for one of some claimants; nothing if these are more units than are tried in every way, anywhere."""
        kinds, count = _kinds(tasks), 0
        jobs: list[Job] = []
        for job in self._rules.sources(tasks[0]):
            if here := _those_of(self._rules, kinds, job):
                jobs.append(job)
                count += len(_units(self._rules, tasks[0], job, here))
                if count > MOST:
                    return []
        found: list[Unit] = []
        for job in in_victim_order(plan.session, tasks[0], jobs) if jobs else ():
            here = [task for task in _those_of(self._rules, kinds, job) if plan.covers(task)]
            some = _units(self._rules, tasks[0], job, here) if here else []
            found += [unit for unit in some if not plan.leaves_out([unit])]
        return found


def _kinds(tasks: Sequence[Task]) -> list[Task]:
    """Return one of each kind of claimants."""
    return list({(task.priority, *task.likeness): task for task in tasks}.values())


def _those_of(rules: Rules, claimants: Sequence[Task], job: Job) -> list[Task]:
    """Return those of a job who may go for one of some claimants."""
    return [
        task
        for task in job.tasks.values()
        if task.node is not None and any(rules.may_go(claimant, task) for claimant in claimants)
    ]


def _units(rules: Rules, claimant: Task, job: Job, tasks: Sequence[Task]) -> list[Unit]:
    """Return what a job could give of some pods: those that it can spare, each alone, and, if it cannot spare all of them, everything."""
    ordered = rules.in_order(claimant, tasks)
    if not rules.keeps_gangs or job is claimant.job:
        return [Unit((task,), whole=False) for task in ordered]
    found = [Unit((task,), whole=False) for task in ordered if units.keeps_its_minimum(job, (task,))]
    if not units.keeps_its_minimum(job, ordered) and (rules.allows_whole or not units.keeps_its_minimum(job)):
        found.append(units.whole_job(job, (*ordered, *units.rest_of(job, ordered))))
    return found


def _combinations(plan: Plan, tasks: Sequence[Task], found: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """Return the sets of units in which nobody goes twice and which leave room enough in sum, by rank."""
    table = plan.session.cluster.nodes
    rows = table.rows if plan.domain is None else plan.domain.rows
    room: Vector = np.maximum(table.future_idle_at(rows), 0).sum(axis=0)
    least = asking.least_need(plan.job, tasks)
    listed: list[tuple[Unit, ...]] = []
    for size in range(1, len(found) + 1):
        for going in itertools.combinations(found, size):
            gone = [task for unit in going for task in unit.tasks]
            if len({task.uid for task in gone}) < len(gone) or not plan.can_spare(going) or plan.leaves_out(going):
                continue
            freed = sum((task.shape.request.vector for task in gone if plan.covers(task)), start=room)
            if (least <= freed).all():
                listed.append(going)
    return sorted(listed, key=lambda going: ranking.rank(plan.session, going))


def _is_made(plan: Plan, tasks: Sequence[Task], done: Callable[[], bool], going: Sequence[Unit]) -> bool:
    """Let units go and place the members as allocate would, on the nodes where victims went if these are offered node by node."""
    for unit in going:
        if not units.may_all_go(plan.rules, plan.statement, tasks[0], unit.tasks):
            return False
        plan.evict(unit)
    if not plan.leaves_gangs_whole(going):
        return False
    mark = plan.statement.checkpoint()
    ordered = orders(plan, tasks)
    are_enough = plan.arrange_in_order(next(ordered), done)
    if are_enough and not plan.loose_units():
        return True
    plan.back_to(mark, 0)
    if not are_enough and ways.is_only_one(plan.session, plan.job, tasks):
        return False
    if plan.arrange_somehow(tasks, done, lambda: not plan.loose_units()):
        return True
    if plan.is_small(tasks) and not plan.job.policies and ways.REACHED not in plan.bounds:
        return False
    for others in ordered:
        if plan.arrange_in_order(others, done) and not plan.loose_units():
            return True
        plan.back_to(mark, 0)
    return False
