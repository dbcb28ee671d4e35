"""The extension points, declared once as data: name, switch in the configuration, and how the answers of plugins combine."""

from __future__ import annotations

from enum import Enum, Flag, auto

import msgspec


class Combine(Enum):
    """How the answers of several plugins become one."""

    FIRST_NON_ZERO = "the first plugin that tells two items apart decides"
    FIRST_REFUSAL = "the first reason given against is the answer; none given means yes"
    ANY_REFUSAL = "any reason given makes it true"
    VOTE_BY_TIER = "a rejection ends it; a tier with a permit decides; nobody voting means yes"
    ALL = "every answer must be yes"
    ALL_IN_FIRST_TIER = "all answers of the first tier that has any must be yes; no answer means no"
    FIRST_FAILING = "for each node the first plugin that gives reasons decides"
    SUM = "scores are added"
    FIRST_ANSWER = "the first answer that is not empty-handed decides"
    INTERSECT_BY_TIER = "answers of a tier are intersected; the first tier left with candidates decides"
    UNION_BY_TIER = "answers of a tier are united; the first tier with candidates decides"
    NOTIFY = "everybody is told"


class Reads(Flag):
    """What an answer about nodes depends on: its cache key and its invalidation.

    JOB and QUEUE mean who they are and what their objects say. Whoever reads what they hold, which every placement changes, declares
    OTHER_NODES. An answer of None ("this is not for me") may depend on the subject and on Node objects only, unless OTHER_NODES is declared.
    """

    NODE = auto()  # labels, taints, conditions: what the Node object says
    COLUMNS = auto()  # the amounts of the view
    TASKS = auto()  # the single tasks on the node
    OTHER_NODES = auto()  # tasks anywhere else, what jobs and queues hold: affinity, spreading
    TASK = auto()  # more of the task than its shape
    JOB = auto()
    QUEUE = auto()
    TIME = auto()


NODE_LOCAL = Reads.NODE | Reads.COLUMNS
NODE_TASKS = NODE_LOCAL | Reads.TASKS
EVERYTHING = ~Reads(0)


class Point(msgspec.Struct, frozen=True):
    """One extension point."""

    name: str
    attribute: str
    switch: str | None
    combine: Combine
    signature: str


