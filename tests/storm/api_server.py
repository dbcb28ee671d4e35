"""The API server of a world, with its kubelets, the controllers of Kubernetes and the garbage collector: one process, which may end and begin again with what its disk has."""

from __future__ import annotations

import asyncio
import random

from aiohttp import web

from pumice.apiserver import authentication, certificates, cluster, resources, serving
from pumice.controllers import standard
from pumice.local_cluster import contents, controlling, event_notes, kubelets, node_health
from pumice.sim.clock import VirtualClock
from pumice.sim.store import ObjectStore
from tests.storm import disk
from tests.storm import loop as loops

EPOCH = 1_700_000_000_000_000
KEY = certificates.new_key()


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


class ApiServer:
    """Serves through the host of a world; `seen` hears of every change, `call` asks webhooks."""

    def __init__(self, loop, host, seen, call):
        self._loop = loop
        self._host = host
        self._seen = seen
        self._call = call
        self._uids = 0
        self._runs = 0
        self.run = ""
        self.token = "storm"  # noqa: S105  of nobody
        self.disk = None
        self.crashed = False
        self.judges = True  # what webhooks would judge, itself
        self.kubelets_rest_until = 0.0

    def now(self):
        return EPOCH + round(self._loop.now * 1e6)

    def _uid(self):
        self._uids += 1
        return f"00000000-0000-4000-8000-{self._uids:012x}"

    def boot(self):
        """Begin with what the disk has, or with nothing."""
        self._runs += 1
        self.crashed = False
        self.run = f"api#{self._runs}"
        self.context = loops.context_of(self.run)
        self._loop.run_in(self.context, self._boot)

    def _boot(self):
        store = self.store = ObjectStore(
            lambda: self.now() // 1_000_000 * 1_000_000, self._uid, resources.has_generation
        )
        self._durable = disk.Switch()
        made = self.cluster = cluster.Cluster(store, self.now, self._durable, KEY)
        made.webhooks.call = self._call
        kept = self.disk.open(store, self.context) if self.disk else None
        if kept:
            kept.restore(made)
            self._durable.inner = kept.durability
        made.start()
        contents.install(made)
        self.judge(self.judges)
        self._authenticator = authentication.Authenticator(self.token, made.tokens)
        server = serving.Server(made, self._authenticator)
        self._host.serve(web.Server(server.answer, access_log=None, keepalive_timeout=75.0), self.context)
        clock = Clock(self._loop)
        self._health = node_health.NodeHealth(store, clock)
        self._pods = kubelets.Kubelets(store, clock, _nothing, _nothing, self._health.is_served)
        self._health.again = self._pods.look_again
        self._pods.adopt()
        self._stirred = asyncio.Event()
        store.observe(self._observed)
        self._controllers = controlling.Controlling(made, clock, standard.controllers(gang_jobs=True))

    def judge(self, wanted):
        """Judge Volcano's kinds itself, or leave them to webhooks."""
        self.judges = wanted
        made = self.cluster
        if wanted:
            made.judge_volcano_kinds(strict=False)
        else:
            made.writing.passing.volcano_rules = made.deleting.volcano_rules = None

    def start(self):
        """Let kubelets and controllers work."""
        self._loop.start(self.run, self._serve_nodes())
        self._loop.start(self.run, self._controllers.run())
        self._loop.start(self.run, event_notes.EventNotes(self.cluster).forget_old())

    def parts(self):
        """Give what it keeps something in."""
        return [self.store, self.cluster, self._health, self._pods, self._controllers, self._authenticator]

    def keep(self, folder):
        """Have a disk from now on."""
        self.disk = disk.Disk(self._loop, folder)
        made = self._loop.run_in(self.context, lambda: self.disk.open(self.store, self.context))
        made.follow()
        self._durable.inner = made.durability

    def crash(self, rng):
        """End at once, with every connection; tells whether the end of the journal was torn."""
        self.crashed = True
        self._loop.kill(self.run)
        self._host.cut_all()
        return self.disk.crash(rng)

    def accept(self, token):
        """Accept another token from now on, and no longer the one before."""
        self.token = token
        self._authenticator.expect(token)

    def create(self, manifest):
        self._loop.run_in(self.context, lambda: self.cluster.ensure(manifest))

    def _observed(self, key, event_type, manifest):
        self._stirred.set()
        self._seen(key, event_type, manifest)

    async def _serve_nodes(self):
        while True:
            rest = self.kubelets_rest_until - self._loop.now
            if rest > 0:
                await asyncio.sleep(rest)
            self._stirred.clear()
            if self._health.react() + self._pods.react() == 0:
                await self._stirred.wait()
            await asyncio.sleep(0.005)


def reseed(seed):
    """Let the seed draw what the server draws by itself, such as generated names."""
    random.seed(f"{seed}/server")


def _nothing(*_):
    pass
