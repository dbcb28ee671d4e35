"""The cards of all nodes and what pods hold of them, as columns of situations; only nodes that changed are read again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import numpy as np

from pumice.model import statuses
from pumice.plugins.deviceshare import cards, situations
from pumice.plugins.deviceshare.situations import Situations

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.api import core
    from pumice.framework.runs import Run
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord, Nodes, Rows
    from pumice.model.task import Task
    from pumice.plugins.deviceshare.cards import Card, Choice, Held, Rate, Share, State
    from pumice.plugins.deviceshare.situations import Answers

_MOST_SITUATIONS: Final = 1 << 16


class Kind(Protocol):
    """One kind of cards: how nodes tell of them, what pods ask for and hold, and who gets which; `annotations` are all that travel with binds."""

    annotations: frozenset[str]

    def offer(self, node: core.Node) -> tuple[tuple[Card, ...], Hashable]:
        """Return the cards of a node, and what else matters about them; raises a ValueError if they cannot be read."""

    def request(self, task: Task) -> Hashable:
        """Return what a pod asks for, None if nothing."""

    def choose(
        self, of: tuple[Card, ...], about: Hashable, state: State, request: Hashable, rate: Rate | None = None
    ) -> Choice:
        """Choose cards of a node, maybe by how shares are rated; whether there are any must not depend on that."""

    def left(self, card: Card, held: Held) -> int:
        """Return how much of a card is left, in thousandths."""

    def held(self, cluster: Cluster, task: Task, of: tuple[Card, ...]) -> tuple[Share, ...]:
        """Return what a pod holds of a node's cards."""

    def listed(self, cluster: Cluster, task: Task) -> tuple[str, ...]:
        """Return the ids of the cards that a pod holds, whether its node has them or not."""

    def stamps(
        self, record: NodeRecord, of: tuple[Card, ...], task: Task, choice: Choice, now: int
    ) -> Mapping[str, str]:
        """Return the annotations that travel with a bind."""


class Preference(Protocol):
    """Who has a say in which cards pods get, where there is a choice; it knows the node by its row."""

    def know(self, shared: Holdings) -> None:
        """Get to know cards that are given out in this cycle."""

    def choose(self, holdings: Holdings, task: Task, row: int, at: int, following: int) -> Choice:
        """Choose cards in a situation for a pod that counts as being on the node already, with so many of its equals `following`."""

    def ahead(self, holdings: Holdings, task: Task, nodes: Nodes, at: Rows) -> Rows:
        """Return the situations of nodes with as many more such pods as the view runs ahead by."""


class Taken(msgspec.Struct, frozen=True):
    """Shares that a pod got, or gave back, in this cycle: of which row, and whether of what is held now as well as of what will be."""

    row: int
    shares: tuple[Share, ...]
    now: bool


