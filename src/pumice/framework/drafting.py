"""Drafts: nodes for tasks of different shapes, one after the other, as if each were placed before the next looks for one; nothing is placed.

The shapes are worked out together in a block (see blocks). A node that was chosen is in another state from then on, about which all of them have to be asked; a look costs hardly
more for many states than for one, so the states that may come next are guessed and looked at along with it (1.4 times as fast on `own-shapes-5000`). Guesses are only ever recalled for a node that has come to be in that very
state, so a wrong one costs time and nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.framework.vectors import Floats
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.resources import Matrix, Vector

REFUSED = -np.inf
# How many states are guessed at first, and at the most.
FARTHEST = 32


class Drafted(Protocol):
    """What a draft needs of the block that its members are in."""

    keys: Floats
    known: dict[bytes, Floats]
    more: Matrix
    reach: int

    def state(self, row: int, amounts: Matrix) -> bytes:
        """Return the state of a node with some amounts."""

    def look(self, states: Sequence[bytes], rows: Rows, amounts: Matrix) -> None:
        """Ask about nodes in states."""

    def doubt(self, row: int) -> None:
        """Forget what was known of a node."""


class Draft:
    """Chooses nodes for some members of a block, by their positions in it."""

    __slots__ = ("_amounts", "_block", "_chosen", "_foreseen", "_keys", "_known", "_members", "_places", "_table")

    def __init__(self, block: Drafted, table: NodeTable, members: Sequence[int]) -> None:
        self._block = block
        self._table = table
        self._members = members
        # What the block answers about the members, and about those between them.
        first = min(members)
        self._keys = block.keys[first : max(members) + 1]
        self._places = [member - first for member in members]
        # The amounts of nodes that were looked at, with what was put on them so far.
        self._amounts: dict[int, Vector] = {}
        self._chosen: list[int] = []
        # Of nodes that were not chosen since: which member was guessed to come next, and the amounts and the state with it.
        self._foreseen: dict[int, tuple[int, Vector, bytes]] = {}
        # Whose states have been guessed, if all goes as guessed.
        self._known = 0

    def rows(self) -> list[int]:
        """Return the rows for the members, in order; fewer if no node takes the next one."""
        answers = list(self._keys)
        for number, place in enumerate(self._places):
            row = int(answers[place].argmax())
            best = answers[place][row]
            if best == REFUSED:
                break
            if not best < math.inf:
                raise ArithmeticError("a score that is no number, or has no end, would be the best")
            self._chosen.append(row)
            self._put(number, row)
        return self._chosen

    def _put(self, number: int, row: int) -> None:
        """Let a node answer as it will with a member on it."""
        block, member = self._block, self._members[number]
        foreseen = self._foreseen.pop(row, None)
        if foreseen is not None and foreseen[0] == member:
            _, amounts, state = foreseen
        else:
            amounts = self._ahead(row, member)
            state = block.state(row, amounts)
        self._amounts[row] = amounts
        if state not in block.known:
            self._look(number, row, state)
        first = member - self._places[number]
        self._keys[:, row] = block.known[state][first : first + len(self._keys)]
        block.doubt(row)

    def _ahead(self, row: int, member: int) -> Vector:
        """Return the amounts of a node with one more member on it."""
        present = self._amounts.get(row)
        if present is None:
            present = self._amounts[row] = self._table.amounts(row)
        ahead: Vector = present + self._block.more[member]
        return ahead

    def _read(self, rows: list[int]) -> None:
        """Read the amounts of nodes that were not looked at yet, all together."""
        new = [row for row in rows if row not in self._amounts]
        if new:
            self._amounts.update(zip(new, self._table.amounts(np.array(new, dtype=np.int64)), strict=True))

    def _look(self, number: int, row: int, state: bytes) -> None:
        """Look at a state that is new, and at those that may come next; at more of them if all guesses were right the last time."""
        block, wrong = self._block, number < self._known
        block.reach = max(1, block.reach // 2) if wrong else min(FARTHEST, 2 * block.reach)
        self._known = number + 1 + block.reach
        found: dict[bytes, tuple[int, Vector]] = {state: (row, self._amounts[row])}
        for next_one, other, amounts in self._guesses(
            range(number + 1, min(self._known, len(self._members))), row, wrong=wrong
        ):
            guessed = block.state(other, amounts)
            found.setdefault(guessed, (other, amounts))
            if other != row:
                self._foreseen[other] = (self._members[next_one], amounts, guessed)
        rows = np.array([each for each, _ in found.values()], dtype=np.int64)
        block.look(list(found), rows, np.array([amounts for _, amounts in found.values()]))

    def _guesses(self, upcoming: range, row: int, *, wrong: bool) -> Iterator[tuple[int, int, Vector]]:
        """Guess where each of the next members goes and how those nodes are then: as it went the last time, or both ways if the last guess was wrong."""
        packs = self._chosen[-2:] == [row, row]
        if packs or wrong:
            yield from self._packed(upcoming, row)
        if not packs or wrong:
            yield from self._spread(upcoming, row)

    def _packed(self, upcoming: range, row: int) -> Iterator[tuple[int, int, Vector]]:
        """Guess that the next members go to the same node."""
        amounts = self._amounts[row]
        for number in upcoming:
            amounts = amounts + self._block.more[self._members[number]]
            yield number, row, amounts

    def _spread(self, upcoming: range, row: int) -> Iterator[tuple[int, int, Vector]]:
        """Guess that each of the next members goes to a node that none of them has gone to."""
        keys = self._keys
        hidden = [(row, keys[:, row].copy())]
        keys[:, row] = REFUSED
        guesses = []
        for number in upcoming:
            mine = keys[self._places[number]]
            other = int(mine.argmax())
            if mine[other] == REFUSED:
                break
            guesses.append((number, other))
            hidden.append((other, keys[:, other].copy()))
            keys[:, other] = REFUSED
        for other, answers in hidden:
            keys[:, other] = answers
        self._read([other for _, other in guesses])
        for number, other in guesses:
            yield number, other, self._ahead(other, self._members[number])
