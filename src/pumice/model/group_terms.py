"""What a PodGroup asks for, as its job keeps it: minimums, sub-groups, topology, marks."""

from __future__ import annotations

from pumice.api import names, scheduling
from pumice.model import marks, native_groups, reading, resources, subgroups


class GroupTerms:
    """What a PodGroup says, read once; all of it is as if nothing were asked for where there is no group."""

    __slots__ = (
        "annotations",
        "bad",
        "creation",
        "group",
        "min_member",
        "min_resources",
        "min_task_member",
        "min_task_total",
        "native",
        "policies",
        "preemptable",
        "preemptable_set",
        "refusal",
        "status",
        "topology",
        "uid",
        "waiting_time",
        "whole",
    )

    def __init__(self) -> None:
        self.uid = ""
        self.group: scheduling.PodGroup | None = None
        self.status = scheduling.PodGroupStatus()
        self.bad = ""
        self.creation = 0
        self.annotations: dict[str, str] = {}
        self.min_member = 0
        self.min_task_member: dict[str, int] = {}
        self.min_task_total = 0
        self.min_resources: resources.Amounts | None = None
        self.policies: tuple[subgroups.Policy, ...] = ()
        self.topology: scheduling.NetworkTopology | None = None
        self.preemptable = False
        self.preemptable_set = False
        self.waiting_time: int | None = None
        self.native = False  # whether its group is of Kubernetes' own, which waits for its pods to be made
        self.whole = False  # whether its members go together or not at all
        self.refusal = ""  # why no member may start though nothing is wrong with the group

    @property
    def phase(self) -> str:
        """The phase as last read or written; absent reads as Pending."""
        return self.status.phase or names.PHASE_PENDING

    @property
    def roles_enforced(self) -> bool:
        """Role minimums count only if the gang is at least as large as their sum."""
        return bool(self.min_task_member) and self.min_member >= self.min_task_total

    def describe(self, group: scheduling.PodGroup) -> None:
        """Take over what a PodGroup says, or raise the `BadValueError` that makes the group invalid."""
        spec, metadata = group.spec, group.metadata
        self.group = group
        self.uid = metadata.uid
        self.creation = reading.instant(metadata.creation_timestamp)
        self.annotations = metadata.annotations
        self.preemptable = marks.is_preemptable(metadata.annotations, metadata.labels, default=False)
        self.preemptable_set = names.PREEMPTABLE in metadata.annotations or names.PREEMPTABLE in metadata.labels
        self.waiting_time = reading.positive_duration(
            metadata.annotations.get(names.SLA_WAITING_TIME, metadata.annotations.get(names.OLDER_SLA_WAITING_TIME))
        )
        self.topology = subgroups.checked_topology(spec.network_topology, "spec.networkTopology")
        self.min_member = reading.count(spec.min_member, "spec.minMember")
        self.min_task_member = {
            role: reading.count(minimum, f"spec.minTaskMember.{role}") for role, minimum in spec.min_task_member.items()
        }
        self.min_task_total = sum(self.min_task_member.values())
        listed = spec.min_resources
        if listed is not None and names.CARD_COUNT in listed:
            # No node offers it: it only says how many cards one pod has.
            listed = {name: text for name, text in listed.items() if name != names.CARD_COUNT}
        self.min_resources = None if listed is None else resources.parse_shared(listed, "spec.minResources")
        self.policies = subgroups.parse(spec.sub_group_policy)
        if isinstance(spec, native_groups.NativeSpec):
            self.native, self.whole, self.refusal = True, spec.whole, spec.refusal
            self.min_resources = spec.minimum

    def forget_group(self) -> None:
        """Go back to being a place where pods wait for their group."""
        self.group = None
        self.uid = ""
        self.bad = ""
        self.status = scheduling.PodGroupStatus()
        self.policies = ()
        self.topology = None
        self.min_member, self.min_task_member, self.min_task_total = 0, {}, 0
        self.min_resources = None
        self.native, self.whole, self.refusal = False, False, ""
