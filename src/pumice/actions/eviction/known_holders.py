"""From which holders a claimant could take room over is what an equal one has just found out, as long as no holder changes, comes or goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job


class KnownHolders:
    """What claimants of each kind have found by the rules of one action; followed by the log of jobs that change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[Hashable, list[Job]] = {}
        self._holders: dict[str, None] = {}
        self._reserved = 0
        self._position = -1

    def of(self, kind: Hashable) -> list[Job] | None:
        """Return what a claimant of a kind has found, None if none has asked since a holder changed."""
        if not self._is_current():
            self._found.clear()
        return self._found.get(kind)

    def keep(self, kind: Hashable, holders: Iterable[str], found: list[Job]) -> None:
        """Keep what was found among holders; those who were moved for that are back where they were."""
        self._found[kind] = found
        self._holders = dict.fromkeys(holders)
        self._reserved = len(self._session.reserved)
        self._position = self._session.cluster.job_changes.position

    def _is_current(self) -> bool:
        """Tell whether the holders are those that were asked about; of others only who holds room now counts."""
        cluster, reserved = self._session.cluster, self._session.reserved
        changed = cluster.job_changes.since(self._position) if self._found else None
        if changed is None or len(reserved) != self._reserved:
            return False
        for row in changed:
            job = cluster.job_at.get(row)
            if job is None or job.key in self._holders or any(uid in reserved for uid in job.tasks):
                return False
        self._position = cluster.job_changes.position
        return True


def of(session: Session, action: str) -> KnownHolders:
    """Return what is known in this cycle by the rules of an action."""
    known = session.scratch.get(f"holders, {action}")
    if not isinstance(known, KnownHolders):
        known = session.scratch[f"holders, {action}"] = KnownHolders(session)
    return known
