"""A job: the pods of one PodGroup, counted by status so that every question about readiness is a comparison of integers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pumice.api import names, scheduling
from pumice.model import marks, resources, statuses, subgroups
from pumice.model.statuses import Status
from pumice.model.task import instant, positive_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.model.task import Task

BEST_EFFORT_PENDING = statuses.COUNT
INT32_MAX = 2**31 - 1

# Asked for every job in every cycle: plain integers index lists several times faster than members of an enumeration.
_ALLOCATED, _PIPELINED, _BINDING = int(Status.ALLOCATED), int(Status.PIPELINED), int(Status.BINDING)
_BOUND, _RUNNING, _SUCCEEDED = int(Status.BOUND), int(Status.RUNNING), int(Status.SUCCEEDED)
_PENDING, _RELEASING, _EVICTING = int(Status.PENDING), int(Status.RELEASING), int(Status.EVICTING)


class Tally:
    """Tasks counted by status, with one more slot for pending best-effort tasks."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * (statuses.COUNT + 1)

    @property
    def ready(self) -> int:
        """Tasks that are placed or have succeeded."""
        c = self.counts
        return c[_ALLOCATED] + c[_BINDING] + c[_BOUND] + c[_RUNNING] + c[_SUCCEEDED]

    @property
    def waiting(self) -> int:
        """Tasks placed on room that is still being released."""
        return self.counts[_PIPELINED]

    @property
    def valid(self) -> int:
        """Tasks that are, or may still be, placed."""
        c = self.counts  # asked about every job that waits, so without asking `ready`
        placed = c[_ALLOCATED] + c[_BINDING] + c[_BOUND] + c[_RUNNING] + c[_SUCCEEDED]
        return placed + c[_PIPELINED] + c[_PENDING]

    @property
    def total(self) -> int:
        """All tasks."""
        return sum(self.counts[: statuses.COUNT])

    def is_ready(self, minimum: int) -> bool:
        """Tell whether the minimum is placed, pending best-effort tasks counting as placed."""
        c = self.counts  # asked after every placement, so without asking `ready`
        placed = c[_ALLOCATED] + c[_BINDING] + c[_BOUND] + c[_RUNNING] + c[_SUCCEEDED]
        return placed + c[BEST_EFFORT_PENDING] >= minimum

    def is_pipelined(self, minimum: int) -> bool:
        """Tell whether the minimum is placed or waits for room that is being released."""
        return self.waiting + self.ready + self.counts[BEST_EFFORT_PENDING] >= minimum

    def is_starving(self, minimum: int) -> bool:
        """Tell whether fewer than the minimum are placed or waiting."""
        return self.waiting + self.ready < minimum


class SubJob:
    """The tasks of a job that agree on the labels of one sub-group policy, or all that no policy captures."""

    __slots__ = ("group", "job", "key", "match_index", "minimum", "priority", "tally", "tasks", "topology")

    def __init__(self, job: Job, key: str, group: str, minimum: int) -> None:
        self.job = job
        self.key = key
        self.group = group
        self.minimum = minimum
        self.match_index = 0
        self.topology: scheduling.NetworkTopology | None = None
        self.priority = 0
        self.tally = Tally()
        self.tasks: dict[str, Task] = {}


