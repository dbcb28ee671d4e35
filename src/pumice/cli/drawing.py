"""What live pictures of a cluster are drawn with, simulated or real: tables without lines, bars, colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

COLOURS: Final = ("cyan", "magenta", "yellow", "green", "blue", "red")
FULL: Final = "▇"
EMPTY: Final = "·"
MARK: Final = "│"
WIDE: Final = 110
"""Characters from which on a terminal has room for reasons."""


def table() -> Table:
    """Make a table whose columns are told apart by space alone."""
    return Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)


def pieces(parts: Iterable[tuple[int, str]], cells: int) -> Text:
    """Draw a bar of so many cells out of pieces, each with its length and style and a gap after it; the rest is empty."""
    bar = Text()
    for length, style in parts:
        if length:
            bar.append(FULL * (length - 1) + " ", style=style)
    return bar.append(EMPTY * (cells - len(bar)), style="dim")


def share(used: int, whole: int, cells: int, *, mark: int | None = None, style: str = "") -> Text:
    """Draw how much of a whole is used, with a mark at some amount; the last cell is full only if everything is used, and any use shows."""
    filled = 0 if used <= 0 else cells if used >= whole else min(cells - 1, max(1, used * cells // whole))
    bar = Text(FULL * filled, style=style)
    bar.append(EMPTY * (cells - filled), style="dim")
    if mark is not None and 0 < mark < whole:
        at = min(cells - 1, mark * cells // whole)
        bar = Text.assemble(bar[:at], MARK, bar[at + 1 :])
    return bar
