"""Who could go for the claimants of a queue, laid out by node as columns that are kept from cycle to cycle.

A node's part of the columns holds its units: pods that their jobs can spare, and jobs that would have to go whole. The columns follow the logs of changed nodes and changed jobs, so that what is
laid out again in a cycle is what has changed. They tell what could go at most: whether it may is asked of the plugins.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import ranking, unit_columns, units
from pumice.actions.eviction.queue_protections import QueueProtections
from pumice.actions.eviction.unit_columns import HALF, Item, UnitColumns
from pumice.model.statuses import ALLOCATED_LIKE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeTable
    from pumice.model.resources import Vector
    from pumice.model.task import Task

MANY = 10_000  # shapes and jobs that are remembered beside those of the units


class Standing(msgspec.Struct):
    """What decides which units a job gives: the most pods that it has had on one node, what all of it would cost, and all that its units depend on."""

    job: Job
    most: int
    whole: tuple[int, bool, int, int] | None = None
    seen: Hashable = None


class Columns(UnitColumns):
    """The units of all nodes, in the state of the last look at the logs."""

    def __init__(self, session: Session, rules: Rules, claimant: Task) -> None:
        super().__init__()
        self._basis: Hashable = None
        # Priority, loss and groups of pods that go alone, by what these depend on.
        self._alike: dict[Hashable, tuple[int, int, int]] = {}
        self.protections = QueueProtections()
        self.renew(session, rules, claimant)

    def renew(self, session: Session, rules: Rules, claimant: Task) -> None:
        """Take over the rules of a cycle, and forget everything if these, the nodes or the queues are not what they were."""
        self._cluster = session.cluster
        self._rules = rules
        self._owner = claimant.job
        self._losses = ranking.losses(session)
        self._singles_only = not rules.keeps_gangs or rules.within
        self._no_wholes = _keeps_every_minimum(rules)
        self.table: NodeTable = session.cluster.nodes
        queues, classes = session.cluster.queues, session.cluster.priority_classes
        basis = (
            self._singles_only,
            self._no_wholes,
            self.table.structure,
            self.table.allocatable.shape[1],
            tuple(self._losses.totals.items()),
            tuple([(queue.row, queue.name, queue.reclaimable, queue.bad) for queue in queues.values()]),
            tuple([(name, found.value, found.global_default) for name, found in classes.items()]),
        )
        # What is known of shapes and jobs that are long gone is not kept for ever.
        if basis != self._basis or len(self._alike) + len(self.protections) > MANY + 4 * len(self.items):
            self._basis = basis
            self._node_position = self._job_position = -1
            self._alike, self.protections = {}, QueueProtections()
        self.protections.renew(session, rules)
        self.log.clear()
        self.epoch += 1
        self.refresh()

    # -- following ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Lay out again what has changed."""
        nodes, jobs = self.table.rows_since(self._node_position), self._cluster.job_changes.since(self._job_position)
        self._node_position, self._job_position = self.table.position, self._cluster.job_changes.position
        if nodes is None or jobs is None:
            self._standings: dict[int, Standing] = {}
            bits = self._losses.end_of_a_job.bit_length() + ranking.PODS_BITS
            self.clear(self.table.count, self.table.allocatable.shape[1], bits)
            nodes, jobs = list(range(self.table.count)), list(self._cluster.job_at)
        here = {row: self._pods(row) for row in nodes}
        changed = dict.fromkeys(jobs)
        for by_job in here.values():
            for number, tasks in by_job.items():
                standing, job = self._standings.get(number), self._cluster.job_at[number]
                if standing is None or standing.job is not job or len(tasks) > standing.most:
                    self._standings[number] = Standing(job, len(tasks))
                    changed[number] = None
        for number in changed:
            for row in self._rows_to_lay_out(number):
                if row not in here:
                    here[row] = self._pods(row)
        self.write({row: self._items(by_job) for row, by_job in here.items()})

    def _pods(self, row: int) -> dict[int, list[Task]]:
        """Return the pods of a node that hold room there, by job."""
        found: dict[int, list[Task]] = {}
        for task in self.table.records[row].tasks.values():
            if task.status in ALLOCATED_LIKE and (job := task.job) is not None and self._is_source(job):
                found.setdefault(job.row, []).append(task)
        return found

    def _rows_to_lay_out(self, number: int) -> list[int]:
        """Work out which units a job gives, and return its nodes if that may have changed."""
        job = self._cluster.job_at.get(number)
        standing = self._standings.get(number)
        if job is None or not self._is_source(job):
            self._standings.pop(number, None)
            return [] if job is None or standing is None else list(self._rows_of(job))
        if standing is None or standing.job is not job:
            # It has come from another queue, else its nodes would tell of it.
            standing = self._standings[number] = Standing(job, max(self._rows_of(job).values(), default=0))
        before, standing.seen = standing.seen, self._judged(standing)
        return [] if before == standing.seen else list(self._rows_of(job))

    def _rows_of(self, job: Job) -> Counter[int]:
        """Return the nodes that a job holds room on, with how many of its pods are there."""
        rows = [t.node.row for t in job.tasks.values() if t.node is not None and t.status in ALLOCATED_LIKE]
        return Counter([row for row in rows if row < self.table.count])

    def _is_source(self, job: Job) -> bool:
        """Tell whether victims could come from a job."""
        own = self._owner
        if self._rules.within:
            return job is own
        if self._rules.own_queue:
            return own is not None and job.queue == own.queue
        queue = self._cluster.queues.get(job.queue)
        return queue is not None and queue.reclaimable and not queue.bad

    def _judged(self, standing: Standing) -> Hashable:
        """Work out what a job can spare and what all of it costs, and return what its units depend on."""
        job = standing.job
        about = (job.queue, job.priority)
        if self._singles_only:
            return about
        plain, surplus = _is_plain(job), job.surplus
        if plain and surplus >= standing.most:
            standing.whole = None
            return about
        standing.whole = self._as_a_whole(job)
        tallies = [] if plain else [*job.roles.values(), *(sub.tally for sub in job.sub_jobs.values())]
        counts = tuple([tuple(tally.counts) for tally in tallies])
        return *about, surplus, standing.whole, counts

    def _as_a_whole(self, job: Job) -> tuple[int, bool, int, int] | None:
        """Return what it would cost to take all of a job; None if that cannot be."""
        placed = [task for task in job.tasks.values() if task.status in ALLOCATED_LIKE]
        if not placed or (self._no_wholes and _is_plain(job)) or not all(task.preemptable for task in placed):
            return None
        highest, ends = max([task.priority for task in placed]), units.keeps_its_minimum(job)
        cost = self._losses.sum(placed, ends=ends)
        return unit_columns.code(job.priority, highest), job.min_member > 1 and ends, len(placed), cost

    # -- units -------------------------------------------------------------------------------------------------

    def _items(self, by_job: dict[int, list[Task]]) -> list[Item]:
        """Return the units of a node, the lowest priority first."""
        found: list[Item] = []
        for number, here in by_job.items():
            self._list(self._standings[number], [task for task in here if task.preemptable], found)
        if len(found) > 1:
            found.sort(key=lambda item: item.priority)
        return found

    def _list(self, standing: Standing, here: Sequence[Task], found: list[Item]) -> None:
        """List the units that a job gives on a node where it has some pods."""
        job = standing.job
        plain, spare = _is_plain(job), job.surplus
        if self._singles_only or (plain and spare >= 1):
            found += [self._single(job, task) for task in here]
        elif not plain:
            found += [self._single(job, task) for task in here if units.keeps_its_minimum(job, (task,))]
        if standing.whole is None or not here:
            return
        if len(here) > spare if plain else not units.keeps_its_minimum(job, here):
            priority, breaks, count, loss = standing.whole
            freed = here[0].shape.request.vector if len(here) == 1 else _sum(here)
            groups = dict.fromkeys([self.protections.group(job, task, alone=spare > 0) for task in here])
            number = self.protections.number(tuple(groups))
            found.append(Item(priority, breaks, count, loss, freed, tuple(here), number, job.row, self._queue_row(job)))

    def _single(self, job: Job, task: Task) -> Item:
        plain = _is_plain(job)
        key = (job.queue, job.priority, task.priority, task.shape.serial)
        alike = self._alike.get(key) if plain else None
        if alike is None:
            number = self.protections.number((self.protections.group(job, task, alone=True),))
            alike = unit_columns.code(job.priority, task.priority), self._losses.of(task.shape), number
            if plain:
                self._alike[key] = alike
        code, loss, groups = alike
        return Item(code, False, 1, loss, task.shape.request.vector, (task,), groups, job.row, self._queue_row(job))

    def _queue_row(self, job: Job) -> int:
        queue = self._cluster.queues.get(job.queue)
        return -1 if queue is None else queue.row

    def _can_lose(self, job: Job, count: int) -> bool:
        """Tell whether a job without so many pods could still spare all that it has on any one node."""
        standing = self._standings.get(job.row)
        return standing is not None and _is_plain(job) and standing.most <= job.surplus - count

    def leave_others_alone(self, tasks: Sequence[Task]) -> bool:
        """Tell whether no other node changes if pods of one node go: their jobs have nobody elsewhere, or could still spare all that they have on any one node."""
        if self._singles_only:
            return True
        for job, count in Counter(task.job for task in tasks).items():
            if job is None or (not self._can_lose(job, count) and len(self._rows_of(job)) > 1):
                return False
        return True

    # -- who is out of the question ----------------------------------------------------------------------------

    def those_of(self, claimant: Task) -> Mask:
        """Mark the units that are not out of a claimant's reach: of other jobs, and, where it takes from other queues, not of its own."""
        job, rules = claimant.job, self._rules
        if rules.within or job is None:
            return self.alive.copy()
        if not rules.own_queue:
            other: Mask = self.queue != self._cluster.queues[job.queue].row
            return self.alive & other
        reached: Mask = self.alive & (self.job != job.row)
        if (highest := rules.highest_taken(job)) is not None:
            reached &= self.priority < unit_columns.code(highest + 1, -HALF)
        return reached

    def protected(self, claimant: Task) -> Mask | None:
        """Mark the units that are known to be protected by their queues; None if there are none."""
        self.protections.look_again(claimant)
        kept = self.protections.kept()
        return None if kept is None else kept[self.groups]

    def learn(self, claimant: Task, row: int) -> bool:
        """Find out whom on a node the protections of their queues keep, and tell whether that is news."""
        return self.protections.learn(claimant, [task for item in self.items_of(row) for task in item.tasks])


