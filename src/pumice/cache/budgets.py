"""How often something may be written: a few times at once, then so often in a while. What is beyond the budget is not queued."""

from __future__ import annotations

from collections import OrderedDict

import msgspec


class Budget(msgspec.Struct, frozen=True):
    """So many at once, and one more after each pause (in microseconds)."""

    burst: int
    pause: int


class Spending:
    """What was spent of one budget by each name; the names that spent least recently are forgotten, their budget being whole again or nearly so."""

    __slots__ = ("_budget", "_full_at", "_memory")

    def __init__(self, budget: Budget, memory: int = 100_000) -> None:
        self._budget = budget
        self._memory = memory
        self._full_at: OrderedDict[str, int] = OrderedDict()  # when a budget is whole again

    def take(self, name: str, now: int) -> bool:
        """Spend one, if there is one left."""
        full = max(self._full_at.get(name, now), now)
        if full + self._budget.pause > now + self._budget.burst * self._budget.pause:
            return False
        self._full_at[name] = full + self._budget.pause
        self._full_at.move_to_end(name)
        if len(self._full_at) > self._memory:
            self._full_at.popitem(last=False)
        return True

    def next(self, name: str, now: int) -> int:
        """Return when one can be spent."""
        full = self._full_at.get(name, now)
        return max(now, full - (self._budget.burst - 1) * self._budget.pause)

    def tidy(self, now: int) -> None:
        """Drop the names at the front whose budget is whole again."""
        while self._full_at and next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)

    def forget(self, name: str) -> None:
        """Drop what is known of a name that is gone."""
        self._full_at.pop(name, None)

    def __len__(self) -> int:
        return len(self._full_at)
