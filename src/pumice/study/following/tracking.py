"""Follows a cluster: takes every change as it comes, keeps sums by node and group, and gives a scene, or the rows that changed, when asked.

A change costs the same whatever the size of the cluster; a scene costs a look at queues, groups and nodes, never at pods; what is new costs what changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import structs

from pumice.api import core, decoding, kinds, names, native, scheduling
from pumice.model import native_groups, requests, resources
from pumice.study.following import rows
from pumice.study.following.scene import Amounts, EvictionRow, JobRow, NodeRow, PodRow, QueueRow, Scene
from pumice.study.following.tallies import Tally, Use, pod_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.study.following.tallies import Key

K = TypeVar("K")
V = TypeVar("V")

MOST_EVICTIONS: Final = 2000
"""Evictions that are remembered; the API server forgets its events after an hour."""
MOST_GONE: Final = 1000
"""Pods of one group that are remembered to have gone."""
_MOST_REQUESTS: Final = 10_000  # different ones that are remembered
_RESIZING: Final = "PodResize"
_ENCODER: Final = msgspec.msgpack.Encoder()


class Changed:
    """Which rows are not as they were when somebody last asked."""

    def __init__(self) -> None:
        self.queues: dict[str, None] = {}
        self.jobs: dict[Key, None] = {}
        self.nodes: dict[str, None] = {}
        self.pods: dict[Key, Use | None] = {}
        """As they were before."""
        self.evictions: list[EvictionRow] = []


class Tracker:
    """Knows the cluster as far as it was told; where `changes` are wanted somebody must take them, or they pile up."""

    def __init__(self, *, changes: bool = False) -> None:
        self._pods: dict[Key, Use] = {}
        self._by_node: dict[str, Tally] = {}
        self._by_group: dict[Key, Tally] = {}
        self._groups: dict[Key, JobRow] = {}
        self._gone: dict[Key, dict[str, int]] = {}  # by group: pods that went, with how often each was made
        self._queues: dict[Key, scheduling.Queue] = {}
        self._nodes: dict[str, NodeRow] = {}
        self._waiting: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._evictions: dict[str, EvictionRow] = {}
        self._requests: dict[bytes, Amounts] = {}
        self.total: Amounts = {}
        self._changed = Changed() if changes else None

    # -- what is told ------------------------------------------------------------------------------------------

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, _raw: bytes = b"", /
    ) -> None:
        """Take a change; an object that cannot be read counts as absent."""
        key = (found.metadata.namespace, found.metadata.name)
        gone = event_type == "DELETED" or isinstance(found, decoding.Malformed)
        if kind is kinds.POD:
            self._pod(key, None if gone or not isinstance(found, core.Pod) else self._use(key, found))
        elif kind is kinds.NODE:
            self._node(key[1], None if gone or not isinstance(found, core.Node) else rows.node(found))
        elif kind is kinds.QUEUE:
            self._queue(key, None if gone or not isinstance(found, scheduling.Queue) else found)
        elif kind is kinds.POD_GROUP:
            self._group(key, None if gone or not isinstance(found, scheduling.PodGroup) else rows.job(found))
        elif kind is kinds.NATIVE_POD_GROUP:
            key = (key[0], f"{key[1]}{native_groups.MARK}")
            made = None if gone or not isinstance(found, native.PodGroup) else rows.job(rows.of_native(found))
            self._group(key, made)
        elif kind is kinds.EVENT and not gone and isinstance(found, core.Event):
            self._evicted(rows.eviction(found))

    def _pod(self, key: Key, new: Use | None) -> None:
        old = self._pods.get(key)
        if old == new:
            return
        if self._changed is not None:
            self._changed.pods.setdefault(key, old)
        if old is not None:
            self._account(old, arrives=False)
            if new is None and old.group is not None:
                self._note_gone(old.group, key[1])
        if new is not None:
            self._account(new, arrives=True)
        _put(self._pods, key, new)

    def _note_gone(self, group: Key, name: str) -> None:
        gone = self._gone.setdefault(group, {})
        if name in gone or len(gone) < MOST_GONE:
            gone[name] = gone.get(name, 0) + 1

    def _restarts(self, group: Key, tally: Tally) -> int:
        gone = self._gone.get(group)
        return 0 if gone is None else sum(gone.get(key[1], 0) for key in tally.uses)

    def _use(self, key: Key, pod: core.Pod) -> Use:
        group = native_groups.name_in_job(pod)
        status, metadata = pod.status, pod.metadata
        bound = None
        for condition in status.conditions:
            if condition.type == names.CONDITION_POD_SCHEDULED and condition.status == "True":
                bound = condition.last_transition_time
        return Use(
            key=key,
            node=pod.spec.node_name,
            group=(key[0], group) if group else None,
            amounts=self._amounts(pod),
            placed=bool(pod.spec.node_name),
            ended=status.phase if status.phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED) else "",
            phase=status.phase,
            going=bool(metadata.deletion_timestamp),
            created=metadata.creation_timestamp,
            bound=bound,
            started=status.start_time,
            nominated=status.nominated_node_name,
        )

    def _amounts(self, pod: core.Pod) -> Amounts:
        """Say what a pod counts for; equals are asked once, as long as nobody resizes them."""
        spec, status = pod.spec, pod.status
        resized = any(each.type.startswith(_RESIZING) for each in status.conditions)
        written = (bool(spec.node_name), spec.containers, spec.init_containers, spec.overhead, spec.resources)
        reported = (status.container_statuses, status.init_container_statuses, status.resources)
        key = b"" if resized else _ENCODER.encode((*written, *reported, status.allocated_resources))
        known = self._requests.get(key)
        if known is not None:
            return known
        try:
            amounts = requests.of_pod(pod)
        except resources.BadValueError:
            amounts = {}  # it counts for nothing, as for the scheduler
        if key:
            if len(self._requests) >= _MOST_REQUESTS:
                self._requests.clear()
            self._requests[key] = amounts
        return amounts

    def _account(self, use: Use, *, arrives: bool) -> None:
        if use.node:
            _tally(self._by_node, use.node, use, arrives=arrives)
        if use.group is not None:
            _tally(self._by_group, use.group, use, arrives=arrives)
        if self._changed is not None:
            if use.node:
                self._changed.nodes[use.node] = None
            if use.group is not None:
                self._changed.jobs[use.group] = None

    def _node(self, name: str, new: NodeRow | None) -> None:
        for row, sign in ((self._nodes.get(name), -1), (new, 1)):
            for resource, amount in row.allocatable.items() if row is not None else ():
                self.total[resource] = self.total.get(resource, 0) + sign * amount
        _put(self._nodes, name, new)
        if self._changed is not None:
            self._changed.nodes[name] = None

    def _queue(self, key: Key, new: scheduling.Queue | None) -> None:
        _put(self._queues, key, new)
        if self._changed is not None:
            self._changed.queues[key[1]] = None

    def _group(self, key: Key, new: JobRow | None) -> None:
        for row, sign in ((self._groups.get(key), -1), (new, 1)):
            counted = None if row is None else self._counted(row)
            if row is not None and counted is not None:
                counted[row.queue] = counted.get(row.queue, 0) + sign
            if row is not None and self._changed is not None:
                self._changed.queues[row.queue] = None
        _put(self._groups, key, new)
        if new is None:
            self._gone.pop(key, None)
        if self._changed is not None:
            self._changed.jobs[key] = None

    def _counted(self, row: JobRow) -> dict[str, int] | None:
        """Give the counts of queues that a group counts in, if in any."""
        if row.phase in rows.WAITING:
            return self._waiting
        return self._running if row.phase == names.PHASE_RUNNING else None

    def _evicted(self, row: EvictionRow | None) -> None:
        if row is None:
            return
        known, victim = self._evictions.get(row.id), self._pods.get((row.namespace, row.pod))
        group = victim.group[1] if victim is not None and victim.group is not None else known.victim if known else ""
        row = structs.replace(row, victim=group)
        if row == known:
            return
        self._evictions[row.id] = row
        if len(self._evictions) > MOST_EVICTIONS:
            del self._evictions[next(iter(self._evictions))]
        if self._changed is not None:
            self._changed.evictions.append(row)

    # -- what is asked -----------------------------------------------------------------------------------------

    @property
    def objects(self) -> int:
        """How many objects are known."""
        return len(self._pods) + len(self._groups) + len(self._queues) + len(self._nodes)

    @property
    def pods(self) -> int:
        """How many pods are known."""
        return len(self._pods)

    def look(self, now: int, missing: tuple[str, ...] = ()) -> Scene:
        """Give the cluster as it is now."""
        return Scene(
            time=now,
            queues=tuple(self._queue_row(queue) for queue in self._queues.values()),
            jobs=tuple(self._job_row(row, self._by_group.get(key)) for key, row in self._groups.items()),
            nodes=tuple(self._node_row(node) for node in self._nodes.values()),
            pods=len(self._pods),
            total={name: amount for name, amount in self.total.items() if amount},
            missing=missing,
        )

    def changed(self) -> Changed:
        """Give what has changed since this was asked last; from now on it is the past."""
        changed = self._changed or Changed()
        if self._changed is not None:
            self._changed = Changed()
        return changed

    def queue(self, name: str) -> QueueRow | None:
        """Give the row of a queue."""
        found = self._queues.get(("", name))
        return None if found is None else self._queue_row(found)

    def job(self, key: Key) -> JobRow | None:
        """Give the row of a group."""
        found = self._groups.get(key)
        return None if found is None else self._job_row(found, self._by_group.get(key))

    def node(self, name: str) -> NodeRow | None:
        """Give the row of a node."""
        found = self._nodes.get(name)
        return None if found is None else self._node_row(found)

    def sums(self) -> tuple[Amounts, Amounts]:
        """Add up what is in use on all nodes, and what pods of groups ask for that have none."""
        used: Amounts = {}
        asked: Amounts = {}
        for name in self._nodes:
            if (tally := self._by_node.get(name)) is not None:
                _add(used, tally.amounts)
        for tally in self._by_group.values():
            _add(asked, tally.asked)
        return used, asked

    def pods_of(self, *, group: Key | None = None, node: str = "") -> Iterator[PodRow]:
        """Walk over the pods of a group, or on a node, by name."""
        tally = self._by_group.get(group) if group is not None else self._by_node.get(node)
        uses = {} if tally is None else tally.uses
        for key in sorted(uses):
            yield pod_row(uses[key])

    def pods_then(
        self, before: Mapping[Key, Use | None], *, group: Key | None = None, node: str = ""
    ) -> Iterator[PodRow]:
        """Walk over them as they were when some pods were as is said."""
        tally = self._by_group.get(group) if group is not None else self._by_node.get(node)
        uses: dict[Key, Use] = {} if tally is None else dict(tally.uses)
        for key, use in before.items():
            if use is not None and (use.group == group if group is not None else use.node == node):
                uses[key] = use
            else:
                uses.pop(key, None)
        for key in sorted(uses):
            yield pod_row(uses[key])

    def pods_more(self, before: Mapping[Key, Use | None]) -> dict[str, int]:
        """Say how many pods more than now each namespace had when some pods were as is said."""
        more: dict[str, int] = {}
        for key, use in before.items():
            more[key[0]] = more.get(key[0], 0) + (use is not None) - (key in self._pods)
        return more

    def _queue_row(self, queue: scheduling.Queue) -> QueueRow:
        name = queue.metadata.name
        return rows.queue(queue, self._waiting.get(name, 0), self._running.get(name, 0))

    def _node_row(self, node: NodeRow) -> NodeRow:
        tally = self._by_node.get(node.name)
        return node if tally is None else structs.replace(node, used=dict(tally.amounts), pods=tally.pods)

    def _job_row(self, row: JobRow, tally: Tally | None) -> JobRow:
        if tally is None:
            return row
        # A group whose only fault is that it has no pods has some by now.
        reason = "" if row.reason and row.reason == rows.without_pods(row.minimum) else row.reason
        return structs.replace(
            row,
            members=tally.members,
            ready=tally.ready,
            reason=reason,
            held=dict(tally.amounts),
            asked=dict(tally.asked),
            nominated=tally.nominated,
            restarts=self._restarts((row.namespace, row.name), tally),
        )


def _add(sums: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def _put(known: dict[K, V], key: K, new: V | None) -> None:
    if new is None:
        known.pop(key, None)
    else:
        known[key] = new


def _tally(tallies: dict[K, Tally], key: K, use: Use, *, arrives: bool) -> None:
    """Change a sum; one over nothing is forgotten."""
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = Tally()
    if arrives:
        tally.add(use)
    else:
        tally.remove(use)
        if not tally.uses:
            del tallies[key]
