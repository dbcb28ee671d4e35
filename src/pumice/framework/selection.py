"""Choosing nodes for a run of equal tasks, exactly as if they were placed one after another.

Greedy choice takes, for each task, the node with the highest score, ties going to the first name. Scores that read only a node's own amounts can be
computed ahead: what each node would score with one, two, three more of these tasks on it. A heap then merges these sequences, so
that a gang of thousands costs a few numpy calls. Where a placement changes what other nodes answer, tasks are chosen one by one.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.framework import walking
from pumice.framework.drafting import REFUSED
from pumice.framework.foresight import capacity, rounded

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation, Floats
    from pumice.model.nodes import NodeTable, Rows

# How many steps of each row are worked out at the least.
FEWEST = 4
# For so few tasks nodes are drafted one by one, if that can be done: merging sequences costs more before the first is chosen (1.6 times the work on `500x20`).
SMALL = 64
ENDLESS = np.iinfo(np.int64).max


def choose(
    evaluation: Evaluation, table: NodeTable, count: int, *, released: bool, within: Rows | None = None
) -> list[int]:
    """Return the rows for up to `count` equal tasks, in order; fewer if the nodes are full before.

    With `released`, room that is being released counts as free and the tasks will wait for it. A list shorter than `count` may also mean that
    the next choice has to see the placements first: ask again after applying them.
    """
    if count > 1 and not evaluation.looks_ahead:
        count = 1
    if within is None and 1 < count <= SMALL and (rows := evaluation.drafted(count, released=released)) is not None:
        return rows
    found = evaluation.keys(count, released=released) if within is None else None
    if found is not None:
        return _from_block(evaluation, table, *found, count)
    mask = evaluation.mask(released=released)
    candidates = evaluation.sampled(np.flatnonzero(mask)) if within is None else within[mask[within]]
    if not len(candidates) or count <= 0:
        return []
    evaluation.refresh_scores()
    if count == 1:
        return [best(evaluation, candidates)]
    if evaluation.is_blind(released=released):
        followers = evaluation.followers(released=released)
        if followers is None:
            return [best(evaluation, candidates)]
        return walking.walk(evaluation, table, followers, count, released=released, within=within)
    normalised = evaluation.normalised(candidates)
    scores = rounded(evaluation.plain[candidates] + normalised)
    compares = evaluation.compares(candidates)
    return _run(evaluation, table, candidates, scores, normalised, count=count, released=released, until_exit=compares)


def _from_block(evaluation: Evaluation, table: NodeTable, keys: Floats, first: int, count: int) -> list[int]:
    """Choose by scores that were worked out together with those of others: no function compares candidates or looks at other nodes."""
    if keys[first] == REFUSED or count <= 0:
        return []
    if count == 1:
        return [first]
    candidates = np.flatnonzero(keys != REFUSED)
    scores = keys[candidates].astype(np.int64)
    normalised = np.zeros(len(candidates))
    return _run(evaluation, table, candidates, scores, normalised, count=count, released=False, until_exit=False)


def best(evaluation: Evaluation, candidates: Rows) -> int:
    """Return the candidate with the highest score, the first by name among equals."""
    scores = rounded(evaluation.plain[candidates] + evaluation.normalised(candidates))
    return int(candidates[int(scores.argmax())])


def _run(
    evaluation: Evaluation,
    table: NodeTable,
    candidates: Rows,
    scores: npt.NDArray[np.int64],
    normalised: Floats,
    *,
    count: int,
    released: bool,
    until_exit: bool,
) -> list[int]:
    """Merge the sequences of scores of the best candidates."""
    size = len(candidates)
    # Key = score, then position: one integer per candidate, larger is better, all different.
    keys = scores * size + np.arange(size - 1, -1, -1)
    if count < size:
        # Only the best `count` candidates can be chosen in `count` steps: every step uses a chosen one or the next best.
        top = np.argpartition(keys, size - count)[size - count :]
        top.sort()
    else:
        top = np.arange(size)
    rows = candidates[top]
    steps = Steps(evaluation, table, rows, normalised[top], count, released=released)
    ranks: list[int] = (size - 1 - top).tolist()
    names: list[int] = rows.tolist()
    # A node that is full may change what the others score.
    return [names[i] for i in _merge(steps, ranks, count, until_exit=until_exit)]


class Steps:
    """What each of some rows scores with 0, 1, 2 … more tasks on it, in whole thousandths, worked out a few steps beyond what is looked at."""

    __slots__ = ("_evaluation", "_normalised", "_released", "_room", "_rows", "scores")

    def __init__(
        self, evaluation: Evaluation, table: NodeTable, rows: Rows, normalised: Floats, count: int, *, released: bool
    ) -> None:
        self._evaluation = evaluation
        self._rows = rows
        self._normalised = normalised
        self._released = released
        self._room = capacity(table, rows, evaluation.subject.shape, count, released=released)
        self.scores: list[list[int]] = [[] for _ in rows]
        self._work_out(np.arange(len(rows)), 0, max(FEWEST, 2 * count // len(rows)))

    def reaches(self, i: int, step: int) -> bool:
        """Tell whether a row takes so many tasks and one more; its score is then known."""
        known = len(self.scores[i])
        if step >= known and known < self._room[i]:
            self._work_out(np.array([i]), known, 2 * known)
        return step < len(self.scores[i])

    def _work_out(self, which: Rows, start: int, end: int) -> None:
        """Work the scores of some rows out from one step to another, as far as they have room and no filter that reads amounts says no."""
        length = np.minimum(self._room[which] - start, end - start)
        ends = np.cumsum(length)
        repeated = np.repeat(self._rows[which], length)
        steps = np.arange(start, start + len(repeated)) - np.repeat(ends - length, length)
        points, passed = self._evaluation.foreseen(repeated, steps, released=self._released)
        scores: list[int] = rounded(points + np.repeat(self._normalised[which], length)).tolist()
        if passed is not None and not passed.all():
            # A row ends where such a filter first says no.
            first = np.minimum.reduceat(np.append(np.where(passed, ENDLESS, steps), ENDLESS), ends - length)
            self._room[which] = np.minimum(self._room[which], np.where(length > 0, first, self._room[which]))
        last = np.minimum(self._room[which] - start, length).tolist()
        for i, begin, taken in zip(which.tolist(), (ends - length).tolist(), last, strict=True):
            self.scores[i] += scores[begin : begin + taken]


def _merge(steps: Steps, ranks: list[int], count: int, *, until_exit: bool) -> list[int]:
    """Take the best next step `count` times and return whose it was; ties go to the higher rank. It may end early, when one has no step left."""
    size = max(ranks, default=0) + 1
    scores = steps.scores
    nexts = [0] * len(ranks)
    heap = [(-(known[0] * size + rank), i) for i, (known, rank) in enumerate(zip(scores, ranks, strict=True)) if known]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        _, i = heap[0]
        chosen.append(i)
        nexts[i] = step = nexts[i] + 1
        if step < len(scores[i]) or steps.reaches(i, step):
            heapq.heapreplace(heap, (-(scores[i][step] * size + ranks[i]), i))
        else:
            heapq.heappop(heap)
            if until_exit:
                break
    return chosen
