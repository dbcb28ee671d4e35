"""Orders as sort keys: each plugin gives one part, and the last parts make every order total.

Items wait in queues that hold them by their key (`priority_queues`); whoever says that a key has changed has every queue look at its item again.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pumice.framework import branching, registration, wrong_answers
from pumice.framework.breakdowns import WrongAnswerError
from pumice.framework.extensions import Extension, Registered
from pumice.framework.priority_queues import BranchQueue, HeapQueue
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.extensions import Point
    from pumice.framework.priority_queues import Holders, Key, PriorityQueue
    from pumice.framework.registration import Roster

T = TypeVar("T")
R = TypeVar("R")


class ComparatorError(Exception):
    """A comparator broke down, or said what is no number."""

    def __init__(self, comparator: object, error: Exception) -> None:
        super().__init__(str(error))
        self.comparator = comparator
        self.error = error


def _compared(keys: Sequence[Key]) -> int:
    first, second = keys
    return 0 if first == second else (-1 if first < second else 1)


def _attributes(names: Sequence[str]) -> Callable[[Any], Key]:
    """Return what gives some attributes of an item as a tuple, in one step where that is possible: it is asked for every turn."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


class _Comparator(Generic[T]):
    """A function that compares two items, as a part of a key."""

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self.func = compare
        self._key = functools.cmp_to_key(self._asked)

    def __call__(self, item: T) -> Any:
        return self._key(item)

    def _asked(self, left: T, right: T) -> int:
        try:
            answer = self.func(left, right)
            wrong_answers.check_comparison(answer)
        except Exception as error:
            raise ComparatorError(self, error) from error
        return answer


