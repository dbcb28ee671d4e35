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


class _Failures:
    """Attempts of one address that were in vain."""

    __slots__ = ("bucket", "rests_until")

    def __init__(self) -> None:
        self.bucket, self.rests_until = TokenBucket(*FAILURES), float("-inf")


class Attempts:
    """Lets only so many attempts through; an address from which too many were in vain has to wait, and others do not wait for it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._all = TokenBucket(*ALL_ATTEMPTS)
        self._failures: dict[str, _Failures] = {}

    def wait(self, address: str) -> float:
        """Take an attempt and return 0, or say after how many seconds the next one is let through."""
        now, known = self._now(), self._failures.get(address)
        if known is not None and now < known.rests_until:
            return known.rests_until - now
        return self._all.take(now)

    def failed(self, address: str) -> None:
        """Take note of an attempt that was in vain."""
        now, known = self._now(), self._failures.pop(address, None) or _Failures()
        self._failures[address] = known  # the one that was longest silent goes first
        if len(self._failures) > MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        known.rests_until = now + known.bucket.take(now)


def _digest(given: str) -> bytes:
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()


def _lives(session: Session, now: float) -> bool:
    return now < session.ends and now - session.seen < IDLE
