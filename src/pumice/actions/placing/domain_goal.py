"""What a search among domains is for, and how far it got."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.framework.job_domains import Groups, Limit
    from pumice.model.job import SubJob
    from pumice.model.task import Task


class Progress(IntEnum):
    """How far a job or sub-group got in a domain: nowhere, to room that it has to wait for, or to all it needs."""

    NOTHING = 0
    WAITS = 1
    READY = 2


class Goal(msgspec.Struct, frozen=True):
    """What is looked for: domains for a job, or for one of its sub-groups, in the order of groups; `need` members must fit.

    `attempt` places tasks inside the domain of a turn, in the order that it is given.
    """

    sub_job: SubJob
    groups: Groups
    limit: Limit | None
    need: int
    tasks: Sequence[Task]
    attempt: Callable[[Turn, Progress, Sequence[Task]], Progress]
    is_part: bool = False
    compares: bool = False

    def rows(self, turn: Turn) -> list[int]:
        """Return the nodes of all that have to stay together."""
        return turn.session.topology.rows(self.sub_job if self.is_part else turn.job)
