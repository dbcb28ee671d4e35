"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pumice.cache.effects import FailureCode

FIRST_DELAY: Final = 5_000
LONGEST_DELAY: Final = 1_000_000_000
LONGEST_PASSING: Final = 10_000_000
"""After a fault that passes nobody should wait much longer than it lasted."""


def passes(code: FailureCode) -> bool:
    """Tell a failure that is likely to end by itself from a refusal."""
    return code not in ("refused", "notfound")


def delay(tries: int, code: FailureCode) -> int:
    """Return the pause after the n-th failure in a row, doubling each time; the first costs none."""
    if tries <= 1:
        return 0
    return min(LONGEST_PASSING if passes(code) else LONGEST_DELAY, FIRST_DELAY << min(tries - 1, 40))


class RetryPause(msgspec.Struct):
    """Something that failed so many times in a row, and when to try again; None if that is under way."""

    tries: int = 0
    due: int | None = None


class RetryPauses:
    """What failed and is to be tried again, by name."""

    def __init__(self) -> None:
        self._kept: dict[str, RetryPause] = {}

    def failed(self, name: str, code: FailureCode, now: int) -> None:
        """Note a failure."""
        kept = self._kept.setdefault(name, RetryPause())
        kept.tries += 1
        kept.due = now + delay(kept.tries, code)

    def forget(self, name: str) -> None:
        """Note that it went well, or matters no longer."""
        self._kept.pop(name, None)

    def due(self, now: int) -> list[str]:
        """Return, once, what is to be tried again now."""
        names = [name for name, kept in self._kept.items() if kept.due is not None and kept.due <= now]
        for name in names:
            self._kept[name].due = None
        return names

    def next_wake(self) -> int | None:
        """Return when the next one is due."""
        return min((kept.due for kept in self._kept.values() if kept.due is not None), default=None)