class Job:
    """One PodGroup and its tasks. A job without a group is only a place where early pods wait."""

    __slots__ = (
        "annotations",
        "bad",
        "creation",
        "group",
        "key",
        "min_member",
        "min_resources",
        "min_task_member",
        "min_task_total",
        "name",
        "namespace",
        "pending",
        "policies",
        "preemptable",
        "preemptable_set",
        "priority",
        "queue",
        "roles",
        "row",
        "status",
        "sub_jobs",
        "tally",
        "tasks",
        "topology",
        "uid",
        "version",
        "waiting_time",
    )

    def __init__(self, key: str, row: int) -> None:
        self.key = key
        self.namespace, self.name = key.split("/", 1)
        self.row = row
        self.uid = ""
        self.group: scheduling.PodGroup | None = None
        self.status = scheduling.PodGroupStatus()
        self.bad = ""
        self.queue = ""
        self.priority = 0
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
        self.tasks: dict[str, Task] = {}
        self.pending: dict[str, Task] = {}
        self.tally = Tally()
        self.roles: dict[str, Tally] = {}
        self.sub_jobs: dict[str, SubJob] = {}
        self.version = 0

    def __repr__(self) -> str:
        return f"<job {self.key} min {self.min_member} of {len(self.tasks)}>"

    @property
    def leaving(self) -> int:
        """Tasks that are going and still take room on a node."""
        counts = self.tally.counts
        if not (counts[_RELEASING] or counts[_EVICTING]):
            return 0
        return sum(1 for task in self.tasks.values() if task.node is not None and task.status in statuses.GOING)

    @property
    def phase(self) -> str:
        """The phase as last read or written; absent reads as Pending."""
        return self.status.phase or names.PHASE_PENDING

    def describe(self, group: scheduling.PodGroup) -> None:
        """Take over what a PodGroup says, or raise the `BadValueError` that makes the group invalid."""
        spec, metadata = group.spec, group.metadata
        self.group = group
        self.uid = metadata.uid
        self.creation = instant(metadata.creation_timestamp)
        self.annotations = metadata.annotations
        self.preemptable = marks.is_preemptable(metadata.annotations, metadata.labels, default=False)
        self.preemptable_set = names.PREEMPTABLE in metadata.annotations or names.PREEMPTABLE in metadata.labels
        self.waiting_time = positive_duration(
            metadata.annotations.get(names.SLA_WAITING_TIME, metadata.annotations.get(names.OLDER_SLA_WAITING_TIME))
        )
        self.topology = subgroups.checked_topology(spec.network_topology, "spec.networkTopology")
        self.min_member = _count(spec.min_member, "spec.minMember")
        self.min_task_member = {
            role: _count(minimum, f"spec.minTaskMember.{role}") for role, minimum in spec.min_task_member.items()
        }
        self.min_task_total = sum(self.min_task_member.values())
        listed = spec.min_resources
        self.min_resources = None if listed is None else resources.parse_shared(listed, "spec.minResources")
        self.policies = subgroups.parse(spec.sub_group_policy)

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

    def sub_job_for(self, labels: Mapping[str, str]) -> SubJob:
        """Return the sub-job that a pod with these labels belongs to, making it if it is the first."""
        found = subgroups.match(self.policies, labels)
        if found is None:
            minimum = 1 if self.policies else self.min_member
            if (sub_job := self.sub_jobs.get(self.key)) is None:
                sub_job = self.sub_jobs[self.key] = SubJob(self, self.key, self.key, minimum)
                sub_job.topology = self.topology
            return sub_job
        group = f"{self.key}/{found.policy.name}"
        key = f"{group}-{found.suffix}"
        if (sub_job := self.sub_jobs.get(key)) is None:
            sub_job = self.sub_jobs[key] = SubJob(self, key, group, found.policy.size)
            sub_job.match_index, sub_job.topology = found.index, found.policy.topology
        return sub_job

    # -- readiness ---------------------------------------------------------------------------------------------

    @property
    def roles_enforced(self) -> bool:
        """Role minimums count only if the gang is at least as large as their sum."""
        return bool(self.min_task_member) and self.min_member >= self.min_task_total

    def roles_reach(self, *, pipelined: bool, without: Iterable[Task] = ()) -> bool:
        """Tell whether every role has its minimum placed (or, pipelined, waiting for room), not counting some tasks that are."""
        if not self.roles_enforced:
            return True
        lost = Counter(task.role for task in without)
        for role, minimum in self.min_task_member.items():
            tally = self.roles.get(role)
            if tally is None:
                if minimum > 0:
                    return False
                continue
            wanted = minimum + lost[role] if minimum > 0 else 0
            if not (tally.is_pipelined(wanted) if pipelined else tally.is_ready(wanted)):
                return False
        return True

    def short_role(self) -> tuple[str, int, int] | None:
        """Return the first role with too few valid tasks: its name, how many there are, how many it needs."""
        if not self.roles_enforced:
            return None
        for role, minimum in sorted(self.min_task_member.items()):
            tally = self.roles.get(role)
            valid = tally.valid if tally else 0
            if minimum and valid < minimum:
                return role, valid, minimum
        return None

    def sub_jobs_reach(self, *, pipelined: bool, without: Iterable[Task] = ()) -> bool:
        """Tell whether each policy has its minimum number of complete sub-groups, not counting some tasks that are placed or wait for room."""
        if not self.policies:
            return True
        lost = Counter(id(task.sub_job) for task in without)
        for policy in self.policies:
            if policy.min_sub_groups <= 0:
                continue
            group = f"{self.key}/{policy.name}"
            complete = sum(
                1
                for sub in self.sub_jobs.values()
                if sub.group == group
                and (
                    sub.tally.is_pipelined(sub.minimum + lost[id(sub)])
                    if pipelined
                    else sub.tally.is_ready(sub.minimum + lost[id(sub)])
                )
            )
            if complete < policy.min_sub_groups:
                return False
        return True

    def short_policy(self) -> tuple[str, int, int] | None:
        """Return the first policy with too few sub-groups: its name, how many exist, how many it needs."""
        for policy in self.policies:
            group = f"{self.key}/{policy.name}"
            exist = sum(1 for sub in self.sub_jobs.values() if sub.group == group and sub.tasks)
            if exist < policy.min_sub_groups:
                return policy.name, exist, policy.min_sub_groups
        return None

    @property
    def is_ready(self) -> bool:
        """Tell whether the gang may start."""
        return self.tally.is_ready(self.min_member)

    @property
    def surplus(self) -> int:
        """How many members beyond the minimum are placed, pending best-effort ones counting as placed; negative if the gang lacks some."""
        return self.tally.ready + self.tally.counts[BEST_EFFORT_PENDING] - self.min_member

    @property
    def is_interrupted(self) -> bool:
        """Tell whether some members have started and the gang lacks others: its binding was interrupted, or members ended."""
        counts = self.tally.counts
        return bool(counts[_BINDING] or counts[_BOUND] or counts[_RUNNING]) and not self.is_ready

    @property
    def is_pipelined(self) -> bool:
        """Tell whether the gang may start once room that is being released is free."""
        return self.tally.is_pipelined(self.min_member)

    @property
    def is_starving(self) -> bool:
        """Tell whether the gang lacks members, best-effort ones not counted."""
        return self.tally.is_starving(self.min_member)


def _count(value: int, field: str) -> int:
    """Check a number of pods."""
    if not 0 <= value <= INT32_MAX:
        raise resources.BadValueError(field, f"{value} is outside 0..{INT32_MAX}")
    return value
