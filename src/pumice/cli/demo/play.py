"""The demonstration at work: a simulated cluster, a scheduler that sees it through its cache alone, and the jobs that arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import duration
from pumice.cache.cache import Cache
from pumice.cli.demo import snapshot, story
from pumice.framework import configuration, registry
from pumice.scheduler import Options, Scheduler
from pumice.sim.cluster import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.record import CycleRecord

PERIOD = duration.SECOND
LINGER = 15  # cycles to go on after the last pod has finished, so that one sees who still waits
LONGEST = 600


class Play:
    """One run of the story, a cycle at a time."""

    def __init__(self) -> None:
        options = Options()
        self._cluster = SimulatedCluster(scheduler_names=options.scheduler_name)
        self._cache = Cache(self._cluster, options)
        settings = configuration.load(story.CONFIGURATION, registry.catalog(), "demo")
        self._scheduler = Scheduler(self._cache, settings, self._cluster.clock.now)
        self._start = self._cluster.clock.now()
        self._arrivals = story.arrivals()
        self._cluster.apply(story.cluster())
        self._cluster.connect(self._cache)
        self.record: CycleRecord = self._cache.record
        self.busy = 0

    def scenes(self) -> Iterator[snapshot.Snapshot]:
        """Run cycle after cycle, giving what is to be seen after each, until everything that can finish has finished."""
        idle = 0
        while idle < LINGER and self._scheduler.cycles < LONGEST:
            self._submit()
            self._cluster.pump()
            self.record = self._scheduler.cycle()
            self.busy += not self.record.skipped
            self._cluster.settle()
            seen = self._look()
            yield seen
            idle = 0 if self._arrivals or any(node.parts for node in seen.nodes) else idle + 1
            self._cluster.advance(PERIOD)

    def _look(self) -> snapshot.Snapshot:
        counts = self._cluster.counts
        how = snapshot.Look(
            now=self._cluster.clock.now(),
            start=self._start,
            cycle=self.record.cycle,
            binds=counts.binds,
            evictions=counts.evictions,
            why=self._why,
        )
        return snapshot.look(self._cluster.store, how)

    def _why(self, job: str) -> str:
        verdicts = self.record.verdicts(job)
        return verdicts[-1].text if verdicts else ""

    def _submit(self) -> None:
        """Let everything arrive that is due."""
        now = self._cluster.clock.now() - self._start
        while self._arrivals and self._arrivals[0].second * duration.SECOND <= now:
            self._cluster.apply(self._arrivals.pop(0).manifests)
