"""Workloads of Volcano that nobody serves: the scheduler places pods, and who makes pods of these is another program, which may not be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import kinds, meta, workloads
from pumice.model.task import instant

if TYPE_CHECKING:
    from pumice.api import decoding
    from pumice.cache.mirror import Mirror

KINDS: Final = (kinds.JOB, kinds.CRON_JOB, kinds.JOB_FLOW)
_TYPES: Final = (workloads.Job, workloads.CronJob, workloads.JobFlow)
PATIENCE: Final = 60_000_000
NOT_SERVED: Final = "NotServed"


class Unserved:
    """Says once, by an event, of each workload that has had no status for a while since it was created; its status is left alone."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._waiting: dict[str, tuple[int, kinds.Kind, meta.ObjectMeta]] = {}

    def apply(self, kind: kinds.Kind, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        """Watch a workload, unless somebody has touched it."""
        metadata = found.metadata
        served = not isinstance(found, _TYPES) or found.status.is_written or metadata.deletion_timestamp
        if gone or served:
            self._waiting.pop(metadata.uid, None)
            if gone:
                self._cache.forget_told(metadata.uid)
        else:
            self._waiting[metadata.uid] = (instant(metadata.creation_timestamp) + PATIENCE, kind, metadata)

    def review(self, now: int) -> None:
        """Tell of those that have waited long."""
        for uid, (due, kind, metadata) in list(self._waiting.items()):
            if due > now:
                # By a clock that is ahead of ours; nobody waits for that.
                self._waiting[uid] = (min(due, now + PATIENCE), kind, metadata)
                continue
            del self._waiting[uid]
            text = (
                f"nobody has touched this {kind.name} for {PATIENCE // 1_000_000} s; the scheduler places pods, and controllers "
                f"make them of {kind.name} objects: see that `pumice controllers` or Volcano's controller manager runs"
            )
            if kind is kinds.CRON_JOB:
                text += ", unless the first run is still to come"
            self._cache.note(kind, metadata, "Warning", NOT_SERVED, text, once=True)

    def next_wake(self) -> int | None:
        """Return when the next one has waited long."""
        return min((due for due, _, _ in self._waiting.values()), default=None)
