"""Locks of nodes: while the device plugin of a node serves pods that were bound to it, nobody else is bound there who asks for its cards.

A lock is written before the binds of pods that leave together, and the device plugin takes it off; one that nobody takes off ends after five minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.framework.reasons import Code
from pumice.framework.runs import Step
from pumice.model import preparations
from pumice.model.preparations import NodeLock
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.task import Task

LOCKED: Final = "node(s) were locked while their device plugin serves another pod"


class Locks:
    """Which nodes are locked: by their annotation, or by pods that are on their way."""

    def __init__(self, plugin: str, annotation: str, asks: Callable[[Task], bool]) -> None:
        self._plugin = plugin
        self._annotation = annotation
        self._asks = asks
        self._written: dict[str, str] = {}  # node -> its lock
        self._coming: dict[str, dict[str, Task]] = {}  # node -> pods that will lock it, or have

    def open(self, session: Session) -> None:
        """Register the filter, and follow who is placed."""
        self._session = session
        self._reason = session.reason(self._plugin, Code.UNSCHEDULABLE, LOCKED)
        self._written, self._coming = {}, {}
        for record in session.cluster.nodes.records:
            text = record.object.metadata.annotations.get(self._annotation) if record.object is not None else None
            if text and preparations.is_locked(text, session.started):
                self._written[record.name] = text
                session.wake_at(preparations.lock_ends(text) or session.started)
        for uid, wanted in session.cluster.with_bind.preparations.items():
            task = session.cluster.tasks.get(uid)
            for each in wanted:
                if isinstance(each, NodeLock) and each.annotation == self._annotation and task is not None:
                    self._coming.setdefault(each.node, {})[uid] = task
        session.predicate.add(self.is_free, details=self.detail)
        session.add_handler(self.follow)

    def is_free(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that are locked to whoever asks for cards."""
        if not self._asks(subject.task) or not (self._written or self._coming):
            return None
        records = nodes.table.records
        locked = [bool(self._lock(subject.task, records[row])) for row in nodes.index.tolist()]
        return np.where(locked, self._reason, 0).astype(np.int16)

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say by what a node is locked."""
        return self._lock(subject.task, node) or LOCKED

    def _lock(self, task: Task, node: NodeRecord) -> str:
        """Say by what a node is locked for a pod; pods of one job that have not left yet share a lock."""
        if node.name in self._written:
            return f"locked by its annotation {self._annotation} since {self._written[node.name]:.60}"
        for other in self._coming.get(node.name, {}).values():
            if other.uid != task.uid and (other.job_key != task.job_key or other.status == Status.BINDING):
                return f"locked for pod {other.key}, which is on its way"
        return ""

    def follow(self, run: Run, sign: int) -> None:
        """Have nodes locked before pods are bound that get cards."""
        if run.step is not Step.ALLOCATE or not self._asks(run.tasks[0]):
            return
        cluster = self._session.cluster
        for task, target in zip(run.tasks, run.targets, strict=True):
            if target is None:
                continue
            if sign > 0:
                self._coming.setdefault(target.name, {})[task.uid] = task
                cluster.with_bind.prepare(task.uid, [NodeLock(node=target.name, annotation=self._annotation)])
            elif self._coming.get(target.name, {}).pop(task.uid, None) is not None:
                cluster.with_bind.unprepare(task.uid, NodeLock)
