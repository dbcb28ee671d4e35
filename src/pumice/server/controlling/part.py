"""Controllers with everything they need of a real cluster: connection, Lease, watches, writes.

```
  election ── lease ours, nobody else runs the same ──▶ watches ── all listed, and caught up with the lease ──▶ turns, companions
```

If one of these ends, so does the part: losing the lease means that somebody else may be writing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from typing import TYPE_CHECKING, Final, TypedDict

from pumice.api import core, kinds, names
from pumice.controllers.volcano import registry, trimming
from pumice.controllers.volcano.hyper_nodes import controlling as hyper_nodes
from pumice.controllers.volcano.hyper_nodes import settings
from pumice.kube import grouping, reconciling, rivals, ufm
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from pumice.kube.writes.eventing import EventRecorder
from pumice.server.health import overdue
from pumice.server.logs import watch_log
from pumice.server.threads import leading, together, watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.controller import Controller
    from pumice.server.flags.controller_settings import Work
    from pumice.server.flags.process_settings import ProcessSettings
    from pumice.server.health.api_silence import ApiSilence
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.controllers import ControllersMeter
    from pumice.server.surroundings import Surroundings


LAST_TURNS: Final = 2.0  # seconds that turns which were begun get at the end
_SCALED: Final = (kinds.REPLICA_SET, kinds.STATEFUL_SET)


class Kept(TypedDict):
    """What a reconciler is told of that."""

    trim: trimming.Trimmer
    packed: tuple[kinds.Kind, ...]
    narrowed: dict[kinds.Kind, str]


def serves(work: Work) -> tuple[str, ...]:
    """Name what a Lease says of controllers: their names, and whose pods are grouped."""
    own = tuple(name for name in work.chosen if name != names.COMPANION_CONTROLLER)
    return own + (rivals.grouping(work.scheduler_names) if work.companions else ())


def chosen(work: Work, discovery: hyper_nodes.Discovery | None = None) -> list[Controller]:
    """Make the controllers that were chosen; the discovery of HyperNodes is one that asks a fabric manager, if it is given."""
    found = registry.controllers(work.chosen, most_refusals=work.max_requeues)
    return [discovery if discovery is not None and isinstance(each, hyper_nodes.Discovery) else each for each in found]


def kept() -> Kept:
    """Say what is followed and kept of objects that there are many of: of all pods those of Jobs, and little of each."""
    trim = trimming.Trimmer([settings.place(os.environ)])
    return Kept(trim=trim, packed=(kinds.POD,), narrowed={kinds.POD: names.JOB_NAME})


class ControllersPart:
    """Runs controllers until cancelled; raises what ends it."""

    def __init__(
        self,
        flags: ProcessSettings,
        work: Work,
        lease_name: str,
        *,
        log: Log,
        meter: ControllersMeter,
        api_silence: ApiSilence,
        around: Surroundings,
        controllers: Sequence[Controller] | None = None,
        companions_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._log = log
        self._around = around
        self._fabric: ufm.Poller | None = None
        self._client, self._lease_client = around.clients(flags, self._allowance)
        own = f"{flags.lease_namespace}/{lease_name}" if flags.leader_elect else ""
        claims = rivals.Rivals(own, serves(work), rivals.CONTROLLING)
        self._lookout = rivals.Lookout(self._lease_client, claims, around.awake_or_not)
        heard = api_silence.listening(self._lease_client) if flags.leader_elect else self._lease_client
        self.election = (
            leading.candidacy(flags, lease_name, heard, self._lookout, log=log, around=around)
            if flags.leader_elect
            else None
        )
        self.events = EventRecorder(self._client, around.wall, names.CONTROLLER_MANAGER, deeds=True)
        self.reconciler = reconciling.Reconciler(
            self._client,
            self._chosen(work) if controllers is None else controllers,
            events=self.events,
            complain=meter.complain,
            now=around.wall,
            workers=work.workers,
            **kept(),
            observer=meter,
        )
        meter.look_at(self.reconciler.engine)
        meter.leading = lambda: self._allowance() > 0
        self._meter = meter
        self._beating = overdue.Part("controllers", "a turn of the controllers' loop")
        turning = overdue.Turning(
            "turns",
            "a look of the controllers at what waits",
            lambda: self.reconciler.runner.looks,
            rests=lambda: self.reconciler.runner.is_held,
        )
        self.watched = (self._beating, turning)
        self.grouping = self._grouper(work, companions_wanted) if work.companions else None
        self.specs = self._specs(work)
        self.informers = Informers(
            self._client,
            self.specs,
            Feed(self.reconciler, self.grouping),
            rng=around.chance(),
            now=around.seconds,
        )

    def _chosen(self, work: Work) -> list[Controller]:
        place = settings.place(os.environ)
        home, _ = place
        self._fabric = ufm.Poller(self._client, self._fabric_manager, self._complain_of_fabric, home=home)
        return chosen(work, hyper_nodes.Discovery(place, self._fabric.links))

    def _fabric_manager(self) -> settings.UfmSource | None:
        """Give the fabric manager that is to be asked, as the ConfigMap has it now."""
        return settings.read(self.reconciler.engine.observed.find(kinds.CONFIG_MAP, *settings.place(os.environ))).ufm

    def _complain_of_fabric(self, problem: str) -> None:
        self._log.warning("a fabric manager cannot be asked", problem=problem)

    def _allowance(self) -> float:
        """Say how many seconds a write may take: without an election any number, else as long as the lease is surely ours."""
        return math.inf if self.election is None else self.election.allowance()

    def _grouper(self, work: Work, wanted: Callable[[], bool]) -> grouping.Grouping:
        return grouping.Grouping(
            self._client,
            wanted=lambda: self._allowance() > 0 and wanted(),
            scheduler_names=work.scheduler_names,
            inherit=work.inherit,
            tell=lambda text: self._log.warning("a pod cannot be given its group yet", problem=text),
            now=self._around.wall,
            seconds=self._around.seconds,
        )

    def _specs(self, work: Work) -> list[WatchSpec]:
        found = list(self.reconciler.specs)
        if self.grouping is None:
            return found
        left_out = (kinds.POD, *(() if work.workloads else _SCALED), *(spec.kind for spec in found))
        found += [WatchSpec(kind, keep_raw=True) for kind in grouping.WATCHED if kind not in left_out]
        others = f"!{names.JOB_NAME}"  # pods of Jobs have a group from the start
        selectors = [f"spec.schedulerName={name}" for name in work.scheduler_names]
        return found + [WatchSpec(kinds.POD, each, others, keep_raw=True) for each in selectors]

    @property
    def requests(self) -> tuple[int, int]:
        """How many requests were sent, watches aside, and how many about the Lease."""
        return self._client.sent, self._lease_client.sent

    # -- running -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled: then what was begun is ended, and the lease released."""
        async with contextlib.AsyncExitStack() as open_until_the_end:
            for client in (self._client, self._lease_client):
                await open_until_the_end.enter_async_context(client)
            term = leading.Term(self._log)
            works = [self._live(term), self._meter.write_failures.run()]
            works.append(watchdog.beat(self._beating, self._around.seconds))
            if self.election is not None:
                works.append(self.election.run(term.lead, term.stand_by))
            try:
                await together.until_one_ends(works)
                raise RuntimeError("the controllers have ended by themselves")
            finally:
                if self.election is not None:
                    await self.election.release()

    async def _live(self, term: leading.Term) -> None:
        if self.election is None:
            await self._lookout.wait(lambda text: self._log.warning("others may run the same controllers", reason=text))
            term.lead("")
        await term.head_start()
        watching = asyncio.create_task(self.informers.run())
        looking = asyncio.create_task(watch_log.keep(self.informers, self._log))
        working = asyncio.create_task(self._work(term))
        try:
            await asyncio.wait([watching, working], return_when=asyncio.FIRST_COMPLETED)
            for each in (watching, working):
                if each.done():
                    each.result()
        finally:
            self.reconciler.runner.wind_up()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([working], timeout=LAST_TURNS)
            for each in (watching, looking, working):
                each.cancel()
            await asyncio.gather(watching, looking, working, return_exceptions=True)

    async def _work(self, term: leading.Term) -> None:
        await term.caught_up(self.informers)
        self._around.settle_memory()
        self._log.info("controllers at work")
        works = [self.reconciler.work()]
        if self._fabric is not None:
            works.append(self._fabric.run())
        if self.grouping is not None:
            works.append(self.grouping.run())
        await together.until_one_ends(works)


class Feed:
    """Hands what the watches bring to the controllers, and to whoever groups pods."""

    def __init__(self, reconciler: reconciling.Reconciler, grouper: grouping.Grouping | None) -> None:
        self._reconciler = reconciler
        self._grouper = grouper
        self._wanted = frozenset(reconciler.engine.watched)

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change. Pods of Jobs are squeezed, so that they are no whole pods; of one that is gone only the name may be known."""
        gone = event_type == "DELETED"
        of_job = kind is not kinds.POD or not isinstance(found, core.Pod)
        if kind in self._wanted and (of_job or gone):
            self._reconciler.feed(kind, event_type, found, raw)
        if self._grouper is not None and (kind is not kinds.POD or not of_job or gone):
            self._grouper.feed(kind, event_type, found, raw)
