"""Tasks, jobs, nodes and queues as an extender gets them: the field names that Volcano's scheduler sends.

What this scheduler does not have is there with its empty value. Of a Kubernetes object there are the fields that a scheduler reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import timestamp
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task

Shape = dict[str, Any]

_STATUS: Final = {
    Status.PENDING: 1,
    Status.ALLOCATED: 2,
    Status.PIPELINED: 4,
    Status.BINDING: 8,
    Status.BOUND: 16,
    Status.RUNNING: 32,
    Status.RELEASING: 64,
    Status.EVICTING: 64,
    Status.SUCCEEDED: 128,
    Status.FAILED: 256,
    Status.UNKNOWN: 512,
}


def resource(amounts: dict[str, int]) -> Shape:
    """Write amounts by name: thousandths of cores and of scalars, bytes of memory."""
    scalars = {name: units for name, units in sorted(amounts.items()) if name not in ("cpu", "memory")}
    return {
        "MilliCPU": amounts.get("cpu", 0),
        "Memory": amounts.get("memory", 0),
        "ScalarResources": scalars,
        "MaxTaskNum": amounts.get("pods", 0),
    }


def _row(table: NodeTable, vector: Vector) -> Shape:
    return resource({name: int(vector[column]) for name, column in table.vocabulary.columns.items() if vector[column]})


def task(found: Task) -> Shape:
    """Write a task."""
    asked = resource(dict(found.shape.request.amounts))
    return {
        "UID": found.uid,
        "Job": found.job_key,
        "Name": found.name,
        "Namespace": found.namespace,
        "TaskRole": found.role,
        "Resreq": asked,
        "InitResreq": asked,
        "NodeName": found.node.name if found.node is not None else "",
        "Status": _STATUS[found.status],
        "Priority": found.priority,
        "Preemptable": found.preemptable,
        "BestEffort": found.best_effort,
        "SchGated": found.gated,
        "RevocableZone": "*" if found.shape.constraints.revocable else "",
        "Pod": msgspec.to_builtins(found.pod),
        "PodAnnotations": {},
    }


def job(session: Session, found: Job) -> Shape:
    """Write a job with its tasks."""
    tasks = {uid: task(each) for uid, each in found.tasks.items()}
    by_status: dict[str, dict[str, Shape]] = {}
    for uid, each in tasks.items():
        by_status.setdefault(str(each["Status"]), {})[uid] = each
    sums, asked = session.cluster.job_sums, dict[str, int]()
    for each_task in found.tasks.values():
        for name, units in each_task.shape.request.amounts.items():
            asked[name] = asked.get(name, 0) + units
    return {
        "UID": found.key,
        "PgUID": found.uid,
        "Name": found.name,
        "Namespace": found.namespace,
        "Queue": found.queue,
        "Priority": found.priority,
        "MinAvailable": found.min_member,
        "WaitingTime": None if found.waiting_time is None else found.waiting_time * 1000,
        "TaskStatusIndex": by_status,
        "Tasks": tasks,
        "TaskMinAvailable": found.min_task_member,
        "TaskMinAvailableTotal": found.min_task_total,
        "Allocated": _row(session.cluster.nodes, sums.allocated[found.row]),
        "TotalRequest": resource(asked),
        "CreationTimestamp": timestamp.format_timestamp(found.creation),
        "PodGroup": msgspec.to_builtins(found.group) if found.group is not None else None,
        "Preemptable": found.preemptable,
    }


def node(session: Session, record: NodeRecord, *, tasks: bool = False) -> Shape:
    """Write a node; with its tasks only where everything is sent, for they are many."""
    table, row = session.cluster.nodes, record.row
    return {
        "Name": record.name,
        "Node": msgspec.to_builtins(record.object) if record.object is not None else None,
        "State": {"Phase": 1 if record.ready else 2, "Reason": ""},
        "Releasing": _row(table, table.releasing[row]),
        "Pipelined": _row(table, table.pipelined[row]),
        "Idle": _row(table, table.allocatable[row] - table.used[row]),
        "Used": _row(table, table.used[row]),
        "Allocatable": _row(table, table.allocatable[row]),
        "Capacity": _row(table, table.allocatable[row]),
        "Tasks": {each.key: task(each) for each in record.tasks.values()} if tasks else {},
        "RevocableZone": record.labels.get("volcano.sh/revocable-zone", ""),
    }


def queue(found: Queue) -> Shape:
    """Write a queue."""
    return {
        "UID": found.name,
        "Name": found.name,
        "Weight": found.weight,
        "Weights": "",
        "Hierarchy": "",
        "Queue": msgspec.to_builtins(found.object) if found.object is not None else None,
    }


def everything(session: Session) -> Shape:
    """Write what a server gets when a cycle begins."""
    cluster = session.cluster
    records: Iterable[NodeRecord] = cluster.nodes.records[: cluster.nodes.count]
    return {
        "Jobs": {key: job(session, each) for key, each in cluster.jobs.items()},
        "Nodes": {record.name: node(session, record, tasks=True) for record in records},
        "Queues": {name: queue(each) for name, each in cluster.queues.items()},
        "NamespaceInfo": {},
        "RevocableNodes": {},
        "NodeList": None,
    }
