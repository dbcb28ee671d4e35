"""Who could go for claimants of one kind, laid out by node as columns.

A node's part of the columns holds its units, those of the lowest priority first: pods that their jobs can spare, and jobs that would have to go whole. The columns follow
the log of changed rows; a job whose spare pods become fewer changes on all its nodes. They tell what could go at most: whether it may is asked of the plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import ranking, units
from pumice.actions.eviction.queue_protections import QueueProtections
from pumice.model.statuses import ALLOCATED_LIKE

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job, Tally
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

# A loss is a whole number of any size; as columns it is cut into digits of so many bits, the highest first.
DIGIT = 50


class Item(msgspec.Struct, frozen=True, gc=False):
    """A unit on one node; its groups tell for whom the protections of queues have one answer."""

    priority: int
    breaks: bool
    count: int
    loss: int
    freed: Vector
    tasks: tuple[Task, ...]
    groups: int


class Standing:
    """What is known of a job that victims could come from: its pods by node, and what decides which of them are units."""

    __slots__ = ("by_row", "job", "most", "number", "stands", "whole")

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.by_row: dict[int, list[Task]] = {}
        # The most pods that it has on one node.
        self.most = 0
        self.stands: Hashable = None
        self.whole: tuple[int, bool, int, int] | None = None


class Columns:
    """The units of all nodes, in the state of the last look at the log."""

    def __init__(self, session: Session, rules: Rules, claimant: Task) -> None:
        self._session = session
        self._rules = rules
        self._claimant = claimant
        self._losses = ranking.losses(session)
        self.table: NodeTable = session.cluster.nodes
        self._singles_only = not rules.keeps_gangs or rules.within
        self._no_wholes = _keeps_every_minimum(rules)
        # Grows whenever everything was laid out anew, and whenever somebody who had gone is back.
        self.epoch = 0
        self.revivals = 0
        self.protections = QueueProtections(session, rules)
        self._build()

    # -- laying out --------------------------------------------------------------------------------------------

    def _build(self) -> None:
        table = self.table
        self.position = table.position
        self.epoch += 1
        # The rows that were laid out again since then, in order; whoever follows remembers how far it has read.
        self.log: list[int] = []
        self._standings: dict[str, Standing] = {}
        self._rows: dict[int, dict[str, Standing]] = {}
        self._alive: dict[str, bool] = {}
        self._singles: dict[str, Item] = {}
        # Priority, loss and groups of pods that go alone, by what these depend on.
        self._alike: dict[Hashable, tuple[int, int, int]] = {}
        priorities: dict[tuple[int, int], None] = {}
        sources = self._rules.sources(self._claimant)
        self._sources = {job.key for job in sources}
        for job in sources:
            self._add(job, table.count, priorities)
        self.priorities = sorted(priorities)
        self._codes = {priority: code for code, priority in enumerate(self.priorities)}
        for standing in self._standings.values():
            self._judge(standing)
        self.rows: Rows = np.array(sorted(self._rows), dtype=np.int64)
        self.segments = {row: place for place, row in enumerate(self.rows.tolist())}
        laid = self._all_items()
        sizes = [self._size(row) for row in self.rows.tolist()]
        self.ends: Rows = np.cumsum(np.array(sizes, dtype=np.int64))
        self.starts: Rows = self.ends - np.array(sizes, dtype=np.int64)
        self._allot(int(self.ends[-1]) if sizes else 0, table.allocatable.shape[1])
        segment = np.repeat(np.arange(len(sizes)), sizes)
        self._everywhere = (slice(None), self.starts, segment)
        begins = zip(self.starts.tolist(), laid, strict=True)
        self._enter(
            [at for start, items in begins for at in range(start, start + len(items))],
            [entry for items in laid for entry in items],
        )

    def _add(self, job: Job, count: int, priorities: dict[tuple[int, int], None]) -> None:
        standing = Standing(job, len(self._standings))
        for task in job.tasks.values():
            node = task.node
            if node is not None and node.row < count and task.status in ALLOCATED_LIKE:
                standing.by_row.setdefault(node.row, []).append(task)
                priorities[job.priority, task.priority] = None
                self._alive[task.uid] = True
        if standing.by_row:
            self._standings[job.key] = standing
            standing.most = max(map(len, standing.by_row.values()))
            for row in standing.by_row:
                self._rows.setdefault(row, {})[job.key] = standing

    def _allot(self, length: int, width: int) -> None:
        self.digits = max(1, -(-(self._losses.end_of_a_job.bit_length() + ranking.PODS_BITS) // DIGIT))
        self.alive: Mask = np.zeros(length, dtype=np.bool_)
        self.priority: Rows = np.zeros(length, dtype=np.int64)
        self.breaks: Mask = np.zeros(length, dtype=np.bool_)
        self.count: Rows = np.zeros(length, dtype=np.int64)
        self.loss: Matrix = np.zeros((length, self.digits), dtype=np.int64)
        self.freed: Matrix = np.zeros((length, width), dtype=np.int64, order="F")
        self.job: Rows = np.full(length, -1, dtype=np.int64)
        self.groups: Rows = np.zeros(length, dtype=np.int64)
        self.items: list[Item | None] = [None] * length

    def _size(self, row: int) -> int:
        """Return how many units a node can have at the most: each pod, and each job of which it has several."""
        here = [len(standing.by_row[row]) for standing in self._rows[row].values()]
        return sum(n + 1 if n > 1 else 1 for n in here)

    def _write(self, place: int, items: list[tuple[Item, int]]) -> None:
        """Lay out one node."""
        start, end = int(self.starts[place]), int(self.ends[place])
        self.alive[start:end] = False
        self._enter(list(range(start, start + len(items))), items)

    def _enter(self, places: list[int], items: Sequence[tuple[Item, int]]) -> None:
        """Write units, each with the number of its job, into some places of the columns."""
        if not items:
            return
        at = np.array(places, dtype=np.int64)
        self.alive[at] = True
        self.priority[at] = [item.priority for item, _ in items]
        self.breaks[at] = [item.breaks for item, _ in items]
        self.count[at] = [item.count for item, _ in items]
        digits = {loss: split(loss, self.digits) for loss in {item.loss for item, _ in items}}
        self.loss[at] = [digits[item.loss] for item, _ in items]
        # Pods of one shape give back the same vector.
        vectors = {id(item.freed): item.freed for item, _ in items}
        numbers = dict(zip(vectors, range(len(vectors)), strict=True))
        self.freed[at] = np.array(list(vectors.values()))[[numbers[id(item.freed)] for item, _ in items]]
        self.job[at] = [job for _, job in items]
        self.groups[at] = [item.groups for item, _ in items]
        for place, (item, _) in zip(places, items, strict=True):
            self.items[place] = item

    # -- units -------------------------------------------------------------------------------------------------

    def _all_items(self) -> list[list[tuple[Item, int]]]:
        """Return the units of all nodes, each node's with the lowest priority first."""
        laid: dict[int, list[tuple[Item, int]]] = {row: [] for row in self.rows.tolist()}
        single = self._single
        for standing in self._standings.values():
            job, number, spares_all = standing.job, standing.number, standing.stands == standing.most
            for row, tasks in standing.by_row.items():
                if spares_all and len(tasks) == 1 and tasks[0].preemptable:
                    laid[row].append((single(job, tasks[0]), number))
                else:
                    self._list(standing, tasks, laid[row])
        return [self._in_order(items) for items in laid.values()]

    def _items(self, row: int) -> list[tuple[Item, int]]:
        """Return the units of a node, the lowest priority first."""
        found: list[tuple[Item, int]] = []
        for standing in self._rows[row].values():
            alive = [task for task in standing.by_row[row] if self._alive[task.uid]]
            self._list(standing, alive, found)
        return self._in_order(found)

    def _in_order(self, items: list[tuple[Item, int]]) -> list[tuple[Item, int]]:
        if len(self.priorities) > 1:
            items.sort(key=lambda entry: entry[0].priority)
        return items

    def _list(self, standing: Standing, here: Sequence[Task], found: list[tuple[Item, int]]) -> None:
        """List the units that a job gives on a node where it has some pods."""
        job, number = standing.job, standing.number
        alive = [task for task in here if task.preemptable]
        if standing.stands == standing.most:
            # It can spare all that it has on any one node.
            found += [(self._single(job, task), number) for task in alive]
            return
        if not alive:
            return
        spare = job.surplus
        plain = self._singles_only or not (job.roles_enforced or job.policies)
        found += [
            (self._single(job, task), number)
            for task in alive
            if self._singles_only or (spare >= 1 if plain else units.keeps_its_minimum(job, (task,)))
        ]
        if standing.whole is not None and (len(alive) > spare if plain else not units.keeps_its_minimum(job, alive)):
            found.append((self._whole(standing, alive), number))

    def _single(self, job: Job, task: Task) -> Item:
        item = self._singles.get(task.uid)
        if item is None:
            key = (job.queue, job.priority, task.priority, task.shape.serial)
            alike = self._alike.get(key)
            if alike is None:
                group = self.protections.group(job, task, alone=True)
                alike = (
                    self._codes[job.priority, task.priority],
                    self._losses.of(task.shape),
                    self.protections.number((group,)),
                )
                if not (job.roles_enforced or job.policies):
                    self._alike[key] = alike
            code, loss, groups = alike
            item = Item(
                code, breaks=False, count=1, loss=loss, freed=task.shape.request.vector, tasks=(task,), groups=groups
            )
            self._singles[task.uid] = item
        return item

    def _whole(self, standing: Standing, here: Sequence[Task]) -> Item:
        priority, breaks, count, loss = standing.whole or (0, False, 0, 0)
        freed: Vector = np.sum([task.shape.request.vector for task in here], axis=0)
        groups = self._number(standing.job, here, alone=standing.job.surplus > 0)
        return Item(priority, breaks, count, loss, freed, tuple(here), groups)

    def _number(self, job: Job, tasks: Sequence[Task], *, alone: bool) -> int:
        groups = dict.fromkeys(self.protections.group(job, task, alone=alone) for task in tasks)
        return self.protections.number(tuple(groups))

    def _judge(self, standing: Standing) -> bool:
        """Work out which units a job gives, and tell whether that may have changed."""
        job = standing.job
        if self._singles_only:
            return False
        spare = job.surplus
        plain = not (job.roles_enforced or job.policies)
        if plain and spare >= standing.most:
            standing.whole = None
            before, standing.stands = standing.stands, standing.most
            return before != standing.stands
        standing.whole = self._as_a_whole(job)
        tallies = () if plain else tuple(tuple(tally.counts) for tally in _tallies(job))
        before, standing.stands = standing.stands, (spare, standing.whole, tallies)
        return before != standing.stands

    def _as_a_whole(self, job: Job) -> tuple[int, bool, int, int] | None:
        """Return what it would cost to take all of a job; None if that cannot be."""
        placed = [task for task in job.tasks.values() if task.status in ALLOCATED_LIKE]
        plain = not (job.roles_enforced or job.policies)
        if not placed or (self._no_wholes and plain) or not all(task.preemptable for task in placed):
            return None
        highest = max((job.priority, task.priority) for task in placed)
        if highest not in self._codes:
            # Somebody of it is where no node is; whatever it is, it costs no less than those that are known.
            known = [(job.priority, t.priority) for t in placed if (job.priority, t.priority) in self._codes]
            if not known:
                return None
            highest = max(known)
        ends = units.keeps_its_minimum(job)
        return self._codes[highest], job.min_member > 1 and ends, len(placed), self._losses.sum(placed, ends=ends)

    def can_spare_more(self, task: Task) -> bool:
        """Tell whether a job without one of its pods could still spare all that it has on any one node, so that nothing else of it changes if that pod goes."""
        if self._singles_only:
            return True
        job = task.job
        standing = None if job is None else self._standings.get(job.key)
        return standing is not None and standing.stands == standing.most < standing.job.surplus

    def leave_others_alone(self, tasks: Sequence[Task]) -> bool:
        """Tell whether no other node changes if pods of one node go: their jobs have nobody elsewhere, or could still spare all that they have on any one node."""
        spread: list[Standing] = []
        for task in tasks:
            standing = self._standings.get(task.job_key)
            if standing is None:
                return False
            if len(standing.by_row) > 1 and not self._singles_only:
                spread.append(standing)
        return all(
            standing.stands == standing.most and standing.most <= standing.job.surplus - spread.count(standing)
            for standing in spread
        )

    # -- following ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Lay out again what has changed."""
        table = self.table
        rows = table.changed_since(self.position)
        if rows is None:
            self._build()
            return
        self.position = table.position
        touched: dict[int, None] = {}
        anew: dict[int, None] = {}
        standings: dict[str, Standing] = {}
        for row in rows.tolist():
            if not self._is_known(row):
                self._build()
                return
            here = self._rows.get(row)
            if here:
                touched[row] = None
                if self._count_alive(row, here, standings):
                    anew[row] = None
            standings.update(self._waiting_on(row))
        for standing in standings.values():
            if self._judge(standing):
                # Where nobody of it is left there is nothing to lay out.
                left = standing.by_row.items()
                anew.update((row, None) for row, tasks in left if any(self._alive[task.uid] for task in tasks))
        for row in touched | anew:
            if row in anew:
                self._write(self.segments[row], self._items(row))
            else:
                self._strike_out(row)
            self.log.append(row)

    def _is_known(self, row: int) -> bool:
        """Tell whether nobody has come to a node who could be a victim."""
        for task in self.table.records[row].tasks.values():
            if task.status in ALLOCATED_LIKE and task.job is not None:
                standing = self._standings.get(task.job.key)
                if task.job.key in self._sources and (standing is None or task not in standing.by_row.get(row, ())):
                    return False
        return True

    def _waiting_on(self, row: int) -> dict[str, Standing]:
        """Return the jobs of which somebody who is no victim is on a node: that changes what they can spare."""
        tasks = self.table.records[row].tasks.values()
        jobs = [task.job_key for task in tasks if task.status not in ALLOCATED_LIKE]
        return {key: self._standings[key] for key in jobs if key in self._standings}

    def _strike_out(self, row: int) -> None:
        """Leave out who has gone from a node where nothing else has changed: pods that their jobs can spare."""
        place = self.segments[row]
        for at in range(int(self.starts[place]), int(self.ends[place])):
            item = self.items[at]
            if item is not None and not self._alive[item.tasks[0].uid]:
                self.alive[at] = False

    def _count_alive(self, row: int, here: dict[str, Standing], changed: dict[str, Standing]) -> bool:
        """Look who of a node is there, note whose jobs have changed by that, and tell whether somebody is back."""
        before = self.revivals
        for key, standing in here.items():
            for task in standing.by_row[row]:
                alive = task.status in ALLOCATED_LIKE and task.node is not None and task.node.row == row
                if alive is not self._alive[task.uid]:
                    self.revivals += alive
                    self._alive[task.uid] = alive
                    changed[key] = standing
        return self.revivals > before

    def spread(self, places: Rows) -> tuple[Rows | slice, Rows, Rows]:
        """Return where the units of some nodes are, where each node's begin among them, and whose each of them is."""
        if len(places) == len(self.rows):
            return self._everywhere
        starts, sizes = self.starts[places], self.ends[places] - self.starts[places]
        begins = np.cumsum(sizes) - sizes
        segment = np.repeat(np.arange(len(places)), sizes)
        return np.arange(len(segment)) - begins[segment] + starts[segment], begins, segment

    # -- who is out of the question ----------------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        """Return the jobs whose units are listed, by their numbers."""
        return [standing.job for standing in self._standings.values()]

    def number_of(self, job: Job | None) -> int:
        """Return the number under which a job's units are listed, -1 if it has none."""
        standing = self._standings.get(job.key) if job is not None else None
        return -1 if standing is None else standing.number

    def protected(self, claimant: Task) -> Mask | None:
        """Mark the units that are known to be protected by their queues; None if there are none."""
        self.protections.look_again(claimant)
        kept = self.protections.kept()
        return None if kept is None else kept[self.groups]

    def having(self, uids: Container[str]) -> Mask:
        """Mark the units that hold one of some pods."""
        held = [item is not None and any(task.uid in uids for task in item.tasks) for item in self.items]
        return np.array(held, dtype=np.bool_)

    def learn(self, claimant: Task, row: int) -> bool:
        """Find out whom on a node the protections of their queues keep, and tell whether that is news."""
        place = self.segments[row]
        held = [self.items[at] for at in range(int(self.starts[place]), int(self.ends[place])) if self.alive[at]]
        return self.protections.learn(claimant, [task for item in held if item is not None for task in item.tasks])


