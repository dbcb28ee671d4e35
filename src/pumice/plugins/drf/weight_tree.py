"""The tree of hierarchical dominant resource fairness: queues in branches with weights, jobs as their leaves.

A branch counts what its members hold as if every member that still wants more held no more than the poorest of them (`mdr`), so that
one rich member does not make its siblings look rich. Amounts are parts of the cluster's total; the members of a branch lie side by side in
arrays, and a placement computes one path anew from them, so that the numbers are always those of a fresh computation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.sums import Sums

Path: TypeAlias = tuple[str, ...]
Floats: TypeAlias = npt.NDArray[np.float64]

ROOT = "root"
MAX_DEPTH = 64
# Shares of branches are sums of quotients: they are compared on a grid, so that the last bit never decides. A power of two keeps halves and quarters off
# the borders between steps.
GRID = 2**36


def place(queue: Queue) -> tuple[Path, tuple[float, ...]]:
    """Return the branches above a queue's jobs, from below the root, and the weight of each.

    A queue that names no branch hangs directly under the root with weight 1, in a branch that nobody else can name; branches beyond `MAX_DEPTH` are not read.
    """
    parts = queue.hierarchy.split("/")
    weights = queue.hierarchy_weights.split("/")
    if parts[0] == ROOT:
        parts, weights = parts[1:], weights[1:]
    named = [(part, weights[at] if at < len(weights) else "") for at, part in enumerate(parts) if part][:MAX_DEPTH]
    if not named:
        return (f"/{queue.name}",), (1.0,)
    return tuple(part for part, _ in named), tuple(_weight(text) for _, text in named)


def _weight(text: str) -> float:
    """Read a weight; one that is missing, below 1 or no number is 1."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1 <= weight < float("inf") else 1.0


class Branch:
    """One node of the tree. Its members lie from `start` to `end` in the arrays of the tree, itself at `slot` among those of its parent."""

    __slots__ = ("end", "entry", "parent", "saturated", "share", "slot", "start", "weight")

    def __init__(self, parent: Branch | None, weight: float) -> None:
        self.parent = parent
        self.weight = weight
        self.start = self.end = self.slot = 0
        self.share = 0.0
        self.saturated = True
        self.entry: tuple[bool, int] | tuple[()] = ()

    def settle(self, share: float, *, saturated: bool) -> None:
        """Take over new numbers."""
        self.share, self.saturated = share, saturated
        steps = round(share / self.weight * GRID)
        self.entry = (saturated, steps) if saturated or steps else ()


