"""Orders as sort keys: each plugin gives one part, and the last parts make every order total.

A `PriorityQueue` holds items by their key. When a plugin says that an item's key has changed, every queue that holds it looks at it again before
the next item leaves, so the order is always that of now. Items that hang in a tree are ordered branch by branch (`branching`).
"""

from __future__ import annotations

import functools
import heapq
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pumice.framework import branching
from pumice.framework.extensions import Extension, Roster
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.points import Point
    from pumice.model.job import Job, SubJob
    from pumice.model.queue import Queue

T = TypeVar("T")
Key = tuple[Any, ...]


class PriorityQueue(Protocol[T]):
    """Items that leave in order, the order being that of now."""

    def __len__(self) -> int: ...

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""

    def touch(self, item: T) -> None:
        """Look at an item again before the next pop."""

    def touch_all(self) -> None:
        """Order everything anew before the next pop."""

    def pop(self) -> T:
        """Take the first item out."""


class Ordering(Extension[[T], Any], Generic[T]):
    """An ordering point: `key(item)` is the tuple of all plugins' parts and the fallback."""

    __slots__ = ("_fallback", "_functions", "_holders", "_listeners", "_paths")

    def __init__(self, point: Point, roster: Roster, fallback: Callable[[T], Key]) -> None:
        super().__init__(point, roster)
        self._fallback = fallback
        self._listeners: list[PriorityQueue[T]] = []
        # Who holds an item (by id): a touch must not ask every queue of a session, of which there may be thousands.
        self._holders: dict[int, list[HeapQueue[T]]] = {}
        self._functions: list[Callable[[T], Any]] | None = None
        self._paths: list[tuple[Callable[[T], Any], Callable[[T], Sequence[branching.Branch]]]] = []

    def add_tree(self, path: Callable[[T], Sequence[branching.Branch]]) -> None:
        """Register an order of items that hang in a tree: `path` gives the branches above an item, from the top.

        Whoever changes the entry of a branch touches one item below it; what else hangs there need not be named.
        """

        def part(item: T) -> Key:
            return branching.along(path(item))

        self.add(part)
        if any(registered.function is part for registered in self):
            self._paths.append((part, path))

    def add_comparator(self, compare: Callable[[T, T], int]) -> None:
        """Register a function that compares two items, negative meaning that the first goes first."""
        self.add(functools.cmp_to_key(compare))

    def functions(self) -> list[Callable[[T], Any]]:
        """Return the parts in tier order."""
        if self._functions is None:
            self._functions = [registered.function for registered in self]
        return self._functions

    def parts(self, item: T) -> Key:
        """Return what the plugins say, without the fallback."""
        return tuple([function(item) for function in self.functions()])

    def key(self, item: T) -> Key:
        """Return the whole key."""
        return (*self.parts(item), self._fallback(item))

    def sort(self, items: Iterable[T]) -> list[T]:
        """Return the items in order."""
        return sorted(items, key=self.key)

    def queue(self, items: Iterable[T] = ()) -> PriorityQueue[T]:
        """Return a priority queue that follows changes of keys for the rest of the session."""
        waiting: PriorityQueue[T]
        if self._paths and self._leads():
            waiting = branching.TreeQueue(self._paths[0][1], self._rest, items)
        else:
            waiting = HeapQueue(self, items, self._holders)
        self._listeners.append(waiting)
        return waiting

    def _leads(self) -> bool:
        """Tell whether the one order along a tree comes before every other part, so that queues can keep its branches apart."""
        return len(self._paths) == 1 and self.functions()[0] is self._paths[0][0]

    def _rest(self, item: T) -> Key:
        return (*[function(item) for function in self.functions()[1:]], self._fallback(item))

    def touch(self, item: T) -> None:
        """Say that an item's key may have changed, or that of a branch above it."""
        if self._paths:
            for listener in self._listeners:
                if isinstance(listener, HeapQueue):
                    listener.touch_all()
                else:
                    listener.touch(item)
            return
        for holder in self._holders.get(id(item), ()):
            holder.touch(item)

    def touch_all(self) -> None:
        """Say that any key may have changed."""
        for listener in self._listeners:
            listener.touch_all()


class TaskOrdering(Ordering[Task]):
    """Task order; the number at the end of the name counts only if every task that is being ordered has one."""

    __slots__ = ()

    def sort(self, items: Iterable[Task]) -> list[Task]:
        """Return the tasks in order."""
        tasks = list(items)
        functions = self.functions()
        if all(task.index is not None for task in tasks):
            return sorted(tasks, key=lambda t: (*[f(t) for f in functions], t.index, t.creation, t.uid))
        return sorted(tasks, key=lambda t: (*[f(t) for f in functions], t.creation, t.uid))


class HeapQueue(Generic[T]):
    """Items by their present key: those it starts with lie sorted, last first, those pushed later in a heap."""

    __slots__ = ("_heap", "_holders", "_moved", "_ordering", "_sorted", "_stale", "_tickets", "_turn")

    def __init__(
        self, ordering: Ordering[T], items: Iterable[T] = (), holders: dict[int, list[HeapQueue[T]]] | None = None
    ) -> None:
        self._ordering = ordering
        self._holders = {} if holders is None else holders
        self._turn = 0
        self._tickets: dict[int, tuple[int, T]] = {}
        self._heap: list[tuple[Key, int, T]] = []
        self._stale = False
        self._moved: dict[int, T] = {}
        self._sorted = sorted([self._enter(item) for item in items], reverse=True)

    def __len__(self) -> int:
        return len(self._tickets)

    def _enter(self, item: T) -> tuple[Key, int, T]:
        """Give an item a new ticket; entries with an older one are void."""
        self._turn += 1
        if id(item) not in self._tickets:
            self._holders.setdefault(id(item), []).append(self)
        self._tickets[id(item)] = (self._turn, item)
        return (self._ordering.key(item), self._turn, item)

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""
        heapq.heappush(self._heap, self._enter(item))

    def touch(self, item: T) -> None:
        """Move an item to its present place, if it is in the queue, before the next pop."""
        if id(item) in self._tickets:
            self._moved[id(item)] = item

    def touch_all(self) -> None:
        """Order everything anew at the next pop."""
        self._stale = True

    def pop(self) -> T:
        """Take the first item out."""
        if self._stale or self._moved:
            self._catch_up()
        ahead, heap = self._sorted, self._heap
        while True:
            if heap and (not ahead or heap[0] < ahead[-1]):
                _, turn, item = heapq.heappop(heap)
            else:
                _, turn, item = ahead.pop()
            ticket = self._tickets.get(id(item))
            if ticket is not None and ticket[0] == turn:
                del self._tickets[id(item)]
                self._holders[id(item)].remove(self)
                return item

    def _catch_up(self) -> None:
        """Give everything that was touched its present key."""
        moved, self._moved = self._moved, {}
        if self._stale:
            self._stale = False
            self._heap = []
            self._sorted = sorted([self._enter(item) for _, item in list(self._tickets.values())], reverse=True)
            return
        for item in moved.values():
            if id(item) in self._tickets:
                self.push(item)


def job_fallback(job: Job) -> Key:
    """Order equal jobs by creation, then by name."""
    return (job.creation, job.key)


def queue_fallback(queue: Queue) -> Key:
    """Order equal queues by creation, then by name."""
    return (queue.creation, queue.name)


def task_fallback(task: Task) -> Key:
    """Order equal tasks by creation, then by uid."""
    return (task.creation, task.uid)


def sub_job_fallback(sub_job: SubJob) -> Key:
    """Order equal sub-jobs by their index, then by name."""
    return (sub_job.match_index, sub_job.key)
