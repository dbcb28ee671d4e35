"""Pods become tasks: which ones are taken, what replaces what, and what is said about those that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from pumice.api import core, decoding, kinds, meta, names
from pumice.cache import companion_groups, reflector
from pumice.cache.mirror import Mirror
from pumice.framework import causes
from pumice.model import native_groups, resources, shape, statuses, subgroups, task
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.cache.assumptions import Assumptions
    from pumice.cache.native_groups import NativeGroups
    from pumice.cache.publishing import Publisher
    from pumice.cache.reflector import EventType
    from pumice.cache.shadows import Shadows

MISSING_GROUP_PATIENCE = 10_000_000
FINISHED_PHASES = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})
COPIED_LABELS = frozenset({names.ZONE, names.REGION})
"""What an API server copies from a node to each pod that is bound to it, from Kubernetes 1.35 on."""


class PodsMirror(Mirror, Protocol):
    """The cache, as pods see it."""

    @property
    def assumptions(self) -> Assumptions:
        """What was sent and is not seen yet."""

    @property
    def publisher(self) -> Publisher:
        """What writes about groups, pods and queues."""

    @property
    def native_groups(self) -> NativeGroups:
        """Groups of Kubernetes' own."""

    @property
    def shadows(self) -> Shadows:
        """Groups for pods that have none."""


