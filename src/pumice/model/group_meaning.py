"""What a PodGroup of Kubernetes' own means to the scheduler.

It says less than one of Volcano's: its queue, its priority and what it needs at the least follow from its annotations, its members and its namespace, so it is
described anew whenever one of these changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names
from pumice.model import resources
from pumice.model.native_groups import WHOLE, LabelTopology, NativeGroup, NativeSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.api import native
    from pumice.model.records import Task

_MODES: Final = ("", "Pod", WHOLE)
_MOST_PRIORITY: Final = 1_000_000_000
_MOST_COUNT: Final = 2**31 - 1


def described(found: native.PodGroup, members: Sequence[Task], namespace: Mapping[str, str]) -> tuple[NativeGroup, str]:
    """Return what a group means with these members in a namespace with these annotations, and what is wrong with it."""
    problem = _problem(found)
    spec = found.spec
    gang = spec.scheduling_policy.gang
    least = 1 if problem or gang is None else gang.min_count
    constraints = spec.scheduling_constraints
    key = constraints.topology[0].key if constraints is not None and constraints.topology else ""
    meant = NativeSpec(
        min_member=least,
        queue=_queue(found, members, namespace),
        network_topology=LabelTopology(mode=names.TOPOLOGY_HARD, label=key) if key else None,
        priority=_priority(spec, members),
        whole=spec.disruption_mode == WHOLE,
        minimum=_minimum(members, least),
        refusal=_refusal(found),
    )
    return NativeGroup(metadata=found.metadata, spec=meant, origin=found), problem


def _problem(found: native.PodGroup) -> str:
    """Say what is wrong with a group; nothing is with one that an API server has let pass."""
    spec, policy = found.spec, found.spec.scheduling_policy
    if (policy.basic is None) is (policy.gang is None):
        told = "neither" if policy.basic is None else "both"
        return f"spec.schedulingPolicy sets {told} of basic and gang; exactly one is set"
    if policy.gang is not None and not 1 <= policy.gang.min_count <= _MOST_COUNT:
        return f"spec.schedulingPolicy.gang.minCount {policy.gang.min_count} is outside 1..{_MOST_COUNT}"
    topology = () if spec.scheduling_constraints is None else spec.scheduling_constraints.topology
    if len(topology) > 1:
        return f"spec.schedulingConstraints.topology has {len(topology)} entries; at most one is accepted"
    if topology and not topology[0].key:
        return "spec.schedulingConstraints.topology[0].key is empty"
    if spec.disruption_mode not in _MODES:
        return f"spec.disruptionMode {spec.disruption_mode:.40} is neither Pod nor PodGroup"
    if spec.priority is not None and not -(2**31) <= spec.priority <= _MOST_PRIORITY:
        return f"spec.priority {spec.priority} is above {_MOST_PRIORITY}"
    return ""


def _refusal(found: native.PodGroup) -> str:
    if found.metadata.deletion_timestamp:
        return "its PodGroup is being deleted, so no further member starts"
    if claims := found.spec.resource_claims:
        named = ", ".join(claim.name for claim in claims[:4])
        return f"its PodGroup asks for claims that members share (spec.resourceClaims: {named}), which this version does not place"
    return ""


def _queue(found: native.PodGroup, members: Sequence[Task], namespace: Mapping[str, str]) -> str:
    """Return the queue that the group names, else the first of its pods that names one, else its namespace."""
    if own := found.metadata.annotations.get(names.QUEUE_NAME):
        return own
    for task in sorted(members, key=lambda each: (each.creation, each.uid)):
        if named := task.pod.metadata.annotations.get(names.QUEUE_NAME):
            return named
    return namespace.get(names.QUEUE_NAME, "")


def _priority(spec: native.PodGroupSpec, members: Sequence[Task]) -> int:
    """Return the priority that the group states, else the highest of its members, so that those of pods keep their meaning."""
    if spec.priority is not None:
        return spec.priority
    return max((task.pod.spec.priority or 0 for task in members), default=0)


def _minimum(members: Sequence[Task], least: int) -> dict[str, int] | None:
    """Return what the first members ask for together; None as long as there are too few."""
    if len(members) < least:
        return None
    total: resources.Amounts = {}
    for task in sorted(members, key=lambda each: (-each.priority, each.creation, each.uid))[:least]:
        total = resources.add(total, task.shape.request.amounts)
    total.pop("pods", None)
    return total
