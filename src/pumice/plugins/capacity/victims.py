"""Whom capacity lets be reclaimed: pods of queues that hold more than they are due, down to what is guaranteed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources
from pumice.plugins.capacity import queue_tree
from pumice.plugins.sharing.gang_units import Units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task
    from pumice.plugins.capacity.accounts import Account


class Ledger:
    """What queues would hold with the victims chosen so far gone, and who goes with whom."""

    __slots__ = ("_left", "units")

    def __init__(self, *, whole: bool) -> None:
        self._left: dict[str, Vector] = {}
        self.units = Units(whole=whole)

    def left(self, account: Account) -> Vector:
        """Return what a queue would still hold."""
        left = self._left.get(account.queue.name)
        return account.held if left is None else left

    def take(self, account: Account, going: Going) -> None:
        """Take what goes together off its queue and the queues above."""
        self.units.take(going.tasks)
        for each in (account, *account.above):
            self._left[each.queue.name] = self.left(each) - going.amounts


class Going:
    """What goes together: one pod, or a whole gang, which is judged once."""

    __slots__ = ("amounts", "names", "tasks")

    def __init__(self, tasks: list[Task], names: Names) -> None:
        self.tasks = tasks
        if len(tasks) == 1:
            self.amounts: Vector = tasks[0].shape.request.vector
            self.names = names.of(tasks[0])
        else:
            self.amounts = np.sum([task.shape.request.vector for task in tasks], axis=0)
            self.names = frozenset().union(*map(names.of, tasks))


class Names:
    """What pods ask for anything of, worked out once for each shape."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, frozenset[str]] = {}

    def of(self, task: Task) -> frozenset[str]:
        """Return the names of the resources that a pod asks for."""
        found = self._known.get(task.shape.serial)
        if found is None:
            named = frozenset(name for name, units in task.shape.request.amounts.items() if units)
            found = self._known[task.shape.serial] = named
        return found


def is_immediate(account: Account, names: frozenset[str]) -> bool:
    """Tell whether a queue is due nothing of what is asked for, so that a victim holds only what was lent."""
    return account.named.isdisjoint(names)


class Victims:
    """The victim rules of one cycle; `level` says how many ancestors must agree."""

    def __init__(self, cluster: Cluster, accounts: Mapping[str, Account], level: int, *, whole: bool) -> None:
        self._cluster = cluster
        self._accounts = accounts
        self._level = level
        self._whole = whole
        self._names = Names()

    def _account(self, task: Task) -> Account | None:
        return self._accounts.get(task.job.queue) if task.job is not None else None

    # -- what goes together ------------------------------------------------------------------------------------

    def _broken(self, own: Account | None, account: Account, going: Going, ledger: Ledger) -> str | None:
        """Say which guarantee would no longer hold: of the victims' queue, and of those above it that the claimant is not below."""
        shared = () if own is None else (own, *own.above)
        for each in (account, *account.above):
            if each in shared:
                break
            left = ledger.left(each) - going.amounts
            broken = (going.amounts > 0) & (left < each.guarantee)
            if broken.any():
                numbers = self._numbers(np.flatnonzero(broken).tolist(), left, each.guarantee)
                return f"queue {each.queue.name} would hold less than is guaranteed to it: {numbers}"
        return None

    def _not_above(self, account: Account, going: Going, ledger: Ledger) -> str | None:
        """Say that a queue holds no more than it is due of anything that is asked for by what would go."""
        if is_immediate(account, going.names):
            return None
        left = ledger.left(account)
        counted = account.compared & (going.amounts > 0)
        if (counted & (left > account.deserved)).any():
            return None
        numbers = self._numbers(np.flatnonzero(going.amounts > 0).tolist(), left, account.deserved)
        return f"queue {account.queue.name} holds no more than it is due: {numbers}"

    def _numbers(self, columns: list[int], held: Vector, due: Vector) -> str:
        names = self._cluster.vocabulary.names
        return ", ".join(
            f"{names[c]} {resources.shown(names[c], int(held[c]))} of {resources.shown(names[c], int(due[c]))}"
            for c in columns
        )

    def _ancestors_not_above(self, own: Account | None, account: Account, going: Going, ledger: Ledger) -> str | None:
        """Ask the victim's ancestors too, as far up as the level says, apart from the root and what both queues share."""
        for distance in range(min(self._level, len(account.above) - 1)):
            theirs = account.above[distance]
            mine = own.above[distance] if own is not None and distance < len(own.above) else None
            if theirs is not mine and (reason := self._not_above(theirs, going, ledger)) is not None:
                return reason
        return None

    # -- asking ------------------------------------------------------------------------------------------------

    def reclaimable(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates in the given order as long as their queues stay above their due and keep their guarantee."""
        own = self._account(claimant)
        if own is None:
            return []
        asked = self._names.of(claimant) - {"pods"}
        ledger = Ledger(whole=self._whole)
        accepted = []
        for task in candidates:
            account = self._account(task)
            if account is None or asked.isdisjoint(self._names.of(task)) or self._is_kept(own, account, claimant, task):
                continue
            if self._refusal(own, account, task, ledger) is None:
                accepted.append(task)
        return accepted

    def _refusal(
        self, own: Account | None, account: Account, task: Task, ledger: Ledger, *, family: bool = True
    ) -> str | None:
        """Judge the next victim, with its whole gang if that must go with it, and take it off; one that goes with its gang was judged already."""
        if ledger.units.is_gone(task):
            return None
        going = Going(ledger.units.unit(task), self._names)
        reason = self._broken(own, account, going, ledger) or self._not_above(account, going, ledger)
        if reason is None and family:
            reason = self._ancestors_not_above(own, account, going, ledger)
        if reason is None:
            ledger.take(account, going)
        return reason

    def _is_kept(self, own: Account, account: Account, claimant: Task, task: Task) -> bool:
        """Leave what was lent where it is if the claimant is of the same family and is due nothing of what it asks for either."""
        if not self._level or not is_immediate(account, self._names.of(task)):
            return False
        family = {each.queue.name for each in own.above[: self._level] if each.above}
        if family.isdisjoint(each.queue.name for each in account.above[: self._level]):
            return False
        return is_immediate(own, self._names.of(claimant))

    def above_due(self, claimant: Job | None, candidates: Sequence[Task]) -> list[Task]:
        """Accept candidates of gangreclaim: guarantee and due of their own queue count, whoever asks."""
        own = self._accounts.get(claimant.queue) if claimant is not None else None
        ledger = Ledger(whole=self._whole)
        return [
            task
            for task in candidates
            if (account := self._account(task)) is not None
            and self._refusal(own, account, task, ledger, family=False) is None
        ]

    def protection(self, claimant: Task | None, victim: Task, action: str) -> str | None:
        """Protect what a queue is due from every other queue, whatever other plugins offer."""
        own = self._account(claimant) if claimant is not None else None
        account = self._account(victim)
        if own is None or account is None or own is account:
            return None
        return self._refusal(own, account, victim, Ledger(whole=self._whole), family=action != "gangreclaim")

    def nearness(self, victim: Queue, claimant: Queue) -> int:
        """Take first from queues that are near the claimant's in the tree."""
        own, other = self._accounts.get(claimant.name), self._accounts.get(victim.name)
        return 0 if own is None or other is None else -queue_tree.common_depth(own, other)
