"""Kubernetes' own PodGroups as jobs: which pod belongs to which.

The key of such a job ends in a sign that no name has, so that it is never that of a group of the other API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names, native, scheduling

if TYPE_CHECKING:
    from pumice.api import core
    from pumice.api.meta import KubeObject

MARK: Final = "@scheduling.k8s.io"
OLDER_MARK: Final = "@scheduling.k8s.io/v1alpha1"
WHOLE: Final = "PodGroup"
KIND: Final = "podgroups.scheduling.k8s.io"
NOT_SERVED: Final = "kind PodGroup of scheduling.k8s.io is not served"


class LabelTopology(scheduling.NetworkTopology, frozen=True, kw_only=True):
    """A node label of which all members must share one value."""

    label: str = ""


class NativeSpec(scheduling.PodGroupSpec, frozen=True, kw_only=True):
    """What a group of Kubernetes' own asks for, in Volcano's words, and what these have no word for.

    `minimum` is what the first members ask for together, once there are enough of them; `refusal` says why no member may start though nothing is wrong with the object; `others` names
    members of other schedulers that have no node.
    """

    network_topology: LabelTopology | None = None
    priority: int = 0
    whole: bool = False
    minimum: dict[str, int] | None = None
    refusal: str = ""
    others: str = ""


class NativeGroup(scheduling.PodGroup, frozen=True, kw_only=True):
    """A group of Kubernetes' own in the form of Volcano's; it exists in memory only, and `origin` is what was read."""

    spec: NativeSpec = NativeSpec()
    origin: native.PodGroup = native.PodGroup()


def key_of(namespace: str, name: str) -> str:
    """Return the key of the job of a group."""
    return f"{namespace}/{name}{MARK}"


def is_native(key: str) -> bool:
    """Tell whether a job is that of a group of Kubernetes' own."""
    return key.endswith(MARK)


def is_older(key: str) -> bool:
    """Tell whether pods wait in a job because they name their group as Kubernetes 1.35 did."""
    return key.endswith(OLDER_MARK)


def group_key(group: scheduling.PodGroup) -> str:
    """Return the key of the job that a group makes."""
    metadata = group.metadata
    if isinstance(group, NativeGroup):
        return key_of(metadata.namespace, metadata.name)
    return f"{metadata.namespace}/{metadata.name}"


def job_key(pod: core.Pod) -> str:
    """Return the key of the job that a pod belongs to, empty if it names none.

    A group that a person or an operator made comes first, then that of `schedulingGroup`, and last the one that was made because nobody else had named any.
    """
    metadata, spec = pod.metadata, pod.spec
    named = metadata.annotations.get(names.GROUP_NAME, "")
    if named and not (spec.scheduling_group or spec.workload_ref):
        return f"{metadata.namespace}/{named}"
    if named and not is_automatic(named, pod):
        return f"{metadata.namespace}/{named}"
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return key_of(metadata.namespace, spec.scheduling_group.pod_group_name)
    if (older := spec.workload_ref) is not None:
        replica = f"/{older.pod_group_replica_key}" if older.pod_group_replica_key else ""
        return f"{metadata.namespace}/{older.name}/{older.pod_group}{replica}{OLDER_MARK}"
    return f"{metadata.namespace}/{named}" if named else ""


def companion_key(pod: core.Pod) -> str:
    """Return the key of the job that is made for a pod if nobody else names one: that of its controller, else its own; empty if the pod names one."""
    metadata, spec = pod.metadata, pod.spec
    if metadata.annotations.get(names.GROUP_NAME) or spec.scheduling_group is not None or spec.workload_ref is not None:
        return ""
    uid = next((owner.uid for owner in metadata.owner_references if owner.controller), metadata.uid)
    return f"{metadata.namespace}/{names.POD_GROUP_PREFIX}{uid}"


def name_in_job(pod: core.Pod) -> str:
    """Return the name of the job that a pod belongs to inside its namespace, empty if it names none."""
    return job_key(pod).partition("/")[2]


def name_of_job(group: KubeObject) -> str:
    """Return the name of the job of a group, of either API, inside its namespace."""
    return f"{group.metadata.name}{MARK}" if isinstance(group, native.PodGroup) else group.metadata.name


def is_automatic(named: str, pod: core.Pod) -> bool:
    """Tell whether a group was made for a pod that nobody had grouped: it has the uid of the pod, or of an owner, in its name."""
    uids = (pod.metadata.uid, *(owner.uid for owner in pod.metadata.owner_references))
    return any(uid and named == f"{names.POD_GROUP_PREFIX}{uid}" for uid in uids)


def overridden(pod: core.Pod) -> str:
    """Say that a pod names two groups, and which of them counts; empty if it does not."""
    group = pod.spec.scheduling_group
    named = pod.metadata.annotations.get(names.GROUP_NAME, "")
    if group is None or not named or is_automatic(named, pod):
        return ""
    return (
        f"spec.schedulingGroup.podGroupName {group.pod_group_name} is not heeded: the annotation {names.GROUP_NAME} names "
        f"PodGroup {named} of scheduling.volcano.sh, which counts"
    )
