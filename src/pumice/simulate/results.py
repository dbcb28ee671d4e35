"""What came of a trace under one policy: a record per job, from which every figure is worked out."""

from __future__ import annotations

import msgspec


class PodRun(msgspec.Struct, frozen=True, gc=False):
    """One pod on one node: from its start until it ended, was evicted, or the simulation stopped (`end` is None)."""

    member: int
    """Which of the job's kinds of members it is."""
    node: str
    start: int
    end: int | None = None
    evicted: bool = False
    cards: tuple[int, ...] = ()
    """The GPUs that it has on its node, where the bind says which."""


class Forecast(msgspec.Struct, frozen=True, gc=False):
    """What was said at some time about the start of a job; `expected` is None where the start is unknown."""

    told: int
    expected: int | None
    reason: str


class JobResult(msgspec.Struct, kw_only=True):
    """What became of one job. Times are microseconds since the trace's zero."""

    job: int
    """Its place in the trace."""
    submit: int
    start: int | None = None
    end: int | None = None
    runs: list[PodRun] = []
    forecasts: list[Forecast] = []
    reason: str = ""
    """Why it waited, as the scheduler wrote it last before it started."""

    @property
    def evictions(self) -> int:
        """How often pods of it were evicted."""
        return sum(run.evicted for run in self.runs)


class Result(msgspec.Struct, kw_only=True):
    """One policy on one trace."""

    policy: str
    jobs: list[JobResult]
    stopped: int
    """When the simulation stopped: at the last event, or earlier if it was interrupted."""
    interrupted: bool = False
    cycles: int = 0
    events: int = 0
    seconds: float = 0.0
    """Processor time."""
    failures: list[str] = []
    """What broke down in the policy, each told once."""
