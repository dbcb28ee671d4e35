"""Everything that others get to see of the process: metrics, health, dumps, summaries."""

from __future__ import annotations

import asyncio
import concurrent.futures
import resource
import sys
import time
from typing import TYPE_CHECKING, Final

from pumice.api import names as api_names
from pumice.server import dump
from pumice.server.configuration.sources import CONFIG_MAP
from pumice.server.health import checks
from pumice.server.health.api_silence import reason
from pumice.server.metrics import exposition, job_samples, metering, series
from pumice.server.onlooking import CycleTimes, SelfReport
from pumice.server.threads import mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.cache.cache import Cache
    from pumice.framework.breakdowns import Breakdown
    from pumice.framework.record import CycleRecord
    from pumice.kube.election import Election
    from pumice.kube.watches.informers import Informers
    from pumice.kube.writes.world import KubeWorld
    from pumice.recording.recorder import Recorder
    from pumice.scheduler import Scheduler
    from pumice.server.configuration.policy import Policy
    from pumice.server.flags.settings import Settings
    from pumice.server.health.api_silence import ApiSilence
    from pumice.server.health.checks import Line
    from pumice.server.health.overdue import Watch
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.controllers import ControllersMeter
    from pumice.server.metrics.series import Sample
    from pumice.server.threads.deciding import Decider
    from pumice.server.threads.mailbox import Mailbox

PATIENCE: Final = 2.0  # seconds that a scrape waits for a cycle to end before it gets the numbers of the last one


def memory_mib(most: int, system: str) -> int:
    """Give the memory of a process in MiB: macOS counts it in bytes, and every other system in KiB."""
    return most // (1024 * 1024 if system == "darwin" else 1024)


