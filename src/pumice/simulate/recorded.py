"""A recording as a trace: what users and nodes did, with run times as they happened. What the scheduler did there, its binds, evictions and statuses, is left out.

A pod that was evicted is not one more member of its job: whoever replaced it is. A job of which a pod had not ended has no run time, and is counted as unfinished.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from pumice.api import core, decoding, duration, kinds, meta, names, scheduling, timestamp
from pumice.cache.options import Options
from pumice.recording import effects, lines, segments, state
from pumice.simulate.population import ESTIMATE
from pumice.simulate.trace import Change, Members, Trace, TraceError, TraceJob, ordered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.cache.effects import Effect
    from pumice.cache.reflector import EventType

_GROUPS = frozenset({"PodGroup"})
_PASSED_OVER = frozenset({"Event", "Lease", "Binding", "PodGroup"})
_ENDED = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})


class _Seen(msgspec.Struct):
    """A pod of ours, and when it ran."""

    pod: core.Pod
    started: int | None = None
    ended: int | None = None
    failed: bool = False


class _Nowhere:
    def send(self, effect: Effect, /) -> None:
        """Drop an effect: nothing is played."""


def read(path: str) -> Trace:
    """Read the segments of a folder, or one of them."""
    history = _History(path)
    try:
        for file in _files(path):
            history.read(segments.Segment(file))
    except (segments.RecordingError, OSError) as error:
        raise TraceError(path, 0, "", str(error)) from error
    return history.trace()


def _files(path: str) -> list[Path]:
    given = Path(path)
    found = segments.listed(given) if given.is_dir() else [given]
    if not found:
        raise TraceError(path, 0, "", "no recording in this folder; pumice scheduler --record writes one")
    return found


class _History:
    """Everything that was told, in order."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._zero: int | None = None
        self._last = 0
        self._options = Options()
        self._pods: dict[str, _Seen] = {}
        self._evicted: set[str] = set()
        self._groups: dict[str, scheduling.PodGroup] = {}
        self._objects: dict[tuple[str, str, str], tuple[kinds.Kind, meta.KubeObject]] = {}
        self._cluster: list[tuple[kinds.Kind, meta.KubeObject]] = []
        self._changes: list[Change] = []

    def read(self, segment: segments.Segment) -> None:
        """Read one segment; a state counts only where nothing is known yet."""
        known: list[tuple[kinds.Kind, meta.KubeObject]] = []
        for line in segment.lines():
            match line:
                case lines.Header():
                    self._options = line.options
                case lines.State(table=table) if table is not None and self._zero is None:
                    known = list(self._restored(table, segment))
                case lines.ReadStep():
                    self._step(line, known, segment)
                    known = []

    def _restored(self, table: Any, segment: segments.Segment) -> Iterator[tuple[kinds.Kind, meta.KubeObject]]:
        try:
            cluster = state.restore(table, _Nowhere(), effects.Ledger()).cache.cluster
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise segments.RecordingError(f"{segment.path}: its state cannot be read: {error}") from error
        yield from ((kinds.NODE, node.object) for node in cluster.nodes.records if node.object is not None)
        yield from ((kinds.QUEUE, queue.object) for queue in cluster.queues.values() if queue.object is not None)
        yield from (
            (kinds.POD_GROUP, job.group) for job in cluster.jobs.values() if isinstance(job.group, scheduling.PodGroup)
        )
        yield from ((kinds.POD, task.pod) for task in cluster.tasks.values())

    def _step(
        self, step: lines.ReadStep, known: list[tuple[kinds.Kind, meta.KubeObject]], segment: segments.Segment
    ) -> None:
        if self._zero is None:
            self._zero = step.now
        self._last = step.now
        for kind, found in known:
            self._event(kind, "ADDED", found, step.now)
        try:
            for look in step.events:
                for raw in look:
                    kind, event_type, each = lines.event(raw)
                    if not isinstance(each, decoding.Malformed):
                        self._event(kind, event_type, each, step.now)
            self._evicted.update(each[3] for each in lines.effects(step) if each[0] == "evict")
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise segments.RecordingError(
                f"{segment.path}: line {segment.line}: {type(error).__name__}: {error}"
            ) from error

    def _event(self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject, now: int) -> None:
        if isinstance(found, core.Pod) and self._is_ours(found):
            self._hear_of_pod(event_type, found, now)
        elif isinstance(found, scheduling.PodGroup | scheduling.OlderPodGroup):
            group = found if isinstance(found, scheduling.PodGroup) else found.current()
            self._groups.setdefault(f"{group.metadata.namespace}/{group.metadata.name}", group)
        elif kind.name not in _PASSED_OVER:
            self._hear_of_object(kind, event_type, found, now)

    def _is_ours(self, pod: core.Pod) -> bool:
        return pod.spec.scheduler_name in self._options.scheduler_name

    def _hear_of_pod(self, event_type: EventType, pod: core.Pod, now: int) -> None:
        seen = self._pods.setdefault(pod.metadata.uid, _Seen(pod))
        if seen.ended is not None:
            return
        if pod.status.phase in {names.PHASE_RUNNING, *_ENDED} and seen.started is None:
            seen.started = now if pod.status.start_time is None else min(now, timestamp.parse(pod.status.start_time))
        if pod.status.phase in _ENDED or (event_type == "DELETED" and seen.started is not None):
            seen.ended, seen.failed = now, pod.status.phase == names.PHASE_FAILED

    def _hear_of_object(self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject, now: int) -> None:
        """Take what nodes, queues and others were when the recording began, and later only what changed of them."""
        key = (kind.name, found.metadata.namespace, found.metadata.name)
        plain = _without_status(found)
        before = self._objects.get(key)
        if event_type == "DELETED":
            self._objects.pop(key, None)
        else:
            self._objects[key] = (kind, plain)
            if before is not None and before[1] == plain:
                return
        zero = self._zero or 0
        if now == zero and event_type == "ADDED" and before is None:
            self._cluster.append((kind, found))
        else:
            kept: EventType = "MODIFIED" if event_type == "ADDED" and before is not None else event_type
            self._changes.append(Change(at=now - zero, kind=kind, event=kept, object=found))

    # -- jobs --------------------------------------------------------------------------------------------------

    def trace(self) -> Trace:
        """Put pods together into jobs."""
        if self._zero is None:
            raise TraceError(self._source, 0, "", "the recording has no cycle")
        jobs: dict[str, list[_Seen]] = {}
        for uid, seen in self._pods.items():
            if uid not in self._evicted:
                jobs.setdefault(_job_key(seen.pod), []).append(seen)
        found = sorted(jobs.items(), key=lambda each: (self._submit(*each), each[0]))
        made = [self._job(number, key, pods) for number, (key, pods) in enumerate(found, 1)]
        if not made:
            raise TraceError(self._source, 0, "", "the recording has no pods of the scheduler's own")
        return Trace(source=self._source, jobs=ordered(made), cluster=self._cluster, changes=self._changes)

    def _submit(self, key: str, pods: list[_Seen]) -> int:
        group = self._groups.get(key)
        stated = [group.metadata.creation_timestamp] if group is not None else []
        stated += [seen.pod.metadata.creation_timestamp for seen in pods]
        created = next((timestamp.parse(each) for each in stated if each is not None), 0)
        return max(0, created - (self._zero or 0))

    def _job(self, number: int, key: str, pods: list[_Seen]) -> TraceJob:
        group = self._groups.get(key)
        namespace, _, name = key.partition("/")
        members = tuple(
            Members(
                count=1,
                spec=structs.replace(seen.pod.spec, node_name=""),
                run_time=None if seen.ended is None or seen.started is None else seen.ended - seen.started,
                labels=seen.pod.metadata.labels,
                annotations={k: v for k, v in seen.pod.metadata.annotations.items() if k != names.GROUP_NAME},
            )
            for seen in pods
        )
        runs = [each.run_time for each in members]
        spec = scheduling.PodGroupSpec(min_member=1) if group is None else group.spec
        return TraceJob(
            number=number,
            name=name,
            namespace=namespace,
            submit=self._submit(key, pods),
            queue=spec.queue or self._options.default_queue,
            priority=spec.priority_class_name,
            members=members,
            min_member=min(spec.min_member or 1, len(members)),
            run_time=None if None in runs else max((each for each in runs if each is not None), default=None),
            estimate=_estimate(group),
            failed=any(seen.failed for seen in pods),
            group=spec,
        )


def _job_key(pod: core.Pod) -> str:
    group = pod.metadata.annotations.get(names.GROUP_NAME) or pod.metadata.annotations.get(names.VOLCANO_GROUP_NAME)
    return f"{pod.metadata.namespace}/{group or pod.metadata.name}"


def _estimate(group: scheduling.PodGroup | None) -> int | None:
    text = "" if group is None else group.metadata.annotations.get(ESTIMATE, "")
    try:
        return duration.parse(text) if text else None
    except duration.DurationError:
        return None


def _without_status(found: meta.KubeObject) -> meta.KubeObject:
    """Return what its author, or a kubelet, says of an object: no version, and no status that a scheduler writes."""
    plain = structs.replace(found, metadata=structs.replace(found.metadata, resource_version="", generation=0))
    return structs.replace(plain, status=scheduling.QueueStatus()) if isinstance(plain, scheduling.Queue) else plain
