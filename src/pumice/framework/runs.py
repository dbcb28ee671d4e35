"""What a statement logs: runs of equal tasks that made the same step, and how they are put together and told apart."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task

# What counts as having room, for a queue, a budget or whoever follows placements.
_HAS_ROOM = ALLOCATED_LIKE | {Status.PIPELINED}


class Step(Enum):
    """What a run of tasks did."""

    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    SUPPOSE = "suppose"


class Run(msgspec.Struct):
    """Equal tasks of one job that made the same step, each with the node and status it came from and the node it went to.

    Of an eviction, `claimant` is the task for which room is made and `why` is what its victims are told, by default the reason; of a supposition, `listed` are the tasks of the nodes it took tasks from, in their order.
    """

    step: Step
    before: Status
    after: Status
    tasks: list[Task]
    sources: list[NodeRecord | None]
    targets: list[NodeRecord | None]
    reason: str = ""
    evicted: bool = False
    claimant: Task | None = None
    why: str = ""
    listed: list[tuple[NodeRecord, list[str]]] = []
    serials: list[int] = []

    @property
    def direction(self) -> int:
        """1 if the tasks get room by this, -1 if they give it back, 0 if neither."""
        if self.step is Step.SUPPOSE:
            return (self.after in _HAS_ROOM) - (self.before in _HAS_ROOM)
        return -1 if self.step is Step.EVICT else 1

    def told(self) -> Run:
        """Return the run as handlers see it: its targets are the nodes on which room is taken or given back."""
        if self.step is Step.SUPPOSE and self.direction < 0:
            return msgspec.structs.replace(self, targets=self.sources)
        return self

    def pick(self, positions: Sequence[int]) -> Run:
        """Return a run of some of the tasks."""
        return msgspec.structs.replace(
            self,
            tasks=[self.tasks[i] for i in positions],
            sources=[self.sources[i] for i in positions],
            targets=[self.targets[i] for i in positions],
            serials=[self.serials[i] for i in positions] if self.serials else [],
        )

    def drop(self, start: int, end: int) -> None:
        """Forget some of the tasks."""
        del self.tasks[start:end], self.sources[start:end], self.targets[start:end], self.serials[start:end]

    def append(self, other: Run) -> None:
        """Take another run in that joins this one."""
        self.tasks += other.tasks
        self.sources += other.sources
        self.targets += other.targets
        self.serials += other.serials

    def still_applied(self) -> Run:
        """Return the run without the tasks that are no longer where it put them."""
        still = [i for i, task in enumerate(self.tasks) if task.status == self.after and task.node is self.targets[i]]
        return self if len(still) == len(self.tasks) else self.pick(still)

    def joins(self, other: Run) -> bool:
        """Tell whether another run can be appended to this one."""
        mine, theirs = self.tasks[0], other.tasks[0]
        return (
            mine.job is theirs.job
            and self.step is not Step.SUPPOSE
            and mine.shape is theirs.shape
            and self.claimant is other.claimant
            and (self.step, self.before, self.after, self.reason, self.evicted)
            == (other.step, other.before, other.after, other.reason, other.evicted)
        )


def equals(tasks: Sequence[Task]) -> list[int]:
    """Split tasks into runs of one job, one shape and one status: returns where each begins, and the end of the last."""
    found: list[int] = []
    last: Task | None = None
    for number, task in enumerate(tasks):
        if last is None or task.shape is not last.shape or task.job is not last.job or task.status is not last.status:
            found.append(number)
            last = task
    found.append(len(tasks))
    return found


def begun(
    step: Step,
    after: Status,
    tasks: Sequence[Task],
    targets: Sequence[NodeRecord | None],
    *,
    reason: str,
    evicted: bool,
    claimant: Task | None,
) -> list[Run]:
    """Make the runs of tasks that are about to move, each to the node beside it."""
    said = (reason, evicted, claimant)
    if len(tasks) == 1:
        task = tasks[0]
        runs = [Run(step, task.status, after, [task], [task.node], [targets[0]], *said)]
    else:
        runs = []
        for start, end in itertools.pairwise(equals(tasks)):
            group = list(tasks[start:end])
            sources = [task.node for task in group]
            runs.append(Run(step, group[0].status, after, group, sources, list(targets[start:end]), *said))
    if step is Step.SUPPOSE:
        for run in runs:
            left = {
                id(source): source for source, node in zip(run.sources, run.targets, strict=True) if source is not node
            }
            run.listed = [(record, list(record.tasks)) for record in left.values() if record is not None]
    return runs


def leaving_order(task: Task) -> tuple[int, int, str]:
    """Return what victims are sorted by wherever they are sent or told of: the least important first, then by name."""
    return (0 if task.job is None else task.job.priority), task.priority, task.key


def victims_apart(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """Tell runs of victims from others."""
    evicting: list[Run] = []
    others: list[Run] = []
    for run in runs:
        (evicting if run.step is Step.EVICT else others).append(run)
    return evicting, others


def alike(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Put runs together, in their order, that go back to one status in one direction, no task twice."""
    for _, equal in itertools.groupby(runs, key=lambda run: (run.before, run.direction)):
        batch: list[Run] = []
        known: set[str] = set()
        for run in equal:
            uids = [task.uid for task in run.tasks]
            if not known.isdisjoint(uids):
                yield batch
                batch, known = [], set()
            batch.append(run)
            known.update(uids)
        yield batch
