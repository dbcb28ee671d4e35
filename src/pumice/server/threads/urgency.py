"""Which changes a cycle is started for at once, and which can wait a moment: those that give nobody room and nobody something to run.

Most of what a busy scheduler hears is the echo of its own writes, groups without pods, and pods whose gangs are not complete, or for which a group is still to be made. A cycle for each of them would decide
nothing, and keep the binds that are on their way from being sent. Most groups have their pods within milliseconds; one that has none waits no longer than whoever
creates them once it is let in would notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import core, native, scheduling
from pumice.model import native_groups

if TYPE_CHECKING:
    from collections.abc import Collection

    from pumice.api import decoding
    from pumice.api.meta import KubeObject, ObjectMeta
    from pumice.cache.reflector import EventType
    from pumice.cache.shadows import Shadows
    from pumice.model.cluster import Cluster

NOW: Final = 0.0
SOON: Final = 0.05  # seconds for which a group without pods waits for them
LATER: Final = 0.2  # seconds for which changes are gathered that nothing new can be decided on
MOST: Final = 10_000  # gangs of which it is known which pods have come, and groups that nobody has looked at yet
_ENDED: Final = ("Succeeded", "Failed")


class Urgency:
    """Judges changes as they come.

    Asked by the I/O thread, which reads single entries of the model while it may change: what is missed that way is looked at a moment too soon or too late.
    """

    def __init__(self, cluster: Cluster, shadows: Shadows) -> None:
        self._cluster = cluster
        self._shadows = shadows
        self._coming: dict[str, dict[str, None]] = {}  # pods of gangs, those among them that the model has not seen
        self._announced: dict[str, int] = {}  # the minimum of groups that the model has not seen

    def wait(self, event_type: EventType, found: KubeObject | decoding.Malformed) -> float:
        """Return for how many seconds a change may wait for others: none if something could be decided now that could not be before."""
        if event_type == "DELETED":
            return NOW
        if isinstance(found, core.Pod):
            return LATER if _has_place(found) or self._is_echo(found) or self._lacks_others(found) else NOW
        if isinstance(found, scheduling.PodGroup):
            return self._wait_of_group(found)
        if isinstance(found, native.PodGroup):
            return self._wait_of_native(found)
        if isinstance(found, scheduling.Queue):
            return LATER if self._is_same_queue(found) else NOW
        return NOW

    def _wait_of_group(self, found: scheduling.PodGroup) -> float:
        key = f"{found.metadata.namespace}/{found.metadata.name}"
        job = self._cluster.jobs.get(key)
        group = None if job is None else job.group
        if group is not None:
            return LATER if group.spec == found.spec and _is_same(group.metadata, found.metadata) else NOW
        if job is not None and job.tasks:
            return NOW
        if len(self._announced) >= MOST:
            jobs = self._cluster.jobs
            self._announced = {each: minimum for each, minimum in self._announced.items() if each not in jobs}
        if len(self._announced) < MOST:
            self._announced[key] = found.spec.min_member
        if len(self._coming.get(key, ())) >= max(1, found.spec.min_member):
            del self._coming[key]
            return NOW
        return SOON

    def _wait_of_native(self, found: native.PodGroup) -> float:
        """Judge a group of Kubernetes' own: it matters once pods of ours name it, and of a known one only whether it goes or another takes its place."""
        job = self._cluster.jobs.get(native_groups.key_of(found.metadata.namespace, found.metadata.name))
        if job is None:
            return LATER
        known = None if job.group is None else job.group.metadata
        return LATER if known is not None and _is_same(known, found.metadata) else NOW

    def _is_same_queue(self, found: scheduling.Queue) -> bool:
        queue = self._cluster.queues.get(found.metadata.name)
        known = None if queue is None else queue.object
        if known is None or known.status.state != found.status.state:
            return False
        return known.spec == found.spec and _is_same(known.metadata, found.metadata)

    def _is_echo(self, pod: core.Pod) -> bool:
        """Tell whether of a pod that waits only what is written on it has changed."""
        task = self._cluster.tasks.get(pod.metadata.uid)
        if task is None or task.pod.status.phase != pod.status.phase or pod.metadata.deletion_timestamp:
            return False
        return task.pod.spec == pod.spec and _is_same(task.pod.metadata, pod.metadata)

    def _lacks_others(self, pod: core.Pod) -> bool:
        """Tell whether a pod belongs to a gang that is not complete with it, or to none before one is made for it."""
        named = native_groups.job_key(pod)
        key = named if named or self._shadows.enabled else native_groups.companion_key(pod)
        if not key:
            return False
        job = self._cluster.jobs.get(key)
        group = None if job is None else job.group
        announced = self._announced.get(key) if group is None else self._announced.pop(key, None)
        minimum = announced if group is None else group.spec.min_member
        if minimum is None:
            if not named:
                self._note(key, pod)  # a group is made for it, which cannot wait
            return not named
        seen: Collection[str] = () if job is None else job.tasks
        if len(seen) >= minimum:
            self._coming.pop(key, None)
            return False
        coming = self._note(key, pod)
        if len(seen) + len(coming) >= minimum:  # some of them may be counted twice
            coming = self._coming[key] = {uid: None for uid in coming if uid not in seen}
        return len(seen) + len(coming) < minimum

    def _note(self, key: str, pod: core.Pod) -> dict[str, None]:
        """Note that a pod of a gang has come; returns all of which that is known."""
        if len(self._coming) >= MOST and key not in self._coming:
            self._tidy()
        coming = self._coming.setdefault(key, {})
        coming[pod.metadata.uid] = None
        return coming

    def _tidy(self) -> None:
        """Forget gangs whose pods the model has; of all the others nothing is known any more, if they are too many."""
        tasks = self._cluster.tasks
        left = {key: uids for key, uids in self._coming.items() if any(uid not in tasks for uid in uids)}
        self._coming = left if len(left) < MOST // 2 else {}


def _has_place(pod: core.Pod) -> bool:
    """Tell whether a pod has its node, and is to stay there."""
    return bool(pod.spec.node_name) and pod.status.phase not in _ENDED and not pod.metadata.deletion_timestamp


def _is_same(known: ObjectMeta, found: ObjectMeta) -> bool:
    """Tell whether nothing of an object's metadata has changed that anybody reads."""
    return (
        known.uid == found.uid
        and known.labels == found.labels
        and known.annotations == found.annotations
        and known.deletion_timestamp == found.deletion_timestamp
    )