class Holdings:
    """What is held of each node's cards, kept from cycle to cycle and followed through each.

    Three columns: the situation of a node now, once those that are going are gone and those that wait have come, and with either counted, where whoever is bound now has to find cards.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.problems: dict[str, str] = {}
        self.gone: dict[str, str] = {}  # by node: cards that are not there any more, and who holds them
        self._known = Situations(kind.choose)
        self._now: Rows = np.zeros(0, dtype=np.int64)
        self._later, self._both = self._now.copy(), self._now.copy()
        self._waiting: dict[int, int] = {}  # how many pods wait for cards, by row
        self._structure = self._position = -1
        self._offers: dict[str, tuple[core.Node, tuple[Card, ...], Hashable]] = {}
        self._placed: dict[str, Taken] = {}
        self._evicted: dict[str, Taken] = {}
        self._left: dict[int, tuple[int, ...]] = {}
        self.preference: Preference | None = None
        self.edition = 0  # grows when situations get other numbers

    def update(self, cluster: Cluster) -> bool:
        """Bring everything up to date at the start of a cycle; tells whether any node has cards."""
        table = cluster.nodes
        self._placed, self._evicted, self._waiting = {}, {}, {}
        if len(self._known) > _MOST_SITUATIONS + 4 * table.count:
            self._known, self._structure = Situations(self.kind.choose), -1
            self._left = {}
            self.edition += 1
        changed = table.rows_since(self._position) if self._structure == table.structure else None
        if changed is None:
            self._now, self._later, self._both = (np.zeros(table.count, dtype=np.int64) for _ in range(3))
            changed = list(range(table.count))
            self._offers = {name: known for name, known in self._offers.items() if name in table.by_name}
            self.gone = {}
        for row in changed:
            self._read(cluster, table.records[row])
        self._structure, self._position = table.structure, table.position
        return bool(self._now.any())

    def _read(self, cluster: Cluster, record: NodeRecord) -> None:
        of, about = self._offer(record)
        now = later = (cards.NOTHING,) * len(of)
        there = {card.id for card in of}
        gone: dict[str, str] = {}
        for task in record.tasks.values():
            gone.update(
                (card, f"{task.namespace}/{task.name}") for card in self.kind.listed(cluster, task) if card not in there
            )
            shares = self.kind.held(cluster, task, of)
            now = cards.taken(now, shares)
            later = later if task.status in statuses.GOING else cards.taken(later, shares)
        self.gone.pop(record.name, None)
        if gone:
            self.gone[record.name] = ", ".join(f"card {card} is gone, and {pod} holds it" for card, pod in gone.items())
        row = record.row
        self._now[row] = self._both[row] = self._known.number(of, about, now)
        self._later[row] = self._known.number(of, about, later)

    def _offer(self, record: NodeRecord) -> tuple[tuple[Card, ...], Hashable]:
        node, known = record.object, self._offers.get(record.name)
        if node is None:
            return (), None
        if known is None or known[0] is not node:
            self.problems.pop(record.name, None)
            try:
                found, about = self.kind.offer(node)
            except ValueError as error:
                self.problems[record.name] = str(error)
                found, about = (), None
            known = self._offers[record.name] = (node, found, about)
        return known[1], known[2]

    def forget(self) -> None:
        """Read all nodes anew: what is known of their kinds of cards has changed."""
        self._offers, self._structure = {}, -1

    def answers(self, request: Hashable) -> Answers:
        """Return what pods with a request get."""
        return self._known.answers(request)

    def situations(self, nodes: Nodes, task: Task) -> Rows:
        """Return the situations of nodes in a view, which may run ahead by some pods like the one that is asked about."""
        at = (self._later if nodes.released else self._both)[nodes.index]
        if nodes.steps is None:
            return at
        if self.preference is not None:
            return self.preference.ahead(self, task, nodes, at)
        return self.answers(self.kind.request(task)).ahead(at, nodes.steps)

    def at(self, rows: Rows | int) -> Rows:
        """Return the situations of rows as whoever is bound now finds them."""
        found: Rows = self._both[rows]
        return found

    def after(self, at: int, choice: Choice) -> int:
        """Return the situation once cards are taken."""
        return self._known.changed(at, choice.shares, cards.taken)

    def left(self, of: tuple[Card, ...], state: State) -> tuple[int, ...]:
        """Return how much of each card is left, in thousandths."""
        return tuple(self.kind.left(card, held) for card, held in zip(of, state, strict=True))

    def cards_at(self, at: int) -> tuple[tuple[Card, ...], Hashable, State]:
        """Return the cards of a situation, what else matters about them, and what is held of them."""
        return self._known.known[at]

    def left_at(self, at: int) -> tuple[int, ...]:
        """Return the same in a situation."""
        known = self._left.get(at)
        if known is None:
            of, _, state = self._known.known[at]
            known = self._left[at] = self.left(of, state)
        return known

    def refusal(self, row: int, request: Hashable) -> str:
        """Say why a node has no cards for a pod now; empty if it has, or none at all."""
        return self.answers(request).refusal(int(self._both[row])) if row < len(self._both) else ""

    def known(self, row: int) -> tuple[tuple[Card, ...], State, State]:
        """Return the cards of a node with what is held of them now, and what will be."""
        of, _, now = self._known.known[int(self._now[row])]
        return of, now, self._known.known[int(self._later[row])][2]

    def follow(self, cluster: Cluster, run: Run, sign: int, now: int) -> None:
        """Give cards to pods that are placed, and take back those of pods that are not any more."""
        if self.kind.request(run.tasks[0]) is None:
            return
        if sign < 0:
            for task in run.tasks:
                self._take_back(cluster, task)
            return
        following = Counter(target.row for target in run.targets if target is not None)
        for task, target in zip(run.tasks, run.targets, strict=True):
            if target is not None:
                following[target.row] -= 1
                self._place(cluster, task, target, now, following[target.row])

    def _place(self, cluster: Cluster, task: Task, record: NodeRecord, now: int, following: int) -> None:
        """Give a pod that is placed its cards, and write down which; one that waits for room gets them of what will be there."""
        if task.uid in self._evicted:
            back = self._evicted.pop(task.uid)
            self._change(back, cards.taken)
            return
        request, row = self.kind.request(task), record.row
        if request is None or task.uid in self._placed or row >= len(self._now):
            return
        waits = task.status == statuses.Status.PIPELINED
        answers = self.answers(request)
        at = int((self._later if waits else self._both)[row])
        if at == situations.NO_CARDS or answers.one(at) == situations.REFUSED:
            return
        choice, after = answers.choices[at], answers.one(at)
        if self.preference is not None:
            choice = self.preference.choose(self, task, row, at, following)
            after = self.after(at, choice)
        known = self._placed[task.uid] = Taken(row, choice.shares, now=not waits)
        self._waiting[row] = self._waiting.get(row, 0) + waits
        self._change(known, cards.taken, at, after)
        if not waits:
            of = self._known.known[at][0]
            cluster.with_bind.stamp(task.uid, self.kind.stamps(record, of, task, choice, now))

    def _take_back(self, cluster: Cluster, task: Task) -> None:
        """Give back what a pod was given in this cycle; what an evicted one holds will be free."""
        known = self._placed.pop(task.uid, None)
        if known is not None:
            self._waiting[known.row] -= not known.now
            self._change(known, cards.given_back)
            if known.now:
                cluster.with_bind.unstamp(task.uid, self.kind.annotations)
        elif task.node is not None and task.node.row < len(self._now):
            row = task.node.row
            shares = self.kind.held(cluster, task, self._known.known[int(self._now[row])][0])
            if shares:
                known = self._evicted[task.uid] = Taken(row, shares, now=False)
                self._change(known, cards.given_back)

    def _change(self, known: Taken, change: cards.Change, before: int = -1, after: int = -1) -> None:
        """Take shares, or give them back, of what will be held, and of what is held now if they are of that too; what comes of one situation may be known."""
        row = known.row
        for column in (self._now, self._later) if known.now else (self._later,):
            at = int(column[row])
            column[row] = after if at == before else self._known.changed(at, known.shares, change)
        self._both[row] = self._either(row) if self._waiting.get(row) else self._now[row]

    def _either(self, row: int) -> int:
        """Return the situation in which both what is held now and what will be held counts."""
        now, later = (self._known.known[int(column[row])] for column in (self._now, self._later))
        return self._known.number(now[0], now[1], cards.either(now[2], later[2]))
