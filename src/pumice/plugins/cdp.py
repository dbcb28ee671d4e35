"""cdp: a pod is not evicted soon after it was scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import duration, names
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model.task import instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.task import Task


class Cooldown(Plugin):
    """Protect running pods from eviction for a while after they were scheduled.

    The time is the label `volcano.sh/cooldown-time` of the pod, else the annotation, such as `10m`; pods without one, or with one that cannot be read, are not protected.
    """

    name = "cdp"
    points = frozenset({"Preemptable", "Reclaimable", "Protection"})

    def open(self, session: Session) -> None:
        """Register the rule wherever victims are chosen."""
        self._session = session
        session.preemptable.add(self.cooled_down)
        session.reclaimable.add(self.cooled_down)
        session.protection.add(self.protection, reads=Reads.TASK | Reads.TIME)

    def cooled_down(self, _claimant: object, candidates: Sequence[Task]) -> list[Task]:
        """Keep candidates that are no longer protected."""
        return [task for task in candidates if self._until(task) is None]

    def protection(self, _claimant: Task | None, victim: Task, _action: str) -> str | None:
        """Protect a pod until its time is over."""
        until = self._until(victim)
        if until is None:
            return None
        return f"{victim.key} was scheduled less than its cooldown time ago, {duration.format_duration(until - self._session.now)} are left"

    def _until(self, task: Task) -> int | None:
        """Return until when a pod is protected; None if it is not."""
        end = protected_until(task)
        if end is None or end <= self._session.now:
            return None
        self._session.wake_at(end)
        return end


def protected_until(task: Task) -> int | None:
    """Return when the cooldown of a running pod ends; None if it has none."""
    metadata = task.pod.metadata
    text = metadata.labels.get(names.COOLDOWN_TIME, metadata.annotations.get(names.COOLDOWN_TIME))
    if text is None or task.pod.status.phase != names.PHASE_RUNNING:
        return None
    try:
        cooldown = duration.parse(text)
    except duration.DurationError:
        return None
    for condition in task.pod.status.conditions:
        if condition.type == names.CONDITION_POD_SCHEDULED and condition.status == "True":
            return instant(condition.last_transition_time) + cooldown
    return None
