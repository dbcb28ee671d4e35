"""Kubernetes' own PodGroups: kept as they are read, and described anew when the group, one of its members or its namespace changes.

A group counts as soon as a pod of ours names it; one whose pods are all of another scheduler is nobody's business here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from pumice.api import core, decoding, kinds, meta, names, native, scheduling
from pumice.cache.mirror import Mirror
from pumice.model import group_meaning, native_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.cache.publishing import Publisher
    from pumice.model.job import Job
    from pumice.model.native_groups import NativeGroup
    from pumice.model.task import Task

TWO_GROUPS = "SchedulingGroupNotHeeded"


class Orphanage(Protocol):
    """The pods that were taken in."""

    def orphan(self, key: str) -> None:
        """Watch the pods that wait in a job whose group has just gone."""


class GroupsMirror(Mirror, Protocol):
    """The cache, as these groups see it."""

    @property
    def pods(self) -> Orphanage:
        """The pods that were taken in."""

    @property
    def publisher(self) -> Publisher:
        """What writes about groups, pods and queues."""


class NativeGroups:
    """Follows groups of Kubernetes' own."""

    def __init__(self, cache: GroupsMirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._objects: dict[str, native.PodGroup | decoding.Malformed] = {}
        self._touched: dict[str, None] = {}
        self._others: dict[str, dict[str, str]] = {}  # job -> pods of other schedulers that have no node, by uid
        self._bad: dict[str, str] = {}  # what is wrong with which
        self._waits_in: dict[str, str] = {}  # the job of each of those

    def apply(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        """Take a group over, or let it go."""
        metadata = found.metadata
        key = native_groups.key_of(metadata.namespace, metadata.name)
        assignment = self._cache.assignment
        if assignment is not None and not assignment.holds(metadata.name):
            return
        known = self._objects.get(key)
        if known is not None and known.metadata.uid != metadata.uid:
            self._cache.publisher.native.forget(key)  # another one of the same name says nothing yet
            self._cache.publisher.forget_job(key)
        if gone:
            self._objects.pop(key, None)
            self._cache.publisher.native.forget(key)
            self._cache.forget(kinds.NATIVE_POD_GROUP, metadata, key)
        elif isinstance(found, native.PodGroup | decoding.Malformed):
            self._objects[key] = found
        self._touched[key] = None

    def touch(self, key: str) -> None:
        """Note that a member of a job has come, gone or changed."""
        if native_groups.is_native(key):
            self._touched[key] = None

    def touch_namespace(self, namespace: str) -> None:
        """Note that the annotations of a namespace have changed."""
        self._touched |= dict.fromkeys(key for key in self._objects if key.startswith(f"{namespace}/"))

    def note_foreign(self, pod: core.Pod) -> None:
        """Remember which pods of other schedulers a group waits for: they count once they have a node."""
        uid = pod.metadata.uid
        self.forget_foreign(uid)
        group = pod.spec.scheduling_group
        if group is None or pod.spec.node_name or pod.spec.scheduler_name in self._cache.options.scheduler_name:
            return
        key = native_groups.key_of(pod.metadata.namespace, group.pod_group_name)
        self._waits_in[uid] = key
        self._others.setdefault(key, {})[uid] = f"{pod.metadata.name} ({pod.spec.scheduler_name})"
        self._touched[key] = None

    def forget_foreign(self, uid: str) -> None:
        """Forget a pod that is gone."""
        key = self._waits_in.pop(uid, "")
        if key:
            del self._others[key][uid]
            if not self._others[key]:
                del self._others[key]
            self._touched[key] = None

    def warn_of_two(self, pod: core.Pod) -> None:
        """Say once on a pod that names groups of both APIs which of them counts."""
        if pod.spec.scheduling_group is not None and (text := native_groups.overridden(pod)):
            self._cache.note(kinds.POD, pod.metadata, "Warning", TWO_GROUPS, text, once=True)

    def prepare(self) -> None:
        """Describe anew what has changed; called between cycles."""
        touched, self._touched = self._touched, {}
        for key in touched:
            try:
                self._describe(key)
            except Exception as error:  # noqa: BLE001  one group that breaks us must not cost the next
                self._cache.broke(f"PodGroup {key} could not be described", error)

    def review(self, now: int) -> None:
        """Have it written on each group what is wrong with it."""
        for key, problem in self._bad.items():
            if (job := self._cluster.jobs.get(key)) is not None and job.group is not None:
                self._cache.publisher.native.tell_broken(job, problem, now)

    def next_wake(self) -> int | None:
        """Return when something is due though no event may come: never."""
        return None

    def _describe(self, key: str) -> None:
        found, job = self._objects.get(key), self._cluster.jobs.get(key)
        if found is None or job is None or not any(self._is_ours(task) for task in job.tasks.values()):
            self._leave(key, job)
            return
        self._cache.publisher.answer_to(key, kinds.NATIVE_POD_GROUP)
        group, problem = self._meant(found, list(job.tasks.values()))
        if self._others.get(key) and not group.spec.refusal:
            group = structs.replace(group, spec=structs.replace(group.spec, others=self._named(key)))
        if job.group is not None and _is_same(job.group, group):
            job.group = group  # its status may be another one
            if bool(problem) is bool(job.bad):
                return
        fresh = job.group is None or job.group.metadata.uid != group.metadata.uid
        self._cluster.set_group(group, problem)
        if fresh:
            self._cluster.set_status(job, scheduling.PodGroupStatus(phase=_phase(job)))
        if problem:
            self._bad[key] = problem
            self._cache.record.state(key, f"the PodGroup is invalid: {problem}")
            self._cache.disable(kinds.NATIVE_POD_GROUP, found.metadata, key, problem)
        else:
            self._bad.pop(key, None)
            self._cache.enable(kinds.NATIVE_POD_GROUP, found.metadata, key)

    def _meant(self, found: native.PodGroup | decoding.Malformed, members: list[Task]) -> tuple[NativeGroup, str]:
        metadata = found.metadata
        if isinstance(found, decoding.Malformed):
            unread = native.PodGroup(metadata=metadata)
            return group_meaning.described(unread, members, {})[0], found.message
        group, problem = group_meaning.described(found, members, self._annotations(metadata.namespace))
        if self._cache.options.enable_namespace_as_queue:
            group = structs.replace(group, spec=structs.replace(group.spec, queue=metadata.namespace))
        return group, problem

    def _annotations(self, namespace: str) -> Mapping[str, str]:
        found = self._cluster.objects.get(kinds.NAMESPACE.name, {}).get(namespace)
        return {} if found is None else found.metadata.annotations

    def _named(self, key: str) -> str:
        return ", ".join(sorted(self._others[key].values()))

    def _is_ours(self, task: Task) -> bool:
        return task.pod.spec.scheduler_name in self._cache.options.scheduler_name

    def _leave(self, key: str, job: Job | None) -> None:
        """Let a group go that does not exist, or has no pod of ours."""
        self._bad.pop(key, None)
        if job is not None and job.group is not None:
            self._cluster.remove_group(key)
            self._cache.publisher.forget_job(key)
            self._cache.record.forget(key)
            self._cache.pods.orphan(key)


def _is_same(known: scheduling.PodGroup, found: NativeGroup) -> bool:
    """Tell whether a group means what it meant."""
    left, right = known.metadata, found.metadata
    if (left.uid, left.labels, left.annotations) != (right.uid, right.labels, right.annotations):
        return False
    return known.spec == found.spec


def _phase(job: Job) -> str:
    """Return how far a group is that nobody has written a phase of: as far as its members show."""
    if job.tally.ready >= job.min_member:
        return names.PHASE_RUNNING
    return names.PHASE_INQUEUE if job.tally.ready else names.PHASE_PENDING
