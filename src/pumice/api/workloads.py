"""Volcano's own workloads, as far as one can see whether anybody serves them."""

from pumice.api.meta import KubeObject, Wire


class WorkloadState(Wire, frozen=True, kw_only=True):
    """How far a workload has come."""

    phase: str = ""


class WorkloadStatus(Wire, frozen=True, kw_only=True):
    """What whoever serves a workload writes first."""

    state: WorkloadState = WorkloadState()
    last_schedule_time: str | None = None

    @property
    def is_written(self) -> bool:
        """Whether anybody has written it."""
        return bool(self.state.phase or self.last_schedule_time)


class Job(KubeObject, frozen=True, kw_only=True):
    """A Job of Volcano."""

    status: WorkloadStatus = WorkloadStatus()


class CronJob(KubeObject, frozen=True, kw_only=True):
    """A CronJob of Volcano."""

    status: WorkloadStatus = WorkloadStatus()


class JobFlow(KubeObject, frozen=True, kw_only=True):
    """A JobFlow of Volcano."""

    status: WorkloadStatus = WorkloadStatus()
