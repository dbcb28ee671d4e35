"""Objects of a cluster as rows: what one of each says about itself, without the others. An amount or a time that cannot be read is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, names, native, scheduling, timestamp
from pumice.api.printable import printable
from pumice.framework import causes, reason_keys
from pumice.model import group_meaning, native_groups, resources
from pumice.study.following.scene import Amounts, EvictionRow, JobRow, NodeRow, QueueRow

if TYPE_CHECKING:
    from pumice.api.meta import ObjectMeta, ResourceList

OPEN: Final = "Open"
WAITING: Final = frozenset({"", names.PHASE_PENDING, names.PHASE_INQUEUE})
ZONES: Final = (names.ZONE, names.OLDER_ZONE)
POOLS: Final = (
    "pumice.dev/pool",
    "volcano.sh/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels that say which pool a node is of; the first that is there counts."""
_TOLD: Final = re.compile(
    r"Pod is evicted, because of (?P<action>[\w-]+)"
    r"(?: for pod (?P<claimant>\S+) of group (?P<group>\S+) in queue (?P<queue>\S+?))?"
    r"(?: by the rules of (?P<rules>.+?))?(?:, plan (?P<plan>[0-9]{1,18}))?"
)


def queue(found: scheduling.Queue, waiting: int, running: int) -> QueueRow:
    """Give the row of a queue, with how many of its groups wait and run."""
    return QueueRow(
        name=found.metadata.name,
        state=found.status.state or OPEN,
        parent=found.spec.parent,
        weight=found.spec.weight,
        allocated=amounts(found.status.allocated),
        deserved=amounts(found.spec.deserved),
        capability=amounts(found.spec.capability),
        waiting=waiting,
        running=running,
        guarantee=amounts(found.spec.guarantee.resource),
    )


def node(found: core.Node) -> NodeRow:
    """Give the row of a node without pods."""
    ready = next((each.status for each in found.status.conditions if each.type == "Ready"), "True")
    states = [*(["NotReady"] if ready != "True" else []), *(["Cordoned"] if found.spec.unschedulable else [])]
    labels = found.metadata.labels
    return NodeRow(
        name=found.metadata.name,
        state=",".join(states),
        allocatable=amounts(found.status.allocatable),
        used={},
        pods=0,
        zone=printable(next((labels[key] for key in ZONES if labels.get(key)), "")),
        pool=printable(next((labels[key] for key in POOLS if labels.get(key)), "")),
    )


def job(group: scheduling.PodGroup) -> JobRow:
    """Give the row of a group without pods."""
    created = moment(group.metadata.creation_timestamp) or 0
    lost = group.status.phase == names.PHASE_UNKNOWN
    waits = lost or group.status.phase in WAITING
    verdict = next(
        (
            each
            for each in group.status.conditions
            if each.type == names.CONDITION_UNSCHEDULABLE and each.status == "True"
        ),
        None,
    )
    since = (moment(verdict.last_transition_time) if verdict and lost else None) or created
    return JobRow(
        namespace=group.metadata.namespace,
        name=group.metadata.name,
        title=_owner(group.metadata),
        queue=group.spec.queue or names.DEFAULT_QUEUE,
        phase=group.status.phase or names.PHASE_PENDING,
        minimum=group.spec.min_member,
        members=0,
        ready=0,
        created=created,
        since=since if waits else None,
        reason=printable(_reason(group, verdict)) if waits else "",
    )


def _reason(group: scheduling.PodGroup, verdict: scheduling.PodGroupCondition | None) -> str:
    """Give the cause that a verdict begins with; a group that was let in and has no pods has no verdict."""
    if verdict is not None:
        return reason_keys.cause(verdict.message or verdict.reason)
    if group.status.phase == names.PHASE_INQUEUE and group.spec.min_member > 0:
        return without_pods(group.spec.min_member)
    return ""


def without_pods(minimum: int) -> str:
    """Say why a group waits that has no pods."""
    return f"{causes.NO_PODS}, minMember is {minimum}"


def _owner(metadata: ObjectMeta) -> str:
    """Name a group as its user does: by the job or pod that it was made for."""
    owner = next((each for each in metadata.owner_references if each.kind in ("Job", "Pod")), None)
    return printable(owner.name if owner is not None else metadata.name)


def of_native(found: native.PodGroup) -> scheduling.PodGroup:
    """Give a group of Kubernetes' own as one of Volcano's, as far as a row shows it: the condition stands for phase and verdict."""
    group, _ = group_meaning.described(found, [], {})
    stated = next((c for c in found.status.conditions if c.type == names.CONDITION_POD_GROUP_SCHEDULED), None)
    verdict = scheduling.PodGroupCondition(
        type=names.CONDITION_UNSCHEDULABLE,
        status="False" if stated is None or stated.status == "True" else "True",
        reason="" if stated is None else stated.reason,
        message="" if stated is None else stated.message,
        last_transition_time=None if stated is None else stated.last_transition_time,
    )
    scheduled = stated is not None and stated.status == "True"
    return scheduling.PodGroup(
        metadata=structs.replace(found.metadata, name=native_groups.name_of_job(found)),
        spec=scheduling.PodGroupSpec(min_member=group.spec.min_member, queue=group.spec.queue),
        status=scheduling.PodGroupStatus(
            phase=names.PHASE_RUNNING if scheduled else names.PHASE_PENDING, conditions=(verdict,)
        ),
    )


def eviction(event: core.Event) -> EvictionRow | None:
    """Give what an event tells of an eviction of a pod; None if it tells of something else."""
    if event.reason != names.EVENT_EVICT or event.involved_object.kind != "Pod":
        return None
    told = _TOLD.fullmatch(event.message)
    parts = told.groupdict() if told else {}
    return EvictionRow(
        id=event.metadata.uid or f"{event.metadata.namespace}/{event.metadata.name}",
        time=moment(event.last_timestamp) or moment(event.first_timestamp) or 0,
        namespace=event.involved_object.namespace or event.metadata.namespace,
        pod=event.involved_object.name,
        text=printable(event.message),
        action=parts.get("action") or "",
        claimant=parts.get("claimant") or "",
        group=parts.get("group") or "",
        queue=parts.get("queue") or "",
        rules=parts.get("rules") or "",
        plan=int(parts["plan"]) if parts.get("plan") else None,
    )


def amounts(listed: ResourceList) -> Amounts:
    """Read amounts; one that cannot be read is left out."""
    read: Amounts = {}
    for name, text in listed.items():
        if resources.is_counted(name):
            try:
                read[name] = resources.amount(name, text, name)
            except resources.BadValueError:
                continue
    return read


def moment(text: str | None) -> int | None:
    """Read a time, in microseconds."""
    try:
        return timestamp.parse(text) if text else None
    except timestamp.TimestampError:
        return None
