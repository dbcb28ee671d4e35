"""Pods that name no group, and the groups that were made for them: a pod belongs to its own from the moment it is there, and names it when it is bound.

The name of such a group holds the uid of the pod, or of the pod's controller, so no other evidence is needed of who belongs to it, whatever becomes of a bind, and after a restart, too. A request for
each pod is saved that way, which everything else would have to wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.model import native_groups

if TYPE_CHECKING:
    from pumice.api import core
    from pumice.model.cluster import Cluster
    from pumice.model.task import Task


class CompanionGroups:
    """Knows which pods wait for a group that is to be made for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[str, dict[str, None]] = {}  # uids of pods by the key of the job that will be theirs

    def job_key(self, pod: core.Pod) -> str:
        """Return the key of the job of a pod that names none; empty as long as its group is not there, and the pod is waited with."""
        key = native_groups.companion_key(pod)
        job = self._cluster.jobs.get(key)
        if not key or (job is not None and job.group is not None):
            return key
        self._waiting.setdefault(key, {})[pod.metadata.uid] = None
        return ""

    def has_come(self, key: str) -> list[Task]:
        """Return, once, the pods that have waited for a group."""
        tasks = self._cluster.tasks
        return [tasks[uid] for uid in self._waiting.pop(key, ()) if uid in tasks]

    def forget(self, pod: core.Pod) -> None:
        """Drop a pod that is gone."""
        key = native_groups.companion_key(pod)
        if (waiting := self._waiting.get(key)) is not None:
            waiting.pop(pod.metadata.uid, None)
            if not waiting:
                del self._waiting[key]


def naming(task: Task) -> dict[str, str]:
    """Return the annotation by which a pod names the group it belongs to, if it does not yet."""
    if names.POD_GROUP_PREFIX not in task.job_key:  # asked about every pod that is bound, and most name theirs
        return {}
    key = native_groups.companion_key(task.pod)
    return {names.GROUP_NAME: key.partition("/")[2]} if key and task.job_key == key else {}
