"""The writing side of a real cluster: effects come from the deciding thread, are performed on the event loop, and their outcomes go back.

```
 deciding thread │ I/O thread
                 │
                 │          ┌────────▶ agenda ──▶ workers ──▶ API server
  send() ────▶ inbox ──▶ collect                   ▲   │
                 │          └─▶ events ── in calm ─┘   │
  settled() ◀────┼─────────────────────────────────────┘
```

What this rests on: `send` only appends to a queue and wakes the loop, unless somebody has or a worker will look there soon; it takes no lock and never blocks.
A fixed number of workers takes effects from the agenda. Events are sent while no bind waits or is in flight, and a small share of
them meanwhile, so that a scheduler which is never done still tells. The client is the fence: without the lease nothing leaves.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from pumice.cache import effects
from pumice.kube.writes import eventing, performing, worker_pool, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Effect, EffectObserver, Outcome

# As many as a server that is behind gives its other clients: with half of it the binds of 300 pods/s waited for half a minute, the pods' creation for seconds.
WORKERS = 64


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What is going on, and the events since the start."""

    events: int
    events_dropped: int
    events_waiting: int
    waiting: int
    in_flight: int


class KubeWorld:
    """Carries effects out against an API server."""

    def __init__(
        self,
        client: writing.Api,
        *,
        component: str = "volcano",
        observer: EffectObserver = effects.NOBODY,
        binder: writing.Binder | None = None,
        evictor: writing.Evictor | None = None,
        updater: writing.StatusUpdater | None = None,
        volume_binder: writing.VolumeBinder | None = None,
        preparer: writing.Preparer | None = None,
        workers: int = WORKERS,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        performer = performing.Performer(
            client,
            now=now,
            seconds=seconds,
            observer=observer,
            binder=binder,
            evictor=evictor,
            updater=updater,
            volume_binder=volume_binder,
            preparer=preparer,
        )
        self._events = eventing.EventRecorder(client, now, component)
        self._workers = worker_pool.WorkerPool(performer, self._events, self._answer, workers, self._refill)
        self._inbox: deque[Effect] = deque()
        self._called = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settled: Callable[[Outcome], None] = lambda _: None

    @property
    def counts(self) -> Counts:
        """What was done and what is going on; may be read by any thread."""
        return Counts(
            events=self._events.sent,
            events_dropped=self._events.dropped,
            events_waiting=self._events.waiting,
            waiting=len(self._inbox) + self._workers.agenda.waiting,
            in_flight=self._workers.in_flight,
        )

    # -- the deciding thread -----------------------------------------------------------------------------------

    def send(self, effect: Effect, /) -> None:
        """Queue an effect; the loop is called once for all that come before it looks.

        It takes the call back before it looks, so what is queued after the call is either seen or calls again. Nor is it called if all workers are at work, or for an
        event if one of them is: whoever has done its work says so before it looks here, and nobody else could do it sooner.
        """
        self._observer.sent(effect)
        self._inbox.append(effect)
        at_work = self._workers.at_work
        if at_work >= self._workers.count or (at_work and isinstance(effect, effects.Note)):
            return
        loop = self._loop
        if loop is not None and not self._called:
            self._called = True
            try:
                loop.call_soon_threadsafe(self._collect)
            except RuntimeError:  # the loop is closed: the process ends, and nobody is left to answer
                self._loop = None

    # -- the loop ----------------------------------------------------------------------------------------------

    def gathering_pause(self) -> float:
        """Return for how many seconds answers may be gathered before they are looked at."""
        return self._workers.gathering_pause()

    async def run(self, settled: Callable[[Outcome], None]) -> None:
        """Perform effects and give the answers, until `drain` or a cancellation."""
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self._collect()
        await self._workers.run()

    async def drain(self, patience: float) -> None:
        """Refuse what waits, let what is in flight end and with it `run`; what is not answered in that many seconds is given up as unknown."""
        self._collect()
        await self._workers.stop(patience)

    def _refill(self) -> None:
        if self._inbox:
            self._collect()

    def _collect(self) -> None:
        self._called = False
        inbox, put = self._inbox, self._workers.put
        while inbox:
            put(inbox.popleft())
        self._workers.rouse()

    def _answer(self, outcome: Outcome) -> None:
        self._observer.answered(outcome)
        self._settled(outcome)