class Pods:
    """Applies pod events to the cluster."""

    def __init__(self, cache: PodsMirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._waiting_for_group: dict[str, int | None] = {}
        self._bad: dict[str, tuple[meta.ObjectMeta, str]] = {}
        self._companions = companion_groups.CompanionGroups(cache.cluster)

    def apply(self, event_type: EventType, found: meta.KubeObject | decoding.Malformed, now: int) -> None:
        """Apply one event."""
        uid = found.metadata.uid
        if event_type == "DELETED":
            self.forget(uid)
            return
        if isinstance(found, decoding.Malformed):
            self._refuse(found.metadata, _job_key(found.metadata), found.message)
        elif isinstance(found, core.Pod):
            self._take(found, now)

    def _take(self, pod: core.Pod, now: int) -> None:
        uid = pod.metadata.uid
        known = self._cluster.tasks.get(uid)
        if pod.spec.scheduling_group is not None:
            self._cache.native_groups.note_foreign(pod)
        if not self._is_ours(pod):
            self._remove(uid)
            return
        if known is not None and is_older(pod.metadata, known.pod.metadata):
            return
        pod = self._cache.publisher.pods.as_written(pod)
        if known is not None and _decides_alike(known, pod):
            known.pod = pod
            return
        if known is None or not self._moves_on(pod, known, now):
            self._enter(pod, known, now)

    def _moves_on(self, pod: core.Pod, known: task.Task, now: int) -> bool:
        """Give a task that only got its node, its next phase or its first reports what is new, in its place; False if more has changed that matters."""
        before = known.pod
        if known.stays or known.nominated != pod.status.nominated_node_name:
            return False
        if known.shape.constraints.has_volumes or known.shape.constraint_class.has_device_claims:
            return False
        if (
            not _is_same_pod(before, pod, known.job_key)
            or not self._has_same_shape(pod, known)
            or not self._has_same_kin(pod, known)
        ):
            return False
        node, status = self._cache.assumptions.settle_on(known, pod)
        known.pod = pod
        placed = node and status not in statuses.FINISHED
        self._cluster.progress(known, self._cluster.nodes.record(node) if placed else None, status)
        self._watch_group(known, now)
        return True

    def _has_same_shape(self, pod: core.Pod, known: task.Task) -> bool:
        """Tell whether a pod with an unchanged spec asks for what it asked for: reports of its containers may say otherwise."""
        if not shape.reports_of(known.pod) and not shape.reports_of(pod):
            return True
        blueprint = shape.blueprint_of(pod)
        return blueprint is not None and self._cluster.shapes.known(blueprint) is known.shape

    def _has_same_kin(self, pod: core.Pod, known: task.Task) -> bool:
        """Tell whether a pod has the labels it had, but for those of its node by which nobody tells pods apart."""
        before, after = known.pod.metadata.labels, pod.metadata.labels
        if before == after:
            return True
        changed = {key for key, _ in before.items() ^ after.items()}
        policies = () if known.job is None else known.job.policies
        return (
            changed <= COPIED_LABELS
            and not self._cluster.kinship.looks_at(pod.metadata.namespace, changed)
            and subgroups.match(policies, before) == subgroups.match(policies, after)
        )

    def _enter(self, pod: core.Pod, known: task.Task | None, now: int | None) -> None:
        """Make a pod a task, in the place of what was known of it."""
        uid = pod.metadata.uid
        try:
            made = task.build(pod, self._cluster.shapes)
        except resources.BadValueError as error:
            self._refuse(pod.metadata, _job_key(pod.metadata), str(error))
            return
        if not made.job_key and pod.spec.scheduler_name in self._cache.options.scheduler_name:
            made.job_key = self._unnamed_job(pod)
        node = pod.spec.node_name
        decided = devices = None
        if known is not None:
            node = self._cache.assumptions.carry_over(known, made, node)
            decided = self._cluster.volumes.reservations.get(uid)
            devices = self._cluster.devices.reservations.get(uid)
            self._cluster.remove_task(known)
        if self._bad.pop(uid, None) is not None:
            self._cache.enable(kinds.POD, pod.metadata, made.job_key)
        self._cluster.add_task(made, node)
        self._cache.native_groups.touch(made.job_key)
        self._cache.native_groups.warn_of_two(pod)
        if decided is not None and made.node is not None:
            self._cluster.volumes.reserve(uid, decided)
        if devices is not None and made.node is not None:
            self._cluster.devices.reserve(uid, devices)
        if known is not None:
            self._cache.shadows.forget(known.job)
        self._watch_group(made, now)

    def _unnamed_job(self, pod: core.Pod) -> str:
        """Return the key of the job of a pod that names none, empty if it has none; where schedulers share pods by the names of groups, it has to name one."""
        implicit = self._cache.shadows.job_key(pod)
        return implicit if implicit or self._cache.assignment is not None else self._companions.job_key(pod)

    def adopt(self, key: str) -> None:
        """Let pods that have waited for a group without naming it belong to it."""
        for known in self._companions.has_come(key):
            self._enter(known.pod, known, None)

    def regroup(self, now: int) -> None:
        """Take every pod without a group anew: which jobs such pods belong to has changed."""
        for known in list(self._cluster.tasks.values()):
            if not native_groups.job_key(known.pod):
                self._enter(known.pod, known, now)

    def _is_ours(self, pod: core.Pod) -> bool:
        """Take own pods in every phase; of others only those that hold room on a node."""
        if pod.spec.scheduler_name in self._cache.options.scheduler_name:
            assignment = self._cache.assignment
            if assignment is None or assignment.holds_pod(pod):
                return True
        return bool(pod.spec.node_name) and pod.status.phase not in FINISHED_PHASES

    def _remove(self, uid: str) -> None:
        known = self._cluster.tasks.get(uid)
        if known is not None:
            self._cluster.remove_task(known)
            self._cache.native_groups.touch(known.job_key)
            self._cache.shadows.forget(known.job)
            self._companions.forget(known.pod)
        self._waiting_for_group.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone, and everything that is assumed or remembered of it."""
        self._remove(uid)
        self._cache.native_groups.forget_foreign(uid)
        self._cache.assumptions.forget(uid)
        self._cache.publisher.pods.forget(uid)
        self._cache.forget_told(uid)
        if (bad := self._bad.pop(uid, None)) is not None:
            self._cache.enable(kinds.POD, bad[0], bad[1])

    def _refuse(self, metadata: meta.ObjectMeta, job: str, problem: str) -> None:
        """Let a pod count for nothing, and say why."""
        self._remove(metadata.uid)
        self._bad[metadata.uid] = (metadata, job)
        self._cluster.changed += 1
        self._cache.disable(kinds.POD, metadata, job, problem)

    # -- pods whose group is missing ---------------------------------------------------------------------------

    def _watch_group(self, made: task.Task, now: int | None) -> None:
        if made.job is not None and made.job.group is None and made.status == Status.PENDING:
            self._waiting_for_group.setdefault(made.uid, now)
        else:
            self._waiting_for_group.pop(made.uid, None)

    def orphan(self, key: str) -> None:
        """Watch the pods that wait in a job whose group has just gone; their patience starts at the next review."""
        job = self._cluster.jobs.get(key)
        for uid in job.pending if job is not None else ():
            self._waiting_for_group.setdefault(uid, None)

    def review(self, now: int) -> None:
        """Say once on each pod that has waited long that its group does not exist."""
        for uid, since in list(self._waiting_for_group.items()):
            waiting = self._cluster.tasks.get(uid)
            if waiting is None or waiting.job is None or waiting.job.group is not None:
                del self._waiting_for_group[uid]
            elif since is None:
                self._waiting_for_group[uid] = now
            elif now - since >= MISSING_GROUP_PATIENCE:
                del self._waiting_for_group[uid]
                text = causes.missing_group(self._cluster, waiting.job_key)
                if not native_groups.is_native(waiting.job_key) and not native_groups.is_older(waiting.job_key):
                    text += f"; create it or correct the annotation {names.GROUP_NAME}"
                self._cache.record.state(waiting.job_key, text)
                self._cache.publisher.pods.group_missing(waiting, text, now)

    def next_wake(self) -> int | None:
        """Return when the next pod has waited long enough."""
        since = next(iter(self._waiting_for_group.values()), None)
        return None if since is None else since + MISSING_GROUP_PATIENCE


def is_older(found: meta.ObjectMeta, known: meta.ObjectMeta) -> bool:
    """Tell whether an object is an older state than the known one: a read may overtake the watch, and the watch a read."""
    return reflector.follows(known.resource_version, found.resource_version)


def _decides_alike(known: task.Task, pod: core.Pod) -> bool:
    """Tell whether a pod differs from what is known in nothing that a decision reads: mostly our own writes coming back."""
    old = known.pod
    if old.spec != pod.spec or known.nominated != pod.status.nominated_node_name:
        return False
    before, after = old.metadata, pod.metadata
    if (before.labels, before.annotations) != (after.labels, after.annotations):
        return False
    if (before.deletion_timestamp, before.owner_references) != (after.deletion_timestamp, after.owner_references):
        return False
    if old.status.resource_claim_statuses != pod.status.resource_claim_statuses:
        return False
    return old.status.phase == pod.status.phase and shape.reports_of(old) == shape.reports_of(pod)


def _is_same_pod(before: core.Pod, after: core.Pod, job: str) -> bool:
    """Tell whether nothing has changed of a pod but its node, its status, its labels, that it goes, and that it names the job it is in."""
    old, new = before.metadata, after.metadata
    if old.owner_references != new.owner_references or native_groups.job_key(after) not in ("", job):
        return False
    if old.annotations != new.annotations and not _only_names_group(old, new):
        return False
    left, right = before.spec, after.spec
    return left == right or structs.replace(left, node_name=right.node_name) == right


def _only_names_group(old: meta.ObjectMeta, new: meta.ObjectMeta) -> bool:
    """Tell whether nothing of the annotations has changed but that a group is named."""
    if old.annotations.get(names.GROUP_NAME) or names.GROUP_NAME not in new.annotations:
        return False
    return {**old.annotations, names.GROUP_NAME: new.annotations[names.GROUP_NAME]} == new.annotations


def _job_key(metadata: meta.ObjectMeta) -> str:
    group = metadata.annotations.get(names.GROUP_NAME, "")
    return f"{metadata.namespace}/{group}" if group else ""
