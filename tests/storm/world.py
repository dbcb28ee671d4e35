"""One world: an API server, two schedulers, two replicas of the controllers, webhooks and kubelets, all of them the real code, on one clock and one seed."""

from __future__ import annotations

import asyncio
import io

from pumice.kube.access.credentials import TokenFile
from pumice.kube.access.endpoint import Connection
from tests.storm import api_server, certificates, hooks, network, oracle, weather
from tests.storm import loop as loops
from tests.storm.program import Controllers, Scheduler


class World:
    """Everything, up to a moment of virtual time."""

    def __init__(self, seed):
        self.seed = seed
        self.loop = loops.VirtualLoop()
        self.lines = []
        self.token = "storm"  # noqa: S105  of nobody; what kubelets have put into the files of programs
        self.certificate = certificates.FIRST  # likewise
        self.weather = weather.Weather(loops.chance(seed, "weather"))
        self.oracle = oracle.Oracle(self)
        self.host = network.Host(self.loop, self.weather, self.oracle.sent)
        self.calls = hooks.Calls(self.loop, self.weather, lambda: self.hooks)
        self.api = api_server.ApiServer(self.loop, self.host, self._seen, self.calls.call)
        api_server.reseed(seed)
        self.api.boot()
        self.schedulers = [Scheduler(self, "sched-a"), Scheduler(self, "sched-b")]
        self.controllers = [Controllers(self, "ctrl-a"), Controllers(self, "ctrl-b")]
        self.ended = {}  # by run of a program: when
        self.hooks = []
        self.rivals = []  # schedulers of another installation for the same pods

    def go_on_with(self, seed):
        """Let another seed draw what happens from now on."""
        self.seed = seed
        api_server.reseed(seed)
        self.weather.go_on_with(loops.chance(seed, "weather"))

    @property
    def store(self):
        return self.api.store

    @property
    def cluster(self):
        return self.api.cluster

    def trace(self, *words):
        self.lines.append(f"{self.loop.now:.6f} {' '.join(map(str, words))}")

    def start(self):
        """Let nodes, the garbage collector and every program run."""
        self.api.start()
        for program in self.programs:
            program.start()

    def ask_webhooks(self, policy):
        """Judge by programs of their own from now on."""
        self.hooks = [hooks.Webhooks(self, "hook-a"), hooks.Webhooks(self, "hook-b")]
        for program in self.hooks:
            program.start()
        self.api.judge(False)
        for made in hooks.configurations(policy):
            self.create(made)

    def connection(self):
        """Give the way of a program to the API server, with credentials that follow the token and the certificate in its files."""
        credentials = TokenFile(self, now=self.loop.time)
        return Connection("https://storm", tls=certificates.Certificates(self), credentials=credentials)

    def open(self, _):
        """Open the file with the token."""
        return io.BytesIO(self.token.encode())

    def _seen(self, key, event_type, manifest):
        self.oracle.seen(key, event_type, manifest)
        self.trace(
            event_type, key.kind.name, f"{key.namespace}/{key.name}", manifest["metadata"].get("resourceVersion")
        )

    @property
    def programs(self):
        return [*self.schedulers, *self.controllers, *self.hooks]

    def create(self, manifest):
        """Make an object before anything runs."""
        self.api.create(manifest)

    def run_until(self, moment):
        self.loop.run_until(moment)


async def until(loop, moment):
    """Wait for a moment."""
    if moment > loop.now:
        await asyncio.sleep(moment - loop.now)
