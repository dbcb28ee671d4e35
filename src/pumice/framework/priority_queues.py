"""Items that leave by their key, the order being that of now.

When a plugin says that an item's key has changed, every queue that holds it looks at it again before the next item leaves. Items that hang in a tree are ordered
branch by branch (`branching`).
"""

from __future__ import annotations

import heapq
import operator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pumice.framework import branching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")
Key = tuple[Any, ...]
Entry = tuple[Key, int, T]
Holders = dict[int, "tuple[HeapQueue[T], ...]"]
_KEY = operator.itemgetter(0)
_TURN = operator.itemgetter(1)


class Keyed(Protocol[T_contra]):
    """What orders items by keys (`ordering.Ordering`)."""

    def key(self, item: T_contra) -> Key:
        """Return the whole key."""

    def arranged(self, items: Sequence[T_contra], step: Callable[[list[Key]], R]) -> R:
        """Do something that compares the keys of items; where they cannot be compared, leave out whose part that is and do it again."""

    def leave_tree_out(self, error: Exception, items: Sequence[T_contra]) -> None:
        """Do without the order along the tree, whose branches could not be compared."""


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


class HeapQueue(Generic[T]):
    """Items by their present key: those it starts with lie sorted, last first, those pushed later in a heap."""

    __slots__ = ("_alone", "_heap", "_holders", "_moved", "_ordering", "_sorted", "_stale", "_tickets", "_turn")

    def __init__(self, ordering: Keyed[T], items: Iterable[T] = (), holders: Holders[T] | None = None) -> None:
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
        wanted = min(count, len(self._tickets))
        while True:
            found: list[Entry[T]] = []
            try:
                if self._stale or self._moved:
                    self._catch_up()
                while len(found) < wanted:
                    found += self._leading_sorted(wanted - len(found)) or [self._next()]
            except Exception as error:  # noqa: BLE001  as in `pop`
                self._mend(error)
            else:
                return found

    def _leading_sorted(self, count: int) -> list[Entry[T]]:
        """Take out some of the first entries together: those that lie sorted, if the last of them comes before everything in the heap. None of them otherwise."""
        if not self._sorted:  # in one go, which is less than taking them from the heap one by one
            ordered = sorted(self._heap, key=_TURN, reverse=True)
            ordered.sort(key=_KEY, reverse=True)  # as in `_entries`
            self._sorted, self._heap = ordered, []
        ahead, heap, tickets = self._sorted, self._heap, self._tickets
        taken = ahead[-count:]
        if not taken or (heap and not taken[0] < heap[0]):
            return []
        del ahead[-count:]
        taken.reverse()
        return [entry for entry in taken if tickets.get(id(entry[2])) is entry]

    def leave_together(self, entries: Sequence[Entry[T]]) -> int:
        """Let the first items leave, one after the other, up to one before which another would come by now; returns how many did."""
        if not self.unmoved:
            return 0
        count = len(entries)
        if self._heap and entries and self._heap[0] < entries[-1]:  # else it comes before none of them
            first = self._heap[0]
            count = next(number for number, entry in enumerate(entries) if first < entry)
        tickets, holders, alone = self._tickets, self._holders, self._alone
        for entry in entries[:count]:
            known = id(entry[2])
            if holders.get(known) is alone:  # as in `_let_go`, without a call
                del tickets[known], holders[known]
            else:
                self._let_go(known)
        return count

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
        """Have everything ordered anew, which leaves out the part that cannot be compared, if it was not just a key that counts no more."""
        if not (self._stale or self._heap or self._sorted):
            raise error
        self._heap, self._sorted, self._stale = [], [], True

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
        self, ordering: Keyed[T], tree: branching.TreeQueue[T], items: Iterable[T], holders: Holders[T]
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
