"""One line that says what is happening, drawn again where a terminal can."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

    from pumice.local_cluster.api_thread import Figures

EVERY: Final = 0.5


class LiveLine(threading.Thread):
    """Draws the line until it is stopped; where nobody looks, it says nothing."""

    def __init__(self, figures: Figures, stream: TextIO | None = None) -> None:
        super().__init__(name="live", daemon=True)
        self._figures = figures
        self._stream = stream or sys.stdout
        self._ending = threading.Event()
        self._shown = ""

    def run(self) -> None:
        """Draw the line whenever it has changed, or was written over."""
        if not self._stream.isatty():
            return
        while not self._ending.wait(EVERY):
            line = text(self._figures)
            if line != self._shown:
                self._stream.write(f"\r\x1b[K{line}")
                self._stream.flush()
                self._shown = line

    def print_above(self, words: str) -> None:
        """Print something that stays; the line goes on below it."""
        clear = "\r\x1b[K" if self._stream.isatty() else ""
        self._stream.write(f"{clear}{words}\n")
        self._stream.flush()
        self._shown = ""

    def stop(self) -> None:
        """Leave the line as it is, and end it."""
        self._ending.set()
        if self._stream.isatty():
            self._stream.write("\n")


def text(figures: Figures) -> str:
    """Say what is happening."""
    return (
        f"{figures.nodes} nodes, {figures.pods} pods: {figures.pending} pending, {figures.running} running, {figures.ended} ended"
        f" | {figures.watches} watches, {figures.requests} requests"
    )
