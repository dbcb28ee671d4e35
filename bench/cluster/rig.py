"""A scheduler in this process, joined to a real API server as `pumice scheduler` is: one thread decides, one does input and output.

The parts are those of the product. What the rig adds is a hand on the switch: scheduling begins when a measurement says so, and binds can be sent with no
scheduling at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from pumice.cache.cache import Cache
from pumice.cache.effects import Answerable, Bind, EffectObserver, Outcome, Read, Work
from pumice.framework import configuration, registry
from pumice.kube.calls.client import Client
from pumice.kube.watches.informers import Informers, standard
from pumice.kube.writes.world import KubeWorld
from pumice.scheduler import Scheduler
from pumice.server.threads import gathering, interpreter

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from types import TracebackType

    from pumice.kube.access.connection import Connection

PERIOD = 1.0


class _Sink:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def feed(self, kind: Any, event_type: Any, found: Any, raw: bytes) -> None:
        del raw
        self._cache.feed(kind, event_type, found)


class Rig(EffectObserver):
    """Client, informers, world, cache and scheduler, used inside `with`; it observes what its world performs."""

    def __init__(self, connection: Connection) -> None:
        self.client = Client(connection, qps=100_000, burst=100_000)
        self.world = KubeWorld(self.client, observer=self)
        self.cache = Cache(self.world)
        self._loop = gathering.loop(self.world.gathering_pause)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[Any]] = []
        self.written = 0
        self._bound = 0
        self._failed = 0
        self._wanted = 0
        self._finished = threading.Event()
        self._finished_at = 0.0

    def __enter__(self) -> Self:
        interpreter.tune()
        self._thread.start()
        self.run(self._start())
        self.scheduler = Scheduler(
            self.cache, configuration.default(registry.catalog()), lambda: time.time_ns() // 1000
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have the thread of input and output do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        await self.client.__aenter__()
        self.informers = Informers(self.client, standard(self.cache.options), _Sink(self.cache))
        self._tasks = [
            asyncio.create_task(self.informers.run()),
            asyncio.create_task(self.world.run(self.cache.settled)),
        ]
        await self.informers.wait_synced()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.client.__aexit__(None, None, None)

    def performed(self, effect: Answerable, work: Work, seconds: float, *, failed: bool) -> None:  # noqa: ARG002
        """Count writes."""
        self.written += work == "request" and not isinstance(effect, Read)

    def answered(self, outcome: Outcome, /) -> None:
        """Count binds, and tell when they are all answered."""
        if isinstance(outcome.effect, Bind):
            self._failed += outcome.failure is not None
            self._bound += outcome.failure is None
            if self._bound + self._failed >= self._wanted:
                self._finished_at = time.perf_counter()
                self._finished.set()

    def _expect(self, binds: int) -> float:
        self._bound = self._failed = 0
        self._wanted = binds
        self._finished.clear()
        return time.perf_counter()

    def _rate(self, started: float) -> float:
        if self._failed:
            raise RuntimeError(f"{self._failed} of {self._wanted} binds failed")
        return self._wanted / (self._finished_at - started)

    def bind_only(self, binds: Sequence[Bind]) -> float:
        """Send binds with no scheduling, and give how many were answered in a second."""
        started = self._expect(len(binds))
        for bind in binds:
            self.world.send(bind)
        self._finished.wait(120)
        return self._rate(started)

    def schedule(self, binds: int) -> float:
        """Run cycles, a period apart, until so many pods are bound, and give how many that were in a second."""
        started = self._expect(binds)
        deadline = started + 120
        while not self._finished.is_set() and time.perf_counter() < deadline:
            self.scheduler.cycle()
            self._finished.wait(PERIOD)
        if not self._finished.is_set():
            raise RuntimeError(f"{self._bound} of {binds} pods were bound in 120 s")
        return self._rate(started)

    def catch_up(self, pods: int) -> None:
        """Wait until the model holds so many pods that are not bound, and nothing is on its way any more."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.cache.apply(time.time_ns() // 1000)
            counts = self.world.counts
            busy = counts.waiting or counts.in_flight or counts.events_waiting
            if len(self.cache.cluster.tasks) == pods and not busy:
                return
            time.sleep(0.05)
        raise RuntimeError(f"the model holds {len(self.cache.cluster.tasks)} pods after 60 s, not {pods}")
