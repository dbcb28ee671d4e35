"""shuffle: evict what plugins nominate, so that it is placed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction.rules import Rules
from pumice.framework.plugin import Action
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


class Protections(Rules):
    """Only the protections: who is evicted is for the plugins to say."""

    name = "shuffle"


class Shuffle(Action):
    """Evict the running pods that plugins name at VictimTasks, unless something protects them. Nothing is placed in their stead."""

    name = "shuffle"

    def execute(self, session: Session) -> None:
        """Ask the plugins and evict what they name."""
        if not session.victim_tasks.active:
            return
        running = [
            task for task in session.cluster.tasks.values() if task.status == Status.RUNNING and task.job is not None
        ]
        checks = Protections(session)
        for task, plugin in session.victim_tasks(running):
            reason = checks.protection(None, task)
            if reason is not None:
                session.record.say(self.name, f"{task.key} stays, though {plugin} asks for its eviction: {reason}")
                continue
            if task.job is not None:
                self._evict(session, task, task.job, plugin)

    def _evict(self, session: Session, task: Task, job: Job, plugin: str) -> None:
        """Evict one task of a job."""
        with session.attempt(job):
            statement = session.statement()
            statement.evict([task], f"{self.name} ({plugin})")
            statement.commit()
            session.record.say(self.name, f"{task.key} is evicted because {plugin} asks for it")
