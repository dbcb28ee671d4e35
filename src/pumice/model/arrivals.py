"""Which pods were created of late, also those that are gone: for whoever learns from them what is usually asked for.

Nothing is noted until somebody follows. What was learnt is kept here too, so that it is part of what a scheduler knows and of its recordings.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.model.shape import Shape
    from pumice.model.task import Task

MOST: Final = 10_000
"""How many pods are kept, the latest."""


class Arrivals:
    """The shapes of the latest pods of jobs, by when they were created."""

    def __init__(self) -> None:
        self.followed = False
        self.noted = 0  # grows with every pod
        self.given: list[Shape] | None = None  # a history that is told as a whole, in place of what is noted
        self.learnt: dict[str, Any] = {}  # by the name of the plugin that learns, as plain values
        self._order: list[tuple[int, str]] = []  # a heap, the oldest first
        self._shapes: dict[str, Shape] = {}

    def follow(self, tasks: Iterable[Task]) -> None:
        """Begin to note pods, with those that are there; done once."""
        if not self.followed:
            self.followed = True
            for task in tasks:
                self.note(task)

    def note(self, task: Task) -> None:
        """Note a pod of a job, if it was not noted before and is one of the latest."""
        if not task.job_key or task.uid in self._shapes:
            return
        entry = (task.creation, task.uid)
        self._shapes[task.uid] = task.shape
        self.noted += 1
        if len(self._order) < MOST:
            heapq.heappush(self._order, entry)
        else:
            _, oldest = heapq.heappushpop(self._order, entry)
            del self._shapes[oldest]

    def since(self, moment: int) -> Iterable[Shape]:
        """Return the shapes of pods that were created since a moment; of a history that was told, all."""
        if self.given is not None:
            return self.given
        return [self._shapes[uid] for created, uid in self._order if created >= moment]
