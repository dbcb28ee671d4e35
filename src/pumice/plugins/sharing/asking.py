"""What jobs that wait to be let in ask for one after the other; worked out once for everybody who votes on them or hears of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.job import Job
    from pumice.model.resources import Matrix, Vector

_NOTHING = np.iinfo(np.int64).min
"""What a job needs of something that it does not name: there is always room for that."""


class Asking:
    """Some jobs in order, each needing its minimum beside what is counted of those before it; `offered` of the first ask for nothing that no node offers."""

    __slots__ = ("_needed", "_offered", "_sums", "jobs")

    def __init__(self, jobs: Sequence[Job], minimum: Matrix, asked: Matrix, offered: int) -> None:
        self.jobs = jobs
        self._offered = offered
        self._sums: Matrix = np.cumsum(asked, axis=0)
        self._needed: Matrix = self._sums - asked + minimum
        self._needed[minimum <= 0] = _NOTHING
        self._needed[:, PODS] = _NOTHING

    def begins_with(self, jobs: Sequence[Job]) -> bool:
        """Tell whether these are the first of the jobs."""
        return self.jobs[: len(jobs)] == jobs

    def fitting(self, count: int, room: Vector) -> int:
        """Return how many of the first jobs fit into room, looking at no more than so many."""
        considered = min(count, self._offered)
        refused = (self._needed[:considered] > room).any(axis=1)
        return int(refused.argmax()) if refused.any() else considered

    def total(self, count: int) -> Vector:
        """Return what is counted of so many of the first jobs."""
        total: Vector = self._sums[count - 1]
        return total
