"""Asks the studying process: hands it every change, and one question after the other. It runs only when somebody has asked, and is started anew if it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from pumice.web import questions
from pumice.web.questions import Answer

if TYPE_CHECKING:
    from pumice.web.sight import Sight

SECONDS: Final = 60.0
"""For one answer."""
MOST_WAITING: Final = 8
"""Questions that wait for their turn; one more is refused."""
_BATCH: Final = 500
_SLACK: Final = 30.0
"""Seconds beyond those of an answer, in which the model is made."""

Change = tuple[str, str, str, bytes]
Identity = tuple[str, str, str, str]
Whole = Callable[[], Iterable[Change]]


class Asking:
    """The one who asks. `whole` gives every object there is, for a process that has just begun; `about` what is known beside them, `then` what was otherwise at a moment."""

    def __init__(
        self,
        whole: Whole,
        about: Callable[[], questions.About],
        now: Callable[[], int],
        then: Callable[[int], questions.Then],
    ) -> None:
        self._whole = whole
        self._about = about
        self._then = then
        self._now = now
        self._process: asyncio.subprocess.Process | None = None
        self._news: dict[Identity, Change] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._told: questions.About | None = None
        self.seconds = SECONDS

    def feed(self, identity: Identity, change: Change) -> None:
        """Keep the last change of an object for the next question; before the first one nothing is kept."""
        if self._process is not None:
            self._news[identity] = change

    async def ask(self, question: questions.Question, sight: Sight, moment: int | None = None) -> Answer:
        """Answer a question about now, or about a moment, in its turn, or say why not."""
        if self._waiting >= MOST_WAITING:
            return Answer(problem=f"{self._waiting} questions wait for an answer already; try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answered(question, sight, moment)
        finally:
            self._waiting -= 1

    async def _answered(self, question: questions.Question, sight: Sight, moment: int | None) -> Answer:
        seconds = self.seconds
        try:
            async with asyncio.timeout(seconds + _SLACK):
                process = await self._current()
                assert process.stdin is not None  # noqa: S101  it was started with pipes
                assert process.stdout is not None  # noqa: S101  as above
                # Nothing may come in between: the way back begins at what the process knows.
                then, now = (None, self._now()) if moment is None else (self._then(moment), moment)
                process.stdin.write(questions.packed(questions.Ask(question, now, seconds, sight, then)))
                await process.stdin.drain()
                head = await process.stdout.readexactly(questions.HEAD)
                return questions.ANSWERS.decode(await process.stdout.readexactly(questions.length(head)))
        except TimeoutError:
            await self.close()
            return Answer(problem=f"no answer within {seconds + _SLACK:g} s; the next question starts afresh")
        except (OSError, asyncio.IncompleteReadError):
            await self.close()
            return Answer(problem="the process that answers questions has ended; the next question starts another")
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for that of the next question
            raise

    async def _current(self) -> asyncio.subprocess.Process:
        """Give a process that knows everything there is."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "pumice.web.studying",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Copies of a process with threads are unsafe; numbers are small here, one thread is enough.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            )
            self._news, self._told = {}, None
            await self._send(self._process, self._whole())
        if (about := self._about()) != self._told:
            self._told = about
            await self._write(self._process, questions.packed(about))
        while self._news:
            news, self._news = self._news, {}
            await self._send(self._process, news.values())
        return self._process

    async def _send(self, process: asyncio.subprocess.Process, changes: Iterable[Change]) -> None:
        batch: list[Change] = []
        for change in changes:
            batch.append(change)
            if len(batch) == _BATCH:
                await self._write(process, questions.packed(questions.Feed(batch)))
                batch = []
        if batch:
            await self._write(process, questions.packed(questions.Feed(batch)))

    async def _write(self, process: asyncio.subprocess.Process, data: bytes) -> None:
        assert process.stdin is not None  # noqa: S101  as above
        process.stdin.write(data)
        await process.stdin.drain()

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        self._news = {}
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
