"""A cluster that is shown: its objects and rows, the loop that takes what is new to the board, and the one who asks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.server.threads import interpreter
from pumice.study.following.tracking import Tracker
from pumice.web import questions
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


class Cluster:
    """Everything that is shown, from wherever it comes."""

    def __init__(self, source: str, now: Callable[[], int] | None = None) -> None:
        self.source = source
        self.now = now or (lambda: time.time_ns() // 1000)
        self.tracker = Tracker(changes=True)
        self.objects = Objects(self.tracker)
        self.board = Board(self.tracker)
        self.about = questions.About(source=source)
        self.notes: Callable[[], tuple[str, ...]] = tuple
        self.is_live = False
        self._asking = Asking(self.objects.whole, lambda: self.about, self.now)
        self.objects.heard = self._asking.feed
        self._facts: dict[str, Any] = {}
        self._settled = FEW  # so many objects were last taken as there to stay
        self._looked_after = -1  # so many changes shares were last asked for

    async def ask(self, question: questions.Question, sight: Sight = EVERYTHING) -> questions.Answer:
        """Answer a question about what is there now, without names that may not be seen."""
        return await self._asking.ask(question, sight)

    def told(self, facts: dict[str, Any]) -> None:
        """Take facts that somebody else knows."""
        self._facts |= facts

    def turn(self) -> bool:
        """Take what is new; tells whether anything is."""
        facts = {"source": self.source, "live": self.is_live, "notes": self.notes(), **self._facts}
        news = self.board.update(self.now(), facts) is not None
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
        answer = await self.ask(questions.Shares())
        if answer.problem:
            self._facts["sharesProblem"] = answer.problem
            return
        self._facts |= {"sharesProblem": "", **msgspec.json.decode(answer.body)}

    async def close(self) -> None:
        """End whoever answers."""
        await self._asking.close()