POINTS: tuple[Point, ...] = (
    Point("JobOrder", "job_order", "enableJobOrder", Combine.FIRST_NON_ZERO, "job -> sort key"),
    Point("QueueOrder", "queue_order", "enableQueueOrder", Combine.FIRST_NON_ZERO, "queue -> sort key"),
    Point("TaskOrder", "task_order", "enableTaskOrder", Combine.FIRST_NON_ZERO, "task -> sort key"),
    Point("SubJobOrder", "sub_job_order", "enabledSubJobOrder", Combine.FIRST_NON_ZERO, "sub-job -> sort key"),
    Point(
        "VictimQueueOrder",
        "victim_queue_order",
        None,
        Combine.FIRST_NON_ZERO,
        "victim queue, claimant's queue -> sort key",
    ),
    Point("ClusterOrder", "cluster_order", "enabledClusterOrder", Combine.FIRST_NON_ZERO, "cluster -> sort key"),
    Point("JobValid", "job_valid", None, Combine.FIRST_REFUSAL, "job -> Invalid or None"),
    Point("JobEnqueueable", "job_enqueueable", "enableJobEnqueued", Combine.VOTE_BY_TIER, "job -> Vote"),
    Point("JobEnqueued", "job_enqueued", "enableJobEnqueued", Combine.NOTIFY, "job"),
    Point("JobReady", "job_ready", "enableJobReady", Combine.ALL, "job -> bool"),
    Point("JobPipelined", "job_pipelined", "enableJobPipelined", Combine.VOTE_BY_TIER, "job -> Vote"),
    Point("JobStarving", "job_starving", "enableJobStarving", Combine.ALL_IN_FIRST_TIER, "job -> bool"),
    Point("SubJobReady", "sub_job_ready", "enabledSubJobReady", Combine.ALL, "sub-job -> bool"),
    Point("SubJobPipelined", "sub_job_pipelined", "enabledSubJobPipelined", Combine.VOTE_BY_TIER, "sub-job -> Vote"),
    Point("Overused", "overused", "enabledOverused", Combine.ANY_REFUSAL, "queue -> reason or None"),
    Point("Allocatable", "allocatable", "enabledAllocatable", Combine.FIRST_REFUSAL, "queue, demand -> reason or None"),
    Point("Preemptive", "preemptive", "enablePreemptive", Combine.FIRST_REFUSAL, "queue, demand -> reason or None"),
    Point(
        "PrePredicate", "pre_predicate", "enablePredicate", Combine.FIRST_REFUSAL, "subject -> reason number or None"
    ),
    Point(
        "Predicate", "predicate", "enablePredicate", Combine.FIRST_FAILING, "subject, nodes -> reason numbers or None"
    ),
    Point("NodeOrder", "score", "enableNodeOrder", Combine.SUM, "subject, nodes -> scores or None"),
    Point("BestNode", "best_node", "enableBestNode", Combine.FIRST_ANSWER, "subject, nodes, scores -> row or None"),
    Point("HyperNodeOrder", "hyper_node_order", "enabledHyperNodeOrder", Combine.SUM, "sub-job, hyper-nodes -> scores"),
    Point(
        "HyperNodeGradientForJob",
        "job_gradient",
        "enabledHyperNodeGradient",
        Combine.FIRST_ANSWER,
        "job, root, purpose -> groups",
    ),
    Point(
        "HyperNodeGradientForSubJob",
        "sub_job_gradient",
        "enabledHyperNodeGradient",
        Combine.FIRST_ANSWER,
        "sub-job, root, purpose -> groups",
    ),
    Point(
        "Preemptable",
        "preemptable",
        "enablePreemptable",
        Combine.INTERSECT_BY_TIER,
        "claimant, candidates -> candidates or None",
    ),
    Point(
        "Reclaimable",
        "reclaimable",
        "enableReclaimable",
        Combine.INTERSECT_BY_TIER,
        "claimant, candidates -> candidates or None",
    ),
    Point(
        "UnifiedEvictable",
        "unified_evictable",
        None,
        Combine.INTERSECT_BY_TIER,
        "context, candidates -> candidates or None",
    ),
    Point(
        "Due",
        "due",
        None,
        Combine.FIRST_ANSWER,
        "job -> what every queue is due if the job's minimum were asked for, a row each, or None",
    ),
    Point(
        "Protection", "protection", None, Combine.FIRST_REFUSAL, "claimant or None, victim, action -> reason or None"
    ),
    Point("VictimTasks", "victim_tasks", "enabledVictim", Combine.UNION_BY_TIER, "running tasks -> tasks"),
    Point(
        "SimulateRemoveTask",
        "simulate_remove_task",
        "enablePreemptable|enabledAllocatable",
        Combine.FIRST_REFUSAL,
        "claimant, task, node -> reason or None",
    ),
    Point(
        "SimulateAddTask",
        "simulate_add_task",
        "enablePreemptable|enabledAllocatable",
        Combine.FIRST_REFUSAL,
        "claimant, task, node -> reason or None",
    ),
    Point(
        "SimulatePredicate",
        "simulate_predicate",
        "enablePredicate",
        Combine.FIRST_REFUSAL,
        "claimant, node -> reason or None",
    ),
    Point(
        "SimulateAllocatable",
        "simulate_allocatable",
        "enabledAllocatable",
        Combine.FIRST_REFUSAL,
        "queue, demand -> reason or None",
    ),
    Point("ReservedNodes", "reserved_nodes", "enableReservedNodes", Combine.NOTIFY, "-"),
    Point("TargetJob", "target_job", "enableTargetJob", Combine.FIRST_ANSWER, "jobs -> job or None"),
    Point("PreBind", "pre_bind", None, Combine.FIRST_REFUSAL, "task, node -> reason or None"),
)

BY_NAME = {point.name: point for point in POINTS}
