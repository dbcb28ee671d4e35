"""The cards of all nodes and what pods hold of them, row by row; only nodes that changed are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pumice.model import marks, statuses
from pumice.plugins.deviceshare import cards

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.api import core
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.plugins.deviceshare.cards import Card, Choice, Share, State

_REMEMBERED: Final = 20_000


class Kind(Protocol):
    """One kind of cards: how nodes tell of them, what pods ask for and hold, and who gets which."""

    def offer(self, node: core.Node) -> tuple[tuple[Card, ...], Hashable]:
        """Return the cards of a node, and what else matters about them; raises a ValueError if they cannot be read."""

    def request(self, task: Task) -> Hashable:
        """Return what a pod asks for, None if nothing."""

    def choose(self, of: tuple[Card, ...], about: Hashable, state: State, request: Hashable) -> Choice:
        """Choose cards of a node."""

    def held(self, cluster: Cluster, task: Task, of: tuple[Card, ...]) -> tuple[Share, ...]:
        """Return what a pod holds of a node's cards."""

    def stamps(
        self, record: NodeRecord, of: tuple[Card, ...], task: Task, choice: Choice, now: int
    ) -> Mapping[str, str]:
        """Return the annotations that travel with a bind."""


class Taken(msgspec.Struct, frozen=True):
    """Shares that a pod got, or gave back, in this cycle: of which row, and whether of what is held now as well as of what will be."""

    row: int
    shares: tuple[Share, ...]
    now: bool


class Holdings:
    """What is held of each node's cards, now and once those that are going are gone; kept from cycle to cycle and followed through each."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.cards: list[tuple[Card, ...]] = []
        self.about: list[Hashable] = []
        self.now: list[State] = []
        self.later: list[State] = []
        self.problems: dict[str, str] = {}
        self._structure = self._position = -1
        self._offers: dict[str, tuple[core.Node, tuple[Card, ...], Hashable]] = {}
        self._choices: dict[Hashable, Choice] = {}
        self._placed: dict[str, Taken] = {}
        self._evicted: dict[str, Taken] = {}

    def update(self, cluster: Cluster) -> bool:
        """Bring everything up to date at the start of a cycle; tells whether any node has cards."""
        table = cluster.nodes
        self._placed, self._evicted = {}, {}
        changed = table.rows_since(self._position) if self._structure == table.structure else None
        if changed is None:
            self.cards, self.about = [()] * table.count, [None] * table.count
            self.now, self.later = [()] * table.count, [()] * table.count
            changed = list(range(table.count))
            self._offers = {name: known for name, known in self._offers.items() if name in table.by_name}
        for row in changed:
            self._read_offer(table.records[row])
            self._read_holders(cluster, table.records[row])
        self._structure, self._position = table.structure, table.position
        return any(self.cards)

    def _read_offer(self, record: NodeRecord) -> None:
        node, known = record.object, self._offers.get(record.name)
        if node is None:
            return
        if known is None or known[0] is not node:
            self.problems.pop(record.name, None)
            try:
                found, about = self.kind.offer(node)
            except ValueError as error:
                self.problems[record.name] = str(error)
                found, about = (), None
            known = self._offers[record.name] = (node, found, about)
        self.cards[record.row], self.about[record.row] = known[1], known[2]

    def _read_holders(self, cluster: Cluster, record: NodeRecord) -> None:
        of = self.cards[record.row]
        now = later = (cards.NOTHING,) * len(of)
        for task in record.tasks.values() if of else ():
            shares = self.kind.held(cluster, task, of)
            now = cards.taken(now, shares)
            later = later if task.status in statuses.GOING else cards.taken(later, shares)
        self.now[record.row], self.later[record.row] = now, later

    def choice(self, row: int, request: Hashable, *, released: bool) -> Choice:
        """Choose cards of a node as it is now, or will be; nodes that are alike are asked about once."""
        key = (self.cards[row], self.about[row], self.later[row] if released else self.now[row], request)
        found = self._choices.get(key)
        if found is None:
            if len(self._choices) >= _REMEMBERED:
                self._choices.clear()
            found = self._choices[key] = self.kind.choose(*key)
        return found

    def place(self, cluster: Cluster, task: Task, record: NodeRecord, now: int) -> None:
        """Give a pod that is placed its cards, and write down which; one that waits for room gets them of what will be there."""
        if task.uid in self._evicted:
            back = self._evicted.pop(task.uid)
            self.later[back.row] = cards.taken(self.later[back.row], back.shares)
            return
        request, row = self.kind.request(task), record.row
        if request is None or task.uid in self._placed or row >= len(self.cards):
            return
        waits = task.status == statuses.Status.PIPELINED
        choice = self.choice(row, request, released=waits)
        if not choice.shares:
            return
        self._placed[task.uid] = Taken(row, choice.shares, now=not waits)
        self.later[row] = cards.taken(self.later[row], choice.shares)
        if not waits:
            self.now[row] = cards.taken(self.now[row], choice.shares)
            cluster.stamp(task.uid, self.kind.stamps(record, self.cards[row], task, choice, now))

    def take_back(self, cluster: Cluster, task: Task) -> None:
        """Give back what a pod was given in this cycle; what an evicted one holds will be free."""
        known = self._placed.pop(task.uid, None)
        if known is not None:
            self.later[known.row] = cards.given_back(self.later[known.row], known.shares)
            if known.now:
                self.now[known.row] = cards.given_back(self.now[known.row], known.shares)
                cluster.unstamp(task.uid, marks.CARDS)
        elif task.node is not None and task.node.row < len(self.cards):
            row = task.node.row
            shares = self.kind.held(cluster, task, self.cards[row])
            if shares:
                self._evicted[task.uid] = Taken(row, shares, now=False)
                self.later[row] = cards.given_back(self.later[row], shares)
