"""Blocks of unequal subjects: what nodes answer about many shapes at once, kept as a matrix of shapes by nodes and patched where nodes changed.

Who looks for one node among thousands pays less for the arithmetic than for calling numpy, so shapes that are expected one after the other are worked out together, by
the forms of filters and scores that take many subjects. A block answers exactly what an `Evaluation` of each subject would; whoever cannot be in one (some
function compares candidates for it, looks at other nodes, or answers about it one subject at a time only) is left to its evaluation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import fitting
from pumice.framework.breakdowns import WrongAnswerError
from pumice.framework.drafting import FARTHEST, REFUSED, Draft
from pumice.framework.foresight import PRECISION
from pumice.framework.functions import answers, answers_about_many, speaks
from pumice.framework.subject import together

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from pumice.framework.functions import Functions
    from pumice.framework.keeper import Keeper
    from pumice.framework.subject import Subject
    from pumice.framework.vectors import Floats, Mask
    from pumice.model.nodes import Nodes, NodeTable, Rows
    from pumice.model.resources import Matrix

EVERY = slice(None)
# How many answers are worked out in one go, so that what numpy makes on the way stays near the processor; and the most that a block, all blocks and a memo hold.
AT_ONCE = 1 << 15
BLOCK_LIMIT = 1 << 21
KEPT_LIMIT = 1 << 23
MEMO_LIMIT = 1 << 18
# How many subjects the first block has, and the most that one has.
FIRST, MOST = 32, 256
# Of so many changed nodes each is looked up; of more, everything is asked again.
FEW = 64
# Amounts up to this one are exact in floats, also a hundredfold and added up.
LARGEST = 1 << 45


class Block:
    """What all nodes answer about some subjects: scores in whole thousandths, minus infinity where a node does not take the subject."""

    __slots__ = (
        "_allowed",
        "_doubtful",
        "_functions",
        "_observer",
        "_points",
        "_states",
        "_statics",
        "_subjects",
        "_table",
        "by_amounts",
        "keys",
        "known",
        "more",
        "position",
        "reach",
        "used",
    )

    def __init__(self, evaluator: Keeper, members: Sequence[Subject]) -> None:
        self._functions = evaluator.functions
        self._observer = evaluator.observer
        self._table = evaluator.table
        self._subjects = together(members, self._table.vocabulary, small=True)
        self._allowed = _alike([evaluator.static_mask(member, bare=True) for member in members])
        self._points = _static_points(self._functions, members, self._table)
        self._statics = [each for each in (self._allowed, self._points) if each is not None]
        # Where nothing but amounts decides: answers by the state of a node, the state that the answers about a node are for, and what each subject adds to it.
        self.by_amounts = self._functions.many_by_amounts
        self.known: dict[bytes, Floats] = {}
        self._states: dict[int, bytes] = {}
        self.more = self._table.more(self._subjects.requests, self._subjects.non_zero)
        # Nodes whose answers are for what a draft has put on them.
        self._doubtful: list[int] = []
        self.reach = FARTHEST  # how many states drafts guess
        self.used: set[int] = set()
        self.position = -1
        self.keys: Floats = np.empty((len(members), self._table.count))
        self._work_out()

    def _work_out(self) -> None:
        """Ask about all nodes, some subjects at a time."""
        nodes = self._table.view()
        step = max(1, AT_ONCE // max(1, len(nodes)))
        for start in range(0, len(self._subjects), step):
            some = slice(start, start + step)
            self._worked_out(some, nodes, self.keys[some])
        self._doubtful, self._states = [], {}
        self.position = self._table.position

    def catch_up(self) -> None:
        """Bring the answers up to date with the nodes that changed."""
        table = self._table
        if self.position == table.position and not self._doubtful:
            return
        rows = table.rows_since(self.position)
        if rows is None or 2 * len(rows) > table.count:
            self._work_out()
            return
        if self._doubtful:
            rows = sorted({*rows, *self._doubtful})
        if not self.by_amounts or len(rows) > FEW:
            for some in _pieces(np.array(rows, dtype=np.int64), max(1, AT_ONCE // len(self._subjects))):
                self.keys[:, some] = self._worked_out(EVERY, table.view(some))
            self._states.clear()
        elif rows:
            self._recall(rows)
        self._doubtful = []
        self.position = table.position

    def _recall(self, rows: list[int]) -> None:
        """Answer from what was answered about nodes with the same amounts, asking only about new ones."""
        if len(rows) == 1:
            self._recall_one(rows[0])
            return
        amounts = self._table.amounts(np.array(rows))
        new: dict[bytes, int] = {}
        changed: dict[int, bytes] = {}
        for place, row in enumerate(rows):
            state = self.state(row, amounts[place])
            if self._states.get(row) != state:
                changed[row] = state
                if state not in self.known:
                    new.setdefault(state, place)
        # Looking may forget what was known before.
        recalled = {state: self.known[state] for state in changed.values() if state in self.known}
        if new:
            places = list(new.values())
            self.look(list(new), np.array([rows[place] for place in places]), amounts[places])
        for row, state in changed.items():
            self.keys[:, row] = recalled[state] if state in recalled else self.known[state]
        self._states.update(changed)

    def _recall_one(self, row: int) -> None:
        """Answer about one node: after most placements no other has changed."""
        amounts = self._table.amounts(row)
        state = self.state(row, amounts)
        if self._states.get(row) == state:
            return
        answers = self.known.get(state)
        if answers is None:
            self.look([state], np.array([row]), amounts[None, :])
            answers = self.known[state]
        self.keys[:, row] = answers
        self._states[row] = state

    def state(self, row: int, amounts: Matrix) -> bytes:
        """Return what answers about a node follow from: its amounts, and what its object alone decides."""
        state = amounts.tobytes()
        for static in self._statics:
            state += static[:, row].tobytes()
        return state

    def look(self, states: Sequence[bytes], rows: Rows, amounts: Matrix) -> None:
        """Ask about nodes in states that are new, whether they are in them or might come to be."""
        if len(self.known) * len(self._subjects) > MEMO_LIMIT:
            self.known.clear()
        answers = self._worked_out(EVERY, self._table.imagined(rows, amounts))
        self.known.update(zip(states, answers.T, strict=True))

    def doubt(self, row: int) -> None:
        """Look at a node again when the answers are brought up to date: a draft put something on it."""
        self._doubtful.append(row)
        self._states.pop(row, None)

    def _worked_out(self, some: slice, nodes: Nodes, out: Floats | None = None) -> Floats:
        """Ask everything about some of the subjects and some nodes."""
        subjects = self._subjects if some == EVERY else self._subjects.some(some)
        mark = self._observer.mark()
        passed = fitting.room_for_many(subjects, nodes)
        for answer in answers_about_many(self._functions.filters_local, subjects, nodes, "iu"):
            passed &= answer == 0
        if self._allowed is not None:
            passed &= self._allowed[:, nodes.index] if len(self._allowed) == 1 else self._allowed[some][:, nodes.index]
        self._observer.spent("predicate", "", mark)
        mark = self._observer.mark()
        total = _sum([*answers_about_many(self._functions.scores, subjects, nodes, "fiu")], passed.shape)
        if self._points is not None:
            total += self._points[some][:, nodes.index]
        total *= PRECISION
        keys: Floats = np.rint(total, out=total if out is None else out)
        if not passed.all():
            np.copyto(keys, REFUSED, where=np.logical_not(passed, out=passed))
        self._observer.spent("scoring", "", mark)
        return keys


def _sum(answers: Sequence[Floats], shape: tuple[int, ...]) -> Floats:
    """Add answers up, from the first to the last, in an array of its own."""
    if len(answers) < 2 or answers[0].shape != shape or answers[0].dtype != np.float64:
        answers = [np.zeros(shape), *answers]
    total: Floats = answers[0] + answers[1] if len(answers) > 1 else answers[0]
    for answer in answers[2:]:
        total += answer
    return total


def _alike(verdicts: Sequence[Mask]) -> Mask | None:
    """Return one row if it is the same for all, None if no node is ruled out."""
    first = verdicts[0]
    if all(verdict is first for verdict in verdicts):
        return None if first.all() else first[None, :]
    return np.array(verdicts)


def _static_points(functions: Functions, members: Sequence[Subject], table: NodeTable) -> Floats | None:
    """Return the scores that only Node objects decide, None if there are none."""
    nodes = table.view()
    total: Floats | None = None
    for row, member in enumerate(members):
        points = None
        for _, answer in answers(functions.scores_static, member, nodes, bare=True):
            points = answer if points is None else points + answer
        if points is not None:
            total = np.zeros((len(members), len(nodes))) if total is None else total
            total[row] = points
    return total


def _is_small(table: NodeTable) -> bool:
    """Tell whether there are nodes, and no amount of one is too large; what is placed meanwhile has room there, and makes none larger than what it offers."""
    if not table.count:
        return False
    largest = [matrix.max(initial=0) for matrix in (table.allocatable, table.used, table.non_zero, table.pipelined)]
    return bool(max(largest) <= LARGEST)


def _pieces(rows: Rows, size: int) -> Iterator[Rows]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


class Blocks:
    """Finds the block of a subject, and makes it for those that are expected next."""

    __slots__ = (
        "_blocks",
        "_evaluator",
        "_expected",
        "_forgotten",
        "_order",
        "_places",
        "_ranks",
        "_size",
        "_state",
        "_suits",
    )

    def __init__(self, evaluator: Keeper) -> None:
        self._evaluator = evaluator
        self._blocks: list[Block] = []
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
        """Return rows for so many equal subjects, fewer if nodes are full before; None as above, or if more than amounts decides."""
        place = self._found(key, subject) if self._evaluator.functions.many_by_amounts else None
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
            if block is None or not block.by_amounts:
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
            last = self._blocks[-1]
            self._size = self._size * 2 if 2 * len(last.used) >= len(last.keys) else max(2, self._size // 2)
        self._size = min(self._size, MOST, max(2, BLOCK_LIMIT // max(1, self._evaluator.table.count)))

    def _make(self, members: dict[Hashable, Subject]) -> None:
        """Make a block, and let go of the oldest if all together become too large."""
        if not members:
            return
        block = Block(self._evaluator, list(members.values()))
        self._blocks.append(block)
        self._places.update((key, (block, position)) for position, key in enumerate(members))
        while len(self._blocks) > 1 and sum(each.keys.size for each in self._blocks) > KEPT_LIMIT:
            gone = self._blocks.pop(0)
            self._places = {key: place for key, place in self._places.items() if place is None or place[0] is not gone}

    def _is_suitable(self, subject: Subject, nodes: Nodes) -> bool:
        """Tell whether a subject can be in a block: nobody compares candidates for it, and whoever reads amounts or tasks can be asked about many."""
        if subject.request.unoffered or max(subject.request.amounts.values(), default=0) > LARGEST:
            return False
        return not speaks(self._evaluator.functions.asked_alone, subject, nodes)
