"""How often statuses are written, however fast cycles follow each other: queues once a second, new reasons of a pod or group a few times and then once a minute.

Whoever has to wait is remembered by name only, and says what is true when its time has come.
"""

from __future__ import annotations

from typing import Final

from pumice.cache.budgets import Budget, Spending

REASONS: Final = Budget(burst=6, pause=60_000_000)
"""For what is written because a reason has changed; phases, counts of members, nominations and binds are not held back."""

QUEUES: Final = Budget(burst=1, pause=1_000_000)


class WritePaces:
    """Says whether something may be written now, and when what had to wait is due."""

    def __init__(self) -> None:
        self._reasons = Spending(REASONS)
        self._queues = Spending(QUEUES)
        self._late: dict[str, int] = {}
        self._queues_due: int | None = None

    def may_give_reason(self, name: str, now: int) -> bool:
        """Spend a write on a new reason, or remember that it is to be given later."""
        if self._reasons.take(name, now):
            self._late.pop(name, None)
            return True
        self._late[name] = self._reasons.next(name, now)
        return False

    def may_write_queue(self, name: str, now: int) -> bool:
        """Spend a write on a queue, or remember that it is to be written later."""
        if self._queues.take(name, now):
            return True
        due = self._queues.next(name, now)
        self._queues_due = due if self._queues_due is None else min(due, self._queues_due)
        return False

    def withdraw(self, name: str) -> None:
        """Note that what is written is right again."""
        self._late.pop(name, None)

    def due(self, now: int) -> list[str]:
        """Return, once, the names whose reasons can be given now."""
        found = [name for name, due in self._late.items() if due <= now] if self._late else []
        for name in found:
            del self._late[name]
        return found

    def queues_are_due(self, now: int) -> bool:
        """Tell, once, whether a queue that had to wait can be written now."""
        self._queues.tidy(now)
        self._reasons.tidy(now)
        if self._queues_due is None or self._queues_due > now:
            return False
        self._queues_due = None
        return True

    def next_wake(self) -> int | None:
        """Return when the next one is due."""
        times = [*self._late.values()]
        if self._queues_due is not None:
            times.append(self._queues_due)
        return min(times, default=None)

    def forget(self, name: str) -> None:
        """Drop what is known of an object that is gone."""
        self._reasons.forget(name)
        self._late.pop(name, None)

    def forget_queue(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self._queues.forget(name)
