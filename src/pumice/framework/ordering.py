"""Orders as sort keys: each plugin gives one part, and the last parts make every order total.

A `PriorityQueue` holds items by their key. When a plugin says that an item's key has changed, every queue that holds it looks at it again before
the next item leaves, so the order is always that of now. Items that hang in a tree are ordered branch by branch (`branching`).
"""

from __future__ import annotations

import functools
import heapq
import operator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pumice.framework import branching, registration
from pumice.framework.extensions import Extension
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.extensions import Point
    from pumice.framework.registration import Roster

T = TypeVar("T")
Key = tuple[Any, ...]
Entry = tuple[Key, int, T]
Holders = dict[int, "tuple[HeapQueue[T], ...]"]
_KEY = operator.itemgetter(0)


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

    combines = "the first plugin that tells two items apart decides"
    answer = "sort key"

    __slots__ = ("_fallback", "_functions", "_holders", "_listeners", "_paths")

    def __init__(self, point: Point[Any], roster: Roster) -> None:
        super().__init__(point, roster)
        self._fallback: list[Callable[[T], Any]] = [operator.attrgetter(name) for name in point.fallback]
        self._listeners: list[PriorityQueue[T]] = []
        # Who holds an item (by id): a touch must not ask every queue of a session, of which there may be thousands.
        self._holders: Holders[T] = {}
        self._functions: list[Callable[[T], Any]] | None = None
        self._paths: list[tuple[Callable[[T], Any], Callable[[T], Sequence[branching.Branch]]]] = []

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of the items."""
        return arguments

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
        slot = self._roster.slot
        registration.check(compare, self.point.name, ("left", "right"), slot.plugin if slot is not None else "")
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
        return tuple([function(item) for function in (*self.functions(), *self._fallback)])

    def keys(self, items: Sequence[T]) -> Iterable[Key]:
        """Return the whole keys of many items."""
        return zip(*[map(function, items) for function in (*self.functions(), *self._fallback)], strict=True)

    def compare(self, left: T, right: T) -> int:
        """Compare two items by their whole keys, negative meaning that the first goes first."""
        first, second = self.key(left), self.key(right)
        return 0 if first == second else (-1 if first < second else 1)

    def sort(self, items: Iterable[T]) -> list[T]:
        """Return the items in order."""
        unsorted = list(items)
        keys = list(self.keys(unsorted))
        return [unsorted[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]

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
        return tuple([function(item) for function in (*self.functions()[1:], *self._fallback)])

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

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of the items."""
        del arguments
        return (Task,)

    def sort(self, items: Iterable[Task]) -> list[Task]:
        """Return the tasks in order."""
        tasks = list(items)
        functions = self.functions()
        if all(task.index is not None for task in tasks):
            return sorted(tasks, key=lambda t: (*[f(t) for f in functions], t.index, t.creation, t.uid))
        return sorted(tasks, key=lambda t: (*[f(t) for f in functions], t.creation, t.uid))


class HeapQueue(Generic[T]):
    """Items by their present key: those it starts with lie sorted, last first, those pushed later in a heap."""

    __slots__ = ("_alone", "_heap", "_holders", "_moved", "_ordering", "_sorted", "_stale", "_tickets", "_turn")

    def __init__(self, ordering: Ordering[T], items: Iterable[T] = (), holders: Holders[T] | None = None) -> None:
        self._ordering = ordering
        self._holders: Holders[T] = {} if holders is None else holders
        self._alone: tuple[HeapQueue[T], ...] = (self,)
        self._turn = 0
        # The one entry of an item that counts; those it had before are void.
        self._tickets: dict[int, Entry[T]] = {}
        self._heap: list[Entry[T]] = []
        self._stale = False
        self._moved: dict[int, T] = {}
        self._sorted: list[Entry[T]] = []
        self._begin(list(items))

    def __len__(self) -> int:
        return len(self._tickets)

    def _begin(self, items: list[T]) -> None:
        """Start with some items, or with all of them anew, in a few steps for all together."""
        entries: list[Entry[T]] = list(
            zip(self._ordering.keys(items), range(self._turn, self._turn + len(items)), items, strict=True)
        )
        self._turn += len(items)
        fresh = dict(zip(map(id, items), entries, strict=True))
        if self._holders.keys().isdisjoint(fresh):
            self._holders.update(dict.fromkeys(fresh, self._alone))
        else:
            for known in fresh:
                self._hold(known)
        self._tickets.update(fresh)
        # The same as comparing whole entries, whose turns ascend, but a level of tuples less deep.
        entries.reverse()
        entries.sort(key=_KEY, reverse=True)
        self._sorted = entries

    def _hold(self, known: int) -> None:
        """Say, by the id of an item, that this queue holds it."""
        holders = self._holders.get(known)
        if not holders:
            self._holders[known] = self._alone
        elif self not in holders:
            self._holders[known] = (*holders, self)

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""
        entry = (self._ordering.key(item), self._turn, item)
        self._turn += 1
        self._hold(id(item))
        self._tickets[id(item)] = entry
        heapq.heappush(self._heap, entry)

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
        ahead, heap, tickets = self._sorted, self._heap, self._tickets
        while True:
            entry = heapq.heappop(heap) if heap and (not ahead or heap[0] < ahead[-1]) else ahead.pop()
            item = entry[2]
            known = id(item)
            if tickets.get(known) is entry:
                del tickets[known]
                holders = self._holders.pop(known)
                if holders is not self._alone:
                    self._holders[known] = tuple(holder for holder in holders if holder is not self)
                return item

    def _catch_up(self) -> None:
        """Give everything that was touched its present key."""
        moved, self._moved = self._moved, {}
        if self._stale:
            self._stale = False
            self._heap = []
            self._begin([entry[2] for entry in self._tickets.values()])
            return
        for item in moved.values():
            if id(item) in self._tickets:
                self.push(item)
