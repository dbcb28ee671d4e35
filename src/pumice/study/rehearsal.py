"""One cycle on a cluster in memory, looked at before it is over and then undone to the last sum, so that the next one starts from the same state.

The cycle is the scheduler's own: same cache, same engine, same actions and plugins. Only its outlet differs: what it would send is kept as a list, and
when the cycle is over every task goes back to where it was.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pumice.cache.cache import Cache
from pumice.framework.engine import Engine
from pumice.framework.record import CycleRecord
from pumice.framework.reservations import Reservations
from pumice.model import statuses
from pumice.model.statuses import Status
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.api import kinds
    from pumice.cache.cache import EventType
    from pumice.cache.effects import Effect
    from pumice.cache.options import Options
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.study.state import Found

Change = tuple["kinds.Kind", "EventType", "Found"]


class Nowhere:
    """A world that takes every effect and performs none."""

    def send(self, effect: Effect, /) -> None:
        """Drop an effect."""


class Outlet:
    """What a cycle would send; the model is told as if it were sent, and how to take that back is kept."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.bound: dict[str, tuple[Task, str]] = {}
        self.evicted: dict[str, tuple[Task, str]] = {}
        self.ungated: dict[str, Task] = {}
        self._undo: list[tuple[Task, NodeRecord | None, Status]] = []

    def overtaken(self, _tasks: Sequence[Task]) -> Mapping[str, str]:
        """Nothing comes in while a cycle is studied."""
        return {}

    def bind(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Keep binds, as far as they could be sent."""
        refused = self._cache.bind(tasks)
        for task in tasks:
            if task.uid not in refused and task.node is not None:
                self.bound[task.uid] = (task, task.node.name)
                self._undo.append((task, None, Status.PENDING))
        return refused

    def evict(self, task: Task, reason: str) -> None:
        """Keep an eviction."""
        self.evicted[task.uid] = (task, reason)
        pod = task.pod
        # A statement has marked it as going by now; what it was before follows from its pod.
        before = statuses.from_pod(pod.status.phase, pod.spec.node_name, deleting=bool(pod.metadata.deletion_timestamp))
        self._undo.append((task, task.node, before))
        self._cache.evict(task, reason)

    @property
    def takes_gates_off(self) -> bool:
        """Whether gates that wait for a queue are taken off here."""
        return self._cache.options.takes_gates_off

    def take_gate_off(self, task: Task) -> bool:
        """Keep that a gate would be taken off."""
        news = task.uid not in self.ungated
        self.ungated[task.uid] = task
        return news

    def undo(self) -> None:
        """Put every task back, the last one first."""
        for task, node, status in reversed(self._undo):
            self._cache.assumptions.forget(task.uid)
            self._cache.cluster.move([task], [node], status)
        self._undo.clear()


class Rehearsal:
    """A cluster in memory on which single cycles are run and undone."""

    def __init__(
        self,
        objects: Iterable[tuple[kinds.Kind, Found]],
        configuration: Configuration,
        options: Options,
        now: int,
        known: Registry,
    ) -> None:
        self.now = now
        self.configuration = configuration
        self.cache = Cache(Nowhere(), options)
        self.cache.follow(kube_batch=configuration.rules == "kube-batch", now=now)
        for kind, found in objects:
            self.cache.feed(kind, "ADDED", found)
        self.cache.apply(now)
        self.engine = Engine(configuration, known, self.cache.cluster)
        self._reservations = Reservations()
        self.cycles = 0

    @property
    def cluster(self) -> Cluster:
        """The model."""
        return self.cache.cluster

    @contextmanager
    def changed(self, changes: Sequence[Change], back: Sequence[Change]) -> Iterator[None]:
        """Have changes in force inside a block; `back` is how they are taken back."""
        self._feed(changes)
        try:
            yield
        finally:
            self._feed(back)

    def _feed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.cache.feed(*change)
        self.cache.apply(self.now)

    @contextmanager
    def cycle(self) -> Iterator[tuple[Session, Outlet]]:
        """Run a cycle up to the point where statuses would be written; when the block ends it never was."""
        self.cycles += 1
        self.cache.apply(self.now)
        self.cluster.dirty_jobs.clear()  # nobody is reported on
        record = CycleRecord()
        record.begin(self.cycles, self.now)
        outlet = Outlet(self.cache)
        reserved = copy.deepcopy(self._reservations)
        try:
            session = self.engine.open(record, outlet, number=self.cycles, now=self.now, reserved=reserved)
        except Exception as error:
            raise StudyError(
                f"the policy breaks down before it decides anything: {type(error).__name__}: {error}"
            ) from error
        try:
            self.engine.decide(session)
            yield session, outlet
        finally:
            session.rollback()
            outlet.undo()
            self.cluster.dirty_jobs.clear()
