"""shuffle: evict what plugins nominate, so that it is placed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction.rules import Rules
from pumice.framework.plugin import Action
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
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
        for task, plugin in _named(session, running):
            reason = checks.protection(None, task)
            if reason is not None:
                session.record.say(self.name, f"{task.key} stays, though {plugin} asks for its eviction: {reason}")
                continue
            statement = session.statement()
            statement.evict([task], f"{self.name} ({plugin})")
            statement.commit()
            session.record.say(self.name, f"{task.key} is evicted because {plugin} asks for it")


def _named(session: Session, running: Sequence[Task]) -> list[tuple[Task, str]]:
    """Return whom the first tier that names anybody names, each with the first plugin that does."""
    for tier in session.victim_tasks.tiers:
        named: dict[str, tuple[Task, str]] = {}
        for registered in tier:
            for task in registered.function(running):
                named.setdefault(task.uid, (task, registered.plugin))
        if named:
            return list(named.values())
    return []
