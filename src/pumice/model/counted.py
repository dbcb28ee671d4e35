"""Which sums a task counts in, by its status, and what changes in them when it goes from one status to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import statuses
from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    # Names of sums, each with 1 where a task begins to count and -1 where it ceases to.
    Changes = tuple[tuple[str, int], ...]

# The columns of its node.
COLUMNS: dict[Status, tuple[str, ...]] = {
    **dict.fromkeys(Status, ()),
    **dict.fromkeys(statuses.PLACED, ("used", "non_zero")),
    **dict.fromkeys(statuses.GOING, ("used", "non_zero", "releasing")),
    Status.PIPELINED: ("pipelined",),
}
# The sums of its job and of its queue.
SUMMED: dict[Status, str] = {
    Status.PENDING: "pending",
    Status.PIPELINED: "pipelined",
    Status.EVICTING: "evicting",
    **dict.fromkeys(ALLOCATED_LIKE, "allocated"),
}


def _between(counted: Mapping[Status, Sequence[str]]) -> dict[tuple[Status, Status], Changes]:
    """Say for each pair of statuses what changes; a sum that counts both is not touched."""
    return {
        (before, after): (
            *((name, -1) for name in counted[before] if name not in counted[after]),
            *((name, 1) for name in counted[after] if name not in counted[before]),
        )
        for before in Status
        for after in Status
    }


# What changes on the node that a task leaves, on one that it comes to, and on one that it stays on.
LEFT: dict[Status, Changes] = {status: tuple((name, -1) for name in COLUMNS[status]) for status in Status}
REACHED: dict[Status, Changes] = {status: tuple((name, 1) for name in COLUMNS[status]) for status in Status}
STAYED = _between(COLUMNS)
# What changes for its job and its queue, wherever it is.
HELD = _between({status: (SUMMED[status],) if status in SUMMED else () for status in Status})
