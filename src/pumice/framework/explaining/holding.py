"""Room that is held: for whom, where, and whose going it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.explaining.amounts import request_shown
from pumice.framework.explaining.explanations import Hold
from pumice.model.statuses import TENTATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task

AWAITED = 10


def of_job(session: Session, job: Job) -> list[Hold]:
    """Return what is held for the members of a job."""
    return [found for task in _sorted(job.tasks.values()) if (found := _hold(session, task)) is not None]


def on_node(session: Session, record: NodeRecord) -> list[Hold]:
    """Return what is held on a node: by plans, and by whoever waits there for room that is being released."""
    tasks = {task.uid: task for task in record.tasks.values() if task.status in TENTATIVE}
    known = session.cluster.tasks
    tasks |= {
        uid: known[uid] for uid, hold in session.reservations.holds.items() if hold.node == record.name and uid in known
    }
    return [found for task in _sorted(tasks.values()) if (found := _hold(session, task)) is not None]


def _sorted(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.key)


def _hold(session: Session, task: Task) -> Hold | None:
    hold = session.reservations.holds.get(task.uid)
    node = task.node.name if task.node is not None and task.status in TENTATIVE else ""
    if hold is None and not node:
        return None
    if hold is not None and task.node is not None and task.status not in TENTATIVE:
        return None  # it is placed: nothing has to be held any more
    known = session.cluster.tasks
    going = sorted(known[uid].key for uid in hold.victims if uid in known) if hold is not None else []
    return Hold(
        pod=task.key,
        job=task.job_key,
        node=hold.node if hold is not None else node,
        request=request_shown(task.shape.request.amounts),
        awaits=tuple(going[:AWAITED]),
    )
