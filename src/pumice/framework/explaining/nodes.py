"""What is on a node, what is held there, and why nobody who waits goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.explaining import holding, members, placements
from pumice.framework.explaining.amounts import request_shown, shown
from pumice.framework.explaining.explanations import NodeAmount, NodeExplanation, NodePod, WaitingGroup

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord

KINDS = 500  # of waiting pods that a node is asked about
FITS = "it would take them; they wait for something else"


def explain(session: Session, record: NodeRecord) -> NodeExplanation:
    """Say how a node stands."""
    pods = [
        NodePod(
            pod=task.key,
            job=task.job_key,
            queue=task.job.queue if task.job is not None else "",
            status=task.status.title,
            request=request_shown(task.shape.request.amounts),
        )
        for task in sorted(record.tasks.values(), key=lambda task: task.key)
    ]
    return NodeExplanation(
        node=record.name,
        ready=record.ready and record.object is not None,
        cordoned=record.unschedulable,
        taints=tuple(f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in record.taints),
        amounts=tuple(_amounts(session, record)),
        pods=tuple(pods),
        holds=tuple(holding.on_node(session, record)),
        waiting=tuple(_waiting(session, record)) if record.object is not None else (),
        foreign=sum(1 for task in record.tasks.values() if task.job is None),
    )


def _amounts(session: Session, record: NodeRecord) -> list[NodeAmount]:
    table, row = session.cluster.nodes, record.row
    found = []
    for column, name in enumerate(session.cluster.vocabulary.names):
        amounts = [
            int(matrix[row, column]) for matrix in (table.allocatable, table.used, table.releasing, table.pipelined)
        ]
        if any(amounts):
            offered, used, releasing, held = amounts
            found.append(
                NodeAmount(
                    resource=name,
                    allocatable=shown(name, offered),
                    used=shown(name, used),
                    releasing=shown(name, releasing),
                    held=shown(name, held),
                    free=shown(name, offered - used),
                )
            )
    return found


def _waiting(session: Session, record: NodeRecord) -> list[WaitingGroup]:
    """Ask a node about the first member of every job that waits, each kind of pod once."""
    known: dict[Hashable, str] = {}
    groups: dict[str, list[str]] = {}
    for _, job in sorted(session.cluster.pending_jobs.items()):
        waiting = [task for task in members.waiting(session, job) if not task.gated] if session.usable(job) else []
        if not waiting:
            continue
        kind = waiting[0].likeness
        if kind not in known:
            if len(known) == KINDS:
                continue
            known[kind] = placements.first_refusal(session, waiting[0], record.row)
        groups.setdefault(known[kind], []).append(job.key)
    listed = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [
        WaitingGroup(reason=reason or FITS, jobs=len(jobs), first=jobs[0], fits=not reason) for reason, jobs in listed
    ]
