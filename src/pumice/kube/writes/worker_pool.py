"""The workers that perform effects: a fixed number, each taking the next thing when it is done with the last.

Events are taken while it is calm and has been for a moment: no urgent effect waits and few are in flight. What comes in bursts is told of when they are over; where
it has not been calm for long, events and reports get a small share, so that a scheduler which is never done still tells. How busy a server is shows in how long it takes to
answer: what nobody waits for is written by one at a time then, and most of it is not true any more when its turn comes. A bind that has to wait for volumes gets a
worker of its own, up to a limit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pumice.cache import effects
from pumice.kube.writes import agenda, eventing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Answerable, Bind, Outcome
    from pumice.kube.writes.performing import Performer

_VOLUME_SLOTS = 256
_EVENT_SHARE = 0.02  # events per effect that was performed, while there are urgent ones
_EVENT_CREDIT = 8.0
_CALM = 0.1  # seconds for which it has to be calm, and the first of some events waits, before they flow freely
_BURST = 10.0  # seconds for which a burst may last before events and reports get a share beside it
_MANY = 0.5  # of the workers: while as many are at work, answers are gathered
_LULL = 0.1  # for that part of the time that a write takes
_LONGEST_LULL = 0.005  # seconds
_QUICK = 0.1  # seconds in which all events, or all reports, that are in flight at once have to be answered if they were sent one by one
_WEIGHT = 1 / 32  # of the newest write in the time that one takes
_STOPPING = "the scheduler is stopping"
_OVERTAKEN = "it waited for a bind that was refused, and something newer is being written"


class WorkerPool:
    """Performs what is put on its agenda; everything here is called on the event loop."""

    def __init__(
        self,
        performer: Performer,
        events: eventing.EventRecorder,
        answer: Callable[[Outcome], None],
        workers: int,
        refill: Callable[[], None] = lambda: None,
    ) -> None:
        self.agenda = agenda.Agenda()
        self.in_flight = 0
        self.at_work = 0  # workers that call `refill` when they are done
        self._performer = performer
        self._events = events
        self._answer = answer
        self._refill = refill
        self.count = workers
        self._stopping = False
        self._idle: list[asyncio.Future[None]] = []
        self._workers: set[asyncio.Task[None]] = set()
        self._patient: set[asyncio.Task[None]] = set()
        self._if_refused: dict[
            str, list[effects.Patch]
        ] = {}  # what pods were to say and need not if they are bound, by uid
        self._telling = 0
        self._credit = 0.0
        self._calm_from = 0.0
        self._last_calm = 0.0
        self._takes = 0.0  # seconds that a worker waits for its answer, of late
        self._timer: asyncio.TimerHandle | None = None

    # -- from outside ------------------------------------------------------------------------------------------

    def put(self, effect: effects.Effect) -> None:
        """Queue an effect; once the workers stop, it is refused."""
        if isinstance(effect, effects.Note):
            if not self._events.waiting:
                # What is decided in the same cycle goes first.
                self._calm_from = max(self._calm_from, asyncio.get_running_loop().time() + _CALM)
            self._events.put(effect)
        elif self._stopping:
            self._refuse(effect)
        else:
            if self._is_calm():
                self._last_calm = asyncio.get_running_loop().time()
            left_out = self.agenda.put(effect)
            if isinstance(effect, effects.Bind):
                self._if_refused[effect.uid] = left_out + self._if_refused.pop(effect.uid, [])
            else:
                self._answer_as_done(left_out)

    def _answer_as_done(self, left_out: list[effects.Patch]) -> None:
        for patch in left_out:
            self._answer(effects.Outcome(effect=patch))

    def rouse(self) -> None:
        """Let idle workers look at what was queued."""
        if not self._stopping:
            self._start_patient()
            self._wake_workers(self.agenda.on_offer)
            self._tell_in_calm()

    def gathering_pause(self) -> float:
        """Return for how many seconds answers may be gathered: a small part of the time that each takes, while there are many on their way."""
        return min(_LULL * self._takes, _LONGEST_LULL) if self.at_work >= _MANY * self.count else 0.0

    async def run(self) -> None:
        """Work until `stop`, or until it is cancelled: then what is in flight is given up as unknown."""
        self._workers = {asyncio.create_task(self._work(), name=f"writer-{n}") for n in range(self.count)}
        self.rouse()
        try:
            ended, _ = await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended:
                if not worker.cancelled() and (error := worker.exception()) is not None:
                    raise error
        finally:
            await self.stop(0.0)

    async def stop(self, patience: float) -> None:
        """Refuse what waits, let what is in flight end, give up what is not answered in time."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        for effect in self.agenda.clear():
            self._refuse(effect)
        self._events.clear()
        await asyncio.sleep(0)  # a worker that never began could not answer for its effect
        for worker in self._patient:
            worker.cancel()
        self._wake_workers(len(self._idle))
        busy = [worker for worker in (*self._workers, *self._patient) if not worker.done()]
        if busy:
            _, late = await asyncio.wait(busy, timeout=patience)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # -- workers -----------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            self._refill()
            found = self._next()
            if found is not None:
                self._wake_workers(1 if self.agenda.on_offer or (self._may_tell() and self._is_calm()) else 0)
                self.at_work += 1
                started = asyncio.get_running_loop().time()
                try:
                    await (self._tell(found) if isinstance(found, eventing.Told) else self._perform(found))
                finally:
                    self.at_work -= 1
                self._learn(asyncio.get_running_loop().time() - started)
            elif self._stopping:
                return
            else:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle

    def _learn(self, seconds: float) -> None:
        """Take note of how long a write took: the longer, the fewer at once of those that nobody waits for."""
        self._takes += _WEIGHT * (seconds - self._takes)
        fitting = int(_QUICK / self._takes) if self._takes > 0 else agenda.MOST_REPORTS
        self.agenda.most_reports = max(1, min(agenda.MOST_REPORTS, fitting))

    def _next(self) -> Answerable | eventing.Told | None:
        """Choose what to do next: an event if one has been earned in a long burst, else an effect, else an event if all is calm."""
        sharing = not self._is_calm() and asyncio.get_running_loop().time() >= self._last_calm + _BURST
        if sharing and self._credit >= 1 and self._may_tell():
            self._credit -= 1
            return self._events.take()
        effect = self.agenda.take(sharing=sharing)
        if effect is None and self._may_tell() and self._is_calm():
            return self._events.take()
        return effect

    def _wake_workers(self, count: int) -> None:
        while count > 0 and self._idle:
            idle = self._idle.pop()
            if not idle.done():
                idle.set_result(None)
                count -= 1

    async def _perform(self, effect: Answerable) -> None:
        self.in_flight += 1
        try:
            outcome = await self._performer.perform(effect)
        except BaseException:
            outcome = effects.Outcome(effect=effect, failure=effects.Failure("unknown", _STOPPING))
            raise
        finally:
            self.in_flight -= 1
            self._finish(effect, outcome)

    def _finish(self, effect: Answerable, outcome: Outcome) -> None:
        followed = self.agenda.is_followed(effect)
        self.agenda.done(effect)
        kept = self._if_refused.pop(effect.uid, []) if isinstance(effect, effects.Bind) else []
        if outcome.failure is None:
            self._answer_as_done(kept)
        else:
            for patch in reversed(kept):  # the last one was left out first
                if followed:  # by what is newer: whoever sent it may send it again
                    self._answer(effects.Outcome(effect=patch, failure=effects.Failure("unavailable", _OVERTAKEN)))
                else:
                    self.put(patch)
        self._answer(outcome)
        self._credit = min(self._credit + _EVENT_SHARE, _EVENT_CREDIT)
        if not self.agenda.is_calm:
            self._calm_from = asyncio.get_running_loop().time() + _CALM
        self._start_patient()
        self._tell_in_calm()

    def _refuse(self, effect: Answerable) -> None:
        for patch in self._if_refused.pop(effect.uid, []) if isinstance(effect, effects.Bind) else ():
            self._refuse(patch)
        self._answer(effects.Outcome(effect=effect, failure=effects.Failure("unavailable", _STOPPING)))

    # -- volumes -----------------------------------------------------------------------------------------------

    def _start_patient(self) -> None:
        while len(self._patient) < _VOLUME_SLOTS and (effect := self.agenda.take_patient()) is not None:
            worker = asyncio.create_task(self._perform_patiently(effect))
            self._patient.add(worker)
            worker.add_done_callback(self._patient.discard)

    async def _perform_patiently(self, effect: Bind) -> None:
        await self._perform(effect)
        # What waited for the pod is for a worker.
        self.rouse()

    # -- events ------------------------------------------------------------------------------------------------

    def _may_tell(self) -> bool:
        return self._telling < self.agenda.most_reports and self._events.waiting > 0

    def _is_calm(self) -> bool:
        return self.agenda.is_calm and asyncio.get_running_loop().time() >= self._calm_from

    async def _tell(self, told: eventing.Told) -> None:
        self._telling += 1
        try:
            await self._events.send(told)
        finally:
            self._telling -= 1

    def _tell_in_calm(self) -> None:
        """If events wait, see to it that somebody takes them as soon as it is calm."""
        if self._timer is not None or not self.agenda.is_calm or not self._events.waiting or self._stopping:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._calm_from:
            self._wake_workers(1)
        else:
            self._timer = loop.call_at(self._calm_from, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._tell_in_calm()
