"""Whom capacity lets be reclaimed: pods of queues that hold more than they are due, down to what is guaranteed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources
from pumice.plugins.capacity import queue_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task
    from pumice.plugins.capacity.accounts import Account


class Ledger:
    """What queues would hold with the victims chosen so far gone."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: dict[str, Vector] = {}

    def left(self, account: Account) -> Vector:
        """Return what a queue would still hold."""
        left = self._left.get(account.queue.name)
        return account.held if left is None else left

    def take(self, account: Account, amounts: Vector) -> None:
        """Take a victim off its queue and the queues above."""
        for each in (account, *account.above):
            self._left[each.queue.name] = self.left(each) - amounts


def _names(task: Task) -> frozenset[str]:
    return frozenset(name for name, units in task.shape.request.amounts.items() if units)


def is_immediate(account: Account, victim: Task) -> bool:
    """Tell whether a queue is due nothing of what a victim asks for, so that the victim holds only what was lent."""
    return account.named.isdisjoint(_names(victim))


class Victims:
    """The victim rules of one cycle; `level` says how many ancestors must agree."""

    def __init__(self, cluster: Cluster, accounts: Mapping[str, Account], level: int) -> None:
        self._cluster = cluster
        self._accounts = accounts
        self._level = level

    def _account(self, task: Task) -> Account | None:
        return self._accounts.get(task.job.queue) if task.job is not None else None

    # -- one victim --------------------------------------------------------------------------------------------

    def _broken(self, account: Account, victim: Task, ledger: Ledger) -> str | None:
        """Say which guarantee would no longer hold without a victim."""
        if account.unmet:
            return f"queue {account.queue.name} is guaranteed more than the nodes offer"
        left = ledger.left(account) - victim.shape.request.vector
        broken = np.flatnonzero(left < account.guarantee).tolist()
        if not broken:
            return None
        numbers = self._numbers(broken, left, account.guarantee)
        return f"queue {account.queue.name} would hold less than is guaranteed to it: {numbers}"

    def _not_above(self, account: Account, victim: Task, ledger: Ledger) -> str | None:
        """Say that a queue holds no more than it is due of anything a victim asks for."""
        if is_immediate(account, victim):
            return None
        left = ledger.left(account)
        counted = account.compared & (victim.shape.request.vector > 0)
        if (counted & (left > account.deserved)).any():
            return None
        numbers = self._numbers(np.flatnonzero(victim.shape.request.vector > 0).tolist(), left, account.deserved)
        return f"queue {account.queue.name} holds no more than it is due: {numbers}"

    def _numbers(self, columns: list[int], held: Vector, due: Vector) -> str:
        names = self._cluster.vocabulary.names
        return ", ".join(
            f"{names[c]} {resources.shown(names[c], int(held[c]))} of {resources.shown(names[c], int(due[c]))}"
            for c in columns
        )

    def _ancestors_not_above(self, own: Account | None, account: Account, victim: Task, ledger: Ledger) -> str | None:
        """Ask the victim's ancestors too, as far up as the level says, apart from the root and what both queues share."""
        for distance in range(min(self._level, len(account.above) - 1)):
            theirs = account.above[distance]
            mine = own.above[distance] if own is not None and distance < len(own.above) else None
            if theirs is not mine and (reason := self._not_above(theirs, victim, ledger)) is not None:
                return reason
        return None

    # -- asking ------------------------------------------------------------------------------------------------

    def reclaimable(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates in the given order as long as their queues stay above their due and keep their guarantee."""
        own = self._account(claimant)
        if own is None:
            return []
        asked = _names(claimant) - {"pods"}
        ledger = Ledger()
        accepted = []
        for task in candidates:
            account = self._account(task)
            if account is None or asked.isdisjoint(_names(task)) or self._is_kept(own, account, claimant, task):
                continue
            if self._refusal(own, account, task, ledger) is None:
                accepted.append(task)
                ledger.take(account, task.shape.request.vector)
        return accepted

    def _refusal(self, own: Account | None, account: Account, task: Task, ledger: Ledger) -> str | None:
        return (
            self._broken(account, task, ledger)
            or self._not_above(account, task, ledger)
            or self._ancestors_not_above(own, account, task, ledger)
        )

    def _is_kept(self, own: Account, account: Account, claimant: Task, task: Task) -> bool:
        """Leave what was lent where it is if the claimant is of the same family and is due nothing of what it asks for either."""
        if not self._level or not is_immediate(account, task):
            return False
        family = {each.queue.name for each in own.above[: self._level] if each.above}
        if family.isdisjoint(each.queue.name for each in account.above[: self._level]):
            return False
        return is_immediate(own, claimant)

    def above_due(self, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates of gangreclaim: guarantee and due of their own queue count, whoever asks."""
        ledger = Ledger()
        accepted = []
        for task in candidates:
            account = self._account(task)
            if account is None or self._broken(account, task, ledger) or self._not_above(account, task, ledger):
                continue
            accepted.append(task)
            ledger.take(account, task.shape.request.vector)
        return accepted

    def protection(self, claimant: Task | None, victim: Task, action: str) -> str | None:
        """Protect what a queue is due from every other queue, whatever other plugins offer."""
        own = self._account(claimant) if claimant is not None else None
        account = self._account(victim)
        if own is None or account is None or own is account:
            return None
        ledger = Ledger()
        if action == "gangreclaim":
            return self._broken(account, victim, ledger) or self._not_above(account, victim, ledger)
        return self._refusal(own, account, victim, ledger)

    def nearness(self, victim: Queue, claimant: Queue) -> int:
        """Take first from queues that are near the claimant's in the tree."""
        own, other = self._accounts.get(claimant.name), self._accounts.get(victim.name)
        return 0 if own is None or other is None else -queue_tree.common_depth(own, other)
