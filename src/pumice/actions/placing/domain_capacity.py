"""How many members each hyper-node can hold, found for all of them at once before any is tried.

For pods of one shape the count is exact, as far as filters do not depend on what is placed meanwhile; otherwise it is never too low: so many of each kind as there is room for if it were alone, but
no more together than the smallest of them could be by what is free in sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import foresight, subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNodeTree
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class Copies:
    """How many copies of one task each node, and each hyper-node, has room for; follows the rows that change."""

    __slots__ = ("_nodes", "_position", "sums")

    def __init__(self) -> None:
        self._position = -1
        self._nodes: Vector = np.zeros(0, dtype=np.int64)
        self.sums: Vector = self._nodes

    def refresh(self, session: Session, tree: HyperNodeTree, evaluation: Evaluation, *, released: bool) -> Vector:
        """Bring the counts of hyper-nodes up to date and return them."""
        table = session.cluster.nodes
        mask = evaluation.possible(released=released)
        if self._position == table.position:
            return self.sums
        rows = table.changed_since(self._position) if self._position >= 0 else None
        self._position = table.position
        if rows is None or 4 * len(rows) > table.count:
            self._nodes = np.where(mask, self._room(session, evaluation, table.rows, released=released), 0)
            self.sums = tree.sums(self._nodes)
        elif len(rows):
            now = np.where(mask[rows], self._room(session, evaluation, rows, released=released), 0)
            owners, counts = tree.owners(rows)
            np.add.at(self.sums, owners, np.repeat(now - self._nodes[rows], counts))
            self._nodes[rows] = now
        return self.sums

    @staticmethod
    def _room(session: Session, evaluation: Evaluation, rows: Rows, *, released: bool) -> Vector:
        return foresight.capacity(
            session.cluster.nodes, rows, evaluation.subject.shape, foresight.TABLE_LIMIT, released=released
        )


class Kept:
    """The counts of one session, by evaluation; the evaluation is kept too, so that its identity stays its own."""

    __slots__ = ("_copies",)

    def __init__(self) -> None:
        self._copies: dict[tuple[int, int, bool], tuple[Evaluation, HyperNodeTree, Copies]] = {}

    def of(self, evaluation: Evaluation, tree: HyperNodeTree, *, released: bool) -> Copies:
        """Return the counts of an evaluation over a tree, starting them if they are new."""
        return self._copies.setdefault((id(evaluation), id(tree), released), (evaluation, tree, Copies()))[2]


class DomainCapacity:
    """What the hyper-nodes can hold of some tasks."""

    __slots__ = ("_kinds", "_queue", "_session", "_tasks", "_tree")

    def __init__(self, session: Session, queue: Queue, job: Job, tasks: Sequence[Task]) -> None:
        self._session = session
        self._tree = session.topology.tree_of(job)
        self._queue = queue
        self._tasks = tasks
        self._kinds: list[list[Task]] | None = None

    def _by_kind(self) -> list[list[Task]]:
        if self._kinds is None:
            kinds: dict[Hashable, list[Task]] = {}
            for task in self._tasks:
                kinds.setdefault(task.likeness, []).append(task)
            self._kinds = list(kinds.values())
        return self._kinds

    def counts(self, *, released: bool) -> Vector:
        """Return how many of the tasks each hyper-node can hold, on free room or on what will be free."""
        total = np.zeros(len(self._tree.domains), dtype=np.int64)
        kinds = self._by_kind()
        for kind in kinds:
            total += np.minimum(self._copies(kind[0], released=released), len(kind))
        if len(kinds) == 1 or not self._session.shortcuts.domain_sums:
            return total
        return np.minimum(total, self._together(released=released))

    def _together(self, *, released: bool) -> Vector:
        """Return how many of the tasks, the smallest first in each resource, each hyper-node can hold by what is free in sum."""
        table, tree = self._session.cluster.nodes, self._tree
        free = table.idle_at(slice(table.count))
        later = table.after_release(free, slice(table.count))
        room = tree.sums(np.maximum(later if released else np.minimum(free, later), 0))
        asked = np.sort(np.array([task.shape.request.vector for task in self._tasks]), axis=0)
        most: Vector = np.full(len(tree.domains), len(self._tasks), dtype=np.int64)
        for column in np.flatnonzero(asked[-1]).tolist():
            most = np.minimum(most, np.searchsorted(asked[:, column].cumsum(), room[:, column], side="right"))
        return most

    def _copies(self, task: Task, *, released: bool) -> Vector:
        """Return how many copies of one task each hyper-node can hold."""
        evaluation = self._session.evaluate(subject.Subject(task, self._queue))
        evaluation.mask(released=released)
        if evaluation.minds_others(released=released):
            return Copies().refresh(self._session, self._tree, evaluation, released=released)
        kept = _kept(self._session, self._tree, evaluation, released=released)
        return kept.refresh(self._session, self._tree, evaluation, released=released)


def _kept(session: Session, tree: HyperNodeTree, evaluation: Evaluation, *, released: bool) -> Copies:
    """Return the counts that this session keeps for an evaluation."""
    kept = session.scratch.get("copies")
    if not isinstance(kept, Kept):
        kept = session.scratch["copies"] = Kept()
    return kept.of(evaluation, tree, released=released)
