"""Who has signed in: random ids in cookies, bounded in number and in time, and attempts that are limited in rate."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from pumice.kube.calls.limiter import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.web.reviews import Person

IDLE: Final = 3600.0
LONGEST: Final = 12 * 3600.0
MOST: Final = 1000
MOST_OF_ONE: Final = 20
FAILURES: Final = (0.2, 5)
"""A second, and at once, from one address."""
ALL_ATTEMPTS: Final = (5.0, 30)
MOST_ADDRESSES: Final = 1000


class Session:
    """Somebody who has signed in."""

    __slots__ = ("ends", "person", "seen")

    def __init__(self, person: Person, ends: float, seen: float) -> None:
        self.person, self.ends, self.seen = person, ends, seen


class Sessions:
    """Gives ids and knows them again; only their digests are kept."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._known: dict[bytes, Session] = {}

    def begin(self, person: Person, ends: float | None = None) -> str:
        """Give somebody an id, which is good until their token ends, for half a day, or for an hour without use."""
        now = self._now()
        self._known = {key: each for key, each in self._known.items() if _lives(each, now)}
        own = [key for key, each in self._known.items() if each.person.name == person.name]
        for key in own[: max(0, len(own) + 1 - MOST_OF_ONE)]:
            del self._known[key]
        if len(self._known) >= MOST:
            del self._known[min(self._known, key=lambda each: self._known[each].seen)]
        made = secrets.token_urlsafe(32)
        self._known[_digest(made)] = Session(person, min(now + LONGEST, ends or now + LONGEST), now)
        return made

    def find(self, given: str) -> Session | None:
        """Give whoever has an id, and note that they are there."""
        found, now = self._known.get(_digest(given)), self._now()
        if found is None or not _lives(found, now):
            return None
        found.seen = now
        return found

    def end(self, given: str) -> None:
        """Forget an id."""
        self._known.pop(_digest(given), None)

    def __len__(self) -> int:
        return len(self._known)


class Attempts:
    """Lets only so many attempts through; an address from which too many were in vain, or are under way, has to wait, and others do not wait for it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._all = TokenBucket(*ALL_ATTEMPTS)
        self._failures: dict[str, TokenBucket] = {}

    def wait(self, address: str) -> float:
        """Take an attempt of an address, in vain until it is known to have succeeded, and return 0, or say after how many seconds the next one is let through."""
        known = self._failures.pop(address, None) or TokenBucket(*FAILURES)
        self._failures[address] = known  # the one that was longest silent goes first
        if len(self._failures) > MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        return known.take(self._now())

    def wait_for_all(self) -> float:
        """Take one of the attempts that all addresses have together, or say after how many seconds there is one."""
        return self._all.take(self._now())

    def succeeded(self, address: str) -> None:
        """Take note of an attempt that was not in vain."""
        if (known := self._failures.get(address)) is not None:
            known.give_back()


def _digest(given: str) -> bytes:
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()


def _lives(session: Session, now: float) -> bool:
    return now < session.ends and now - session.seen < IDLE
