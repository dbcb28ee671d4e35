"""Who will look for a node soon, so that they can be worked out together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


def listed(
    session: Session, jobs: Mapping[str, list[Job]], work: Mapping[str, list[Task]]
) -> Iterator[subject.Subject]:
    """Give those who will look for a node in about the order in which they will, one of each kind: job by job, queues taking turns."""
    seen: set[Hashable] = set()
    for job in itertools.chain.from_iterable(itertools.zip_longest(*jobs.values())):
        if job is None:
            continue
        before: Task | None = None
        for task in work[job.key]:
            if before is not None and task.shape is before.shape and task.bond is before.bond:
                continue
            before = task
            kind = (task.shape.serial, task.bond, job.queue)
            if kind not in seen:
                seen.add(kind)
                yield subject.Subject(task, session.cluster.queues[job.queue])
