"""The status of a task: what the pod says, or what this scheduler has decided and not yet seen confirmed."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Where a task stands."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9
    EVICTING = 10  # its eviction was sent and the pod is not terminating yet: it gives its room back, and still counts in its queue

    @property
    def title(self) -> str:
        """The name users see; the peers know one word for pods that are going."""
        return "Releasing" if self is Status.EVICTING else self.name.capitalize()


COUNT = len(Status)
ALLOCATED_LIKE = frozenset({Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING})
READY = ALLOCATED_LIKE | {Status.SUCCEEDED}
# Decided in this cycle and not sent yet.
TENTATIVE = frozenset({Status.ALLOCATED, Status.PIPELINED})
# From the moment a task is placed or waits for room until it is going.
SETTLED = ALLOCATED_LIKE | TENTATIVE
PREEMPTABLE = frozenset({Status.BOUND, Status.RUNNING})
FINISHED = frozenset({Status.SUCCEEDED, Status.FAILED})
# Statuses that take room on the node they name; a pipelined task is counted in a column of its own.
GOING = frozenset({Status.RELEASING, Status.EVICTING})
PLACED = ALLOCATED_LIKE | GOING | {Status.UNKNOWN}


def from_pod(phase: str, node: str, *, deleting: bool) -> Status:
    """Return the status that a pod object stands for."""
    if phase == "Running":
        return Status.RELEASING if deleting else Status.RUNNING
    if phase == "Pending":
        if deleting:
            return Status.RELEASING
        return Status.BOUND if node else Status.PENDING
    return {"Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED}.get(phase, Status.UNKNOWN)
