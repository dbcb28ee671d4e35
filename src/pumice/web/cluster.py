"""A cluster that is shown: its objects and rows, the loop that takes what is new to the board, and the one who asks."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import timestamp
from pumice.server.threads import interpreter
from pumice.study.following.tracking import Tracker
from pumice.web import past, questions
from pumice.web.asking import Asking
from pumice.web.board import Board
from pumice.web.objects import Objects
from pumice.web.sight import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.web.sight import Sight

TURN: Final = 1.0
"""Seconds between two looks at what is new."""
SHARES: Final = 3.0
"""Seconds at least between two looks at how queues stand."""
FEW: Final = 1000
"""Objects that are not worth a thought about memory."""
PART: Final = 20
"""How many times as long as such a look took nobody looks again."""
MOST_ABOUTS: Final = 100
"""Policies and the like that are remembered."""


class Cluster:
    """Everything that is shown, from wherever it comes."""

    def __init__(self, source: str, now: Callable[[], int] | None = None, bounds: past.Bounds = past.HOUR) -> None:
        self.source = source
        self.now = now or (lambda: time.time_ns() // 1000)
        self.tracker = Tracker(changes=True)
        self.objects = Objects(self.tracker, bounds)
        self.board = Board(self.tracker, bounds)
        self._abouts: deque[tuple[int, questions.About]] = deque([(0, questions.About(source=source))], MOST_ABOUTS)
        self.notes: Callable[[], tuple[str, ...]] = tuple
        self.is_live = False
        self.asking = Asking(self.objects.whole, lambda: self.about, self.now, self.then)
        self.objects.heard = self.asking.feed
        self._facts: dict[str, Any] = {}
        self._settled = FEW  # so many objects were last taken as there to stay
        self._looked_after = -1  # so many changes shares were last asked for

    @property
    def about(self) -> questions.About:
        """What is known beside the objects."""
        return self._abouts[-1][1]

    def explain_with(self, about: questions.About, since: int | None = None) -> None:
        """Take what is known beside the objects: of now, or of a moment after all that are known."""
        if about != self.about:
            self._abouts.append((self.now() if since is None else since, about))

    async def ask(
        self, question: questions.Question, sight: Sight = EVERYTHING, moment: int | None = None
    ) -> questions.Answer:
        """Answer a question about what is there now, or was at a moment, without names that may not be seen."""
        if moment is not None and moment < self.objects.first:
            first = timestamp.format_timestamp(self.objects.first)
            return questions.Answer(
                problem=f"what a scheduler read is remembered from {first} on, not of a moment before"
            )
        return await self.asking.ask(question, sight, moment)

    def then(self, moment: int) -> questions.Then:
        """Say how to go back to a moment."""
        known = [about for since, about in self._abouts if since <= moment] or [self._abouts[0][1]]
        return questions.Then(list(self.objects.back_to(moment)), known[-1])

    def told(self, facts: dict[str, Any]) -> None:
        """Take facts that somebody else knows."""
        self._facts |= facts

    def turn(self) -> bool:
        """Take what is new; tells whether anything is."""
        facts = {"source": self.source, "live": self.is_live, "notes": self.notes(), **self._facts}
        now = self.now()
        news = self.board.update(now, facts) is not None
        self.objects.mark(now)
        if self.tracker.objects > 2 * self._settled:
            self._settled = self.tracker.objects
            interpreter.settle()
        return news

    async def run(self, tell: Callable[[], None], is_watched: Callable[[], bool]) -> None:
        """Take what is new again and again; look at shares while somebody watches."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look(is_watched))
            while True:
                if self.turn():
                    tell()
                await asyncio.sleep(TURN)

    async def _look(self, is_watched: Callable[[], bool]) -> None:
        while True:
            began = time.monotonic()
            if is_watched() and self.objects.changes != self._looked_after:
                self._looked_after = self.objects.changes
                await self.look_at_shares()
            await asyncio.sleep(max(SHARES, PART * (time.monotonic() - began)))

    async def look_at_shares(self) -> None:
        """See how queues stand, as explain would say it."""
        self._facts |= share_facts(await self.ask(questions.Shares()))

    async def close(self) -> None:
        """End whoever answers."""
        await self.asking.close()


def share_facts(answer: questions.Answer) -> dict[str, Any]:
    """Give how queues stand as facts."""
    if answer.problem:
        return {"sharesProblem": answer.problem}
    return {"sharesProblem": "", **msgspec.json.decode(answer.body)}
