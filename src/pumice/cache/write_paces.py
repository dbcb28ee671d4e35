"""How often statuses are written, however fast cycles follow each other: queues once a second, new reasons of a pod or group a few times and then once a minute.

Where cycles start at once, a reason must have stood for a while before it is given at all: the gang whose pods arrive one by one waits for the rest of them, and
nobody needs to read that. Nor does anybody need to read of a group first that it was let in and then, a moment later, that it runs: a group is written once its
pods are bound. Whoever has to wait is remembered by name only, and says what is true when its time has come.
"""

from __future__ import annotations

from typing import Final

from pumice.cache.budgets import Budget, Spending

REASONS: Final = Budget(burst=6, pause=60_000_000)
"""For what is written because a reason has changed, or its numbers have (`renewals.py`); phases, counts of members, nominations and binds are not held back."""

STATUS: Final = "status"
"""The first word of the names of statuses of groups that are late; the second is the key of the job."""

QUEUES: Final = Budget(burst=1, pause=1_000_000)

LET_IN: Final = 50_000
"""So long the status of a group that was let in may wait for pods, which its controller may only create now,"""
UNAWAITED: Final = 1_000_000
"""so long that of one which has some, or no controller, for all of them to come and be bound, and"""
BEING_BOUND: Final = 10_000_000
"""so long that of one whose pods are being bound; a write of a group costs an API server as much as three binds."""


class WritePaces:
    """Says whether something may be written now, and when what had to wait is due."""

    def __init__(self, patience: int = 0) -> None:
        self._patience = patience
        self._reasons = Spending(REASONS)
        self._queues = Spending(QUEUES)
        self._since: dict[str, int] = {}  # when a reason was first to be given
        self._owed: dict[str, int] = {}  # since when the status of a group is to be written, by the key of its job
        self._late: dict[str, int] = {}
        self._first_late = 0  # no later than the first of them
        self._queues_due: int | None = None

    def has_stood(self, name: str, now: int) -> bool:
        """Tell whether there has been a reason to give for long enough; if not, remember that it is to be given later."""
        if not self._patience:
            return True
        due = self._since.setdefault(name, now) + self._patience
        if now < due:
            self._put_off(name, due)
        return now >= due

    def may_give_reason(self, name: str, now: int) -> bool:
        """Spend a write on a new reason, or remember that it is to be given later."""
        if not self.has_stood(name, now):
            return False
        if self._reasons.take(name, now):
            self.withdraw(name)
            return True
        self._put_off(name, self._reasons.next(name, now))
        return False

    def may_renew(self, name: str, now: int) -> bool:
        """Spend a write on other numbers of a reason that was given."""
        return self._reasons.take(name, now)

    def puts_off(self, group: str, limit: int, now: int) -> bool:
        """Tell whether the status of a group may still wait, that long from when it was first to be written; if not, it is taken as written."""
        if not self._patience:
            return False
        since = self._owed.get(group)
        if limit and (since is None or now < since + limit):
            self._owed[group] = since = now if since is None else since
            self._put_off(_status(group), since + limit)
            return True
        if since is not None:
            self.forget_status(group)
        return False

    def is_owed(self, group: str) -> bool:
        """Tell whether the status of a group is still to be written."""
        return group in self._owed

    def forget_status(self, group: str) -> None:
        """Owe the status of a group no longer."""
        self._owed.pop(group, None)
        self._late.pop(_status(group), None)

    def _put_off(self, name: str, due: int) -> None:
        self._first_late = min(self._first_late, due) if self._late else due
        self._late[name] = due

    def may_write_queue(self, name: str, now: int) -> bool:
        """Spend a write on a queue, or remember that it is to be written later."""
        if self._queues.take(name, now):
            return True
        due = self._queues.next(name, now)
        self._queues_due = due if self._queues_due is None else min(due, self._queues_due)
        return False

    @property
    def puts_anything_off(self) -> bool:
        """Tell whether there is something to withdraw."""
        return bool(self._since or self._late)

    def withdraw(self, name: str) -> None:
        """Note that what is written is right again, or that there is nothing to be said any more."""
        self._since.pop(name, None)
        self._late.pop(name, None)

    def due(self, now: int) -> list[str]:
        """Return, once, the names whose reasons can be given now."""
        if not self._late or now < self._first_late:
            return []
        found = [name for name, due in self._late.items() if due <= now]
        for name in found:
            del self._late[name]
        self._first_late = min(self._late.values(), default=0)
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
        times = [self._first_late] if self._late else []
        if self._queues_due is not None:
            times.append(self._queues_due)
        return min(times, default=None)

    def forget(self, name: str) -> None:
        """Drop what is known of an object that is gone."""
        self._reasons.forget(name)
        self.withdraw(name)

    def forget_queue(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self._queues.forget(name)


def _status(group: str) -> str:
    """Name what is late if the status of a group is."""
    return f"{STATUS} {group}"