class Reporter:
    """Knows whom to ask. Each part is named when it exists; until then there is nothing to say about it."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        policy: Policy,
        box: Mailbox,
        wall: Callable[[], int],
        *,
        api_silence: ApiSilence,
        watch: Watch,
        election: Election | None = None,
    ) -> None:
        self._settings = settings
        self._log = log
        self._policy = policy
        self._box = box
        self._wall = wall
        self._api_silence = api_silence
        table = (*series.SERIES, *series.CONTROLLERS) if settings.controllers else series.SERIES
        self.exposition = exposition.Exposition(self._samples, table)
        self.meter = metering.Meter(self.exposition, log, wall)
        self.health = checks.Health(
            {"progress": watch.late},
            {"informers": self._missing, "progress": watch.late},
            {
                "progress": watch.notes,
                "deciding": self._trouble,
                "configuration": lambda: policy.problem,
                "plugins": lambda: policy.unusable,
                "controllers": lambda: self._controllers.last_breakdown if self._controllers is not None else "",
            },
            api_silence.lines,
            None if election is None else lambda: leadership(election),
        )
        self._watch = watch
        self._started = wall() / 1e6
        self._cache: Cache | None = None
        self._controllers: ControllersMeter | None = None
        self._world: KubeWorld | None = None
        self.recorder: Recorder | None = None
        self._informers: Informers | None = None
        self._decider: Decider | None = None
        self.scheduler: Scheduler | None = None
        self._job_samples: job_samples.JobSamples | None = None
        self._latest: list[Sample] = []
        self._scrape: asyncio.Task[bytes] | None = None
        self._cycles = {"decided": 0, "skipped": 0}
        self._times = CycleTimes()
        self._breakdowns: dict[tuple[str, str], int] = {}
        self._broken: dict[tuple[str, str], int] = {}

    # -- parts -------------------------------------------------------------------------------------------------

    def look_at(self, world: KubeWorld, cache: Cache) -> None:
        """Name the world, whose effects the meter observes, and the cache that sends them."""
        self._world, self._cache = world, cache
        self.meter.look_at(cache.cluster)

    def watch(self, informers: Informers) -> None:
        """Name the watches."""
        self._informers = informers
        self._api_silence.watch(informers)

    def follow(self, scheduler: Scheduler, decider: Decider) -> None:
        """Name who decides."""
        self.scheduler, self._decider = scheduler, decider
        self._job_samples = job_samples.JobSamples(scheduler, self.meter.placed)

    def add_controllers(self) -> ControllersMeter:
        """Measure controllers of this process too."""
        from pumice.server.metrics.controllers import ControllersMeter  # noqa: PLC0415  most processes have none, and all would load them

        self._controllers = ControllersMeter(self.exposition, self._log, self._wall)
        return self._controllers

    # -- health ------------------------------------------------------------------------------------------------

    def _trouble(self) -> str:
        return self._decider.trouble if self._decider is not None else ""

    def _missing(self) -> str:
        if self._informers is None or self.scheduler is None:
            return "starting"
        return missing(self._informers)

    def on_itself(self) -> SelfReport:
        """Say how the process is doing, for whoever looks on."""
        by_plugin: dict[str, int] = {}
        for (_, plugin), count in list(self._breakdowns.items()):
            by_plugin[plugin or "unknown"] = by_plugin.get(plugin or "unknown", 0) + count
        troubles = (self._missing(), self._policy.problem, self._policy.unusable)
        return SelfReport(
            leading=self._decider is not None and self._decider.deciding,
            decided=self._cycles["decided"],
            skipped=self._cycles["skipped"],
            breakdowns=by_plugin,
            troubles=tuple(each for each in troubles if each),
            silence=self._api_silence.silence(),
            **self._times.told(),
        )

    # -- metrics -----------------------------------------------------------------------------------------------

    async def metrics(self) -> bytes:
        """Return the text that Prometheus scrapes; whoever asks while it is being written gets the same, so that many cost no more than one."""
        if self._scrape is None or self._scrape.done():
            self._scrape = asyncio.create_task(self._scraped())
        return await asyncio.shield(self._scrape)

    async def _scraped(self) -> bytes:
        """Write the text, with the numbers of the present moment if no long cycle is under way."""
        if self._decider is not None:
            reply: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._box.post(mailbox.View(reply))
            try:
                async with asyncio.timeout(PATIENCE):
                    await asyncio.wrap_future(reply)
            except TimeoutError:
                self._log.info("a cycle takes long; metrics of jobs and queues are those of the last scrape")
        return await asyncio.to_thread(self.exposition.text)

    def view(self) -> None:
        """Gather the numbers of jobs and queues; called by the deciding thread between cycles."""
        if self._job_samples is not None:
            self._latest = self._job_samples.gather()

    def _samples(self) -> Iterator[Sample]:
        meter = self.meter
        yield from self._latest
        yield from self._controllers.samples() if self._controllers is not None else ()
        yield "volcano_pod_preemption_victims", (), meter.victims
        yield "volcano_total_preemption_attempts", (), meter.attempts
        for action, count in list(meter.transactions.items()):
            yield "volcano_eviction_transactions_total", (action,), count
        for labels, count in list(meter.evictions.items()):
            yield "pumice_evictions_total", labels, count
        yield from self._of_progress()
        yield "pumice_configuration_valid", (), int(not self._policy.problem)
        yield "pumice_leading", (), int(self._decider is not None and self._decider.deciding)
        yield "pumice_api_server_silence_seconds", (), self._api_silence.silence()
        yield from self._of_cycles()
        if self._informers is not None:
            yield from of_watches(self._informers)
        if self.recorder is not None:
            yield from _of_recording(self.recorder)
        for verb, writes in meter.writes.items():
            yield "pumice_writes_total", (verb,), writes.total
            yield "pumice_write_failures_total", (verb,), writes.failed
        if self._world is not None:
            yield from _of_world(self._world)

    def _of_cycles(self) -> Iterator[Sample]:
        """Give how cycles ended, and what broke down in them."""
        for outcome, count in self._cycles.items():
            yield "pumice_cycles_total", (outcome,), count
        for names, count in list(self._breakdowns.items()):
            yield "pumice_breakdowns_total", names, count
        for way, count in list(self.meter.retreats.items()):
            yield "pumice_retreats_total", (way,), count
        for names, count in list(self._broken.items()):
            yield "pumice_broken_functions", names, count

    def _of_progress(self) -> Iterator[Sample]:
        """Give what tells that the process goes on."""
        yield from self._watch.samples()
        yield "pumice_start_time_seconds", (), self._started
        yield "pumice_oldest_bind_seconds", (), self.meter.oldest_bind()
        if self._cache is not None:
            yield "pumice_changes_waiting", (), self._cache.waiting

    # -- the deciding thread -----------------------------------------------------------------------------------

    def cycled(self, record: CycleRecord, microseconds: int) -> None:
        """Take note of a cycle."""
        if record.skipped:
            self._cycles["skipped"] += 1
            return
        self._cycles["decided"] += 1
        self._times.add(microseconds)
        self.meter.begun = True
        self.meter.cycle(microseconds / 1000)
        if self._job_samples is not None:
            self._job_samples.cycled()

    def broke(self, action: str, plugin: str) -> None:
        """Count a breakdown."""
        self._breakdowns[action, plugin] = self._breakdowns.get((action, plugin), 0) + 1

    def broken_after(self, found: Sequence[Breakdown], text: str) -> None:
        """Take note of what is broken after a cycle, and tell the configuration's object of it when the words change."""
        self._broken = dict.fromkeys(self._broken, 0)  # a series that was there goes back to 0
        for names in {(each.plugin, each.point, each.routine, each.place) for each in found if each.point}:
            self._broken[names[:2]] = self._broken.get(names[:2], 0) + 1
        place = self._policy.place
        if text and place is not None and self.scheduler is not None:
            cache = self.scheduler.cache
            cache.note(CONFIG_MAP, place, "Warning", api_names.EVENT_BROKE_DOWN, text, once=True)

    def dump(self) -> None:
        """Write what is known to a file."""
        if self.scheduler is None:
            return
        cluster = self.scheduler.cache.cluster
        try:
            path = dump.write(cluster, self._settings.cache_dump_dir, int(time.time()))
        except OSError as error:
            self._log.error(
                "dump failed", folder=self._settings.cache_dump_dir, problem=f"{error.strerror}; see --cache-dump-dir"
            )
            return
        self._log.info("dumped", file=str(path), pods=len(cluster.tasks), nodes=cluster.nodes.count)

    def summarise(self) -> None:
        """Log how things stand."""
        if self.scheduler is None:
            return
        cluster = self.scheduler.cache.cluster
        phases: dict[str, int] = {}
        for counts in cluster.phases.counts.values():
            for phase, count in counts.items():
                phases[phase] = phases.get(phase, 0) + count
        self._log.info(
            "summary",
            nodes=cluster.nodes.count,
            pods=len(cluster.tasks),
            groups=", ".join(f"{phase} {count}" for phase, count in sorted(phases.items()) if count) or "none",
            waiting=len(cluster.pending_jobs),
            queues=", ".join(sorted(cluster.queues)),
            cycles=self.scheduler.cycles,
            memory_mib=memory_mib(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sys.platform),
        )
        for report in self._informers.report() if self._informers is not None else ():
            self._log.info(
                "watch",
                watch=report.watch,
                state=report.state,
                objects=report.objects,
                version=report.version,
                lists=report.lists,
                errors=report.errors,
                problem=report.error,
            )


