"""Who waits and does not lie dormant: followed from cycle to cycle, so that thousands who do lie dormant cost nothing (`waiting-10000`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, MutableMapping

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job


class Awake:
    """Who was awake when somebody asked last, and whether somebody was woken since."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._position = -1
        self.woken = False

    def among(self, cluster: Cluster, dormant: Collection[str]) -> dict[str, Job]:
        """Return who waits and is not left out of the cycle, in the order in which they are listed as waiting: beside those who were awake only who was listed since, unless somebody was woken."""
        waiting, listed = cluster.pending_jobs, cluster.listings.latest(self._position)
        if listed is None or self.woken or not dormant:
            keys: Iterable[str] = waiting
        else:
            came = {cluster.job_at[row].key: None for row in listed if row in cluster.job_at}
            keys = [*(key for key in self._jobs if key not in came), *came]
        self._position, self.woken = cluster.listings.position, False
        self._jobs = {key: waiting[key] for key in keys if key in waiting and key not in dormant}
        return self._jobs


def of(lasting: MutableMapping[str, object]) -> Awake:
    """Return what is kept from cycle to cycle."""
    kept = lasting.setdefault("awake", Awake())
    assert isinstance(kept, Awake)  # noqa: S101  nobody else has that name
    return kept
