"""Which numbers of an owner's names are spent: a name that somebody has seen in use is never given to another pod, and one that was asked for in vain is asked for again.

An owner that was there when we began may have had pods that nobody remembers. Its names depend on the version at which we began, too, so they are others than
those of an earlier run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Parts = tuple[object, ...]


class NameBook:
    """The names of the pods of each owner, by its uid and whatever else they depend on."""

    def __init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._inherited: dict[str, str] = {}

    def inherit(self, uids: Iterable[str], version: str) -> None:
        """Begin at a version, with owners that were there before."""
        self._inherited.update(dict.fromkeys(uids, version))

    def origin(self, uid: str) -> str:
        """Give the version at which an owner was inherited, nothing for one that is known since its beginning."""
        return self._inherited.get(uid, "")

    def free(self, uid: str, parts: Parts) -> Iterator[int]:
        """Give the numbers of an owner that are not spent, the lowest first."""
        owner = self._owners.get(uid)
        number = owner.first.get(parts, 0) if owner else 0
        while True:
            if owner is None or number not in owner.beyond.get(parts, ()):
                yield number
            number += 1

    def ask(self, uid: str, parts: Parts, number: int, name: str) -> None:
        """Take note that a name is going to be asked for."""
        self._owners.setdefault(uid, _Owner()).asked[name] = (parts, number)

    def spend(self, uid: str, name: str) -> None:
        """Take note that a name is in use, or was."""
        owner = self._owners.get(uid)
        if owner is not None and name in owner.asked:
            owner.spend(*owner.asked.pop(name))

    def forget(self, uid: str) -> None:
        """Forget an owner that is gone."""
        self._owners.pop(uid, None)
        self._inherited.pop(uid, None)


class _Owner:
    def __init__(self) -> None:
        self.asked: dict[str, tuple[Parts, int]] = {}
        self.first: dict[Parts, int] = {}  # all numbers below are spent
        self.beyond: dict[Parts, set[int]] = {}  # and these above

    def spend(self, parts: Parts, number: int) -> None:
        spent = self.beyond.setdefault(parts, set())
        spent.add(number)
        first = self.first.get(parts, 0)
        while first in spent:
            spent.discard(first)
            first += 1
        self.first[parts] = first
        if not spent:
            del self.beyond[parts]
