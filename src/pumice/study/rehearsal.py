"""One cycle on a cluster in memory, looked at before it is over and then undone to the last sum, so that the next one starts from the same state.

The cycle is the scheduler's own: same cache, same engine, same actions and plugins. Only its outlet differs: what it would send is kept as a list, and
when the cycle is over every task goes back to where it was.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
    from pumice.api.meta import KubeObject
    from pumice.cache.cache import EventType
    from pumice.cache.effects import Effect
    from pumice.cache.options import Options
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.study.state import Found, Manifest

Change = tuple["kinds.Kind", "EventType", "Found"]
Replaced = tuple["kinds.Kind", "KubeObject | None", "KubeObject | None"]
"""An object before and after a change: None is one that was not there, or is not there any more."""


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
            self._cache.assumptions.preparing.forget(task.uid)
            self._cache.assumptions.forget(task.uid)
            self._cache.cluster.apply([task], [node], status)
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
        *,
        jobs: Mapping[str, Manifest] = MappingProxyType({}),
    ) -> None:
        self.now = now
        self.configuration = configuration
        self.jobs = jobs  # those of Volcano, by uid, as they are written: what their controller makes of them
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

    def feed(self, changes: Sequence[Change]) -> None:
        """Take changes in as if a watch had told of them."""
        for change in changes:
            self.cache.feed(*change)
        self.cache.apply(self.now)

    def reserved(self) -> Reservations:
        """Give the room that is held when a cycle begins, to be changed by it."""
        return copy.deepcopy(self._reservations)

    @contextmanager
    def cycle(
        self, *, now: int | None = None, reserved: Reservations | None = None
    ) -> Iterator[tuple[Session, Outlet]]:
        """Run a cycle up to the point where statuses would be written; when the block ends it never was.

        Whoever runs several in a row says when each is, and keeps the room that is held from one to the next.
        """
        self.cycles += 1
        moment = self.now if now is None else now
        self.cache.apply(moment)
        self.cluster.dirty_jobs.clear()  # nobody is reported on
        record = CycleRecord()
        record.begin(self.cycles, moment)
        outlet = Outlet(self.cache)
        held = self.reserved() if reserved is None else reserved
        disruptions = dict(self.cluster.disruptions)
        try:
            session = self.engine.open(record, outlet, number=self.cycles, now=moment, reserved=held, is_asked=True)
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
            self.cluster.disruptions = disruptions


class Ledger:
    """Changes that are fed to a rehearsal one after the other, each with what was there before, so that all of them can be taken back."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._first: dict[tuple[str, ...], Replaced] = {}
        self._orders: dict[int, tuple[dict[str, Any], list[str]]] = {}

    def _remember(self, kind: kinds.Kind, found: KubeObject) -> None:
        """Keep the order in which a pod stands beside others: of equals the first is looked at first."""
        task = self._rehearsal.cluster.tasks.get(found.metadata.uid) if kind.name == "Pod" else None
        if task is None:
            return
        kept: list[dict[str, Any]] = [self._rehearsal.cluster.pending_jobs]
        if task.job is not None:
            kept += [task.job.tasks, task.job.pending, *(each.tasks for each in task.job.sub_jobs.values())]
        if task.node is not None:
            kept.append(task.node.tasks)
        for each in kept:
            self._orders.setdefault(id(each), (each, list(each)))

    def feed(self, changes: Iterable[Replaced]) -> None:
        """Make changes."""
        fed: list[Change] = []
        for kind, before, after in changes:
            found = after if before is None else before
            if found is None:
                continue
            key = _identity(kind, found)
            known = self._first.get(key)
            if known is None:
                self._remember(kind, found)
            self._first[key] = (kind, before if known is None else known[1], after)
            fed.append((kind, *_event(before, after, found)))
        if fed:
            self._rehearsal.feed(fed)

    def undo(self) -> None:
        """Take everything back, the last thing first."""
        fed: list[Change] = []
        for kind, before, after in reversed(self._first.values()):
            found = before if after is None else after
            if found is not None:
                fed.append((kind, *_event(after, before, found)))
        self._first.clear()
        if fed:
            self._rehearsal.feed(fed)
        for mapping, order in self._orders.values():
            _put_in_order(mapping, order)
        self._orders.clear()


def _put_in_order(mapping: dict[str, Any], order: list[str]) -> None:
    if list(mapping) != order:
        entries = {key: mapping[key] for key in order if key in mapping} | mapping
        mapping.clear()
        mapping.update(entries)


def _identity(kind: kinds.Kind, found: KubeObject) -> tuple[str, ...]:
    """Tell objects apart, of two with one name the later one too."""
    metadata = found.metadata
    return (kind.name, metadata.namespace, metadata.name, metadata.uid)


def _event(before: KubeObject | None, after: KubeObject | None, found: KubeObject) -> tuple[EventType, KubeObject]:
    if after is None:
        return "DELETED", found
    return ("ADDED" if before is None else "MODIFIED"), after
