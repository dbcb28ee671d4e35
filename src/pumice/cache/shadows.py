"""kube-batch's implicit groups: under its rules a pod that names no group still belongs to a job.

The job is that of the pod's controller, else the pod's own. Its minimum comes from a disruption budget of the same controller, else from the pod's annotation,
else it is one. Such a group exists in memory only: nothing is written about it and no event tells of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import meta, names, policy, scheduling

if TYPE_CHECKING:
    from pumice.api import core
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job

_LARGEST = 2**31 - 1


def is_shadow(group: scheduling.PodGroup) -> bool:
    """Tell whether a group exists in memory only."""
    return names.SHADOW_POD_GROUP in group.metadata.annotations


class Shadows:
    """Gives jobs to pods without a group while kube-batch's rules are in force."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.enabled = False
        self._budgets: dict[str, dict[str, int]] = {}  # uid of a controller -> minimum by budget
        self._owners: dict[str, str] = {}  # budget -> uid of the controller it was last seen with

    def job_key(self, pod: core.Pod) -> str:
        """Return the key of a pod's implicit job, which then exists; empty if it has none."""
        if not self.enabled:
            return ""
        metadata = pod.metadata
        owner = _controller(metadata) or metadata.uid
        key = f"{metadata.namespace}/{owner}"
        known = self._cluster.jobs.get(key)
        if known is None or known.group is None:
            self._cluster.set_group(self._group(pod, owner))
        return key

    def forget(self, job: Job | None) -> None:
        """Drop an implicit group whose last pod has gone."""
        if job is not None and not job.tasks and job.group is not None and is_shadow(job.group):
            self._cluster.remove_group(job.key)

    def budget(self, found: meta.KubeObject | None, metadata: meta.ObjectMeta) -> None:
        """Follow a disruption budget, None once it is gone: one that a controller owns says how many of its pods must run together."""
        name = f"{metadata.namespace}/{metadata.name}"
        # Of one that is gone often nothing but the name is known.
        before = self._owners.pop(name, "")
        if before:
            self._budgets[before].pop(name)
            if not self._budgets[before]:
                del self._budgets[before]
        owner = _controller(metadata)
        minimum = found.spec.min_available if isinstance(found, policy.PodDisruptionBudget) else None
        if owner and isinstance(minimum, int) and 0 <= minimum <= _LARGEST:
            self._owners[name] = owner
            self._budgets.setdefault(owner, {})[name] = minimum
        for each in dict.fromkeys(uid for uid in (before, owner) if uid):
            self._describe_again(metadata.namespace, each)

    def _describe_again(self, namespace: str, owner: str) -> None:
        """Let the implicit group of a controller follow its budgets."""
        job = self._cluster.jobs.get(f"{namespace}/{owner}")
        if job is not None and job.group is not None and is_shadow(job.group) and job.tasks:
            self._cluster.set_group(self._group(next(iter(job.tasks.values())).pod, owner))

    def _group(self, pod: core.Pod, owner: str) -> scheduling.PodGroup:
        metadata = meta.ObjectMeta(
            name=owner,
            namespace=pod.metadata.namespace,
            uid=f"shadow-{owner}",
            creation_timestamp=pod.metadata.creation_timestamp,
            annotations={names.SHADOW_POD_GROUP: "true"},
        )
        minima = self._budgets.get(owner)
        spec = scheduling.PodGroupSpec(
            min_member=max(minima.values()) if minima else _minimum(pod),
            priority_class_name=pod.spec.priority_class_name,
        )
        return scheduling.PodGroup(metadata=metadata, spec=spec)


def _controller(metadata: meta.ObjectMeta) -> str:
    return next((owner.uid for owner in metadata.owner_references if owner.controller), "")


def _minimum(pod: core.Pod) -> int:
    text = pod.metadata.annotations.get(names.KUBE_BATCH_GROUP_MIN_MEMBER, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _LARGEST else 1
