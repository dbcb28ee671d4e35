"""Orders as sort keys: each plugin gives one part, and the last parts make every order total.

A `PriorityQueue` holds items by their key. When a plugin says that an item's key has changed, every queue that holds it looks at it again before
the next item leaves, so the order is always that of now. Items that hang in a tree are ordered branch by branch (`branching`).
"""

from __future__ import annotations

import functools
import heapq
import itertools
import operator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pumice.framework import branching, registration, wrong_answers
from pumice.framework.breakdowns import WrongAnswerError
from pumice.framework.extensions import Extension, Registered
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.extensions import Point
    from pumice.framework.registration import Roster

T = TypeVar("T")
R = TypeVar("R")
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

    def all_follow(self, item: T) -> bool:
        """Tell whether everything that waits is known to come after an item that does not wait."""


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

    def sort_each(self, groups: Sequence[list[Task]]) -> bool:
        """Put the tasks of many jobs in order, each job's among themselves; False, with everything as it was, if a part breaks down, which is for the job that it is about."""
        items = [task for group in groups for task in group]
        try:
            columns: list[list[Any]] = [list(map(registered.function, items)) for registered in self]
            for column in columns:
                wrong_answers.check_keys(column)
            numbers = [number for group in groups for number in _numbers(group)]
            keys = list(zip(*columns, numbers, *[map(function, items) for function in self._fallback], strict=True))
            places = {id(task): key for task, key in zip(items, keys, strict=True)}
            ordered = [sorted(group, key=lambda task: places[id(task)]) for group in groups]
        except Exception:  # noqa: BLE001  whatever a plugin raises
            return False
        for group, tasks in zip(groups, ordered, strict=True):
            group[:] = tasks
        return True


def _numbers(tasks: Sequence[Task]) -> list[int]:
    """Return the numbers at the end of the names of tasks; all the same if one has none."""
    found = [task.index for task in tasks if task.index is not None]
    return found if len(found) == len(tasks) else [0] * len(tasks)


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
        entries, self._sorted = self._ordering.arranged(items, lambda keys: self._entries(keys, items))
        self._turn += len(items)
        fresh = dict(zip(map(id, items), entries, strict=True))
        if self._holders.keys().isdisjoint(fresh):
            self._holders.update(dict.fromkeys(fresh, self._alone))
        else:
            for known in fresh:
                self._hold(known)
        self._tickets.update(fresh)

    def _entries(self, keys: list[Key], items: list[T]) -> tuple[list[Entry[T]], list[Entry[T]]]:
        """Return entries for items, as they come and as they leave, the last first."""
        turns = range(self._turn, self._turn + len(items))
        entries: list[Entry[T]] = list(zip(keys, turns, items, strict=True))
        # The same as comparing whole entries, whose turns ascend, but a level of tuples less deep.
        ordered = entries[::-1]
        ordered.sort(key=_KEY, reverse=True)
        return entries, ordered

    def _hold(self, known: int) -> None:
        """Say, by the id of an item, that this queue holds it."""
        holders = self._holders.get(known)
        if not holders:
            self._holders[known] = self._alone
        elif self not in holders:
            self._holders[known] = (*holders, self)

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""
        self._put((self._ordering.key(item), self._turn, item))
        self._turn += 1

    def _put(self, entry: Entry[T]) -> None:
        known = id(entry[2])
        if self._holders.get(known) is not self._alone:
            self._hold(known)
        self._tickets[known] = entry
        if not self._stale:  # else everything gets a new key before the next pop
            try:
                heapq.heappush(self._heap, entry)
            except Exception as error:  # noqa: BLE001  keys of plugins that cannot be compared
                self._mend(error)

    def touch(self, item: T) -> None:
        """Move an item to its present place, if it is in the queue, before the next pop."""
        if id(item) in self._tickets:
            self._moved[id(item)] = item

    def touch_all(self) -> None:
        """Order everything anew at the next pop."""
        self._stale = True

    def pop(self) -> T:
        """Take the first item out."""
        while True:
            try:
                item = self._next()[2]
            except Exception as error:  # noqa: BLE001  as above; whoever waits still has its ticket
                self._mend(error)
            else:
                self._let_go(id(item))
                return item

    def lead(self, count: int) -> list[Entry[T]]:
        """Return the first items, in order, with their keys; those that do not leave have to be put back."""
        wanted, tickets = min(count, len(self._tickets)), self._tickets
        while True:
            found: list[Entry[T]] = []
            try:
                while len(found) < wanted:
                    if self._heap or not self.unmoved:
                        found.append(self._next())
                    elif tickets.get(id((entry := self._sorted.pop())[2])) is entry:  # as there, without a call
                        found.append(entry)
            except Exception as error:  # noqa: BLE001  as above
                self.put_back(found)
                self._mend(error)
            else:
                return found

    def first(self, count: int) -> list[T]:
        """Return the first items that wait, in order; nobody leaves. None of them if their keys cannot be compared."""
        tickets = self._tickets
        try:
            self._catch_up()
            begun = (entry for entry in reversed(self._sorted) if tickets.get(id(entry[2])) is entry)
            later = heapq.nsmallest(count, (entry for entry in self._heap if tickets.get(id(entry[2])) is entry))
            return [entry[2] for entry in itertools.islice(heapq.merge(begun, later), count)]
        except Exception:  # noqa: BLE001  keys that cannot be compared are left out when somebody leaves
            return []

    def leave(self, entry: Entry[T]) -> bool:
        """Let one of the first items leave; not if another would come before it by now."""
        if not self.is_next(entry):
            return False
        self._let_go(id(entry[2]))
        return True

    def leave_together(self, entries: Sequence[Entry[T]]) -> int:
        """Let the first items leave, one after the other as above; returns how many did."""
        if not self.unmoved:
            return 0
        first = self._heap[0] if self._heap else None
        for count, entry in enumerate(entries):
            if first is not None and first < entry:
                return count
            self._let_go(id(entry[2]))
        return len(entries)

    def take_back(self, entries: Iterable[Entry[T]]) -> None:
        """Let some of the first items not have left."""
        for entry in entries:
            known = id(entry[2])
            self._hold(known)
            self._tickets[known] = entry

    def is_next(self, entry: Entry[T]) -> bool:
        """Tell whether none that waits would come before one of the first items, which may have left, by now."""
        return not (self._stale or self._moved or (self._heap and self._heap[0] < entry))

    @property
    def unmoved(self) -> bool:
        """Tell whether nothing that waits has to be moved before the next one leaves."""
        return not (self._stale or self._moved)

    def put_back(self, entries: Iterable[Entry[T]]) -> None:
        """Let the first items wait on, whether they had left or not, with the keys they had."""
        for entry in entries:
            self._put(entry)

    def all_follow(self, item: T) -> bool:
        """Tell whether everything that waits is known to come after an item that does not wait."""
        if not self._tickets:
            return True
        try:
            self._catch_up()
            first = min(self._leading(), key=_KEY)
            return bool(self._ordering.key(item) < first[0])
        except Exception:  # noqa: BLE001  keys that cannot be compared are left out when somebody leaves
            return False

    def _leading(self) -> list[Entry[T]]:
        """Return the entries one of which is the first, letting go of void ones before them."""
        ahead, heap, tickets = self._sorted, self._heap, self._tickets
        while ahead and tickets.get(id(ahead[-1][2])) is not ahead[-1]:
            ahead.pop()
        while heap and tickets.get(id(heap[0][2])) is not heap[0]:
            heapq.heappop(heap)
        return ahead[-1:] + heap[:1]

    def waiting(self) -> list[T]:
        """Return what waits, in the order it had at first, then what was put in later."""
        begun = [entry[2] for entry in reversed(self._sorted)]
        return begun + [entry[2] for entry in self._heap] if self._heap else begun

    def _mend(self, error: Exception) -> None:
        """Have everything ordered anew, without the part that could not be compared."""
        entries = list(self._tickets.values())
        self._ordering.mend(error, [entry[2] for entry in entries], [entry[0] for entry in entries])
        self._stale = True

    def _next(self) -> Entry[T]:
        """Return the entry of the first item, which holds its ticket still."""
        if self._stale or self._moved:
            self._catch_up()
        ahead, heap, tickets = self._sorted, self._heap, self._tickets
        while True:
            entry = heapq.heappop(heap) if heap and (not ahead or heap[0] < ahead[-1]) else ahead.pop()
            if tickets.get(id(entry[2])) is entry:
                return entry

    def _let_go(self, known: int) -> None:
        """Forget an item, by its id."""
        del self._tickets[known]
        holders = self._holders.pop(known)
        if holders is not self._alone:
            self._holders[known] = tuple(holder for holder in holders if holder is not self)

    def _catch_up(self) -> None:
        """Give everything that was touched its present key."""
        moved, self._moved = self._moved, {}
        for item in moved.values() if not self._stale else ():
            if id(item) in self._tickets:
                self.push(item)
        # Asking for the key of one may have shown that everything has to be ordered anew.
        while self._stale:
            self._stale = False
            self._heap = []
            self._begin([entry[2] for entry in self._tickets.values()])


