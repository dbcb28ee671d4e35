"""The tree of queues by `spec.parent`, with limits from the top down. A queue that has no place in it costs nobody else anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.model import resources
from pumice.plugins.capacity import accounts
from pumice.plugins.capacity.accounts import Account
from pumice.plugins.sharing import queue_limits, rooms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector

ROOT = names.ROOT_QUEUE
LONG = 8
_ABOVE = "it hangs below queue "


class Rank:
    """The first thing that queues of a tree are ordered by: priority, then leaves before others."""

    __slots__ = ("entry",)

    def __init__(self, priority: int, *, inner: bool) -> None:
        self.entry = (-priority, inner)


class CapacityTree:
    """All queues that have a place, and why the others have none."""

    def __init__(self, cluster: Cluster) -> None:
        self.accounts: dict[str, Account] = {}
        self.problems: dict[str, str] = {}
        self._ranks: dict[tuple[int, bool], Rank] = {}
        self._paths: dict[str, tuple[Rank | Account, ...]] = {}
        self._witnesses: dict[str, dict[tuple[int, bool], Queue]] = {}
        self._rows: dict[str, list[int]] = {}
        self.rooms: rooms.Rooms | None = None
        root = cluster.queues.get(ROOT)
        if root is None or root.bad:
            why = f"queue {ROOT} is invalid ({root.bad})" if root else f"queue {ROOT} does not exist"
            text = f"{why}, so no queue has a place in the tree; create or correct it"
            self.problems = dict.fromkeys(cluster.queues, text)
            return
        for name in sorted(cluster.queues):
            self._place(cluster, name)
        self._grant(cluster, self.accounts[ROOT])
        self._look_down()

    # -- places ------------------------------------------------------------------------------------------------

    def _place(self, cluster: Cluster, name: str) -> None:
        """Give a queue its place below its parents, or say why it has none; whoever is met on the way is dealt with too."""
        chain: list[Queue] = []
        met: dict[str, None] = {}
        problem = ""
        while name not in self.accounts:
            queue = cluster.queues.get(name)
            problem = self._problem(queue, name, met)
            if problem or queue is None:
                break
            met[name] = None
            chain.append(queue)
            if name == ROOT:
                break
            name = queue.parent or ROOT
        circle = list(met)[list(met).index(name) :] if problem and name in met else []
        for queue in reversed(chain):
            if not problem:
                self._open(cluster, queue)
                continue
            self.problems[queue.name] = problem
            if queue.name not in circle[1:] and not problem.startswith(_ABOVE):
                problem = f"{_ABOVE}{queue.name}, which has no place: {problem}"

    def _problem(self, queue: Queue | None, name: str, met: Mapping[str, None]) -> str:
        """Say what stops the way to the root at a name."""
        if name in met:
            circle = list(met)[list(met).index(name) :]
            shown = [*(circle if len(circle) <= LONG else [*circle[:LONG], "…"]), name]
            return f"its parents form a circle: {' → '.join(shown)}; change spec.parent of one of them"
        if name in self.problems:
            known = self.problems[name]
            return known if known.startswith(_ABOVE) else f"{_ABOVE}{name}, which has no place: {known}"
        if queue is None:
            return f"its parent {name} does not exist; create it or change spec.parent"
        if queue.bad:
            return f"its parent {name} is invalid: {queue.bad}" if met else f"it is invalid: {queue.bad}"
        return ""

    def _open(self, cluster: Cluster, queue: Queue) -> None:
        if queue.name == ROOT:
            self.accounts[ROOT] = Account(queue, cluster)
            return
        parent = self.accounts[queue.parent or ROOT]
        account = self.accounts[queue.name] = Account(queue, cluster, (parent, *parent.above))
        parent.children.append(account)

    # -- limits ------------------------------------------------------------------------------------------------

    def _grant(self, cluster: Cluster, root: Account) -> None:
        """Set limits and dues from the top down. What the root's capability does not list is unlimited; it is due what its children are."""
        ordered, limits = self._in_order(root), queue_limits
        places = {account.queue.name: place for place, account in enumerate(ordered)}
        parents = [-1, *(places[account.above[0].queue.name] for account in ordered[1:])]
        leaves = [place for place, account in enumerate(ordered) if account.is_leaf]
        found = rooms.Places([account.queue for account in ordered], parents, leaves)
        self.rooms = rooms.Rooms(cluster, found, root.queue, self.available(cluster))
        guaranteed, written = self.rooms.guaranteed, self.rooms.written
        dues = [_due(cluster, account, guaranteed[place]) for place, account in enumerate(ordered)]
        together: resources.Amounts = {}
        for child in root.children:
            together = resources.add(together, dues[places[child.queue.name]])
        capability = limits.ceiling(cluster.vocabulary, root.queue.capability)
        root.grant(cluster, capability, guaranteed[0], together)
        inherited = {root.queue.name: capability}
        for parent in ordered:
            members = [places[child.queue.name] for child in parent.children]
            taken = guaranteed[members].sum(axis=0)
            for child, place in zip(parent.children, members, strict=True):
                own = self.rooms.ceilings[place]
                capability = np.where(own < limits.UNLIMITED, own, inherited[parent.queue.name])
                rest = np.maximum(np.maximum(parent.limit - taken, 0) + guaranteed[place], written[place])
                room = np.where(parent.limit < limits.UNLIMITED, rest, limits.UNLIMITED)
                child.grant(cluster, np.minimum(room, capability), guaranteed[place], dues[place])
                inherited[child.queue.name] = capability

    def _in_order(self, root: Account) -> list[Account]:
        """List the accounts, parents before their children."""
        found = [root]
        for account in found:
            found.extend(account.children)
        return found

    def available(self, cluster: Cluster) -> Vector:
        """Return what there is for queues that have a place and take jobs."""
        leaves = {name for name, account in self.accounts.items() if account.is_leaf}
        return queue_limits.available(cluster, leaves)

    def count(self, cluster: Cluster) -> None:
        """Count anew what the leaves below each queue hold."""
        for account in self.accounts.values():
            account.start()
        sums = cluster.queue_sums
        held = sums.allocated + sums.pipelined
        for account in self.accounts.values():
            if account.is_leaf:
                for ancestor in account.above:
                    ancestor.add(held[account.queue.row])

    def rows_above(self) -> dict[int, tuple[int, ...]]:
        """Return for each leaf's row the rows of the queues above it."""
        leaves = [account for account in self.accounts.values() if account.is_leaf]
        return {leaf.queue.row: tuple(each.queue.row for each in leaf.above) for leaf in leaves}

    def rows_below(self, account: Account) -> list[int]:
        """Return the rows of the leaves that count for a queue."""
        return self._rows[account.queue.name]

    # -- order -------------------------------------------------------------------------------------------------

    def path(self, queue: Queue) -> tuple[Rank | Account, ...]:
        """Return what a queue is ordered by: leaves by the branches above them, from the top; others come last, by themselves."""
        path = self._paths.get(queue.name)
        if path is None:
            account = self.accounts.get(queue.name)
            rank = self._rank(queue)
            if account is None:
                path = (rank,)
            elif account.is_leaf:
                path = (rank, *account.above[-2::-1], account)
            else:
                path = (rank, account)
            self._paths[queue.name] = path
        return path

    def _key(self, queue: Queue) -> tuple[int, bool]:
        account = self.accounts.get(queue.name)
        return queue.priority, account is None or not account.is_leaf

    def _rank(self, queue: Queue) -> Rank:
        priority, inner = self._key(queue)
        return self._ranks.setdefault((priority, inner), Rank(priority, inner=inner))

    def _look_down(self) -> None:
        """For each queue, note the leaves below it and, if it has any, one queue of every rank whose place depends on it."""
        for account in self.accounts.values():
            for each in (account, *account.above) if account.is_leaf else ():
                self._rows.setdefault(each.queue.name, []).append(account.queue.row)
            for each in (account, *account.above) if account.is_leaf else (account,):
                if not each.is_leaf:
                    self._witnesses.setdefault(each.queue.name, {}).setdefault(self._key(account.queue), account.queue)

    def witnesses(self, account: Account) -> list[Queue]:
        """Return queues of other ranks that stand for everybody whose place changes when a leaf's holdings do."""
        own = self._key(account.queue)
        return [
            queue
            for ancestor in account.above[:-1]
            for key, queue in self._witnesses[ancestor.queue.name].items()
            if key != own
        ]


def _due(cluster: Cluster, account: Account, guarantee: Vector) -> resources.Amounts:
    return accounts.with_guarantee(cluster, account.queue.deserved, account.queue, guarantee)


def common_depth(left: Account, right: Account) -> int:
    """Return how deep the lowest queue lies that is above both, or is one of them; the root lies at 0."""
    ours, theirs = (left, *left.above)[::-1], (right, *right.above)[::-1]
    shared = 0
    while shared < min(len(ours), len(theirs)) and ours[shared] is theirs[shared]:
        shared += 1
    return shared - 1
