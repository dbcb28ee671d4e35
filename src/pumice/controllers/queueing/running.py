"""Who lets controllers have their turns: one runner on an event loop, for worlds that answer at once and for those that are waited for, and one without a loop, for virtual time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Protocol

from pumice.controllers.queueing import requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from pumice.controllers.queueing.engine import Engine, Turn
    from pumice.controllers.queueing.requests import Answer, Moment, Request, Step

LOOK: Final = 1.0  # seconds after which they look around though nobody has said that anything has come
MOST: Final = 1_000_000
_SLICE: Final = 20  # turns between two looks at what else there is to do
_AT_ONCE: Final = 0.01  # seconds of writes before others have a moment
_UNWANTED: Final = 0.5  # seconds between two looks whether they are wanted again


class World(Protocol):
    """A cluster that answers at once."""

    def perform(self, request: Request, /) -> Answer:
        """Carry a request out."""


class WaitingWorld(Protocol):
    """A cluster that answers at once, or has to be waited for."""

    def perform(self, request: Request, /) -> Answer | Awaitable[Answer]:
        """Carry a request out, or begin to."""


def run_due(engine: Engine, world: World, moment: Callable[[], Moment], most: int = MOST) -> int:
    """Take turns until nothing is due, at most so many, and give how many requests there were."""
    count = 0
    for _ in range(most):
        turn = engine.take(moment())
        if turn is None:
            break
        while turn.left:
            for step in engine.next_steps(turn):
                engine.answered(turn, step, world.perform(step.request), moment().now)
                count += 1
        engine.finish(turn, moment())
    return count


class Runner:
    """Runs controllers until cancelled: objects side by side, at most as many as there are workers, and each object's steps in order.

    `before` and `after` are what else is done at each look, and give how much of it there was; `beat` hears that it goes on; `performed` is told of every
    request. While they are not `wanted` nothing is begun, and what was begun is left for later.
    """

    def __init__(
        self,
        engine: Engine,
        world: WaitingWorld,
        moment: Callable[[], Moment],
        *,
        workers: int = MOST,
        before: Callable[[], int] = int,
        after: Callable[[], int] = int,
        beat: Callable[[], None] = lambda: None,
        performed: Callable[[Request, Answer, float], None] = lambda *_: None,
        complain: Callable[[str], None] = lambda _: None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.engine = engine
        self._world = world
        self._moment = moment
        self._workers = workers
        self._before, self._after = before, after
        self._beat = beat
        self._performed = performed
        self._complain = complain
        self._wanted = wanted
        self._stirred = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()  # turns that wait for answers
        self._ending = False
        self._broken: BaseException | None = None
        self.looks = 0  # at what waits; there is one every second while they are wanted
        self.held_back = 0  # looks at which nothing was wanted
        self.is_held = True  # no look can be expected: it has not begun, it ends, or it is not wanted

    def stir(self) -> None:
        """Say that something has come."""
        self._stirred.set()

    def wind_up(self) -> None:
        """Begin nothing more; `work` ends when what was begun is answered."""
        self._ending = True
        self._stirred.set()

    async def work(self) -> None:
        """Take turns until cancelled, or wound up."""
        try:
            while not self._ending:
                await self._go_on()
            if self._waiting:
                await asyncio.wait(self._waiting)
        finally:
            self.is_held = True
            left = list(self._waiting)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _go_on(self) -> None:
        if not self._wanted():  # a lease that runs out rings no bell; somebody else may do the work meanwhile
            self.is_held = True
            self.held_back += 1
            await asyncio.sleep(_UNWANTED)
            return
        self.is_held = False
        self.looks += 1
        self._beat()
        self._stirred.clear()  # before looking: what comes from now on is for the next look
        if self._broken is not None:
            raise self._broken
        if await self.look():
            await asyncio.sleep(0)
        else:
            await self._idle()

    async def look(self) -> int:
        """Do some of what is due now, and give how much there was."""
        return self._before() + await self._turns() + self._after()

    async def _turns(self) -> int:
        """Take some turns; others have theirs between the stages of a long one, and a turn that has to wait goes on by itself."""
        clock = asyncio.get_running_loop().time
        began = clock()
        for count in range(_SLICE):
            turn = self.engine.take(self._moment()) if len(self._waiting) < self._workers else None
            if turn is None:
                return count
            while (answers := self._stage(turn)) is not None:
                if answers:
                    self._leave(self._carry_on(turn, answers))
                    break
                if clock() - began > _AT_ONCE:
                    self._beat()
                    await asyncio.sleep(0)
                    began = clock()
        return _SLICE

    def _stage(self, turn: Turn) -> list[Coroutine[None, None, None]] | None:
        """Do the next steps of a turn, and give what has to be waited for; None if the turn has ended."""
        if turn.left and not self._wanted():
            turn.doubtful, turn.left = True, []
        if not turn.left or self._ending:
            self.engine.finish(turn, self._moment())
            return None
        answers = []
        for step in self.engine.next_steps(turn):
            began = time.perf_counter()
            found = self._world.perform(step.request)
            if isinstance(found, requests.Answer):
                self._answered(turn, step, found, began)
            else:
                answers.append(self._awaited(turn, step, found, began))
        return answers

    async def _awaited(self, turn: Turn, step: Step, answer: Awaitable[Answer], began: float) -> None:
        try:
            found = await answer
        except Exception as error:  # noqa: BLE001  the turn must end, or its object would never have another
            self._complain(f"{step.request.kind.name}: {type(error).__name__}: {error}")
            found = requests.Answer(code="unknown", message=str(error))
        self._answered(turn, step, found, began)

    def _answered(self, turn: Turn, step: Step, answer: Answer, began: float) -> None:
        self._performed(step.request, answer, time.perf_counter() - began)
        self.engine.answered(turn, step, answer, self._moment().now)

    async def _carry_on(self, turn: Turn, waiting: list[Coroutine[None, None, None]]) -> None:
        answers: list[Coroutine[None, None, None]] | None = waiting
        while answers is not None:
            if len(answers) == 1:
                await answers[0]
            else:
                await asyncio.gather(*answers)  # of none, others have a moment
            answers = self._stage(turn)

    def _leave(self, turn: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(turn)
        self._waiting.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._waiting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = task.exception()
        self._stirred.set()

    async def _idle(self) -> None:
        """Wait for an event, for the end of somebody's turn, or until something is due."""
        now = self._moment().now
        due = self.engine.queue.next_due(now) if len(self._waiting) < self._workers else None
        limit = LOOK if due is None else min(LOOK, max(0.0, (due - now) / 1e6))
        try:
            async with asyncio.timeout(limit):
                await self._stirred.wait()
        except TimeoutError:
            return