class BranchQueue(Generic[T]):
    """A queue along a tree; if the branches cannot be compared it goes on without them."""

    __slots__ = ("_holders", "_items", "_ordering", "_waiting")

    def __init__(
        self, ordering: Ordering[T], tree: branching.TreeQueue[T], items: Iterable[T], holders: Holders[T]
    ) -> None:
        self._ordering = ordering
        self._holders = holders
        self._items: dict[int, T] = {}
        self._waiting: PriorityQueue[T] = tree
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def has_branches(self) -> bool:
        """Tell whether branches are kept apart still."""
        return isinstance(self._waiting, branching.TreeQueue)

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""
        self._items[id(item)] = item
        try:
            self._waiting.push(item)
        except Exception as error:  # noqa: BLE001  whatever paths and entries of plugins raise
            self._mend(error)

    def touch(self, item: T) -> None:
        """Look at an item and the branches above it again before the next pop."""
        self._waiting.touch(item)

    def touch_all(self) -> None:
        """Order everything anew before the next pop."""
        self._waiting.touch_all()

    def pop(self) -> T:
        """Take the first item out."""
        try:
            item = self._waiting.pop()
        except Exception as error:  # noqa: BLE001  as above
            self._mend(error)
            item = self._waiting.pop()
        del self._items[id(item)]
        return item

    def all_follow(self, item: T) -> bool:
        """Tell whether everything that waits is known to come after an item that does not wait."""
        return self._waiting.all_follow(item)

    def waiting(self) -> list[T]:
        """Return what waits, as it came."""
        return list(self._items.values())

    def _mend(self, error: Exception) -> None:
        """Order everything that waits without the tree."""
        if not self.has_branches:
            raise error
        items = list(self._items.values())
        self._ordering.leave_tree_out(error, items)
        self._waiting = HeapQueue(self._ordering, items, self._holders)
