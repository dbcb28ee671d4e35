"""Where a job would go at another time: allocate's own search, asked by whoever plans ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.findings import Refused
    from pumice.framework.vectors import Mask
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

    Places = Sequence[tuple[Task, NodeRecord]]


class Moment(msgspec.Struct, frozen=True):
    """Another time: the least that nodes have as long as the job runs, and which of them `who` plans ahead prefers, the highest rank first.

    Where more than that decides, `changes` says which pods are gone by then, who has come and where, on some nodes where others have no say, and `begins` is called when the cluster is as it would be.
    """

    who: str
    room: Matrix
    ranks: Vector
    changes: Callable[[Mask | None], tuple[Sequence[Task], Places]]
    begins: Callable[[], None]


class Search(Protocol):
    """Looks for places of a job at another time, and leaves everything as it was."""

    def __call__(self, job: Job, moment: Moment, beyond: Sequence[Task] = ()) -> Places | None:
        """Return a node for each pod that would be placed, None if the job would not be ready; of members beyond the minimum, for each of those that find one, None if none does."""


class StandingPlan(Protocol):
    """Whoever plans ahead, and what it says of jobs that are left out of a cycle."""

    def begin(self) -> None:
        """Bring what is planned up to date before anybody is placed."""

    def stands(self, dormant: Mapping[str, Refused]) -> bool:
        """Tell whether all is planned as it would be if jobs that find no room were looked at."""

    def woken(self, delayed: Mapping[str, Refused]) -> Iterable[str]:
        """Name those who were told that they would delay others, and have to be tried again, or told something else."""

    def awaits(self, job: str) -> bool:
        """Tell whether a job waits for a time that is promised to it, and would find no room before."""
