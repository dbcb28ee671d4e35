"""Which changes a cycle is started for at once, and which can wait a moment: those that give nobody room and nobody something to run.

Most of what a busy scheduler hears is the echo of its own writes. A cycle for each of them would decide nothing, and keep the binds that are on their way from
being sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import core, scheduling

if TYPE_CHECKING:
    from pumice.api import decoding
    from pumice.api.meta import KubeObject, ObjectMeta
    from pumice.cache.reflector import EventType
    from pumice.model.cluster import Cluster

_ENDED: Final = ("Succeeded", "Failed")


def can_wait(cluster: Cluster, event_type: EventType, found: KubeObject | decoding.Malformed) -> bool:
    """Tell whether nothing could be decided now that could not be before.

    Asked by the I/O thread, which reads single entries of the model while it may change: what is missed that way is looked at a moment too soon or too late.
    """
    if event_type == "DELETED":
        return False
    if isinstance(found, core.Pod):
        return _has_place(found)
    if isinstance(found, scheduling.PodGroup):
        job = cluster.jobs.get(f"{found.metadata.namespace}/{found.metadata.name}")
        group = None if job is None else job.group
        return group is not None and group.spec == found.spec and _is_same(group.metadata, found.metadata)
    if isinstance(found, scheduling.Queue):
        queue = cluster.queues.get(found.metadata.name)
        known = None if queue is None else queue.object
        if known is None or known.status.state != found.status.state:
            return False
        return known.spec == found.spec and _is_same(known.metadata, found.metadata)
    return False


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
