"""What plugins meet, for the reference: attributes with their meaning. Properties and methods are taken from the code.

Every public name of a type is either described here or listed as none of a plugin's business, so that one that is added is not forgotten; of the large ones,
whose list starts with "only", just those properties and methods are shown.
"""

from __future__ import annotations

from typing import Any

from pumice.framework.per_node import Node
from pumice.framework.session import Session
from pumice.framework.subject import Demand, EvictionContext, Subject, Subjects
from pumice.model.attributes import Attributes
from pumice.model.cluster import Cluster
from pumice.model.job import Job, SubJob, Tally
from pumice.model.nodes import NodeRecord, Nodes
from pumice.model.queue import Queue
from pumice.model.resources import Request
from pumice.model.sums import Sums
from pumice.model.task import Task

Described = dict[str, tuple[str, str]]

TYPES: dict[type[Any], tuple[Described, str]] = {
    Session: (
        {
            "cluster": (
                "Cluster",
                "nodes, tasks, jobs and queues, kept up to date within the cycle; only statements of actions change it",
            ),
            "configuration": ("Configuration", "the configuration in force"),
            "number": ("int", "the number of the cycle"),
        },
        "only now wake_at add_handler follow divide_runs queue_of reason",
    ),
    Subject: (
        {
            "task": (
                "Task",
                "the task that is asked about; others of the same shape share the answer unless `reads` says TASK, JOB or QUEUE",
            ),
            "shape": ("Shape", "everything about the pod that scheduling depends on"),
            "job": ("Job | None", "its job; None for a pod that has none"),
            "queue": ("Queue | None", "the queue of its job"),
        },
        "constraint_class alone follow",
    ),
    Subjects: (
        {
            "members": ("Sequence[Subject]", "the pods that are asked about together, one of each shape"),
            "requests": ("Matrix", "what they ask for: a row per pod over the columns of the cluster's resources"),
            "non_zero": ("Matrix", "their cpu and memory, pods without requests counting with stand-ins"),
            "vocabulary": ("Vocabulary", "the names of the columns"),
            "small": (
                "bool",
                "whether no amount, of theirs or of a node, is larger than floats can tell, also a hundredfold and added up",
            ),
        },
        "",
    ),
    Request: (
        {
            "amounts": (
                "dict[str, int]",
                "what is asked for, by resource: thousandths of a core, bytes, pods, thousandths of anything else",
            ),
            "vector": ("Vector", "the same over the columns of the cluster's resources"),
            "best_effort": ("bool", "whether it asks for nothing but a place"),
            "unoffered": ("tuple[str, ...]", "resources that are asked for and that no node offers"),
        },
        "asked key listed needed width lay",
    ),
    Demand: (
        {
            "tasks": ("Sequence[Task]", "the tasks that a queue is to take on together"),
            "amounts": ("Vector", "the sum of what they ask for"),
            "waits": ("bool", "whether they are only to wait for room that is being released"),
        },
        "",
    ),
    EvictionContext: (
        {
            "kind": ("str", "`gangpreempt` or `gangreclaim`"),
            "job": ("Job", "the gang for which room is to be made"),
            "domain": ("HyperNode | None", "the hyper-node that victims are in, if it is but one"),
        },
        "",
    ),
    Nodes: (
        {
            "index": ("Rows", "the rows of these nodes in `table`; an answer has one entry for each, in this order"),
            "table": ("NodeTable", "all nodes: `records`, `by_name`, `attributes`, `vocabulary`"),
            "allocatable": (
                "Matrix",
                "what each node offers, a row per node, a column per resource: `CPU`, `MEMORY`, `PODS`, else `table.vocabulary.columns[NAME]`",
            ),
            "used": ("Matrix", "what is taken, pods that are going included"),
            "releasing": ("Matrix", "what of that is being released"),
            "pipelined": ("Matrix", "what is promised to pods that wait for room being released"),
            "non_zero": (
                "Matrix",
                "cpu and memory taken, pods without requests counted with a little, as Kubernetes' scores do",
            ),
            "released": ("bool", "whether pods that are being released count as gone"),
            "steps": (
                "Vector | None",
                "by how many of the pods that are asked about the view runs ahead, for whoever registers with `ahead=True`",
            ),
        },
        "idle_at future_idle_at after_release",
    ),
    Attributes: (
        {
            "taints": (
                "tuple[list[tuple[Taint, ...]], codes]",
                "distinct sets of taints, and the number of each node's set",
            ),
            "not_ready": ("Mask", "nodes that are not Ready"),
            "cordoned": ("Mask", "nodes that are marked unschedulable"),
            "count": ("int", "how many nodes there are"),
            "derived": (
                "dict[Hashable, Any]",
                "a place to keep what you worked out from Node objects; it ends when one of them changes",
            ),
        },
        "patched read_again",
    ),
    NodeRecord: (
        {
            "name": ("str", "the name of the node"),
            "row": ("int", "its row in the table"),
            "object": ("core.Node | None", "the Node object; None if only pods name it"),
            "labels": ("Mapping[str, str]", "its labels"),
            "taints": ("tuple[Taint, ...]", "its taints"),
            "unschedulable": ("bool", "whether it is cordoned"),
            "ready": ("bool", "whether it is Ready"),
            "features": ("frozenset[str]", "the features that its kubelet declares"),
            "tasks": ("dict[str, Task]", "the tasks on it, or on their way to it, by uid"),
            "images": ("dict[str, int]", "the images it has, with their bytes"),
        },
        "port_users volume_users volume_version state list_as",
    ),
    Node: ({"record": ("NodeRecord", "the node with its object and its tasks")}, ""),
    Task: (
        {
            "pod": ("core.Pod", "the pod as last seen: `metadata`, `spec`, `status`"),
            "uid": ("str", "the uid of the pod"),
            "namespace": ("str", "its namespace"),
            "name": ("str", "its name"),
            "role": ("str", "its role in the job, by annotation or label `volcano.sh/task-spec`"),
            "priority": ("int", "its priority"),
            "shape": ("Shape", "everything about it that scheduling depends on; `shape.request` is what it asks for"),
            "best_effort": ("bool", "whether it asks for nothing but a place"),
            "preemptable": ("bool", "whether it says that it may be evicted"),
            "gated": ("bool", "whether it has scheduling gates"),
            "creation": ("int", "when it was created, in microseconds"),
            "index": ("int | None", "the number at the end of its name"),
            "status": ("Status", "where it stands, this cycle's decisions included"),
            "nominated": ("str", "the node that it is nominated for"),
            "node": ("NodeRecord | None", "the node it is on, or promised to"),
            "job": ("Job | None", "its job"),
            "sub_job": ("SubJob | None", "its sub-group"),
        },
        "asks_queue bond eviction_refused externally_gated job_key refusal retry_at stays tallies likeness",
    ),
    Job: (
        {
            "key": ("str", "`namespace/name` of its PodGroup"),
            "namespace": ("str", "its namespace"),
            "name": ("str", "its name"),
            "uid": ("str", "the uid of the PodGroup"),
            "group": ("PodGroup | None", "the PodGroup; None while only pods have named it"),
            "annotations": ("dict[str, str]", "annotations of the PodGroup"),
            "queue": ("str", "the name of its queue; `session.queue_of(job)` is the queue"),
            "priority": ("int", "the value of its priority class"),
            "creation": ("int", "when the PodGroup was created, in microseconds"),
            "min_member": ("int", "how many pods must have a place before any is bound"),
            "native": ("bool", "whether its group is a PodGroup of `scheduling.k8s.io`"),
            "whole": ("bool", "whether its pods are evicted together or not at all"),
            "refusal": ("str", "why no pod of it may start though nothing is wrong with the group"),
            "min_task_member": ("dict[str, int]", "the same by role"),
            "min_resources": ("dict[str, int] | None", "`minResources` of the PodGroup"),
            "preemptable": ("bool", "whether the PodGroup says that its pods may be evicted"),
            "waiting_time": ("int | None", "its `sla-waiting-time`, in microseconds"),
            "tasks": ("dict[str, Task]", "its pods by uid"),
            "pending": ("dict[str, Task]", "those of them without a place"),
            "tally": ("Tally", "its pods counted by status"),
            "roles": ("dict[str, Tally]", "the same by role"),
            "sub_jobs": ("dict[str, SubJob]", "its sub-groups"),
            "row": ("int", "its row in `session.cluster.job_sums`"),
        },
        "bad min_task_total policies preemptable_set status topology version describe forget_group sub_job_for roles_enforced roles_reach short_role sub_jobs_reach short_policy",
    ),
    SubJob: (
        {
            "job": ("Job", "the job it is part of"),
            "key": ("str", "its name, that of its job included"),
            "minimum": ("int", "how many pods must have a place before any is bound"),
            "priority": ("int", "the highest priority of its pods"),
            "tally": ("Tally", "its pods counted by status"),
            "tasks": ("dict[str, Task]", "its pods by uid"),
        },
        "group match_index topology",
    ),
    Tally: ({"counts": ("list[int]", "how many pods have each `Status`")}, ""),
    Queue: (
        {
            "name": ("str", "its name"),
            "row": ("int", "its row in `session.cluster.queue_sums`"),
            "jobs": ("dict[str, None]", "the keys of its jobs"),
            "weight": ("int", "its weight"),
            "priority": ("int", "its priority"),
            "capability": ("dict[str, int]", "the most it may have"),
            "guarantee": ("dict[str, int]", "what is kept for it"),
            "deserved": ("dict[str, int]", "what it is due under `capacity`"),
            "reclaimable": ("bool", "whether others may take back what it has beyond its due"),
            "parent": ("str", "its parent in a tree"),
            "annotations": ("dict[str, str]", "its annotations"),
            "creation": ("int", "when it was created, in microseconds"),
            "state": ("str", "`Open`, `Closed`, `Closing` or `Unknown`"),
            "object": ("scheduling.Queue | None", "the Queue object"),
        },
        "bad hierarchy hierarchy_weights status describe",
    ),
    Cluster: (
        {
            "nodes": ("NodeTable", "all nodes"),
            "tasks": ("dict[str, Task]", "all pods by uid"),
            "jobs": ("dict[str, Job]", "all jobs by key"),
            "queues": ("dict[str, Queue]", "all queues by name"),
            "job_sums": ("Sums", "what jobs hold and ask for, a row per job"),
            "queue_sums": ("Sums", "what queues hold and ask for, a row per queue"),
            "vocabulary": ("Vocabulary", "the resources, each with its column: `vocabulary.columns[NAME]`"),
            "pending_jobs": ("dict[str, Job]", "jobs with pods that have no place"),
            "objects": ("dict[str, dict[str, KubeObject]]", "further objects, by kind and name"),
        },
        "only queue_of",
    ),
    Sums: (
        {
            "allocated": ("Matrix", "requests of pods that have a place"),
            "pending": ("Matrix", "requests of pods without one"),
            "pipelined": ("Matrix", "requests of pods that wait for room being released"),
            "evicting": ("Matrix", "requests of pods whose eviction was sent and that are not terminating yet"),
        },
        "take give_back widen",
    ),
}
