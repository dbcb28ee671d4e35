"""The thread that writes a recording, so that no cycle waits for a disk.

What it cannot write it counts and lets go: a scheduler never depends on its recording.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from pumice.recording import lines, segments, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pumice.recording import graph
    from pumice.recording.redaction import Redaction

MOST_WAITING: Final = 200_000  # events that may wait to be written
RETRY: Final = 30.0  # seconds after which a folder that could not be written to is tried again
_BATCH: Final = 1 << 18
_LEAST_ROOM: Final = 1 << 16
PAUSE: Final = 0.2  # seconds in which lines are gathered
_IDLE: Final = 0.7  # seconds after which it looks around though nothing was handed over
SEGMENTS: Final = 10  # for which the limit has room


class Beginning:
    """The state that a segment begins with; None at the start of a run."""

    def __init__(self, captured: graph.Captured | None) -> None:
        self.captured = captured


Item = writing.Taken | lines.Line | Beginning


class Writer(threading.Thread):
    """Writes what it is given to segments of a folder; `tell` is told once of trouble, and once of its end."""

    def __init__(self, folder: Path, limit: int, redaction: Redaction, tell: Callable[[str, str], None]) -> None:
        super().__init__(name="recording", daemon=True)
        self.folder = folder
        self.segment_limit = max(limit // SEGMENTS, 1)
        self.missed = 0  # steps that were not handed over, counted by the deciding thread
        self.lost = 0  # steps that were handed over and not written
        self.written = 0  # bytes
        self.spent = 0.0  # seconds of processor time
        self.turns = 0  # there is one every second or so, unless a disk does not answer
        self.failed_at: float | None = None
        self._works_again = False  # since it failed, as far as a trial tells
        self._is_over = False  # because of what no other folder would cure
        self.full = ""  # the segment that should be followed by another as soon as it is calm
        self.overdue = ""  # the one that should be, calm or not
        self._limit = limit
        self._redaction = redaction
        self._tell = tell
        self._told = ""
        self._items: deque[tuple[Item, str]] = deque()
        self._put = self._taken = 0  # weights; each is counted by one thread
        self._wake = threading.Event()
        self._ending = False
        self._file: segments.SegmentFile | None = None
        self._state_size = 0

    @property
    def dropped(self) -> int:
        """How many steps are not in the recording."""
        return self.missed + self.lost

    @property
    def rests(self) -> bool:
        """Tell whether no turn is to be expected: nothing was handed over yet, or it ends."""
        return self._ending or not self.turns

    # -- the deciding thread -----------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How much was handed over and is not taken yet."""
        return self._put - self._taken

    @property
    def accepts(self) -> bool:
        """Tell whether anything is worth handing over."""
        return self.failed_at is None and self.waiting < MOST_WAITING

    @property
    def may_begin(self) -> bool:
        """Tell whether a new segment is worth trying: nothing failed, or what failed works again."""
        return (self.failed_at is None or self._works_again) and self.waiting < MOST_WAITING

    def put(self, item: Item, begins: str = "") -> None:
        """Hand something over; `begins` is the name of the segment that starts with it."""
        if begins:
            self.failed_at, self._works_again = None, False
        self._put += item.weight if isinstance(item, writing.Taken) else 1
        self._items.append((item, begins))
        self._wake.set()

    def refuse(self, problem: str) -> None:
        """Note that no new segment can be begun."""
        self.failed_at = time.monotonic()
        self._say(problem)

    def end(self, patience: float) -> None:
        """Write what waits, and end; returns when it is done, or after so many seconds."""
        self._ending = True
        self._wake.set()
        if self.is_alive():
            self.join(patience)

    # -- the thread --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Write until told to end."""
        while True:
            self._wake.wait(_IDLE)
            self._wake.clear()
            self.turns += 1
            self._drain()
            self._try_again()
            self.spent = time.thread_time()
            if self._ending and not self._items:
                break
            if not self._ending:
                time.sleep(PAUSE)
        self._close()

    def _drain(self) -> None:
        batch = bytearray()
        while self._items:
            item, begins = self._items.popleft()
            with self._guarded(batch, item):
                self._take(item, begins, batch)
            self._taken += item.weight if isinstance(item, writing.Taken) else 1
        with self._guarded(batch, None):
            self._flush(batch)

    @contextlib.contextmanager
    def _guarded(self, batch: bytearray, item: Item | None) -> Iterator[None]:
        """Let nothing that goes wrong end the thread; what was to be written is lost."""
        try:
            yield
        except OSError as error:
            self._fail(error.strerror or str(error), batch.count(b"\n"))
            batch.clear()
        except Exception as error:  # noqa: BLE001  whatever it is, it would be the same the next time
            self._is_over = True
            self._fail(
                f"it ends: {type(error).__name__}: {error}", batch.count(b"\n") + isinstance(item, writing.Taken)
            )
            batch.clear()

    def _take(self, item: Item, begins: str, batch: bytearray) -> None:
        if begins:
            self._flush(batch)
            self._open(begins)
        if self._file is None:
            self.lost += isinstance(item, writing.Taken)
            return
        batch += self._line(item)
        if isinstance(item, Beginning) or len(batch) >= _BATCH:
            self._flush(batch)
            self._measure(item)

    def _line(self, item: Item) -> bytes:
        if isinstance(item, Beginning):
            return writing.state(item.captured)
        return writing.step(item, self._redaction) if isinstance(item, writing.Taken) else writing.encode(item)

    def _open(self, begins: str) -> None:
        self._close()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        segments.prune(self.folder, self._limit - 2 * max(self.segment_limit, 2 * self._state_size))
        self._file = segments.SegmentFile(self.folder / begins)

    def _flush(self, batch: bytearray) -> None:
        if not batch or self._file is None:
            return
        before = self._file.size
        self._file.write(bytes(batch))
        batch.clear()
        self.written += self._file.size - before
        limit = max(self.segment_limit, 2 * self._state_size)
        if self._file.size >= limit:
            self.full = self._file.path.name
        if self._file.size >= limit + limit // 4:
            self.overdue = self._file.path.name
        if self._told:
            self._told = ""
            self._tell("recording again", str(self.folder))

    def _measure(self, item: Item) -> None:
        """Remember how large a state is; one that leaves no room for what follows it cannot be recorded within the limit."""
        if not isinstance(item, Beginning) or self._file is None:
            return
        self._state_size = self._file.size
        if 2 * self._state_size > self._limit:
            text = (
                f"the state alone has {self._state_size} bytes; raise --record-limit to at least {4 * self._state_size}"
            )
            self._fail(text, 0)

    def _fail(self, problem: str, dropped: int) -> None:
        self.lost += dropped
        self.failed_at = time.monotonic()
        self._discard()
        self._say(problem)

    def _say(self, problem: str) -> None:
        if problem != self._told:
            self._told = problem
            self._tell("recording fails, scheduling goes on", f"{self.folder}: {problem}")

    def _try_again(self) -> None:
        """Try from time to time whether as much as a state could be written: the deciding thread is asked for one only then."""
        if self.failed_at is None or self._works_again or self._is_over:
            return
        if time.monotonic() - self.failed_at < RETRY:
            return
        trial = self.folder / f".trial-{os.getpid()}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                trial.write_bytes(bytes(max(self._state_size, _LEAST_ROOM)))
            finally:
                trial.unlink(missing_ok=True)
        except OSError:
            self.failed_at = time.monotonic()
        else:
            self._works_again = True

    def _discard(self) -> None:
        """Let go of a file that cannot be written to."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            pass

    def _close(self) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._fail(error.strerror or str(error), 0)
        self._file = None
