"""Blocks of unequal subjects: who is worked out together with whom.

Who looks for one node among thousands pays less for the arithmetic than for calling numpy, so shapes that are expected one after the other are worked out together, by
the forms of filters and scores that take many subjects. A block answers exactly what an `Evaluation` of each subject would; whoever cannot be in one (some
function compares candidates for it, looks at other nodes, or answers about it one subject at a time only) is left to its evaluation.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from pumice.framework.block import Block
from pumice.framework.breakdowns import WrongAnswerError
from pumice.framework.drafting import Draft
from pumice.framework.functions import speaks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.framework.keeper import Keeper
    from pumice.framework.subject import Subject
    from pumice.framework.vectors import Floats
    from pumice.model.nodes import Nodes, NodeTable

# The most that a block and all blocks hold.
BLOCK_LIMIT = 1 << 21
KEPT_LIMIT = 1 << 23
LEAST = KEPT_LIMIT >> 8  # that even a small block counts for, so that there are never many
# How many subjects the first block has, and the most that one has.
FIRST, MOST = 32, 256
# Amounts up to this one are exact in floats, also a hundredfold and added up.
LARGEST = 1 << 45


def _is_small(table: NodeTable) -> bool:
    """Tell whether there are nodes, and no amount of one is too large; what is placed meanwhile has room there, and makes none larger than what it offers."""
    if not table.count:
        return False
    largest = [matrix.max(initial=0) for matrix in (table.allocatable, table.used, table.non_zero, table.pipelined)]
    return bool(max(largest) <= LARGEST)


class Blocks:
    """Finds the block of a subject, and makes it for those that are expected next."""

    __slots__ = (
        "_blocks",
        "_evaluator",
        "_expected",
        "_forgotten",
        "_kept",
        "_order",
        "_places",
        "_ranks",
        "_size",
        "_state",
        "_suits",
    )

    def __init__(self, evaluator: Keeper) -> None:
        self._evaluator = evaluator
        self._blocks: deque[tuple[Block, list[Hashable]]] = deque()
        self._kept = 0
        self._places: dict[Hashable, tuple[Block, int] | None] = {}
        self._expected: dict[Hashable, Subject] = {}
        self._order: list[Hashable] = []
        self._ranks: dict[Hashable, int] = {}
        self._state = (-1, -1, -1)
        self._size = FIRST
        self._forgotten = 0
        self._suits = False

    def clear(self) -> None:
        """Keep nothing."""
        self._blocks.clear()
        self._kept = 0
        self._places.clear()

    def open(self) -> None:
        """Begin a session: nobody is expected yet."""
        evaluator = self._evaluator
        if self._forgotten != evaluator.forgotten:
            self.clear()
            self._forgotten = evaluator.forgotten
        apart = evaluator.functions.tells_subjects_apart
        usual = evaluator.shortcuts.blocks and evaluator.sampler is None and not apart
        self._suits = usual and _is_small(evaluator.table)
        self.expect(())

    def expect(self, subjects: Iterable[Subject]) -> None:
        """Name, in their order, those of whom each will look for a node soon."""
        try:
            self._expected = {self._evaluator.key(subject): subject for subject in subjects} if self._suits else {}
        except Exception as error:  # noqa: BLE001  as in `_found`
            self.give_up(error)
        self._order = list(self._expected)
        self._ranks = {key: rank for rank, key in enumerate(self._order)}
        self._size = FIRST

    def row(self, key: Hashable, subject: Subject) -> tuple[Floats, int] | None:
        """Return what all nodes answer about a subject now, and which is the best; None if it is in no block: then its evaluation has to be asked."""
        place = self._found(key, subject)
        if place is None:
            return None
        block, position = place
        row: Floats = block.keys[position]
        best = int(row.argmax())
        # A number that is none, or has no end, would be the best.
        if row[best] < math.inf:
            return row, best
        self.give_up(WrongAnswerError(f"the score of node {self._evaluator.table.records[best].name} is {row[best]}"))
        return None

    def rows(self, key: Hashable, subject: Subject, count: int) -> list[int] | None:
        """Return rows for so many equal subjects, fewer if nodes are full before; None as above."""
        place = self._found(key, subject)
        if place is None:
            return None
        block, position = place
        try:
            return Draft(block, self._evaluator.table, [position] * count).rows()
        except Exception as error:  # noqa: BLE001  as below
            self.give_up(error)
            return None

    def _found(self, key: Hashable, subject: Subject) -> tuple[Block, int] | None:
        """Find the block of a subject and its position there, up to date; None if it is in none."""
        if key not in self._expected or not self._is_current():
            return None
        try:
            place = None if self._looks_around(subject) else self._place(key)
            if place is None:
                return None
            place[0].catch_up()
        except Exception as error:  # noqa: BLE001  whatever a plugin raises is raised again, and put on it, where the subject is asked about alone
            self.give_up(error)
            return None
        place[0].used.add(place[1])
        return place

    def draft(self, subjects: Iterable[Subject]) -> tuple[list[int], list[Subject]]:
        """Return rows for the first of some subjects, in order, as if each were placed before the next looks for a node, and one of each kind of equal subjects among them.

        Where that cannot be told of a subject, rows are for those before it.
        """
        if not self._is_current():
            return [], []
        try:
            block, members, alike = self._members(subjects)
            if block is None:
                return [], []
            block.catch_up()
            block.used.update(members)
            return Draft(block, self._evaluator.table, members).rows(), alike
        except Exception as error:  # noqa: BLE001  as above
            self.give_up(error)
            return [], []

    def _members(self, subjects: Iterable[Subject]) -> tuple[Block | None, list[int], list[Subject]]:
        """Find the first of some subjects in one block, as long as they are, and one of each kind among them."""
        block: Block | None = None
        members: list[int] = []
        alone: dict[Hashable, Subject] = {}
        for subject in subjects:
            key = self._evaluator.key(subject)
            if key not in alone:
                if key not in self._expected or self._looks_around(subject):
                    break
                alone[key] = subject
            # A block for the next ones is made when those before them have been placed.
            place = self._place(key) if block is None else self._places.get(key)
            if place is None or (block is not None and place[0] is not block):
                break
            block = place[0]
            members.append(place[1])
        return block, members, list(alone.values())

    def stand_alone(self, subjects: Iterable[Subject]) -> bool:
        """Tell whether nobody who looks at other nodes has anything to say about subjects, as when nodes were drafted for them."""
        return self._is_current() and not any(map(self._looks_around, subjects))

    def _looks_around(self, subject: Subject) -> bool:
        """Tell whether somebody who looks at other nodes has anything to say about a subject, and so about its equals."""
        return speaks(self._evaluator.functions.looking_around, subject, self._evaluator.table.view())

    def _is_current(self) -> bool:
        """Tell whether blocks may be used, dropping those that are out of date."""
        if self._forgotten != self._evaluator.forgotten:
            return False
        table = self._evaluator.table
        state = (table.structure, table.static, table.claims)
        if state != self._state:
            self.clear()
            self._state = state
        return True

    def give_up(self, error: Exception) -> None:
        """Make no blocks any more in this session."""
        self._evaluator.observer.retreated("blocks", error)
        self.clear()
        self._suits, self._expected = False, {}

    def _place(self, key: Hashable) -> tuple[Block, int] | None:
        """Find the block of a subject, made now with those that come after it if there is none."""
        if key not in self._places:
            self._adapt()
            suitable: dict[Hashable, Subject] = {}
            nodes = self._evaluator.table.view()
            for other in self._order[self._ranks[key] :]:
                if other in self._places:
                    continue
                if self._is_suitable(self._expected[other], nodes):
                    suitable[other] = self._expected[other]
                else:
                    self._places[other] = None
                if len(suitable) >= self._size or key not in suitable:
                    break
            self._make(suitable)
        return self._places[key]

    def _adapt(self) -> None:
        """Make the next block larger if the last one was of use, smaller if it was not."""
        if self._blocks:
            last, _ = self._blocks[-1]
            self._size = self._size * 2 if 2 * len(last.used) >= len(last.keys) else max(2, self._size // 2)
        self._size = min(self._size, MOST, max(2, BLOCK_LIMIT // max(1, self._evaluator.table.count)))

    def _make(self, members: dict[Hashable, Subject]) -> None:
        """Make a block, and let go of the oldest if all together become too large."""
        if not members:
            return
        block = Block(self._evaluator, list(members.values()))
        self._blocks.append((block, list(members)))
        self._kept += max(LEAST, block.keys.size)
        self._places.update((key, (block, position)) for position, key in enumerate(members))
        while len(self._blocks) > 1 and self._kept > KEPT_LIMIT:
            gone, keys = self._blocks.popleft()
            self._kept -= max(LEAST, gone.keys.size)
            for key in keys:
                del self._places[key]

    def _is_suitable(self, subject: Subject, nodes: Nodes) -> bool:
        """Tell whether a subject can be in a block: nobody compares candidates for it, and whoever reads amounts or tasks reads amounts alone and can be asked about many."""
        if subject.request.unoffered or max(subject.request.amounts.values(), default=0) > LARGEST:
            return False
        return not speaks(self._evaluator.functions.asked_alone, subject, nodes)
