"""The groups and pods of a trace as objects, made when they arrive; whatever equal ones have in common is made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, duration, meta, names, scheduling, timestamp
from pumice.model import requests, resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.simulate.trace import Members, TraceJob

ESTIMATE: Final = "pumice.dev/estimate"
USER: Final = "pumice.dev/user"
PENDING: Final = core.PodStatus(phase=names.PHASE_PENDING)
SUCCEEDED: Final = core.PodStatus(phase=names.PHASE_SUCCEEDED)
FAILED: Final = core.PodStatus(phase=names.PHASE_FAILED)
MOST: Final = 1 << 17
"""Specs of running pods that are kept to be shared."""
START: Final = 1_767_225_600_000_000
"""What the clock of the cluster shows at the trace's zero: 2026-01-01T00:00:00Z."""


class Slot:
    """A pod of a job, and whoever replaces it after an eviction."""

    __slots__ = ("cards", "index", "job", "left", "member", "node", "pod", "started", "times")

    def __init__(self, job: int, member: int, index: int, left: int | None) -> None:
        self.job = job
        self.member = member
        self.index = index
        self.left = left  # how long it still has to run once it starts; None is for ever
        self.times = 0  # how often it was evicted
        self.started = -1
        self.node = ""
        self.cards: tuple[int, ...] = ()
        self.pod: core.Pod = None  # type: ignore[assignment]  # it has one as soon as it arrives


class Population:
    """Makes objects. Creation times and uids follow the order of arrival, which is what decides among equals."""

    def __init__(self, priorities: Mapping[str, int]) -> None:
        self._priorities = priorities
        self._version = 0
        self._bound: dict[tuple[int, str], tuple[core.PodSpec, core.PodSpec]] = {}  # with what they were made of
        self._specs: dict[tuple[int, str], tuple[core.PodSpec, core.PodSpec]] = {}
        self._amounts: dict[int, tuple[core.PodSpec, resources.Amounts]] = {}

    def version(self) -> str:
        """Return the next resource version."""
        self._version += 1
        return str(self._version)

    def amounts(self, spec: core.PodSpec) -> resources.Amounts:
        """Return what a pod with this spec asks for, in stored units."""
        known = self._amounts.get(id(spec))
        if known is None:
            known = self._amounts[id(spec)] = (spec, requests.of_pod(core.Pod(spec=spec)))
        return known[1]

    def group(self, job: TraceJob, now: int) -> scheduling.PodGroup:
        """Make the group of a job that arrives."""
        uid = f"{job.number:010d}"
        annotations = {} if job.estimate is None else {ESTIMATE: duration.format_duration(job.estimate)}
        labels = {USER: job.user} if job.user else {}
        metadata = meta.ObjectMeta(
            name=job.name,
            namespace=job.namespace,
            uid=uid,
            resource_version=self.version(),
            creation_timestamp=timestamp.format_timestamp(now),
            annotations=annotations,
            labels=labels,
        )
        spec = structs.replace(
            scheduling.PodGroupSpec() if job.group is None else job.group,
            min_member=job.min_member,
            queue=job.queue,
            priority_class_name=job.priority,
            min_resources=self._least(job),
        )
        return scheduling.PodGroup(
            metadata=metadata, spec=spec, status=scheduling.PodGroupStatus(phase=names.PHASE_PENDING)
        )

    def _least(self, job: TraceJob) -> meta.ResourceList:
        """Return what the first members ask for, as many as a job needs to start."""
        total: resources.Amounts = {}
        wanted = job.min_member
        for each in job.members:
            count = min(wanted, each.count)
            wanted -= count
            for name, units in self.amounts(each.spec).items():
                total[name] = total.get(name, 0) + units * count
        return {name: resources.shown(name, units) for name, units in total.items() if name != "pods"}

    def shared_metadata(self, job: TraceJob, now: int) -> meta.ObjectMeta:
        """Return what the metadata of a job's pods have in common."""
        owner = meta.OwnerReference(
            api_version="batch/v1", kind="Job", name=job.name, uid=f"{job.number:010d}", controller=True
        )
        return meta.ObjectMeta(
            namespace=job.namespace,
            creation_timestamp=timestamp.format_timestamp(now),
            annotations={names.GROUP_NAME: job.name},
            labels={USER: job.user} if job.user else {},
            owner_references=(owner,),
        )

    def pod(self, job: TraceJob, slot: Slot, shared: meta.ObjectMeta) -> core.Pod:
        """Make a pod that waits."""
        name = f"{job.name}-{slot.index}"
        members = job.members[slot.member]
        metadata = meta.ObjectMeta(
            name=name,
            namespace=shared.namespace,
            uid=f"{job.number:010d}-{slot.index:06d}-{slot.times}",
            resource_version=self.version(),
            creation_timestamp=shared.creation_timestamp,
            annotations={**members.annotations, **shared.annotations} if members.annotations else shared.annotations,
            labels={**members.labels, **shared.labels} if members.labels else shared.labels,
            owner_references=shared.owner_references,
        )
        return core.Pod(metadata=metadata, spec=self._waiting(job, members), status=PENDING)

    def _waiting(self, job: TraceJob, members: Members) -> core.PodSpec:
        """Return the spec of a pod as an API server stores it, its priority filled in."""
        if not job.priority:
            return members.spec
        key = (id(members.spec), job.priority)
        known = self._specs.get(key)
        if known is None:
            made = structs.replace(
                members.spec, priority_class_name=job.priority, priority=self._priorities[job.priority]
            )
            known = self._specs[key] = (members.spec, made)
        return known[1]

    def running(self, pod: core.Pod, node: str, started: str, annotations: Mapping[str, str]) -> core.Pod:
        """Return a pod that was bound and runs."""
        key = (id(pod.spec), node)
        known = self._bound.get(key)
        if known is None:
            if len(self._bound) >= MOST:
                self._bound.clear()
            known = self._bound[key] = (pod.spec, structs.replace(pod.spec, node_name=node))
        metadata = structs.replace(pod.metadata, resource_version=self.version())
        if annotations:
            metadata = structs.replace(metadata, annotations={**metadata.annotations, **annotations})
        return core.Pod(
            metadata=metadata, spec=known[1], status=core.PodStatus(phase=names.PHASE_RUNNING, start_time=started)
        )

    def ended(self, pod: core.Pod, *, failed: bool) -> core.Pod:
        """Return a pod that has ended by itself."""
        metadata = structs.replace(pod.metadata, resource_version=self.version())
        return core.Pod(metadata=metadata, spec=pod.spec, status=FAILED if failed else SUCCEEDED)

    def leaving(self, pod: core.Pod, gone: int, grace: int) -> core.Pod:
        """Return a pod that was evicted and has its grace to stop in."""
        metadata = structs.replace(
            pod.metadata,
            resource_version=self.version(),
            deletion_timestamp=timestamp.format_timestamp(gone),
            deletion_grace_period_seconds=grace,
        )
        return structs.replace(pod, metadata=metadata)