def _tallies(job: Job) -> list[Tally]:
    return [*job.roles.values(), *(sub.tally for sub in job.sub_jobs.values())]


def columns(session: Session, rules: Rules, claimant: Task) -> Columns:
    """Return the columns for a claimant, laid out once in a cycle for all that may take from the same jobs."""
    job = claimant.job
    owner = "" if job is None else job.key if rules.within else job.queue
    name = f"columns of {type(rules).__name__} for {owner}"
    kept = session.scratch.get(name)
    if not isinstance(kept, Columns):
        kept = session.scratch[name] = Columns(session, rules, claimant)
    else:
        kept.refresh()
    return kept


def _keeps_every_minimum(rules: Rules) -> bool:
    """Tell whether gang votes about victims and nobody decides before or after it, so that no pod is offered that its job cannot spare; to the gang forms it offers everybody."""
    voting = [tier for tier in rules.extension().tiers if tier] if rules.node_by_node else []
    return len(voting) == 1 and any(registered.plugin == "gang" for registered in voting[0])


def split(loss: int, digits: int) -> list[int]:
    """Cut a whole number into digits, the highest first."""
    return [loss >> DIGIT * place & (1 << DIGIT) - 1 for place in range(digits - 1, -1, -1)]


def join(digits: Sequence[int]) -> int:
    """Put a whole number together again."""
    total = 0
    for digit in digits:
        total = (total << DIGIT) + digit
    return total
