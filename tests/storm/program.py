"""Programs of a world: each can be started, ended, killed and started again under the same name."""

from __future__ import annotations

import asyncio
import io

from pumice.server import process
from pumice.server.controlling import part, reporting
from pumice.server.flags import controller_settings, settings
from pumice.server.health import api_silence, overdue
from pumice.server.logs import logs
from pumice.server.surroundings import Surroundings
from pumice.server.threads import clocks, mailbox, watchdog
from tests.storm import loop as loops
from tests.storm import network, objects
from tests.storm.api_server import EPOCH

LEASE = {
    "leader-elect-resource-namespace": objects.HOME,
    "enable-metrics": False,
    "enable-healthz": False,
    "cache-dumper": False,
}
CONFIGURATION = f"configmap:{objects.HOME}/{objects.CONFIGURATION}"


class Box(mailbox.Mailbox):
    """A mailbox whose reader waits on the loop."""

    def __init__(self, loop):
        super().__init__(loop.time)
        self._loop = loop
        self._waiter = None

    def post(self, message):
        super().post(message)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def taken(self, until):
        while True:
            message = self.take(0.0)
            left = until - self._loop.time()
            if message is not None or left <= 0:
                return message
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(left, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None

    def _wake(self):
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Program:
    """A process that can be started, ended, killed and started again under the same name; each run is a life of its own."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.run = ""
        self.runs = 0
        self.ended = []
        self.box = None
        self.ahead = 0.0  # of the world's clock, in seconds
        self.drift = 0.0  # seconds by which it gets further ahead, each second
        self.log = io.StringIO()  # of this run
        self._said = ""  # by earlier ones

    @property
    def alive(self):
        return bool(self.run)

    def said(self):
        """Give the lines of its log, of all runs as long as they lived."""
        return self._said + self.log.getvalue()

    def take_said(self):
        """Give these lines, and forget them."""
        said, self._said = self.said(), ""
        self.log.seek(0)
        self.log.truncate()
        return said

    def start(self):
        self.runs += 1
        self.run = f"{self.name}#{self.runs}"
        self.world.trace("start", self.run)
        self.world.loop.start(self.run, self._main(self.run))

    def kill(self):
        self.world.trace("kill", self.run)
        self._gone(self.run)

    def over(self, run, status):
        """Learn that a run has ended by itself."""
        self.world.trace("ended", run, status)
        self.ended.append((run, status))
        self._gone(run)

    def _gone(self, run):
        self.world.ended[run] = self.world.loop.now
        self._said, self.log = self.said(), io.StringIO()  # what the dead say is nobody's
        self.world.host.lost(run)
        self.world.loop.kill(run)
        if self.run == run:
            self.run = ""

    def parts(self):
        """Give what it keeps something in, by what that is for."""
        return {}

    def around(self, run):
        world, loop = self.world, self.world.loop
        drawn = loops.chance(world.seed, run)
        context_way = loops.context_of(run)

        def wall():
            return EPOCH + round((loop.now * (1 + self.drift) + self.ahead) * 1e6)

        def box():
            self.box = Box(loop)
            return self.box

        return Surroundings(
            wall=clocks.Forward(wall, lambda: round(loop.time() * 1e6)),
            awake_or_not=lambda: round(loop.time() * 1e6),
            seconds=loop.time,
            sleep=lambda _: None,
            chance=lambda: loops.chance(drawn.random()),
            identity=lambda: run,
            connect=lambda _: world.connection(),
            way=lambda largest: network.Way(loop, world.host, run, context_way, largest),
            mailbox=box,
            settle_memory=lambda: None,
        )


class Scheduler(Program):
    """`pumice scheduler`, of an installation that has its Lease."""

    def __init__(self, world, name, lease="volcano"):
        super().__init__(world, name)
        self.flags = {"leader-elect-resource-name": lease, "scheduler-conf": CONFIGURATION}

    def parts(self):
        made = self.process
        scheduler = made.reporter.scheduler
        return {
            "cache of schedulers": [made.cache],
            "scheduler": [scheduler.engine, scheduler.reservations] if scheduler is not None else [],
            "watches of schedulers": [made.informers],
            "writes of schedulers": [made.world],
            "reports of schedulers": [made.reporter, made.policy, made.groups],
        }

    async def _main(self, run):
        flags = settings.read({**LEASE, **self.flags})
        log = logs.Log(0, stream=self.log)
        made = process.Process(flags, log, watchdog.Watchdog(log, overdue.Watch()), self.around(run))
        self.process = made
        outside = asyncio.create_task(made.io.live())
        steps, box = made.steps(), self.box
        try:
            until = next(steps)
            while True:
                until = steps.send(await box.taken(until))
        except StopIteration as end:
            told = end.value
        made.io.end(0.0 if isinstance(told, mailbox.Fatal) else process.FINISH)
        await outside
        self.over(run, f"{type(told).__name__}: {told.reason}")


class Controllers(Program):
    """`pumice controllers`."""

    made = None

    def parts(self):
        made = self.made
        return {
            "controllers": [made.reconciler, made.grouping],
            "watches of controllers": [made.informers],
            "events of controllers": [made.events],
        }

    async def _main(self, run):
        flags = controller_settings.read({key: value for key, value in LEASE.items() if key != "cache-dumper"})
        around, log = self.around(run), logs.Log(0, stream=self.log)
        silence = api_silence.ApiSilence(around.seconds)
        meter = reporting.Reporter(log, around.wall, silence, overdue.Watch()).meter
        name = flags.leader_elect_resource_name
        made = self.made = part.ControllersPart(
            flags, flags.work, name, log=log, meter=meter, api_silence=silence, around=around
        )
        try:
            await made.run()
        except Exception as error:  # noqa: BLE001  whatever ends it, somebody starts it again
            self.over(run, f"{type(error).__name__}: {error}")