def missing(informers: Informers) -> str:
    """Name the watches that have had no complete list yet."""
    found = [report for report in informers.report() if not report.synced]
    return "; ".join(f"not listed yet: {each.watch}{': ' + reason(each) if each.error else ''}" for each in found)


def of_watches(informers: Informers) -> Iterator[Sample]:
    """Give the samples of watches."""
    for report in informers.report():
        yield "pumice_watch_synced", (report.watch,), int(report.synced)
        yield "pumice_watch_objects", (report.watch,), report.objects
        yield "pumice_watch_lists_total", (report.watch,), report.lists
        yield "pumice_watch_errors_total", (report.watch,), report.errors


def leadership(election: Election) -> Line:
    """Say who leads, as far as is known."""
    if election.leading:
        return "leading", not election.trouble, election.trouble and f"the lease is not renewed: {election.trouble}"
    if election.trouble:
        return "standing by", False, f"the lease cannot be taken: {election.trouble}"
    return "standing by", True, f"held by {election.holder}" if election.holder else "nothing is known of the lease yet"


def _of_recording(recorder: Recorder) -> Iterator[Sample]:
    yield "pumice_recording_bytes_total", (), recorder.writer.written
    yield "pumice_recording_seconds_total", (), recorder.writer.spent
    yield "pumice_recording_dropped_total", (), recorder.writer.dropped


def _of_world(world: KubeWorld) -> Iterator[Sample]:
    counts = world.counts
    yield "pumice_writes_waiting", (), counts.waiting + counts.in_flight
    yield "pumice_events_total", ("sent",), counts.events
    yield "pumice_events_total", ("dropped",), counts.events_dropped
