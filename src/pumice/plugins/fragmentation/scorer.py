"""What nodes are worth to a pod, and which card it takes, by the fragments that it would leave; looked up by the situation of a node.

A node is what is left of its cards, of each form of them a number: the situation of those given out by thousandths, that of those which deviceshare gives out, and how many whole ones are free. With its class of models and its level of cpu that is all that matters, so that nodes which are alike are worked out once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.model.nodes import EVERY
from pumice.model.resources import CPU
from pumice.model.statuses import Status
from pumice.plugins.deviceshare import cards, situations
from pumice.plugins.deviceshare.cards import Choice
from pumice.plugins.fragmentation import asked, points

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Amounts, Nodes, NodeTable, Rows
    from pumice.model.resources import Vector
    from pumice.model.task import Task
    from pumice.plugins.deviceshare.cards import Share
    from pumice.plugins.deviceshare.holdings import Holdings
    from pumice.plugins.fragmentation.fragments import Fragments, Left

    Alike = tuple[int, int, int, int]
    """What a node has: the situations of its cards, own and shared, its free whole cards, its class of models."""
    Asked = tuple[Hashable, Hashable, int]
    """What a pod asks for of cards: own, shared, whole ones."""
    Worth = tuple[int, Choice | None]

_MOST: Final = 1 << 18
_UNITS: Final = 1000
NOTHING: Final = 0
"""What a node is worth that has no cards for the pod."""


class Scorer:
    """The score of one set of typical kinds; without any, every node and every card is worth the same."""

    def __init__(
        self, fragments: Fragments | None, own: Holdings, whole: Sequence[str], label: str, weight: int
    ) -> None:
        self._fragments = fragments
        self._own = own
        self._whole = whole
        self._label = label
        self._weight = weight
        self._shared: Holdings | None = None
        self._columns: list[int] = []
        self._classes: Rows = np.zeros(0, dtype=np.int64)
        self._stated = (-1, -1)
        self._edition = self._shared_edition = -1
        self._worth: dict[tuple[object, ...], Worth] = {}
        self._paths: dict[tuple[object, ...], list[int]] = {}

    def begin(self, table: NodeTable) -> None:
        """Get to know the nodes of a cycle."""
        self._shared = None
        self._table = table
        self._columns = [column for name in self._whole if (column := table.vocabulary.columns.get(name)) is not None]
        stated = (table.structure, table.static)
        if self._stated != stated and self._fragments is not None:
            codes, values = table.attributes.codes(self._label)
            classes = [self._fragments.model_class(model) for model in (*values, None)]
            self._classes, self._stated = np.array(classes, dtype=np.int64)[codes], stated
        if self._edition != self._own.edition or len(self._worth) + len(self._paths) > _MOST:
            self._forget()

    def know(self, shared: Holdings) -> None:
        """Get to know the cards that deviceshare gives out in the cycle; it may be opened later than this plugin."""
        self._shared = shared
        if self._shared_edition != shared.edition:
            self._forget()
            self._shared_edition = shared.edition

    def _forget(self) -> None:
        self._worth, self._paths, self._edition = {}, {}, self._own.edition

    # -- nodes ---------------------------------------------------------------------------------------------------

    def score(self, subject: Subject, nodes: Nodes) -> Floats:
        """Give each node its points for a pod."""
        fragments, task = self._fragments, subject.task
        if fragments is None:
            return np.full(len(nodes), float(points.EVEN * self._weight))
        cpu = subject.request.amounts.get("cpu", 0)
        left = nodes.idle_at((EVERY, CPU))
        levels = np.array(fragments.cpus, dtype=np.int64)
        columns = (
            self._situations(self._own, nodes, task),
            self._situations(self._shared, nodes, task),
            self._free(nodes, EVERY),
            self._classes[nodes.index],
            np.searchsorted(levels, left, "right"),
            np.searchsorted(levels, left - cpu, "right"),
        )
        scores: Floats = np.full(len(nodes), float(NOTHING))
        wanted = self._asked(task)
        fits = np.flatnonzero(self._takes(wanted, columns[:3]) & (left >= cpu))  # others take no such pod anyway
        first, back = _alike([column[fits] for column in columns])
        alike = zip(*(column[fits[first]].tolist() for column in columns), strict=True)
        known = [self._best(wanted, each[:4], *each[4:])[0] for each in alike]
        scores[fits] = np.array(known, dtype=np.float64)[back] * self._weight
        return scores

    def _takes(self, wanted: Asked, columns: Sequence[Vector]) -> Mask:
        """Tell which nodes have the cards that are asked for."""
        takes: Mask = columns[2] >= wanted[2]
        for form, holdings in enumerate((self._own, self._shared)):
            if holdings is not None and wanted[form] is not None:
                takes &= holdings.answers(wanted[form]).look(columns[form]) > situations.REFUSED
        return takes

    def _situations(self, holdings: Holdings | None, nodes: Nodes, task: Task) -> Rows:
        """Return the situations of cards in a view, which runs ahead of those that the pod takes from."""
        if holdings is None:
            return np.zeros(len(nodes), dtype=np.int64)
        if holdings.kind.request(task) is None:
            return holdings.at(nodes.index)
        return holdings.situations(nodes, task)

    def _free(self, amounts: Amounts, at: slice) -> Vector:
        """Return how many whole cards are free."""
        free: Vector = np.zeros(len(amounts.used[at]), dtype=np.int64)
        for column in self._columns:
            free += np.maximum(0, amounts.idle_at((at, column)) // _UNITS)
        return free

    # -- cards ---------------------------------------------------------------------------------------------------

    def choose(self, holdings: Holdings, task: Task, row: int, at: int, following: int) -> Choice:
        """Choose cards in a situation for a pod that counts as being on the node already, with so many of its equals `following`."""
        table, cpu = self._table, task.shape.request.amounts.get("cpu", 0)
        place = (slice(row, row + 1), CPU)
        waits = task.status == Status.PIPELINED
        left = int((table.future_idle_at(place) if waits else table.idle_at(place))[0]) + following * cpu
        node = self._node(holdings, row, at, int(self._free(table, slice(row, row + 1))[0]))
        chosen = self._best(self._asked(task), node, self._level(left + cpu), self._level(left))[1]
        return Choice() if chosen is None else chosen

    def ahead(self, holdings: Holdings, task: Task, nodes: Nodes, at: Rows) -> Rows:
        """Return the situations of nodes with as many more such pods as the view runs ahead by."""
        cpu = task.shape.request.amounts.get("cpu", 0)
        place = (EVERY, CPU)
        left = (nodes.future_idle_at(place) if nodes.released else nodes.idle_at(place)).tolist()
        free = self._free(nodes, EVERY).tolist()
        steps = np.zeros(len(nodes), dtype=np.int64) if nodes.steps is None else nodes.steps
        found = [
            self._on_the_way(holdings, task, self._node(holdings, row, before, whole), rest + step * cpu, step)
            for row, before, whole, rest, step in zip(
                nodes.index.tolist(), at.tolist(), free, left, steps.tolist(), strict=True
            )
        ]
        return np.array(found, dtype=np.int64)

    def _on_the_way(self, holdings: Holdings, task: Task, node: Alike, left: int, step: int) -> int:
        """Return the situation after so many more pods on a node that has so much cpu left before the first."""
        cpu, own = task.shape.request.amounts.get("cpu", 0), holdings is self._own
        request = holdings.kind.request(task)
        path = self._paths.setdefault((own, request, cpu, node, left), [node[0] if own else node[1]])
        while len(path) <= step:
            at, rest = path[-1], left - (len(path) - 1) * cpu
            if (
                plain := holdings.answers(request).one(at)
            ) <= situations.REFUSED:  # no card has room, whichever is best
                path.append(plain)
                continue
            there = (at, *node[1:]) if own else (node[0], at, *node[2:])
            chosen = self._best(self._asked(task), there, self._level(rest), self._level(rest - cpu))[1]
            path.append(at if chosen is None else holdings.after(at, chosen))
        return path[step]

    def _node(self, holdings: Holdings, row: int, at: int, free: int) -> Alike:
        models = int(self._classes[row]) if self._fragments is not None else 0
        if holdings is self._own:
            return (at, 0 if self._shared is None else int(self._shared.at(row)), free, models)
        return (int(self._own.at(row)), at, free, models)

    def _level(self, cpu: int) -> int:
        return 0 if self._fragments is None else self._fragments.level(cpu)

    # -- what it comes to ----------------------------------------------------------------------------------------

    def _asked(self, task: Task) -> Asked:
        """Return what a pod asks for of each form of cards."""
        shared = None if self._shared is None else self._shared.kind.request(task)
        return self._own.kind.request(task), shared, asked.whole_cards(task.shape.request.amounts, self._whole)

    def _best(self, wanted: Asked, node: Alike, level: int, after: int) -> Worth:
        """Return the points of a node with one more pod on the best of its cards, and these cards if the pod gets any."""
        key = (wanted, node, level, after)
        known = self._worth.get(key)
        if known is None:
            own, shared, whole = wanted
            if own is not None:
                known = self._on_cards(0, own, node, level, after)
            elif shared is not None:
                known = self._on_cards(1, shared, node, level, after)
            else:
                known = self._on_whole_cards(whole, node, level, after)
            self._worth[key] = known
        return known

    def _on_whole_cards(self, number: int, node: Alike, level: int, after: int) -> Worth:
        """Rate a node of whose free whole cards the pod takes some, or none."""
        own, shared, free, _ = node
        rest = self._cards(0, own) + self._cards(1, shared)
        return self._rate(node, rest + (_UNITS,) * free, rest + (_UNITS,) * (free - number), level, after), None

    def _on_cards(self, form: int, request: Hashable, node: Alike, level: int, after: int) -> Worth:
        """Rate a node by the best of its cards that have room for the pod."""
        holdings, at = self._shared if form and self._shared is not None else self._own, node[form]
        rest = self._cards(1 - form, node[1 - form]) + (_UNITS,) * node[2]
        before = rest + self._cards(form, at)
        of, about, state = holdings.cards_at(at)
        left, rates = self._cards(form, at), dict[tuple[int, int], int]()

        def rate(share: Share) -> int:
            """Rate a share alone; cards with as much left before and after are worth the same."""
            position = share.position
            then = holdings.kind.left(of[position], state[position].with_share(share))
            pair = (left[position], then)
            if pair not in rates:
                after_it = (*left[:position], then, *left[position + 1 :])
                rates[pair] = self._rate(node, before, rest + after_it, level, after)
            return rates[pair]

        choice = holdings.kind.choose(of, about, state, request, rate)
        if len(choice.shares) == 1:
            return rate(choice.shares[0]), choice
        then = holdings.left(of, cards.taken(state, choice.shares))
        return self._rate(node, before, rest + then, level, after), choice

    def _rate(self, node: Alike, before: Left, then: Left, level: int, after: int) -> int:
        fragments = self._fragments
        if fragments is None:
            return points.EVEN
        models = node[3]
        return fragments.points.of(fragments.of(before, models, level) - fragments.of(then, models, after))

    def _cards(self, form: int, at: int) -> Left:
        """Return what is left of cards in a situation."""
        holdings = self._shared if form else self._own
        return () if holdings is None else holdings.left_at(at)


def _alike(columns: Sequence[Vector]) -> tuple[Rows, Rows]:
    """Return the first of each kind of rows that are alike in all columns, and for each row which kind it is."""
    keys, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        span = int(column.max(initial=0)) + 1
        if size * span > 1 << 62:
            _, first, back = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
            return first, back.reshape(-1)
        keys, size = keys * span + column, size * span
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    return first, back
