"""The one way to ask: at the end of a cycle, before what is only held is rolled back (`Scheduler.cycle(ask=…)`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework import causes, closing
from pumice.framework.explaining import jobs, nodes, placements, queue_shares, queues
from pumice.framework.explaining.explanations import PodExplanation
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.framework.engine import Engine
    from pumice.framework.explaining.explanations import JobExplanation, NodeExplanation, QueueExplanation
    from pumice.framework.explaining.queue_shares import QueueShare
    from pumice.framework.session import Session
    from pumice.model.task import Task


class Explainer:
    """Explains jobs, pods, queues and nodes as one cycle leaves them; None stands for something that does not exist.

    It is of use until the session is rolled back. The same state gives the same bytes.
    """

    def __init__(self, engine: Engine, session: Session) -> None:
        self.session = session
        self._actions = engine.actions

    def job(self, key: str) -> JobExplanation | None:
        """Explain a job, by namespace and name of its group."""
        job = self.session.cluster.jobs.get(key)
        return None if job is None else jobs.explain(self.session, self._actions, job)

    def pod(self, key: str) -> PodExplanation | None:
        """Explain a pod, by namespace and name, with its job."""
        tasks = self.session.cluster.tasks.values()
        task = next((task for task in tasks if task.key == key), None)
        return None if task is None else self._pod(task)

    def queue(self, name: str) -> QueueExplanation | None:
        """Explain a queue."""
        queue = self.session.cluster.queues.get(name)
        return None if queue is None else queues.explain(self.session, queue)

    def shares(self) -> tuple[QueueShare, ...]:
        """Say how all queues stand."""
        return queue_shares.shares(self.session)

    def node(self, name: str) -> NodeExplanation | None:
        """Explain a node."""
        record = self.session.cluster.nodes.by_name.get(name)
        return None if record is None else nodes.explain(self.session, record)

    def _pod(self, task: Task) -> PodExplanation:
        job = self.session.cluster.jobs.get(task.job_key)
        waits = task.status == Status.PENDING
        notes = []
        if task.gated:
            notes.append("it waits for a scheduling gate to be taken off")
        if task.refusal:
            notes.append(f"its last bind failed: {task.refusal}")
        return PodExplanation(
            pod=task.key,
            status=task.status.title,
            node=task.node.name if task.node is not None else "",
            cause=_cause(self.session, task) if task.status in closing.WAITING else "",
            reason=closing.task_reason(self.session, task) if waits and job is not None else "",
            placement=placements.explain(self.session, [task]) if waits and not task.gated else None,
            notes=tuple(notes),
            job=None if job is None else jobs.explain(self.session, self._actions, job),
        )


def _cause(session: Session, task: Task) -> str:
    if task.job is None:
        return causes.without_group(task.pod)
    return causes.of_task(session, task)
