"""Whom the protections of queues are known to keep: what one pod is told holds for every pod of its queue and its shape.

Without this a queue that holds no more than its due would be found out node by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.resources import Matrix
    from pumice.model.task import Task


class QueueProtections:
    """The groups of pods (of one queue and one shape) that were found protected, for the claimants of one queue."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._sums = session.cluster.queue_sums
        self._queues = session.cluster.queues
        self._name = rules.name
        # A protection that reads no more than the queue knows of a pod only its queue, and what queues hold, and its shape.
        self._functions = [r.function for r in session.protection if r.reads == Reads.QUEUE]
        self._is_flat = all(queue.parent in {"", "root"} for queue in self._queues.values())
        self._groups: dict[tuple[str, int], int] = {}
        self._members: list[Task] = []
        self._by_queue: dict[str, list[int]] = {}
        self._sets: dict[tuple[int, ...], int] = {}
        self._closed: dict[int, None] = {}
        self._held: Matrix | None = None
        self._flags: Mask | None = None

    def group(self, queue: str, task: Task) -> int:
        """Return the number of a pod's group."""
        key = (queue, task.shape.serial)
        number = self._groups.get(key)
        if number is None:
            number = self._groups[key] = len(self._groups)
            self._members.append(task)
            self._by_queue.setdefault(queue, []).append(number)
        return number

    def number(self, groups: tuple[int, ...]) -> int:
        """Return the number of a set of groups, such as those of a job."""
        return self._sets.setdefault(groups, len(self._sets))

    def kept(self) -> Mask | None:
        """Mark the sets of groups all of which are protected; None if there are none."""
        if not self._closed:
            return None
        if self._flags is None or len(self._flags) < len(self._sets):
            self._flags = np.array([all(g in self._closed for g in groups) for groups in self._sets], dtype=np.bool_)
        return self._flags

    def look_again(self, claimant: Task) -> None:
        """Forget whoever may no longer be protected: what queues hold has only become less, or each group is asked again."""
        if not self._closed or self._has_only_shrunk(claimant):
            return
        for group in [g for g in self._closed if not self._is_protected(claimant, self._members[g])]:
            del self._closed[group]
            self._flags = None
        self._held = self._sums.allocated + self._sums.pipelined

    def _has_only_shrunk(self, claimant: Task) -> bool:
        held = self._sums.allocated + self._sums.pipelined
        if self._held is None or self._held.shape != held.shape:
            return False
        grown: Mask = np.logical_or.reduce(held > self._held, axis=1)
        own = self._queues.get(claimant.job.queue) if claimant.job is not None else None
        if own is not None and self._is_flat:
            grown[own.row] = False
        return not grown.any()

    def learn(self, claimant: Task, tasks: Iterable[Task]) -> bool:
        """Find out whether queues protect some pods, and whom else of theirs; tell whether that is news."""
        before = len(self._closed)
        for task in tasks if self._functions else ():
            queue = task.job.queue if task.job is not None else ""
            group = self._groups.get((queue, task.shape.serial))
            if group is not None and group not in self._closed and self._is_protected(claimant, task):
                others = [g for g in self._by_queue[queue] if g not in self._closed]
                self._closed.update(dict.fromkeys(g for g in others if self._is_protected(claimant, self._members[g])))
        if len(self._closed) > before:
            self._flags = None
            self._held = self._sums.allocated + self._sums.pipelined
        return len(self._closed) > before

    def _is_protected(self, claimant: Task, task: Task) -> bool:
        return any(function(claimant, task, self._name) is not None for function in self._functions)
