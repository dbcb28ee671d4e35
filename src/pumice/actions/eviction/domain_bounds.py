"""What evictions could do for a job in each hyper-node, in plain numbers: where a plan is worth making, and what it would cost at the least.

Everybody who may go is looked up once and laid out by node, so that what a hyper-node could give is a sum over its part of a column. Nothing here decides: a
hyper-node is left out only where no plan can stand, or none that is cheaper than one that was found. `bench.topology.evicting` takes five times as long without.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import asking, ranking, units
from pumice.framework import subject
from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

# The rank of a plan's victims, then how near its members are.
Cost = tuple[tuple[int, int], bool, int, int, int, int]


class DomainBounds:
    """The sums of one job that asks, as things stand before anything is planned for it."""

    def __init__(self, session: Session, rules: Rules, job: Job, tasks: Sequence[Task]) -> None:
        self._session = session
        self._rules = rules
        self._job = job
        self._tasks = tasks
        table = session.cluster.nodes
        self._free: Matrix = table.future_idle_at(table.rows)
        leaving = [
            task for task in rules.leaving(tasks[0]) if task.node is not None and task.node.row < len(self._free)
        ]
        rows = np.array([task.node.row for task in leaving if task.node is not None], dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        self._leaving = [leaving[position] for position in order.tolist()]
        # The victims on a row lie behind each other, up to where those of the next begin.
        self._ends: Rows = np.cumsum(np.bincount(rows, minlength=len(self._free)))
        shapes = {task.shape.serial: task.shape.request.vector for task in leaving}
        places = {serial: place for place, serial in enumerate(shapes)}
        kinds = np.array([places[task.shape.serial] for task in self._leaving], dtype=np.int64)
        vectors = np.array(list(shapes.values()), dtype=np.int64).reshape(len(shapes), self._free.shape[1])
        self._requests: Matrix = vectors[kinds]

    # -- sums --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _given(self) -> Matrix:
        """What would be given back on each node with everybody gone who may go."""
        sums = np.zeros((len(self._requests) + 1, self._free.shape[1]), dtype=np.int64)
        np.cumsum(self._requests, axis=0, out=sums[1:])
        return np.diff(sums[self._ends], axis=0, prepend=0)

    def worthwhile(self) -> Mask:
        """Mark the hyper-nodes that would have enough in sum with everybody gone who may go."""
        sums = self._session.topology.tree_of(self._job).sums(np.maximum(self._free, 0) + self._given)
        enough: Mask = np.logical_and.reduce(sums >= asking.least_need(self._job, self._tasks), axis=1)
        return enough

    @functools.cached_property
    def _members(self) -> int:
        """How many members a plan has to place at the least, as far as that can be told from numbers."""
        session, job = self._session, self._job
        lacking = job.min_member - job.tally.expected
        if lacking <= 1 or session.is_pipelined(job):
            return 1
        statement = session.statement()
        with statement.trial():
            statement.suppose(self._tasks[: lacking - 1], [None] * (lacking - 1), Status.PIPELINED)
            return 1 if session.is_pipelined(job) else lacking

    @functools.cached_property
    def _least(self) -> Vector:
        """What so many members ask for at the least."""
        asked = np.sort(np.stack([task.shape.request.vector for task in self._tasks]), axis=0)
        least: Vector = asked[: self._members].sum(axis=0)
        return least

    # -- one hyper-node ----------------------------------------------------------------------------------------

    def is_hopeless(self, domain: HyperNode) -> bool:
        """Tell whether a hyper-node would have too little room with everybody gone who may go: in sum, or node by node for members that are equal."""
        first = self._tasks[0]
        room = self._free[domain.rows] + self._given[domain.rows]
        if (np.maximum(room, 0).sum(axis=0) < self._least).any():
            return True
        vector = first.shape.request.vector
        asked = vector > 0
        if any(task.shape is not first.shape for task in self._tasks):
            return False
        queue = self._session.queue_of(self._job)
        open_to = self._session.evaluator.static_mask(subject.Subject(first, queue))[domain.rows]
        fits = (room[open_to][:, asked] // vector[asked]).min(axis=1)
        return int(np.maximum(fits, 0).sum()) < self._members

    def lacks(self, domain: HyperNode) -> Vector:
        """Return how much a hyper-node lacks of each resource without evictions; nowhere more than 0 means that it may do without any."""
        short: Vector = self._least - np.maximum(self._free[domain.rows], 0).sum(axis=0)
        return short

    def least_cost(self, domain: HyperNode) -> Cost | None:
        """Return a cost that no plan in a hyper-node stays below; None if it may need no victim at all."""
        lacks = self.lacks(domain)
        short = lacks > 0
        if not short.any():
            return None
        places = self._places(domain)
        victims = [self._leaving[place] for place in places.tolist()]
        requests, lacking = self._requests[places][:, short], lacks[short]
        ranks = [(task.job.priority if task.job else 0, task.priority) for task in victims]
        highest = _highest(ranks, requests, lacking)
        chosen = [place for place, rank in enumerate(ranks) if rank <= highest]
        victims, requests = [victims[place] for place in chosen], requests[chosen]
        breaks, size = self._gang_to_lose(victims, requests, lacking)
        count = max(_fewest(requests, lacking), size)
        return highest, breaks, count, self._least_loss(lacks), domain.tier, domain.index

    def _least_loss(self, lacks: Vector) -> int:
        """Return a loss that no victims stay below who give back as much: each costs at least its share of any one resource."""
        shares = ranking.losses(self._session)
        return max(shares.share(column, amount) for column, amount in enumerate(lacks.tolist()) if amount > 0)

    def _places(self, domain: HyperNode) -> Rows:
        """Return where the victims of a hyper-node's nodes are listed."""
        ends = self._ends[domain.rows]
        begins = np.where(domain.rows > 0, self._ends[domain.rows - 1], 0)
        counts = ends - begins
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        places: Rows = np.repeat(begins, counts) + offsets
        return places

    def _gang_to_lose(self, victims: Sequence[Task], requests: Matrix, lacking: Vector) -> tuple[bool, int]:
        """Tell whether a gang has to be broken because what can go otherwise is not enough, and the size of the smallest job that has to go whole, else 1."""
        if not self._rules.keeps_gangs:
            return False, 1
        jobs: dict[str, tuple[Job, list[int]]] = {}
        for place, task in enumerate(victims):
            if task.job is not None:
                jobs.setdefault(task.job.key, (task.job, []))[1].append(place)
        spared = unbroken = np.zeros(len(lacking), dtype=np.int64)
        sizes: dict[bool, int] = {}
        for job, places in jobs.values():
            stands = units.keeps_its_minimum(job)
            spare = min(job.surplus if stands else 0, len(places))
            most = requests[places].max(axis=0)
            breaks = stands and job.min_member > 1
            spared = spared + spare * most
            unbroken = unbroken + (spare if breaks else len(places)) * most
            size = sum(job.tally.counts[status] for status in ALLOCATED_LIKE)
            sizes[breaks] = min(sizes.get(breaks, size), size)
        if (spared >= lacking).all():
            return False, 1
        breaks = not (unbroken >= lacking).all()
        return breaks, sizes.get(breaks, 1)


def _highest(ranks: Sequence[tuple[int, int]], requests: Matrix, lacking: Vector) -> tuple[int, int]:
    """Return the lowest rank up to which victims have to be taken, all of whom are enough."""
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    enough = (np.cumsum(requests[order], axis=0) >= lacking).all(axis=1)
    return ranks[order[int(enough.argmax())]]


def _fewest(requests: Matrix, lacking: Vector) -> int:
    """Return how many victims it takes at the least: for each resource those that give most of it."""
    sums = np.cumsum(np.sort(requests, axis=0)[::-1], axis=0)
    return 1 + int((sums < lacking).sum(axis=0).max())
