"""The process: what the flags ask for is put together, run by two threads, and ended in good order."""

from __future__ import annotations

import asyncio
import functools
import importlib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pumice import __version__
from pumice.api import kinds
from pumice.cache import assignment
from pumice.cache.cache import Cache
from pumice.cache.effects import Prepare, TakeBack
from pumice.cache.options import Options
from pumice.framework import registry
from pumice.framework.configuration import ConfigurationError
from pumice.kube import election, errors, grouping, lease_holders, rivals
from pumice.kube.watches import informers
from pumice.kube.writes.world import KubeWorld
from pumice.scheduler import Scheduler
from pumice.server import dump, extending, following, geometries, onlooking, reporting, surroundings
from pumice.server.configuration import plugin_files, policy, refusals, sources
from pumice.server.flags import controller_settings
from pumice.server.health import api_silence, overdue
from pumice.server.logs import logs
from pumice.server.threads import (
    deciding,
    interpreter,
    io_thread,
    leading,
    mailbox,
    pacing,
    required_queues,
    signals,
    watch_feed,
    watchdog,
)
from pumice.server.usage import polling

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pumice.api import usage
    from pumice.cache.effects import Outcome
    from pumice.recording.recorder import Recorder
    from pumice.server.controlling.beside import ControllersThread
    from pumice.server.flags.settings import Settings
    from pumice.server.logs.logs import Log

FINISH: Final = 4.0  # seconds that writes get at the end


def run(settings: Settings, onlooker: Callable[[Settings, Log], onlooking.Onlooker] | None = None) -> int:
    """Run the scheduler until it is told to end, with somebody who looks on if one is given; returns the exit status."""
    log = logs.Log(settings.v, settings.logging_format)
    logs.adopt_libraries(log)
    log.info("starting", version=__version__)
    for name in settings.unheard:
        log.info("flag without effect", flag=f"--{name}")
    if settings.cache_dumper:
        dump.check(settings.cache_dump_dir, log)
    try:
        process = Process(settings, log, onlooker=None if onlooker is None else onlooker(settings, log))
    except (ConfigurationError, errors.KubeError, sources.SourceError, plugin_files.FolderError, ValueError) as error:
        return _refuse(log, error)
    return process.run()


def _refuse(log: Log, error: Exception) -> int:
    """Say why nothing starts; what is wrong with a configuration gets a line for each problem."""
    if isinstance(error, ConfigurationError):
        for problem in error.problems:
            log.error("configuration refused", source=error.source, problem=str(problem))
    log.error("cannot start", problem=str(error).partition(":\n")[0])
    return 1


