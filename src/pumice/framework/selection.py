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
from pumice.framework.foresight import PRECISION, Foresight, rounded

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation, Floats
    from pumice.model.nodes import NodeTable, Rows

# How many steps of each row are looked at first, at the least.
FEWEST = 4
# For so few tasks nodes are drafted one by one, if that can be done: merging sequences costs more before the first is chosen (1.6 times the work on `500x20`).
SMALL = 64


def choose(
    evaluation: Evaluation, table: NodeTable, count: int, *, released: bool, within: Rows | None = None
) -> list[int]:
    """Return the rows for up to `count` equal tasks, at least one, in order; fewer if the nodes are full before.

    With `released`, room that is being released counts as free and the tasks will wait for it. A list shorter than `count` may also mean that
    the next choice has to see the placements first: ask again after applying them.
    """
    if count > 1 and not evaluation.looks_ahead:
        count = 1
    if within is None and 1 < count <= SMALL and (rows := evaluation.drafted(count, released=released)) is not None:
        return rows
    found = evaluation.keys(released=released) if within is None else None
    if found is not None:
        return _from_block(evaluation, table, *found, count)
    mask = evaluation.mask(released=released)
    candidates = evaluation.sampled(np.flatnonzero(mask)) if within is None else within[mask[within]]
    if not len(candidates):
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
    if keys[first] == REFUSED:
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
    """Take the best candidate again and again, each time with one more task on it; ties go to the first by name."""
    size = len(candidates)
    # Key = score, then position: one integer per candidate, larger is better, all different.
    keys = scores * size + np.arange(size - 1, -1, -1)
    # Only the best `count` candidates can be chosen in `count` steps: every step uses a chosen one or the next best.
    top = np.argpartition(keys, size - count)[size - count :] if count < size else np.arange(size)
    rows = candidates[top]
    allowed = np.zeros(table.count, dtype=np.bool_)
    allowed[rows] = True
    steps = max(FEWEST, 2 * count // len(rows))
    foresight = Foresight(evaluation, table, allowed, rows, count, steps=steps, released=released)
    columns = (-keys[top], rows, normalised[top], size - 1 - top)
    heap: list[tuple[int, int, float, int]] = list(zip(*(column.tolist() for column in columns), strict=True))
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap:
        _, row, further, rank = heap[0]
        chosen.append(row)
        if len(chosen) == count:
            break
        points = foresight.take(row)
        if points is not None:
            heapq.heapreplace(heap, (-(round((points + further) * PRECISION) * size + rank), row, further, rank))
            continue
        heapq.heappop(heap)
        if until_exit:
            break  # a node that is full may change what the others score
    return chosen
