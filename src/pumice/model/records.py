"""The records that refer to each other: a task, the node it is on, its job and its sub-job.

Whoever needs one of them imports it from `task`, `nodes` or `job`; they stand in one module because each holds the others.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from pumice.api import names
from pumice.model import marks, native_groups, reading, statuses, subgroups, tally
from pumice.model.group_terms import GroupTerms
from pumice.model.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pumice.api import core, scheduling
    from pumice.model import shape


class Signed(Protocol):
    """What other pods mean to a pod, and it to them (`kinship.Bond`)."""

    def signature(self) -> Hashable:
        """Return what verdicts and scores depend on beside shape and nodes; None if nothing of other pods matters."""


class Task:
    """One pod; `status` and `node` are what this scheduler believes, which may run ahead of `pod`."""

    __slots__ = (
        "asks_queue",
        "best_effort",
        "bond",
        "creation",
        "eviction_refused",
        "externally_gated",
        "gated",
        "index",
        "job",
        "job_key",
        "name",
        "namespace",
        "node",
        "nominated",
        "pod",
        "preemptable",
        "priority",
        "refusal",
        "retry_at",
        "role",
        "shape",
        "status",
        "stays",
        "sub_job",
        "tallies",
        "uid",
    )

    def __init__(self, pod: core.Pod, interned: shape.Shape) -> None:
        meta = pod.metadata
        annotations = meta.annotations
        self.pod = pod
        self.uid = meta.uid
        self.namespace = meta.namespace
        self.name = meta.name
        self.job_key = native_groups.job_key(pod)
        self.role = annotations.get(names.TASK_SPEC) or meta.labels.get(names.TASK_SPEC, "")
        self.priority = reading.priority(pod)
        self.shape = interned
        self.best_effort = interned.request.best_effort
        self.preemptable = marks.is_preemptable(annotations, meta.labels, default=True)
        gates = pod.spec.scheduling_gates
        self.gated = bool(gates)
        self.externally_gated = self.gated and [gate.name for gate in gates] != [names.QUEUE_GATE]
        self.asks_queue = annotations.get(names.QUEUE_GATE) == "true"
        self.creation = reading.instant(meta.creation_timestamp)
        self.index = reading.name_index(meta.name)
        self.status = statuses.from_pod(pod.status.phase, pod.spec.node_name, deleting=bool(meta.deletion_timestamp))
        self.stays = reading.stays(pod)
        self.nominated = pod.status.nominated_node_name
        self.node: NodeRecord | None = None
        self.bond: Signed | None = None
        self.job: Job | None = None
        self.sub_job: SubJob | None = None
        self.tallies: tuple[Tally, ...] = ()
        self.retry_at = 0
        self.refusal = ""  # what the failure of its last bind said
        self.eviction_refused: int | None = None  # when an eviction was given up that the API server refused

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def likeness(self) -> tuple[int, Hashable]:
        """What filters and scores see of the task: its shape, and what other pods mean to it and it to them."""
        return self.shape.serial, None if self.bond is None else self.bond.signature()

    def __repr__(self) -> str:
        return f"<task {self.key} {self.status.title}>"


class NodeRecord:
    """One node: its object, if there is one, and the tasks that are on it or on their way to it."""

    __slots__ = (
        "features",
        "images",
        "labels",
        "name",
        "object",
        "port_users",
        "ready",
        "row",
        "taints",
        "tasks",
        "unschedulable",
        "volume_users",
        "volume_version",
    )

    def __init__(self, name: str, row: int) -> None:
        self.name = name
        self.row = row
        self.object: core.Node | None = None
        self.labels: Mapping[str, str] = {}
        self.taints: tuple[core.Taint, ...] = ()
        self.unschedulable = False
        self.ready = True
        self.tasks: dict[str, Task] = {}
        self.port_users: dict[str, Task] = {}
        self.volume_users: dict[str, Task] = {}
        self.volume_version = 0  # counts what may have changed the volumes in use here
        self.images: dict[str, int] = {}  # name -> bytes
        self.features: frozenset[str] = frozenset()  # of its kubelet, as far as pods may need them

    def state(self, known: core.Node | None, node: core.Node) -> bool:
        """Take over what a node says of itself besides amounts, and tell whether that is news; `known` is what it said before."""
        ready = all(c.status == "True" for c in node.status.conditions if c.type == "Ready")
        features = frozenset(node.status.declared_features)
        stated = (node.metadata.labels, tuple(node.spec.taints), node.spec.unschedulable, ready, features)
        fetched = known is None or known.status.images != node.status.images
        if fetched:
            self.images = {name: max(0, i.size_bytes) for i in node.status.images for name in i.names}
        if not fetched and stated == (self.labels, self.taints, self.unschedulable, self.ready, self.features):
            return False
        self.labels, self.taints, self.unschedulable, self.ready, self.features = stated
        return True

    def list_as(self, uids: Sequence[str]) -> None:
        """Bring the tasks back into an order in which they were before."""
        for users in (self.tasks, self.port_users, self.volume_users):
            known = [uid for uid in uids if uid in users]
            ordered = {uid: users[uid] for uid in (*known, *users)}
            users.clear()
            users.update(ordered)

    def __repr__(self) -> str:
        return f"<node {self.name} with {len(self.tasks)} tasks>"


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


class Job(GroupTerms):
    """One PodGroup, by its terms, and its tasks. A job without a group is only a place where early pods wait."""

    __slots__ = (
        "key",
        "name",
        "namespace",
        "pending",
        "priority",
        "queue",
        "roles",
        "row",
        "sub_jobs",
        "tally",
        "tasks",
        "version",
    )

    def __init__(self, key: str, row: int) -> None:
        super().__init__()
        self.key = key
        self.namespace, self.name = key.split("/", 1)
        self.row = row
        self.queue = ""
        self.priority = 0
        self.tasks: dict[str, Task] = {}
        self.pending: dict[str, Task] = {}
        self.tally = Tally()
        self.roles: dict[str, Tally] = {}
        self.sub_jobs: dict[str, SubJob] = {}
        self.version = 0

    def __repr__(self) -> str:
        return f"<job {self.key} min {self.min_member} of {len(self.tasks)}>"

    @property
    def title(self) -> str:
        """How people know it: by its group, or by the workload for whose pods that was made: `a/train`, `Job a/train`."""
        owners = self.group.metadata.owner_references if self.group is not None else ()
        if not self.name.startswith(names.POD_GROUP_PREFIX):
            return self.key
        return next((f"{each.kind} {self.namespace}/{each.name}" for each in owners if each.controller), self.key)

    @property
    def leaving(self) -> int:
        """Tasks that are going and still take room on a node."""
        counts = self.tally.counts
        if not (counts[tally.RELEASING] or counts[tally.EVICTING]):
            return 0
        return sum(1 for task in self.tasks.values() if task.node is not None and task.status in statuses.GOING)

    @property
    def held(self) -> str:
        """Why no member may start though nothing is wrong with the group; empty if that is not so."""
        if not self.native:
            return ""
        lacking = self.min_member - self.tally.valid
        if self.refusal or lacking <= 0:
            return self.refusal
        others = self.group.spec.others if isinstance(self.group, native_groups.NativeGroup) else ""
        told = f", those of other schedulers count once they have a node: {others}" if others else ""
        return f"waiting for {lacking} more pods of the gang{told}"

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
        """How many members beyond the minimum are placed, pending best-effort ones counting as placed; negative if the gang lacks some, none where all go together."""
        spare = self.tally.started - self.min_member
        return min(spare, 0) if self.whole else spare

    @property
    def is_interrupted(self) -> bool:
        """Tell whether some members have started and the gang lacks others: its binding was interrupted, or members ended."""
        counts = self.tally.counts
        return bool(counts[tally.BINDING] or counts[tally.BOUND] or counts[tally.RUNNING]) and not self.is_ready

    @property
    def is_pipelined(self) -> bool:
        """Tell whether the gang may start once room that is being released is free."""
        return self.tally.is_pipelined(self.min_member)

    @property
    def is_starving(self) -> bool:
        """Tell whether the gang lacks members, best-effort ones not counted."""
        return self.tally.is_starving(self.min_member)
