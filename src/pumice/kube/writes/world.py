"""The writing side of a real cluster: effects come from the deciding thread, are performed on the event loop, and their outcomes go back.

```
 deciding thread │ I/O thread
                 │
  bind() evict() │          ┌────────▶ agenda ──▶ workers ──▶ API server
  patch() … ──▶ inbox ──▶ collect                  ▲   │
                 │          └─▶ events ── in calm ─┘   │
  settled() ◀────┼─────────────────────────────────────┘
```

What this rests on: the methods of `World` only append to a queue and, if nobody has done so yet, wake the loop; they take no lock and never block.
A fixed number of workers takes effects from the agenda. Events are sent while no bind waits or is in flight, and a small share of
them meanwhile, so that a scheduler which is never done still tells. The client is the fence: without the lease nothing leaves.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from pumice.kube.writes import eventing, performing, worker_pool, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Bind, Create, Effect, Evict, Note, Outcome, Patch, Read

WORKERS = 32


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What was written since the start, and what is going on, for metrics."""

    tallies: dict[performing.Verb, performing.Tally]
    refused: int
    events: int
    events_dropped: int
    events_waiting: int
    waiting: int
    in_flight: int
    waiting_for_volumes: int


class KubeWorld:
    """Carries effects out against an API server."""

    def __init__(
        self,
        client: writing.Api,
        *,
        component: str = "volcano",
        binder: writing.AsyncBinder | None = None,
        evictor: writing.AsyncEvictor | None = None,
        updater: writing.AsyncUpdater | None = None,
        volume_binder: writing.AsyncVolumeBinder | None = None,
        workers: int = WORKERS,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._performer = performing.Performer(
            client,
            now=now,
            binder=binder,
            evictor=evictor,
            updater=updater,
            volume_binder=volume_binder,
        )
        self._events = eventing.EventRecorder(client, now, component)
        self._workers = worker_pool.WorkerPool(self._performer, self._events, self._settle, workers)
        self._inbox: deque[Effect] = deque()
        self._called = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settled: Callable[[Outcome], None] = lambda _: None
        self._wake: Callable[[], None] = lambda: None
        self._answered = False

    @property
    def counts(self) -> Counts:
        """What was done and what is going on; may be read by any thread."""
        return Counts(
            tallies=self._performer.tallies,
            refused=self._workers.refused,
            events=self._events.sent,
            events_dropped=self._events.dropped,
            events_waiting=self._events.waiting,
            waiting=len(self._inbox) + self._workers.agenda.waiting,
            in_flight=self._workers.in_flight,
            waiting_for_volumes=self._workers.waiting_for_volumes,
        )

    # -- the deciding thread -----------------------------------------------------------------------------------

    def bind(self, effect: Bind) -> None:
        """Hand a bind over."""
        self._hand_over(effect)

    def evict(self, effect: Evict) -> None:
        """Hand an eviction over."""
        self._hand_over(effect)

    def patch(self, effect: Patch) -> None:
        """Hand a patch over."""
        self._hand_over(effect)

    def record(self, effect: Note) -> None:
        """Hand an event over; it may be dropped, and never delays a bind."""
        self._hand_over(effect)

    def read(self, effect: Read) -> None:
        """Ask for one object."""
        self._hand_over(effect)

    def create(self, effect: Create) -> None:
        """Hand a creation over."""
        self._hand_over(effect)

    def _hand_over(self, effect: Effect) -> None:
        """Queue an effect; the loop is called once for all that come before it looks.

        It takes the call back before it looks, so what is queued after the call is either seen or calls again.
        """
        self._inbox.append(effect)
        loop = self._loop
        if loop is not None and not self._called:
            self._called = True
            try:
                loop.call_soon_threadsafe(self._collect)
            except RuntimeError:  # the loop is closed: the process ends, and nobody is left to answer
                self._loop = None

    # -- the loop ----------------------------------------------------------------------------------------------

    async def run(self, settled: Callable[[Outcome], None], wake: Callable[[], None] = lambda: None) -> None:
        """Perform effects until `drain` or a cancellation; `wake` is called after answers were given, once for many."""
        self._settled, self._wake = settled, wake
        self._loop = asyncio.get_running_loop()
        self._collect()
        await self._workers.run()

    async def drain(self, patience: float) -> None:
        """Refuse what waits, let what is in flight end and with it `run`; what is not answered in that many seconds is given up as unknown."""
        self._collect()
        await self._workers.stop(patience)

    def _collect(self) -> None:
        self._called = False
        inbox, put = self._inbox, self._workers.put
        while inbox:
            put(inbox.popleft())
        self._workers.rouse()

    def _settle(self, outcome: Outcome) -> None:
        self._settled(outcome)
        if not self._answered and self._loop is not None:
            self._answered = True
            self._loop.call_soon(self._tell_of_answers)

    def _tell_of_answers(self) -> None:
        self._answered = False
        self._wake()
