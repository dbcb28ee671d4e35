"""The two ways to show the demonstration, and its pace."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pumice.api import duration
from pumice.cli.demo import changes, snapshot, summary
from pumice.cli.demo.play import Play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.cli.demo.snapshot import Snapshot

FRAME = 1 / 20  # no terminal needs more pictures per second


def plain(speed: float | None) -> bool:
    """Print one line per change; tells whether somebody stopped it."""
    play, stopped = Play(), False
    last: Snapshot | None = None
    try:
        for seen in paced(play, speed):
            if last is None:
                click.echo(f"{snapshot.clock(seen.time)}  {changes.opening(seen)}")
            for change in changes.between(last, seen):
                click.echo(f"{snapshot.clock(change.time)}  {change.title}: {change.text}")
            last = seen
    except KeyboardInterrupt:
        stopped = True
    _conclude(play, last, None, stopped=stopped)
    return stopped


def live(speed: float) -> bool:
    """Draw a live table; tells whether somebody stopped it."""
    from rich.console import Console  # noqa: PLC0415  plain output does not need it
    from rich.live import Live  # noqa: PLC0415  plain output does not need it

    from pumice.cli.demo.picture import Picture  # noqa: PLC0415  plain output does not need it

    console, play, stopped = Console(), Play(), False
    picture = Picture(speed)
    last: Snapshot | None = None
    try:
        with Live(console=console, screen=True, auto_refresh=False) as shown:
            drawn = 0.0
            for seen in paced(play, speed):
                picture.see(changes.between(last, seen), seen)
                last = seen
                if time.monotonic() - drawn >= FRAME:
                    drawn = time.monotonic()
                    shown.update(picture.draw(console), refresh=True)
    except KeyboardInterrupt:
        stopped = True
    if last is not None:
        console.print(picture.tables(console))
    _conclude(play, last, console.width, stopped=stopped)
    return stopped


def paced(play: Play, speed: float | None) -> Iterator[Snapshot]:
    """Give the scenes when they are due; without a speed, at once."""
    began = time.monotonic()
    for seen in play.scenes():
        if speed is not None:
            time.sleep(max(0.0, began + seen.time / duration.SECOND / speed - time.monotonic()))
        yield seen


def _conclude(play: Play, last: Snapshot | None, width: int | None, *, stopped: bool) -> None:
    """Print the summary, folded to the width of a terminal if there is one."""
    if last is None:
        return
    lines = summary.write(play, last, stopped=stopped)
    click.echo("\n" + "\n".join(lines if width is None else summary.fold(lines, width)))
