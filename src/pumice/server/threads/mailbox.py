"""What the deciding thread is told: by signals, by the I/O thread, by nobody until it is time.

A message may be left by a signal handler in the middle of a read, which rules out conditions and events of `threading`; and a wait must end when its time is up,
which rules out `queue.SimpleQueue`: in Python 3.11 and 3.12 it waits for ever if the time is up after a message was put and taken with nobody waiting. So the
messages are in a deque, and whoever leaves one opens a plain lock that the reader waits for. Descriptors would serve too, but selectors count in milliseconds, and
a burst is over after less than one.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future

    from pumice.framework.configuration import Configuration

    Steps = Generator[float, "Message | None", "Stop | Fatal"]


LONGEST: Final = 1.0  # seconds of one wait; whatever may go wrong with a lock, messages are looked for that often


class Stop(msgspec.Struct, frozen=True):
    """End in good order."""

    reason: str


class Fatal(msgspec.Struct, frozen=True):
    """End, not in good order: the lease is lost, or the I/O thread broke down."""

    reason: str


class Begin(msgspec.Struct, frozen=True):
    """Everything is listed, and the lease, if there is one, is ours: decide from now on."""


class Reconfigure(msgspec.Struct, frozen=True):
    """Use another configuration from the next cycle on."""

    configuration: Configuration


class Dump(msgspec.Struct, frozen=True):
    """Write what is known to a file."""


class Summarise(msgspec.Struct, frozen=True):
    """Log how things stand."""


class View(msgspec.Struct, frozen=True):
    """Gather the numbers of jobs and queues, then answer."""

    reply: Future[None]


class Changed(msgspec.Struct, frozen=True):
    """Something has come in that a cycle should look at."""


class Echoed(msgspec.Struct, frozen=True):
    """Something has come in that a cycle should look at within so many seconds: nothing could be decided now that could not be before."""

    wait: float


Message = Stop | Fatal | Begin | Reconfigure | Dump | Summarise | View | Changed | Echoed


class Mailbox:
    """Messages for the deciding thread, in order."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._messages: deque[Message] = deque()
        self._bell = threading.Lock()  # open: there may be a message
        self._rung = False
        self._hinted = math.inf
        self.heard = 0  # how many changes have come in; a thread that writes and one that compares need no lock for it

    def post(self, message: Message) -> None:
        """Leave a message; from any thread, or from a signal handler."""
        self._messages.append(message)
        if self._bell.locked():
            with contextlib.suppress(RuntimeError):  # somebody else has opened it meanwhile
                self._bell.release()

    def ring(self) -> None:
        """Say that something has changed; of many in a row the first is enough."""
        self.heard += 1
        if not self._rung:
            self._rung = True
            self.post(Changed())

    def hint(self, wait: float) -> None:
        """Say that something has changed that can wait for so many seconds; nobody needs to hear of it who was told of more already."""
        self.heard += 1
        if wait < self._hinted and not self._rung:
            self._hinted = wait
            self.post(Echoed(wait))

    def hush(self) -> None:
        """Begin to look at what has changed: whatever comes from now on is for the next time."""
        self._rung = False
        self._hinted = math.inf

    def awaits(self, kind: type[Message]) -> bool:
        """Tell whether a message of that kind waits; asked by the one who takes them."""
        return any(type(each) is kind for each in tuple(self._messages))

    def serve(self, steps: Steps) -> Stop | Fatal:
        """Let somebody work who says each time until when a message may be waited for, and is then given it, or None if none came."""
        until = next(steps)
        while True:
            try:
                until = steps.send(self.take(until))
            except StopIteration as end:
                told: Stop | Fatal = end.value
                return told

    def take(self, until: float) -> Message | None:
        """Wait for a message, not longer than until a moment of the monotonic clock; one that is there is taken at any time."""
        while True:
            if self._messages:
                return self._messages.popleft()
            left = until - self._seconds()
            if left <= 0:
                return None
            self._bell.acquire(timeout=min(left, LONGEST))
