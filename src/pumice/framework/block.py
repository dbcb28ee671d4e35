"""A block: what nodes answer about many shapes at once, kept as a matrix of shapes by nodes and patched where nodes changed.

Nothing but Node objects and amounts decides about them, so answers are kept by the state of a node, too: a node that changed is looked up by its state, and only new states are asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import fitting
from pumice.framework.drafting import FARTHEST, REFUSED
from pumice.framework.foresight import PRECISION
from pumice.framework.functions import answers_about_many, points_of
from pumice.framework.subject import together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.framework.functions import Functions
    from pumice.framework.keeper import Keeper
    from pumice.framework.subject import Subject
    from pumice.framework.vectors import Floats, Mask
    from pumice.model.nodes import Nodes, NodeTable, Rows
    from pumice.model.resources import Matrix

EVERY = slice(None)
# How many answers are worked out in one go, so that what numpy makes on the way stays near the processor; and the most that a memo holds.
AT_ONCE = 1 << 15
MEMO_LIMIT = 1 << 18
# Of so many changed nodes each is looked up; of more, everything is asked again.
FEW = 64


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
        # Answers by the state of a node, the state that the answers about a node are for, and what each subject adds to it.
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
        if len(rows) > FEW:
            for some in _pieces(np.array(rows, dtype=np.int64), max(1, AT_ONCE // len(self._subjects))):
                self.keys[:, some] = self._worked_out(EVERY, table.view(some))
            self._states.clear()
        elif rows:
            self._recall(rows)
        self._doubtful = []
        self.position = table.position

    def _recall(self, rows: list[int]) -> None:
        """Answer from what was answered about nodes with the same amounts, asking only about new ones."""
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
        points = points_of(functions.scores_static, member, nodes, bare=True)
        if points is not None:
            total = np.zeros((len(members), len(nodes))) if total is None else total
            total[row] = points
    return total


def _pieces(rows: Rows, size: int) -> Iterator[Rows]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
