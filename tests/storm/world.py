"""One world: an API server, two schedulers, two replicas of the controllers and kubelets, all of them the real code, on one clock and one seed."""

from __future__ import annotations

import asyncio
import io
import random
from asyncio import events

from aiohttp import web

from pumice.apiserver import authentication, certificates, cluster, resources, serving
from pumice.kube.access.credentials import Fixed
from pumice.kube.access.endpoint import Connection
from pumice.local_cluster import contents, controlling, kubelets, node_health
from pumice.server import process
from pumice.server.controlling import part, reporting
from pumice.server.flags import controller_settings, settings
from pumice.server.health import api_silence, overdue
from pumice.server.logs import logs
from pumice.server.surroundings import Surroundings
from pumice.server.threads import mailbox, watchdog
from pumice.sim.clock import VirtualClock
from pumice.sim.store import ObjectStore
from tests.storm import loop as loops
from tests.storm import network, oracle, weather

EPOCH = 1_700_000_000_000_000
TOKEN = "storm"  # noqa: S105  of nobody
KEY = certificates.new_key()
LEASE = {
    "leader-elect-resource-namespace": "kube-system",
    "enable-metrics": False,
    "enable-healthz": False,
    "cache-dumper": False,
}


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


class Clock(VirtualClock):
    """The clock of kubelets and of controllers inside the API server."""

    speed = 1.0

    def __init__(self, loop):
        super().__init__(EPOCH)
        self._loop = loop

    def now(self):
        return EPOCH + round(self._loop.now * 1e6)

    def call_at(self, instant, callback):
        self._loop.call_later(max(0, instant - self.now()) / 1e6, callback)


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
        self.log = io.StringIO()

    @property
    def alive(self):
        return bool(self.run)

    def start(self):
        self.runs += 1
        self.run = f"{self.name}#{self.runs}"
        self.world.trace("start", self.run)
        self.world.loop.start(self.run, self._main(self.run))

    def kill(self):
        self.world.trace("kill", self.run)
        self.world.loop.kill(self.run)
        self.world.host.lost(self.run)
        self.run = ""

    def over(self, run, status):
        """Learn that a run has ended by itself."""
        self.world.trace("ended", run, status)
        self.ended.append((run, status))
        self.world.loop.kill(run)
        self.world.host.lost(run)
        if self.run == run:
            self.run = ""

    def around(self, run):
        world, loop = self.world, self.world.loop
        drawn = loops.chance(world.seed, run)
        context_way = loops.context_of(run)

        def wall():
            return EPOCH + round((loop.now + self.ahead) * 1e6)

        def box():
            self.box = Box(loop)
            return self.box

        return Surroundings(
            wall=wall,
            awake_or_not=lambda: round(loop.time() * 1e6),
            seconds=loop.time,
            sleep=lambda _: None,
            chance=lambda: loops.chance(drawn.random()),
            identity=lambda: run,
            connect=lambda _: Connection("http://storm", credentials=Fixed({"Authorization": f"Bearer {TOKEN}"})),
            way=lambda largest: network.Way(loop, world.host, run, context_way, largest),
            mailbox=box,
            settle_memory=lambda: None,
        )


class Scheduler(Program):
    """`pumice scheduler`."""

    async def _main(self, run):
        flags = settings.read({**LEASE, **self.world.scheduler_flags})
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

    async def _main(self, run):
        flags = controller_settings.read({key: value for key, value in LEASE.items() if key != "cache-dumper"})
        around, log = self.around(run), logs.Log(0, stream=self.log)
        silence = api_silence.ApiSilence(around.seconds)
        meter = reporting.Reporter(log, around.wall, silence, overdue.Watch()).meter
        name = flags.leader_elect_resource_name
        made = part.ControllersPart(flags, flags.work, name, log=log, meter=meter, api_silence=silence, around=around)
        try:
            await made.run()
        except Exception as error:  # noqa: BLE001  whatever ends it, somebody starts it again
            self.over(run, f"{type(error).__name__}: {error}")


class World:
    """Everything, up to a moment of virtual time."""

    def __init__(self, seed, *, scheduler_flags=None):
        self.seed = seed
        self.loop = loops.VirtualLoop()
        self.lines = []
        self.scheduler_flags = scheduler_flags or {}
        self._uids = 0
        self._inside = loops.context_of("api")
        self.weather = weather.Weather(loops.chance(seed, "weather"))
        self.oracle = oracle.Oracle(self)
        self.host = network.Host(self.loop, self._inside, self.weather, self.oracle.sent)
        self._run_in(self._boot)
        self.schedulers = [Scheduler(self, "sched-a"), Scheduler(self, "sched-b")]
        self.controllers = [Controllers(self, "ctrl-a"), Controllers(self, "ctrl-b")]

    def go_on_with(self, seed):
        """Let another seed draw what happens from now on."""
        self.seed = seed
        random.seed(f"{seed}/server")
        self.weather.go_on_with(loops.chance(seed, "weather"))

    def trace(self, *words):
        self.lines.append(f"{self.loop.now:.6f} {' '.join(map(str, words))}")

    def _uid(self):
        self._uids += 1
        return f"00000000-0000-4000-8000-{self._uids:012x}"

    def now(self):
        return EPOCH + round(self.loop.now * 1e6)

    def _run_in(self, function):
        before = events._get_running_loop()
        events._set_running_loop(self.loop)
        try:
            return self._inside.run(function)
        finally:
            events._set_running_loop(before)

    def _boot(self):
        random.seed(f"{self.seed}/server")
        store = self.store = ObjectStore(
            lambda: self.now() // 1_000_000 * 1_000_000, self._uid, resources.has_generation
        )
        made = self.cluster = cluster.Cluster(store, self.now, None, KEY)
        made.start()
        contents.install(made)
        made.judge_volcano_kinds(strict=False)
        self.server = serving.Server(made, authentication.Authenticator(TOKEN, made.tokens))
        self.host.protocols = web.Server(self.server._answer, access_log=None, keepalive_timeout=75.0)
        clock = Clock(self.loop)
        health = node_health.NodeHealth(store, clock)
        pods = kubelets.Kubelets(store, clock, _nothing, _nothing, health.is_served)
        health.again = pods.look_again
        self._serving = (health, pods)
        self._stirred = asyncio.Event()
        store.observe(self._seen)
        self._garbage = controlling.Controlling(made, clock, [])

    def start(self):
        """Let nodes, the garbage collector and every program run."""
        self.loop.start("api", self._serve_nodes())
        self.loop.start("api", self._garbage.run())
        for program in self.programs:
            program.start()

    def _seen(self, key, event_type, manifest):
        self._stirred.set()
        self.oracle.seen(key, event_type, manifest)
        self.trace(
            event_type, key.kind.name, f"{key.namespace}/{key.name}", manifest["metadata"].get("resourceVersion")
        )

    async def _serve_nodes(self):
        health, pods = self._serving
        while True:
            self._stirred.clear()
            if health.react() + pods.react() == 0:
                await self._stirred.wait()
            await asyncio.sleep(0.005)

    @property
    def programs(self):
        return [*self.schedulers, *self.controllers]

    def create(self, manifest):
        """Make an object before anything runs."""
        self._run_in(lambda: self.cluster.ensure(manifest))

    def run_until(self, moment):
        self.loop.run_until(moment)


async def until(loop, moment):
    """Wait for a moment."""
    if moment > loop.now:
        await asyncio.sleep(moment - loop.now)


def _nothing(*_):
    pass
