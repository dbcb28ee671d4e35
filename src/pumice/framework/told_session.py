"""What every part of a session needs of it: the cluster, and where to say what was found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pumice.framework.findings import Findings
    from pumice.framework.record import CycleRecord
    from pumice.model.cluster import Cluster


class ToldSession(Protocol):
    """A session that can be told of what was found out about the cluster."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def findings(self) -> Findings:
        """What was found out."""

    @property
    def record(self) -> CycleRecord:
        """Why."""
