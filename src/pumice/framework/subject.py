"""What filters, scores and limits are asked about."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pumice.model.constraints import Constraints
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Request, Vector, Vocabulary
    from pumice.model.shape import ConstraintClass, Shape
    from pumice.model.task import Task


class Subject:
    """A task that looks for a node, standing for every task of the same shape."""

    __slots__ = ("_alone", "job", "queue", "shape", "task")

    def __init__(self, task: Task, queue: Queue | None = None) -> None:
        self._alone: Subjects | None = None
        self.task = task
        self.shape: Shape = task.shape
        self.job: Job | None = task.job
        self.queue = queue

    @property
    def request(self) -> Request:
        """What the task asks for."""
        return self.shape.request

    @property
    def constraints(self) -> Constraints:
        """What kind of node the task asks for."""
        return self.shape.constraint_class.constraints

    @property
    def constraint_class(self) -> ConstraintClass:
        """The class of tasks with equal constraints."""
        return self.shape.constraint_class

    def alone(self, vocabulary: Vocabulary) -> Subjects:
        """Return the subject as the only one that is asked about; made once for it and its equals."""
        if self._alone is None or self._alone.requests.shape[1] != len(self.shape.request.vector):
            self._alone = together([self], vocabulary)
        return self._alone

    def follow(self, equal: Subject) -> None:
        """Take over what was worked out of an equal one."""
        self._alone = equal._alone


V = TypeVar("V")


class Subjects:
    """Subjects of different shapes that are asked about together, with what they ask for as columns: a row each.

    Whatever else a function works out of them it keeps with `kept`, since it is asked about the same ones again whenever a node changed. If they are `small`, no amount of
    theirs or of a node is larger than floats can tell, also a hundredfold and added up.
    """

    __slots__ = ("_kept", "members", "non_zero", "requests", "small", "vocabulary")

    def __init__(
        self,
        members: Sequence[Subject],
        vocabulary: Vocabulary,
        requests: Matrix,
        non_zero: Matrix,
        *,
        small: bool = False,
    ) -> None:
        self.small = small
        self.members = members
        self.vocabulary = vocabulary
        self.requests = requests
        self.non_zero = non_zero
        self._kept: dict[Hashable, object] = {}

    def some(self, chosen: slice) -> Subjects:
        """Return some of them."""
        requests, non_zero = self.requests[chosen], self.non_zero[chosen]
        return Subjects(self.members[chosen], self.vocabulary, requests, non_zero, small=self.small)

    def __len__(self) -> int:
        return len(self.members)

    def kept(self, make: Callable[[Subjects], V]) -> V:
        """Return what a function makes of the subjects, made once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        found: V = self._kept[make]  # type: ignore[assignment]  # kept under what made it
        return found


def together(members: Sequence[Subject], vocabulary: Vocabulary, *, small: bool = False) -> Subjects:
    """Ask about subjects together."""
    requests = np.array([member.shape.request.vector for member in members], dtype=np.int64)
    non_zero = np.array([member.shape.non_zero for member in members], dtype=np.int64)
    return Subjects(members, vocabulary, requests, non_zero, small=small)


class EvictionContext(msgspec.Struct, frozen=True):
    """What UnifiedEvictable is asked about: the kind of eviction, the job that asks, and the hyper-node that victims are in, if it is but one."""

    kind: str
    job: Job
    domain: HyperNode | None = None


class Demand:
    """Tasks that a queue is asked to take on together, and the sum of what they ask for, which nobody may change.

    If they are only to wait for room (`waits`), evictions that were sent count as carried out; whoever is to be bound has to wait until victims are terminating.
    """

    __slots__ = ("amounts", "tasks", "waits")

    def __init__(self, tasks: Sequence[Task], amounts: Vector, *, waits: bool = False) -> None:
        self.tasks = tasks
        self.amounts = amounts
        self.waits = waits


def demand(tasks: Sequence[Task], *, waits: bool = False) -> Demand:
    """Demand room for tasks of any shapes."""
    times = Counter([task.shape for task in tasks])
    total = np.zeros_like(tasks[0].shape.request.vector)
    for shape, count in times.items():
        total += shape.request.vector * count
    return Demand(tasks, total, waits=waits)


def equal_tasks(tasks: Sequence[Task], *, waits: bool = False) -> Demand:
    """Demand room for tasks that all have one shape."""
    vector = tasks[0].shape.request.vector
    return Demand(tasks, vector if len(tasks) == 1 else vector * len(tasks), waits=waits)