class Process:
    """One scheduler with everything around it."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        watching: watchdog.Watchdog | None = None,
        around: surroundings.Surroundings = surroundings.REAL,
        onlooker: onlooking.Onlooker | None = None,
    ) -> None:
        self._settings = settings
        self._onlooker = onlooker
        self._log = log
        self._around = around
        self._watchdog = watchdog.Watchdog(log) if watching is None else watching
        self._box = around.mailbox()
        self._api_silence = api_silence.ApiSilence(around.seconds)
        self._options = pacing.patient(Options.from_flags(settings.shaping), settings.schedule_period)
        self._known = self._installed()
        self.policy = policy.Policy(self._known.catalog(), log)
        self._followed = following.Followed(settings.scheduler_conf, self.policy)
        self._first = self._followed.first()
        self._client, self._lease_client = around.clients(settings, self._allowance)
        self._refusals = refusals.Refusals(self._lease_client, around.wall, self._component())
        self._assignment = assignment.from_environment(os.environ)
        self._grouping = rivals.grouping(self._options.scheduler_name)
        self._lookout = rivals.Lookout(self._lease_client, self._rivals(), around.awake_or_not)
        self.election = self._candidate() if settings.leader_elect else None
        self.reporter = self._reporting()
        self.world = KubeWorld(
            self._client,
            component=self._component(),
            observer=self.reporter.meter,
            now=around.wall,
            seconds=around.seconds,
        )
        self.recorder = self._recording()
        world = self.world if self.recorder is None else self.recorder.join(self.world)
        self.cache = Cache(world, self._options, assignment=self._assignment)
        self.reporter.look_at(self.world, self.cache)
        self._work = controller_settings.beside_scheduler(settings)
        self._controllers = self._beside() if self._work is not None else None
        self._holders = lease_holders.LeaseHolders(self._client, rivals.CONTROLLING, around.awake_or_not, around.chance)
        self.groups = self._grouping_of_pods()
        self.informers = self._watches()
        self.io = io_thread.IoThread(self._parts(), self._box, log, around)
        deadline = settings.cycle_deadline / 1e6 or math.inf
        self.deciding = overdue.Part("deciding", "a cycle", deadline=deadline)

    # -- putting together --------------------------------------------------------------------------------------

    def _installed(self) -> registry.Registry:
        """Return the plugins and actions that are installed, those of the folder among them, and say which those are."""
        known = registry.installed()
        if self._settings.plugins_dir:
            known = plugin_files.extend(known, self._settings.plugins_dir)
        known = extending.asking(known)
        plugin_files.tell(known, self._settings.plugins_dir, self._log)
        return known

    def _reporting(self) -> reporting.Reporter:
        return reporting.Reporter(
            self._settings,
            self._log,
            self.policy,
            self._box,
            self._around.wall,
            api_silence=self._api_silence,
            watch=self._watchdog.watch,
            election=self.election,
        )

    def _grouping_of_pods(self) -> grouping.Grouping:
        return grouping.Grouping(
            self._client,
            wanted=self._groups_pods,
            scheduler_names=self._options.scheduler_name,
            patience=grouping.LEFT_ALONE if self._assignment is None else 0,
            tell=lambda text: self._log.warning("a pod cannot be given its group yet", problem=text),
            now=self._around.wall,
            seconds=self._around.seconds,
        )

    def _recording(self) -> Recorder | None:
        """Return whoever records, if that is asked for; a folder that cannot be written to is told of, and costs nothing else."""
        if not self._settings.record:
            return None
        from pumice.recording.recorder import Recorder  # noqa: PLC0415  what few ask for should not make everybody's start longer

        made = Recorder(
            Path(self._settings.record),
            self._settings.record_bytes,
            self._options,
            self._assignment,
            tell=lambda what, why: self._log.warning(what, folder=why),
        )
        self.reporter.recorder = made
        return made

    def _rivals(self) -> rivals.Rivals:
        settings, share = self._settings, self._assignment
        serves = tuple(self._options.scheduler_name)
        own = f"{settings.lease_namespace}/{settings.leader_elect_resource_name}" if settings.leader_elect else ""
        return rivals.Rivals(own, serves if share is None else rivals.parted(serves, share.member, share.members))

    def _candidate(self) -> election.Election:
        client = self._api_silence.listening(self._lease_client)
        name = self._settings.leader_elect_resource_name
        return leading.candidacy(self._settings, name, client, self._lookout, log=self._log, around=self._around)

    def _allowance(self) -> float:
        """Say how many seconds a write may take: without an election any number, else as long as the lease is surely ours."""
        return math.inf if self.election is None else self.election.allowance()

    def _may_write(self) -> bool:
        return self._allowance() > 0

    def _wants_companions(self) -> bool:
        """Tell whether pods without a group get one; under kube-batch's rules the cache makes up its own, which nobody else sees."""
        current = self.policy.current
        return current is not None and current.rules != "kube-batch"

    def _groups_pods(self) -> bool:
        """Tell whether the scheduler itself gives pods without a group one: while no controllers do whose lease is held, or that run here without one."""
        if not self._may_write() or not self._wants_companions():
            return False
        if self._work is not None and self._work.companions and not self._settings.leader_elect:
            return False
        return self._holders.synced and not self._holders.serve(self._grouping)

    def _beside(self) -> ControllersThread:
        """Put the controllers of this process together."""
        from pumice.server.controlling import beside  # noqa: PLC0415  as above

        assert self._work is not None  # noqa: S101  asked for only where there is work
        return beside.ControllersThread(
            self._settings,
            self._work,
            box=self._box,
            log=self._log,
            meter=self.reporter.add_controllers(),
            api_silence=self._api_silence,
            companions_wanted=self._wants_companions,
            around=self._around,
        )

    def _component(self) -> str:
        names = self._options.scheduler_name
        return names[0] if len(names) == 1 else "volcano"

    def _watches(self) -> informers.Informers:
        gates = self._settings.gates
        specs = informers.standard(
            self._options,
            csi_storage=self._settings.csi_storage,
            workloads=gates.get("WorkLoadSupport", True),
            disruption_budgets=gates.get("PodDisruptionBudgetsSupport", True),
            numatopology=gates.get("ResourceTopology", True),
            raw=grouping.WATCHED if self._onlooker is None else (*grouping.WATCHED, *self._onlooker.raw),
        )
        sink = watch_feed.WatchFeed(self.cache, self.groups, self.reporter.meter.noticed, self._box)
        if self._onlooker is not None:
            sink.onlooker = self._onlooker
            specs += self._onlooker.specs
        return informers.Informers(self._client, specs, sink, rng=self._around.chance(), now=self._around.seconds)

    def _parts(self) -> io_thread.Parts:
        chores: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self._serve,
            self.reporter.meter.write_failures.run,
            self._holders.run,
            self._loads().run,
            self._geometries().run,
        ]
        if self._settings.scheduler_conf:
            chores.append(self._follow_configuration)
        if self._onlooker is not None:
            told = onlooking.Around(self._known.catalog(), lambda: self.policy.current, self.reporter.on_itself)
            chores.append(functools.partial(self._onlooker.run, told))
        return io_thread.Parts(
            [self._client, self._lease_client],
            self.informers,
            self.world,
            watch_feed.WhenWanted(self.groups.run, self._groups_pods),
            election=self.election,
            alone=lambda: self._lookout.wait(
                lambda text: self._log.warning("others may serve the same pods", reason=text)
            ),
            prepare=required_queues.Queues(self._client, self._options, self._log, self._may_write).ensure,
            settled=self._settled,
            chores=chores,
        )

    def _loads(self) -> polling.Poller:
        """Return whoever asks how busy nodes are, as the configuration in force says."""
        return polling.Poller(
            self._client,
            lambda: {} if self.policy.current is None else self.policy.current.metrics,
            functools.partial(self._learn, kinds.NODE_USAGE),
            lambda text: self._log.warning("the load of nodes is not known", problem=text),
            self._around.wall,
        )

    def _geometries(self) -> geometries.Reader:
        """Return whoever reads into what cards can be cut, where the configuration in force asks for it."""
        return geometries.Reader(
            self._client,
            lambda: self.policy.current,
            functools.partial(self._learn, kinds.CARD_GEOMETRIES),
            lambda text: self._log.warning("cards cannot be cut", problem=text),
        )

    def _learn(self, kind: kinds.Kind, found: usage.NodeUsage | usage.CardGeometries) -> None:
        """Take over what no watch tells."""
        self.cache.feed(kind, "MODIFIED", found)
        self._box.ring()

    def _settled(self, outcome: Outcome) -> None:
        """Take an answer; of what was done the watches tell, of what failed, or was prepared for a bind, nobody else does."""
        self.cache.settled(outcome)
        if outcome.failure is not None or isinstance(outcome.effect, Prepare | TakeBack):
            self._box.ring()

    # -- chores of the I/O thread ------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self.reporter.watch(self.informers)
        folder = os.environ.get(logs.SOCKET_FOLDER, "")
        if self._settings.enable_metrics or self._settings.enable_healthz or folder:
            # An HTTP server takes a while to load, in which lists can be read already.
            serving = await asyncio.to_thread(importlib.import_module, "pumice.server.serving")
            await serving.serve(self._settings, self.reporter, self._log, folder)
        # Asked for by the first `numpy.unique`: a cycle would wait for it.
        await asyncio.to_thread(importlib.import_module, "numpy.ma")
        await asyncio.Event().wait()

    async def _follow_configuration(self) -> None:
        await self._followed.run(
            self._client, lambda loaded: self._box.post(mailbox.Reconfigure(loaded)), self._refusals, self._may_write
        )

    # -- running -----------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Run until told to end; returns the exit status."""
        signals.Signals(self._box, dumps=self._settings.cache_dumper).heed()
        interpreter.tune()
        self._be_watched()
        self.io.start()
        if self._controllers is not None:
            self._controllers.start()
        ended = self._box.serve(self.steps())
        self.deciding.begin()
        self.deciding.due(self._around.seconds() + watchdog.ENDING)
        if self._controllers is not None:
            self._controllers.stop()
        if isinstance(ended, mailbox.Fatal):
            self._log.error("ending", problem=ended.reason)
            self.io.stop(0.0)
            self._end_recording()
            return 1
        self._log.info("ending", reason=ended.reason)
        self.io.stop(FINISH)
        self._end_recording()
        self._log.info("ended")
        return 0

    def _be_watched(self) -> None:
        """Let every thread be looked at; if one of them does not go on, the others end in good order, so that the Lease is free for the next one."""
        watched: list[overdue.Watched] = [self.deciding, self.io.part]
        if self._controllers is not None:
            watched += self._controllers.part.watched
            self._watchdog.before_leaving.append(self._controllers.stop)
        if self.recorder is not None:
            writer = self.recorder.writer
            turns = overdue.Turning(
                "recording", "a write", lambda: writer.turns, rests=lambda: writer.rests, ends=False
            )
            watched.append(turns)
        for part in watched:
            self._watchdog.watch.add(part)
        self._watchdog.before_leaving.append(lambda: self.io.stop(0.0))
        if not self._watchdog.is_alive():
            self._watchdog.start()

    def _end_recording(self) -> None:
        if self.recorder is not None:
            self.recorder.close(FINISH)

    def steps(self) -> mailbox.Steps:
        """Decide until told to end, as `Decider.steps` does, once there is a configuration."""
        first = self._first
        while first is None:
            self.deciding.begin()
            self.deciding.due(until := self._around.seconds() + overdue.BEAT)
            message = yield until
            if isinstance(message, mailbox.Stop | mailbox.Fatal):
                return message
            if isinstance(message, mailbox.Reconfigure):
                first = message.configuration
        if self.recorder is not None:
            self.cache.inputs = self.recorder
        self.deciding.begin("making plugins and actions")
        try:
            scheduler = Scheduler(self.cache, first, self._around.wall, known=self._known, observer=self.reporter.meter)
        except Exception as error:  # noqa: BLE001  a plugin of somebody else's may break down when it is made
            self._log.broke("the configuration cannot be brought to life", error)
            return mailbox.Fatal(f"a plugin or action could not be made: {type(error).__name__}: {error}")
        if self.recorder is not None:
            self.recorder.follow(scheduler)
        period = self._settings.schedule_period
        pause = None if period is None else period / 1e6
        decider = deciding.Decider(
            scheduler, self._box, self._log, self.reporter, period=pause, around=self._around, part=self.deciding
        )
        self.reporter.follow(scheduler, decider)
        return (yield from decider.steps())
