"""For whom a task stands that finds no room, or that others are like: what is known of it is known of all that share its likeness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.session import Session
    from pumice.model.queue import Queue
    from pumice.model.task import Task


def of_task(session: Session, queue: Queue | None, task: Task) -> Hashable:
    """Return all that filters and scores see of a task, whosever it is."""
    return *task.likeness, session.evaluator.key(Subject(task, queue))


def of_member(session: Session, task: Task) -> Hashable:
    """Return what members of one job share that nothing tells apart: neither nodes nor what plugins divide equal ones by."""
    if not session.independence.siblings_share_answers:
        return task.uid
    return *task.likeness, *[repr(part(task)) for part in session.announced.divisions]
