"""Where every thread of the process is: one line for each."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

DEEPEST: Final = 40  # frames of a thread that are told, from the innermost outwards
_FOLDERS: Final = ("site-packages/", "/src/", "/lib/")


def of_threads() -> Iterator[tuple[str, str]]:
    """Give name and stack of every thread but the one that asks; the innermost frame comes first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001  documented, and the only way to other threads' frames
        if ident != threading.get_ident():
            yield names.get(ident, str(ident)), " < ".join(_places(frame))


def _places(frame: FrameType | None) -> Iterator[str]:
    for _ in range(DEEPEST):
        if frame is None:
            return
        yield f"{_short(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    yield "…"


def _short(path: str) -> str:
    for folder in _FOLDERS:
        _, found, rest = path.rpartition(folder)
        if found:
            return rest
    return path
