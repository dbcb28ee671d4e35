"""Choosing nodes for a run of equal tasks, exactly as if they were placed one after another.

Greedy choice takes, for each task, the node with the highest score, ties going to the first name. Scores that read only a node's own amounts can be
computed ahead: what each node would score with one, two, three more of these tasks on it. A heap then merges these sequences, so
that a gang of thousands costs a few numpy calls. Where a placement changes what other nodes answer, tasks are chosen one by one.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.framework import walking
from pumice.framework.blocks import REFUSED
from pumice.framework.foresight import TABLE_LIMIT, capacity, rounded

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation, Floats
    from pumice.model.nodes import NodeTable, Rows


def choose(
    evaluation: Evaluation, table: NodeTable, count: int, *, released: bool, within: Rows | None = None
) -> list[int]:
    """Return the rows for up to `count` equal tasks, in order; fewer if the nodes are full before.

    With `released`, room that is being released counts as free and the tasks will wait for it. A list shorter than `count` may also mean that
    the next choice has to see the placements first: ask again after applying them.
    """
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
    if evaluation.is_stepwise(released=released):
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
    depth = max(1, TABLE_LIMIT // len(rows))
    room = capacity(table, rows, evaluation.subject.shape, count, released=released)
    cut = room > depth
    ahead, room = _ahead(evaluation, table, rows, np.minimum(room, depth), normalised[top], released=released)
    # A node that is full may change what the others score; of one that was cut short it is not known what comes next.
    ends = np.ones(len(rows), dtype=np.bool_) if until_exit else cut
    ranks: list[int] = (size - 1 - top).tolist()
    names: list[int] = rows.tolist()
    return [names[i] for i in _merge(ahead, room.tolist(), ranks, ends.tolist(), count)]


def _ahead(
    evaluation: Evaluation,
    table: NodeTable,
    rows: Rows,
    room: npt.NDArray[np.int64],
    normalised: Floats,
    *,
    released: bool,
) -> tuple[list[int], npt.NDArray[np.int64]]:
    """Return the rounded scores of each row with 0, 1, 2 … more tasks on it, row after row, and how many steps each row has."""
    starts = np.cumsum(room) - room
    repeated = np.repeat(rows, room)
    steps = np.arange(len(repeated)) - np.repeat(starts, room)
    nodes = table.ahead(repeated, steps, evaluation.subject.shape, waiting=released)
    passed = evaluation.passes_ahead(nodes)
    # Scores are always those of the nodes as they are, also where the tasks will wait for release.
    nodes.released = False
    scores = rounded(evaluation.plain_scores(nodes) + np.repeat(normalised, room))
    if passed is not None and not passed.all():
        # A row ends where a filter that reads amounts first says no.
        first = np.minimum.reduceat(np.where(passed, np.iinfo(np.int64).max, steps), starts)
        shorter = np.minimum(room, first)
        scores = scores[steps < np.repeat(shorter, room)]
        room = shorter
    return scores.tolist(), room


def _merge(ahead: list[int], limits: list[int], ranks: list[int], stops: list[bool], count: int) -> list[int]:
    """Take the best next step `count` times and return whose it was; ties go to the higher rank.

    `ahead` holds the scores of the first one's steps, then the second one's, as many each as its limit. It ends early when one that `stops` has no step left.
    """
    size = max(ranks, default=0) + 1
    nexts = [0, *itertools.accumulate(limits)][:-1]
    ends = list(itertools.accumulate(limits))
    heap = [(-(ahead[nexts[i]] * size + ranks[i]), i) for i in range(len(limits)) if limits[i]]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        _, i = heap[0]
        chosen.append(i)
        nexts[i] += 1
        if nexts[i] < ends[i]:
            heapq.heapreplace(heap, (-(ahead[nexts[i]] * size + ranks[i]), i))
        else:
            heapq.heappop(heap)
            if stops[i]:
                break
    return chosen