def columns(session: Session, rules: Rules, claimant: Task) -> Columns:
    """Return the columns for a claimant: those of its queue, where it takes from its like, of all queues where it takes from others, of its job where it takes from its own."""
    job = claimant.job
    owner = "" if job is None else job.key if rules.within else job.queue if rules.own_queue else ""
    name = f"columns of {type(rules).__name__} for {owner}"
    known = session.scratch.get(name)
    if isinstance(known, Columns):
        known.refresh()
        return known
    lasting = session.lasting.setdefault("columns", {})
    assert isinstance(lasting, dict)  # noqa: S101  nobody else has that name
    kept: Columns | None = lasting.get((type(rules), owner))
    if kept is None:
        kept = Columns(session, rules, claimant)
        if not rules.within:
            for key in [key for key in lasting if key[1] and key[1] not in session.cluster.queues]:
                del lasting[key]
            lasting[type(rules), owner] = kept
    else:
        kept.renew(session, rules, claimant)
    session.scratch[name] = kept
    return kept


def _keeps_every_minimum(rules: Rules) -> bool:
    """Tell whether gang votes about victims and nobody decides before or after it, so that no pod is offered that its job cannot spare; to the gang forms it offers everybody."""
    voting = [tier for tier in rules.extension().tiers if tier] if rules.node_by_node else []
    return len(voting) == 1 and any(registered.plugin == "gang" for registered in voting[0])


def _is_plain(job: Job) -> bool:
    return not (job.roles_enforced or job.policies)


def _sum(tasks: Sequence[Task]) -> Vector:
    total: Vector = np.sum([task.shape.request.vector for task in tasks], axis=0)
    return total
