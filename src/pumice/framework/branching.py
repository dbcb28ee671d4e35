"""A priority queue for items that hang in a tree, such as queues under departments.

A change of one branch moves everything below it, so items must not be compared by keys that were written down for each of them. Here every
branch keeps its own heap; a change is told to the branches on one path, whatever hangs beside it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
Key = tuple[Any, ...]


class Branch(Protocol):
    """A node of the tree below the root. Its `entry` is compared with that of its siblings; the empty one comes first."""

    @property
    def entry(self) -> Key:
        """What the branch is ordered by, as it is now."""


def along(path: Sequence[Branch]) -> Key:
    """Return the entries of a path as one key; empty entries at its end count no more than a path that ends before them."""
    entries = [branch.entry for branch in path]
    while entries and not entries[-1]:
        entries.pop()
    return tuple(entries)


class _Fork(Generic[T]):
    """A branch inside one queue: its children, branches or items, in a heap by their present keys."""

    __slots__ = ("_heap", "_tickets", "_turn", "branch", "forks", "parent")

    def __init__(self, branch: Branch | None, parent: _Fork[T] | None) -> None:
        self.branch = branch
        self.parent = parent
        self.forks: dict[int, _Fork[T]] = {}
        self._heap: list[tuple[Key, int, _Fork[T] | T]] = []
        self._tickets: dict[int, int] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def place(self, child: _Fork[T] | T, key: Key) -> None:
        """Put a child in, or move it."""
        self._turn += 1
        self._tickets[id(child)] = self._turn
        heapq.heappush(self._heap, (key, self._turn, child))

    def drop(self, child: _Fork[T] | T) -> None:
        """Take a child out."""
        self._tickets.pop(id(child), None)

    def first(self) -> tuple[Key, int, _Fork[T] | T]:
        """Return the first child with its key."""
        heap = self._heap
        while self._tickets.get(id(heap[0][2])) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0]

    def climb(self) -> None:
        """Bring the place of this branch, and of those above it, up to date."""
        fork = self
        while fork.parent is not None and fork.branch is not None:
            if len(fork):
                below, rest = fork.first()[0]
                entry = fork.branch.entry
                fork.parent.place(fork, ((entry, *below) if entry or below else (), rest))
            else:
                fork.parent.drop(fork)
            fork = fork.parent


class TreeQueue(Generic[T]):
    """Items by the entries along their paths, then by a key of their own, as both are now."""

    __slots__ = ("_items", "_loose", "_moved", "_path", "_rest", "_root", "_stale")

    def __init__(
        self, path: Callable[[T], Sequence[Branch]], rest: Callable[[T], Key], items: Iterable[T] = ()
    ) -> None:
        self._path = path
        self._rest = rest
        self._root: _Fork[T] = _Fork(None, None)
        self._items: dict[int, T] = {}
        self._moved: dict[int, T] = {}
        # Branches that an item has left: they are moved before the next pop, or as it comes back.
        self._loose: dict[int, _Fork[T]] = {}
        self._stale = False
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def _fork(self, item: T) -> _Fork[T]:
        """Return the branch that an item hangs on."""
        fork = self._root
        for branch in self._path(item):
            below = fork.forks.get(id(branch))
            if below is None:
                below = fork.forks[id(branch)] = _Fork(branch, fork)
            fork = below
        return fork

    def push(self, item: T) -> None:
        """Put an item in, or move it to its present place."""
        known = id(item)
        self._items[known] = item
        fork, rest = self._fork(item), self._rest(item)
        if not self._stale:  # else everything gets a new place before the next pop
            # Its place is that of now, and so is that of the branches above it.
            self._moved.pop(known, None)
            self._loose.pop(id(fork), None)
            fork.place(item, ((), rest))
            fork.climb()

    def touch(self, item: T) -> None:
        """Look at an item and the branches above it again before the next pop, whether or not it is in the queue itself."""
        self._moved[id(item)] = item

    def touch_all(self) -> None:
        """Order everything anew before the next pop."""
        self._stale = True

    def all_follow(self, item: T) -> bool:  # noqa: ARG002  what one item is given may move whole branches
        """Tell whether everything that waits is known to come after an item: only if nothing waits."""
        return not self._items

    def pop(self) -> T:
        """Take the first item out."""
        self._catch_up()
        fork = self._root
        while True:
            child = fork.first()[2]
            if not isinstance(child, _Fork):
                break
            fork = child
        fork.drop(child)
        self._loose[id(fork)] = fork
        del self._items[id(child)]
        return child

    def _catch_up(self) -> None:
        moved, self._moved = self._moved, {}
        for item in moved.values() if not self._stale else ():
            if id(item) in self._items:
                self.push(item)
            else:
                self._fork(item).climb()
        loose, self._loose = self._loose, {}
        for fork in loose.values() if not self._stale else ():
            fork.climb()
        # Looking at one path may have shown that everything has to be looked at.
        while self._stale:
            self._stale = False
            self._root = _Fork(None, None)
            for item in list(self._items.values()):
                self.push(item)