class WeightTree:
    """All branches that jobs hang on, with their shares as they are now."""

    def __init__(
        self, members: Mapping[str, Sequence[Job]], queues: Iterable[Queue], sums: Sums, total: Vector
    ) -> None:
        self._sums = sums
        self.total = total
        self._offered = np.flatnonzero(total > 0)
        self.branches: dict[Path, Branch] = {}
        self._paths: dict[str, tuple[Branch, ...]] = {}
        self._slots: dict[str, int] = {}
        self._homes: dict[str, Branch] = {}
        self._dirty: dict[str, Job] = {}
        jobs = self._lay_out(members, queues)
        size = len(self._slots) + len(self.branches)
        self._held: Matrix = np.zeros((size, len(total)), dtype=np.int64)
        self._requested: Matrix = np.zeros((size, len(total)), dtype=np.int64)
        self._parts: Floats = np.zeros((size, len(self._offered)), dtype=np.float64)
        self._shares: Floats = np.zeros(size, dtype=np.float64)
        self._saturated = np.ones(size, dtype=np.bool_)
        self._is_job = np.zeros(size, dtype=np.bool_)
        self._fill(jobs)

    # -- building ----------------------------------------------------------------------------------------------

    def _lay_out(self, members: Mapping[str, Sequence[Job]], queues: Iterable[Queue]) -> list[Job]:
        """Make the branches and give every member its slot, in an order that depends on names only."""
        homes: dict[Path, list[Job]] = {}
        # Of several queues that weigh a branch, the oldest that has jobs is believed.
        for queue in sorted(queues, key=lambda q: (q.creation, q.name)):
            jobs = members.get(queue.name)
            if jobs:
                path, weights = place(queue)
                for depth in range(1, len(path) + 1):
                    if path[:depth] not in self.branches:
                        above = self.branches.get(path[: depth - 1])
                        self.branches[path[:depth]] = Branch(above, weights[depth - 1])
                homes.setdefault(path, []).extend(jobs)
        below: dict[Path, list[Branch]] = {}
        for path in sorted(self.branches):
            below.setdefault(path[:-1], []).append(self.branches[path])
        laid: list[Job] = []
        position = 0
        for path in [(), *sorted(self.branches)]:
            start = position
            for branch in below.get(path, ()):
                branch.slot = position
                position += 1
            here = sorted(homes.get(path, ()), key=_key)
            for job in here:
                self._slots[job.key] = position
                self._homes[job.key] = self.branches[path]
                position += 1
            laid += here
            if path:
                self.branches[path].start, self.branches[path].end = start, position
        return laid

    def _fill(self, jobs: Sequence[Job]) -> None:
        """Read what all jobs hold and compute every branch."""
        slots = [self._slots[job.key] for job in jobs]
        rows = [job.row for job in jobs]
        sums = self._sums
        self._held[slots] = sums.allocated[rows] + sums.pipelined[rows]
        self._requested[slots] = self._held[slots] + sums.pending[rows]
        self._is_job[slots] = True
        self._parts[slots] = self._held[slots][:, self._offered] / self.total[self._offered]
        self._shares[slots] = self._parts[slots].max(axis=1, initial=0.0)
        self._allocated: Vector = self._held.sum(axis=0)
        self._demanding = self._allocated < self.total
        self._settle_all()

    def _settle_all(self) -> None:
        """Compute the saturation of all jobs, and all branches from the bottom up."""
        jobs = self._is_job
        self._saturated[jobs] = self._is_saturated(self._held[jobs], self._requested[jobs])
        for path in sorted(self.branches, key=len, reverse=True):
            self._settle(self.branches[path])

    def _is_saturated(self, held: Matrix, requested: Matrix) -> npt.NDArray[np.bool_]:
        """Tell which jobs have all they asked for of something they hold, or hold something of which nothing is left."""
        ends = (held >= requested) | ~self._demanding
        saturated: npt.NDArray[np.bool_] = ((held > 0) & (requested > 0) & ends).any(axis=-1)
        return saturated

    # -- changing ----------------------------------------------------------------------------------------------

    def follow(self, job: Job) -> None:
        """Note that what a job holds has changed; the numbers follow when somebody asks."""
        if job.key in self._slots:
            self._dirty[job.key] = job

    def settle(self) -> bool:
        """Bring the tree up to date, and tell whether that may have changed the order of everybody and not of one path."""
        if not self._dirty:
            return False
        dirty, self._dirty = self._dirty, {}
        for job in dirty.values():
            held = self._sums.held(job.row)
            self._requested[self._slots[job.key]] = held + self._sums.pending[job.row]
            self._hold(job, held)
        return self._follow_demand()

    def _follow_demand(self) -> bool:
        """Judge everybody again if something ran out, or is to be had again."""
        demanding = self._allocated < self.total
        if np.array_equal(demanding, self._demanding):
            return False
        self._demanding = demanding
        self._settle_all()
        return True

    def _hold(self, job: Job, held: Vector) -> None:
        """Let a job hold something, and compute the branches above it."""
        slot = self._slots[job.key]
        self._allocated = self._allocated + held - self._held[slot]
        self._held[slot] = held
        self._parts[slot] = held[self._offered] / self.total[self._offered]
        self._shares[slot] = self._parts[slot].max(initial=0.0)
        self._saturated[slot] = self._is_saturated(held, self._requested[slot])
        branch: Branch | None = self._homes[job.key]
        while branch is not None:
            self._settle(branch)
            branch = branch.parent

    def _settle(self, branch: Branch) -> None:
        """Compute a branch from its members."""
        shares = self._shares[branch.start : branch.end]
        saturated = self._saturated[branch.start : branch.end]
        active = shares > 0
        wanting = shares[active & ~saturated]
        poorest = min(1.0, float(wanting.min())) if len(wanting) else 1.0
        scale = np.where(saturated[active], 1.0, poorest / shares[active])
        parts = (self._parts[branch.start : branch.end][active] * scale[:, None]).sum(axis=0)
        self._parts[branch.slot] = parts
        self._shares[branch.slot] = parts.max(initial=0.0)
        self._saturated[branch.slot] = saturated.all()
        branch.settle(float(self._shares[branch.slot]), saturated=bool(self._saturated[branch.slot]))

    # -- asking ------------------------------------------------------------------------------------------------

    def path(self, queue: Queue) -> tuple[Branch, ...]:
        """Return the branches above a queue's jobs as they were last settled; one without jobs has share 0."""
        known = self._paths.get(queue.name)
        if known is None:
            path, weights = place(queue)
            above: Branch | None = None
            branches: list[Branch] = []
            for depth in range(1, len(path) + 1):
                found = self.branches.get(path[:depth])
                above = Branch(above, weights[depth - 1]) if found is None else found
                branches.append(above)
            known = self._paths[queue.name] = tuple(branches)
        return known

    def precedes(self, left: Queue, right: Queue) -> bool:
        """Tell whether one queue comes strictly before another on the levels that both have."""
        pairs = zip(self.path(left), self.path(right), strict=False)
        differing = next(((a.entry, b.entry) for a, b in pairs if a.entry != b.entry), None)
        return differing is not None and differing[0] < differing[1]

    def shift(self, job: Job, change: Vector) -> None:
        """Pretend that a job holds more, or less, than it does; the opposite change takes it back."""
        if job.key in self._slots:
            self._hold(job, self._held[self._slots[job.key]] + change)
            self._follow_demand()


def _key(job: Job) -> str:
    return job.key
