"""How many PodGroups of each phase are in each queue, for whoever measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.controllers.volcano.queues import states
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from pumice.controllers.queueing.observed import Observed

PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")


def by_queue(observed: Observed) -> dict[str, dict[str, int]]:
    """Count groups by queue and phase, for every queue that exists; a group without a phase is pending."""
    counts = {manifests.name(queue): dict.fromkeys(PHASES, 0) for queue in observed.all(kinds.QUEUE)}
    for group in observed.all(kinds.POD_GROUP):
        phase = str(manifests.mapping(group, "status").get("phase") or "Pending").lower()
        counted = counts.get(states.queue_of(group), {})
        if phase in counted:
            counted[phase] += 1
    return counts