class Ordering(Extension[[T], Any], Generic[T]):
    """An ordering point: `key(item)` is the tuple of all plugins' parts and the fallback.

    A part that breaks down, cannot be compared or is NaN is left out for the rest of the session, and everything is ordered anew without it. Only where items of
    the one job that is being tried are ordered is the job given up instead.
    """

    combines = "the first plugin that tells two items apart decides"
    answer = "sort key"

    __slots__ = ("_fallback", "_functions", "_holders", "_last", "_listeners", "_parts", "_paths")

    def __init__(self, point: Point[Any], roster: Roster) -> None:
        super().__init__(point, roster)
        self._fallback: list[Callable[[T], Any]] = [operator.attrgetter(name) for name in point.fallback]
        self._last = _attributes(point.fallback)
        self._listeners: list[PriorityQueue[T]] = []
        # Who holds an item (by id): a touch must not ask every queue of a session, of which there may be thousands.
        self._holders: Holders[T] = {}
        self._functions: list[Callable[[T], Any]] | None = None
        self._parts: list[Registered[[T], Any]] | None = None
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
        self.add(_Comparator(compare))

    def functions(self) -> list[Callable[[T], Any]]:
        """Return the parts in tier order."""
        if self._functions is None:
            self._functions = [registered.function for registered in self]
        return self._functions

    def parts(self, item: T, start: int = 0) -> Key:
        """Return what the plugins say, without the fallback."""
        if self._parts is None:
            self._parts = list(self)
        said = []
        registered = None
        try:
            for registered in self._parts[start:] if start else self._parts:
                said.append(registered.function(item))
            wrong_answers.check_key(said)
        except Exception as error:  # noqa: BLE001  whatever a plugin raises
            wrong = isinstance(error, WrongAnswerError)
            self._blame(self._wrong(said, start) if wrong else registered, error, [item])
            return self.parts(item, start)
        return tuple(said)

    def key(self, item: T) -> Key:
        """Return the whole key."""
        return (*self.parts(item), *self._last(item))

    def keys(self, items: Sequence[T]) -> Iterable[Key]:
        """Return the whole keys of many items."""
        columns: list[list[Any]] = []
        for registered in self:
            try:
                column = list(map(registered.function, items))
                wrong_answers.check_keys(column)
            except Exception as error:  # noqa: BLE001  whatever a plugin raises
                self._blame(registered, error, items)
            else:
                columns.append(column)
        return zip(*columns, *[map(function, items) for function in self._fallback], strict=True)

    def compare(self, left: T, right: T) -> int:
        """Compare two items by their whole keys, negative meaning that the first goes first."""
        return self.arranged([left, right], _compared)

    def sort(self, items: Iterable[T]) -> list[T]:
        """Return the items in order."""
        unsorted = list(items)
        return self.arranged(
            unsorted, lambda keys: [unsorted[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]
        )

    # -- parts that break down ---------------------------------------------------------------------------------

    def arranged(self, items: Sequence[T], step: Callable[[list[Key]], R]) -> R:
        """Do something that compares the keys of items; where they cannot be compared, leave out whose part that is and do it again."""
        while True:
            keys = list(self.keys(items))
            try:
                return step(keys)
            except Exception as error:  # noqa: BLE001  whatever a comparison raises
                self.mend(error, items, keys)

    def mend(self, error: Exception, items: Sequence[T], keys: Sequence[Key]) -> None:
        """Leave out the part because of which keys could not be compared; if there is none, the exception goes on."""
        found = self._incomparable(keys, error)
        self._blame(found, error.error if isinstance(error, ComparatorError) else error, items)

    def leave_tree_out(self, error: Exception, items: Sequence[T]) -> None:
        """Do without the order along the tree, whose branches could not be compared."""
        part = self._paths[0][0] if self._paths else None
        self._blame(next((each for each in self if each.function is part), None), error, items)

    def _incomparable(self, keys: Sequence[Key], error: Exception) -> Registered[[T], Any] | None:
        """Find the part of keys that cannot be compared: the comparator that broke down, else the first that cannot be sorted."""
        for position, registered in enumerate(self):
            if isinstance(error, ComparatorError) and error.comparator is registered.function:
                return registered
            try:
                sorted(key[position] for key in keys)
            except Exception:  # noqa: BLE001  that is what is looked for
                return registered
        return None

    def _wrong(self, said: Sequence[Any], start: int) -> Registered[[T], Any] | None:
        """Find whose part is no key."""
        for registered, part in zip((self._parts or [])[start:], said, strict=False):
            try:
                wrong_answers.check_keys([part])
            except WrongAnswerError:
                return registered
        return None

    def _blame(self, registered: Registered[[T], Any] | None, error: Exception, items: Sequence[T]) -> None:
        """Leave a part out from now on, or give up the job that is being tried if all items are its own."""
        if registered is None:
            raise error
        trying = self._roster.breakdowns.trying
        if trying is not None and all(getattr(item, "job", None) is trying for item in items):
            raise self.broke(registered, error, items[:1]) from error
        self.leave_out(registered, error)

    def remove(self, gone: Callable[[Registered[[T], Any]], bool]) -> None:
        """Take parts out; whatever waits is ordered anew, since its keys are longer."""
        super().remove(gone)
        self._functions = self._parts = None
        left = self.functions()
        self._paths = [(part, path) for part, path in self._paths if part in left]
        self.touch_all()

    def queue(self, items: Iterable[T] = ()) -> HeapQueue[T] | BranchQueue[T]:
        """Return a priority queue that follows changes of keys for the rest of the session."""
        waiting: HeapQueue[T] | BranchQueue[T]
        if self._paths and self._leads():
            waiting = BranchQueue(self, branching.TreeQueue(self._paths[0][1], self._rest), items, self._holders)
        else:
            waiting = HeapQueue(self, items, self._holders)
        self._listeners.append(waiting)
        return waiting

    def _leads(self) -> bool:
        """Tell whether the one order along a tree comes before every other part, so that queues can keep its branches apart."""
        return len(self._paths) == 1 and self.functions()[0] is self._paths[0][0]

    def _rest(self, item: T) -> Key:
        return (*self.parts(item, 1), *self._last(item))

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

    def keys(self, items: Sequence[Task]) -> Iterable[Key]:
        """Return the whole keys of tasks that are ordered together."""
        keys = super().keys(items)
        if all(task.index is not None for task in items):
            fallback = len(self._fallback)
            return [(*key[:-fallback], task.index, *key[-fallback:]) for key, task in zip(keys, items, strict=True)]
        return keys

    def sort_each(self, groups: Sequence[list[Task]]) -> None:
        """Put the tasks of many jobs in order, each job's among themselves; what a part raises is for the job that it is about, and leaves everything as it was."""
        items = [task for group in groups for task in group]
        places = [place for place, group in enumerate(groups) for _ in group]
        columns: list[list[Any]] = [list(map(registered.function, items)) for registered in self]
        for column in columns:
            wrong_answers.check_keys(column)
        fallback = [map(function, items) for function in self._fallback]
        # The group comes first, so that tasks are compared with those of their own only.
        keys = list(zip(places, *columns, _numbers(items, groups), *fallback, strict=True))
        ordered = [items[at] for at in sorted(range(len(items)), key=keys.__getitem__)]
        start = 0
        for group in groups:
            end = start + len(group)
            group[:] = ordered[start:end]
            start = end


def _numbers(items: Sequence[Task], groups: Sequence[Sequence[Task]]) -> list[int]:
    """Return the numbers at the end of the names of tasks, group by group; in a group all the same if one has none."""
    found = [task.index for task in items if task.index is not None]
    if len(found) == len(items):
        return found
    return [number for group in groups for number in _numbers_of(group)]


def _numbers_of(tasks: Sequence[Task]) -> list[int]:
    """Return the numbers at the end of the names of tasks; all the same if one has none."""
    found = [task.index for task in tasks if task.index is not None]
    return found if len(found) == len(tasks) else [0] * len(tasks)
