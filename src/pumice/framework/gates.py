"""Scheduling gates that wait for a queue: the scheduler takes them off once the queue may take the pod on.

A pod asks for this with the annotation of the gate's name. From the moment its gate is asked to go until it is placed, a pod counts in what its queue is asked
to hold, so that no more gates are opened than there is room for; placements and their undoing are followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.framework.combining import Refusals
    from pumice.framework.handlers import Handler
    from pumice.framework.outlet import Sender
    from pumice.framework.record import CycleRecord
    from pumice.framework.runs import Run
    from pumice.framework.subject import Demand
    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class GatedSession(Protocol):
    """What gates need of a session."""

    progressed: bool

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def record(self) -> CycleRecord:
        """Why."""

    @property
    def allocatable(self) -> Refusals[[Queue, Demand], str]:
        """Who says what a queue may take on."""

    def add_handler(self, handler: Handler, /) -> None:
        """Follow placements."""

    @property
    def sender(self) -> Sender:
        """What sends decisions on their way."""


class Gates:
    """The queue gates of one cycle."""

    def __init__(self, session: GatedSession) -> None:
        self._session = session
        self.enabled = False
        self._reserved: dict[str, Vector] = {}
        self._members: dict[str, Task] = {}

    def open(self) -> None:
        """Start a cycle: pods whose gate was taken off and that wait for a node keep what is reserved for them."""
        self.enabled = True
        self._session.add_handler(self._follow)
        for job in self._session.cluster.pending_jobs.values():
            for task in job.pending.values():
                if task.asks_queue and not task.gated:
                    self._enter(task)

    def take_off(self, queue: Queue, tasks: Iterable[Task]) -> None:
        """Ask for the queue's gate to be taken off pods that wait for nothing else, in order, as far as the queue may take them on."""
        for task in tasks:
            if task.asks_queue and task.gated and not task.externally_gated:
                demand = subject.equal_tasks([task])
                if self._session.allocatable(queue, demand) is None:
                    self._enter(task)
                    if self._session.sender.take_gate_off(task):
                        self._session.progressed = True
                        self._session.record.say(
                            "allocate", f"{task.key}: its queue takes it on, its gate is taken off"
                        )

    def reserved(self, queues: Iterable[str], asking: Sequence[Task]) -> Vector | None:
        """Return what is reserved in queues for others than those who ask; None if nothing is."""
        if not self._reserved:
            return None
        names = frozenset(queues)
        parts = [vector for name, vector in self._reserved.items() if name in names]
        if not parts:
            return None
        total: Vector = np.sum(parts, axis=0)
        for task in asking:
            if task.uid in self._members and task.job is not None and task.job.queue in names:
                total = total - task.shape.request.vector
        return total

    def _enter(self, task: Task) -> None:
        if task.job is not None and task.uid not in self._members:
            self._members[task.uid] = task
            self._add(task, 1)

    def _add(self, task: Task, sign: int) -> None:
        if task.job is not None:
            change = task.shape.request.vector * sign
            known = self._reserved.get(task.job.queue)
            self._reserved[task.job.queue] = change if known is None else known + change

    def _follow(self, run: Run, sign: int) -> None:
        """Count pods out that are placed, and in again when that is undone."""
        if run.tasks[0].asks_queue:
            for task in run.tasks:
                if task.uid in self._members:
                    self._add(task, -sign)
