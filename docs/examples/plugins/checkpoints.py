"""checkpoints: evict only pods that have saved their work. An eviction rule."""

from collections.abc import Sequence

from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.session import Session
from pumice.framework.subject import EvictionContext
from pumice.model.task import Task

SAVED = "example.com/checkpoint"


class Checkpoints(Plugin):
    """Let only pods go whose annotation `example.com/checkpoint` is `done`."""

    name = "checkpoints"
    points = frozenset({"Preemptable", "Reclaimable", "UnifiedEvictable"})
    reads = Reads.TASK  # what the pods themselves say

    def open(self, session: Session) -> None:
        """Register the rule for each kind of eviction; it holds together with those of the other plugins of its tier."""
        session.preemptable.add(self.saved)
        session.reclaimable.add(self.saved)
        session.unified_evictable.add(self.saved)

    def saved(self, claimant: Task | EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        """Name those who may go; an empty list means nobody, None would mean that the others decide."""
        return [task for task in candidates if task.pod.metadata.annotations.get(SAVED) == "done"]
