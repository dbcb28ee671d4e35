"""A scheduler in this process, joined to a real API server through a proxy: one thread decides, one does input and output, as in the product.

What the rig adds is a short period, short time-outs, and a look at everything between two cycles.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time

import recount
from pumice.cache.cache import Cache
from pumice.fleet import kubelets
from pumice.framework import configuration, registry
from pumice.kube.access import connection
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client
from pumice.kube.watches.informers import Informers, standard
from pumice.kube.writes.world import KubeWorld
from pumice.model import statuses
from pumice.scheduler import Scheduler
from testbed import waiting

PERIOD = 0.05
CALM_CYCLES = 6


def wall():
    return time.time_ns() // 1000


class Sink:
    def __init__(self, cache):
        self._cache = cache

    def feed(self, kind, event_type, found, raw):
        self._cache.feed(kind, event_type, found)


class Rig:
    """Client, informers, world, cache and scheduler, used inside `with`."""

    def __init__(self, view, proxy, *, policy="", timeout=waiting.PATIENCE, silence=90.0, credentials=None):
        self.view = view
        self.proxy = proxy
        self.failures = []
        self.cycles = 0
        self._connection = Connection(proxy.url, credentials=credentials)
        self._policy = policy
        self._timeout = timeout
        self._silence = silence
        self._loop = asyncio.new_event_loop()
        self._outside = threading.Thread(target=self._loop.run_forever, name="outside", daemon=True)
        self._deciding = threading.Thread(target=self._decide, name="deciding", daemon=True)
        self._stopping = threading.Event()
        self._between = threading.Lock()

    # -- its life ----------------------------------------------------------------------------------------------

    def __enter__(self):
        self._outside.start()
        self._do(self._start())
        known = registry.catalog()
        loaded = configuration.load(self._policy, known, "test") if self._policy else configuration.default(known)
        self.scheduler = Scheduler(self.cache, loaded, wall)
        self._deciding.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._deciding.join()
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._outside.join()
        self._loop.close()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self):
        self._clients = [client := await Client(self._connection, timeout=self._timeout).__aenter__()]
        self.world = KubeWorld(client)
        self.cache = Cache(self.world)
        specs = standard(self.cache.options)
        self.informers = Informers(client, specs, Sink(self.cache), silence=self._silence)
        self._tasks = [
            asyncio.create_task(self.informers.run()),
            asyncio.create_task(self.world.run(self.cache.settled)),
        ]
        await asyncio.wait_for(self.informers.wait_synced(), waiting.PATIENCE)

    async def _stop(self):
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for client in self._clients:
            await client.__aexit__(None, None, None)
        await asyncio.sleep(0.05)
        await self._loop.shutdown_asyncgens()

    def _decide(self):
        while not self._stopping.is_set():
            with self._between:
                record = self.scheduler.cycle()
                if not record.skipped:
                    self.failures += self.scheduler.failures
                self.cycles += 1
            self._stopping.wait(PERIOD)

    def start_kubelets(self, *nodes):
        """Play the kubelets of some nodes; they talk to the API server past the proxy."""
        self._do(self._start_kubelets(nodes))

    async def _start_kubelets(self, nodes):
        where = connection.load(kubeconfig=str(self.view.server.kubeconfig))
        self._clients.append(client := await Client(where).__aenter__())
        serving = kubelets.Kubelets(client, dict.fromkeys(nodes, "127.0.0.1"))
        follower = Informers(client, [kubelets.WATCHED], serving)
        self._tasks += [asyncio.create_task(serving.run()), asyncio.create_task(follower.run())]

    # -- looking on --------------------------------------------------------------------------------------------

    @property
    def cluster(self):
        return self.cache.cluster

    @contextlib.contextmanager
    def between_cycles(self):
        """Keep cycles from running, so that the model stands still."""
        with self._between:
            yield

    def task(self, name):
        """Find the task of a pod in the model."""
        with self._between:
            found = [
                task
                for task in self.cluster.tasks.values()
                if (task.namespace, task.name) == (self.view.namespace, name)
            ]
        assert len(found) <= 1, found
        return found[0] if found else None

    def minimum(self, group):
        """Say the minimum of a group as the model has it."""
        job = self.cluster.jobs.get(f"{self.view.namespace}/{group}")
        return None if job is None else job.min_member

    def lists(self):
        """Count how often each watch was listed."""
        return {report.watch: report.lists for report in self.informers.report()}

    def stopped_for(self, seconds):
        """Let so many seconds pass while there is nobody to ask; cycles must go on."""
        until, cycles = time.monotonic() + seconds, self.cycles
        waiting.until(lambda: time.monotonic() > until)
        assert self.cycles > cycles

    def assumed(self):
        """Say what was sent and is not confirmed."""
        kept = self.cache.assumptions
        due = self.cache.publisher._paces._queues_due  # noqa: SLF001  the only one of its waits that is no reason
        late = {} if due is None else {"the status of a queue": due}
        parts = kept._bindings, kept.evictions._kept, self.cache.publisher._writing  # noqa: SLF001  whoever sent it knows it alone
        return {key: each for part in (*parts, late) for key, each in part.items()}

    def differences(self):
        """Say in what the model and the API server do not agree."""
        known = {
            task.uid: (task.namespace, task.name, task.node.name if task.node else "", task.status.title)
            for task in self.cluster.tasks.values()
        }
        real = {}
        for pod in self.view.server.call("GET", "/api/v1/pods")["items"]:
            metadata, node, phase = pod["metadata"], pod["spec"].get("nodeName", ""), pod["status"].get("phase", "")
            status = statuses.from_pod(phase, node, deleting="deletionTimestamp" in metadata)
            if pod["spec"].get("schedulerName") == "volcano" or (node and phase not in ("Succeeded", "Failed")):
                real[metadata["uid"]] = (metadata["namespace"], metadata["name"], node, status.title)
        nodes = {node["metadata"]["name"] for node in self.view.server.call("GET", "/api/v1/nodes")["items"]}
        in_model = {record.name for record in self.cluster.nodes.records if record.object is not None}
        found = [(uid, known.get(uid), real.get(uid)) for uid in known | real if known.get(uid) != real.get(uid)]
        return found + [(name, name in in_model, name in nodes) for name in sorted(nodes ^ in_model)]

    # -- what must hold after every fault ----------------------------------------------------------------------

    def let_pass(self, cycles):
        """Wait for so many cycles."""
        until = self.cycles + cycles
        waiting.until(lambda: self.cycles >= until)

    def settle(self, *, repeated="^$"):
        """Wait until nothing is written, on its way or assumed for several cycles; what is `repeated` ever more rarely may be."""
        deadline = time.monotonic() + waiting.PATIENCE
        while True:
            writes = self._writes(repeated)
            self.let_pass(CALM_CYCLES)
            with self._between:
                counts = self.world.counts
                calm = not (counts.waiting or counts.in_flight or self.assumed())
            if calm and not self.proxy.busy and self._writes(repeated) == writes:
                return
            assert time.monotonic() < deadline, f"{self.assumed()} {self.proxy.writes[-20:]}\n{self.view.story()}"

    def check(self, *, broken=(), repeated="^$"):
        """Check everything that must hold after any fault; `broken` names gangs that have fewer members than they need, for good."""
        self.settle(repeated=repeated)
        writes = self._writes(repeated)
        waiting.until(self._agrees, tell=lambda: f"{self.differences()}\n{self.view.story()}")
        with self._between:
            recount.check(self.cluster)
        assert not self.view.over_committed()
        assert set(self.view.broken_gangs()) == set(broken), self.view.story()
        assert not self.failures
        self.let_pass(CALM_CYCLES)
        more = self._writes(repeated)[len(writes) :]
        assert not more, f"{more}\n{self.view.story()}"

    def _writes(self, repeated):
        return [call for call in self.proxy.writes if not re.search(repeated, call.path)]

    def _agrees(self):
        with self._between:
            return not self.differences() and not self.assumed()
