"""The ways to show a cluster: once, as a live picture, or as JSON again and again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from pumice.cli.top.picture import Picture
from pumice.cli.volcano import calls, failing
from pumice.model import resources
from pumice.study import rights
from pumice.study.following import reading as readings
from pumice.study.following import scene as scenes
from pumice.study.following.reading import Reading
from pumice.study.following.tracking import Tracker
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from pumice.study.following.scene import Order, Scene

TERMINATED: Final = 143
PIPED: Final = 160
"""Characters of a line where no terminal says how many there are."""


class Wanted(NamedTuple):
    """What is to be shown, and how."""

    sections: tuple[str, ...]
    order: Order
    interval: float
    form: str
    namespace: str = ""
    queue: str = ""
    rows: int | None = None
    once: bool = False


def show(place: calls.Place, wanted: Wanted) -> None:
    """Show a cluster until somebody ends it."""
    try:
        asyncio.run(_show(place, wanted))
    except StudyError as error:
        raise failing.CommandError(str(error)) from None
    except asyncio.CancelledError:
        raise click.exceptions.Exit(TERMINATED) from None


async def _show(place: calls.Place, wanted: Wanted) -> None:
    async with place.client() as client:
        tracker = Tracker()
        reading = Reading(client, readings.specs(wanted.sections), tracker, wanted.namespace)
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Ends as Ctrl-C does, so that the terminal is left as it was.
            loop.add_signal_handler(number, task.cancel if task is not None else loop.stop)
        async with reading.running():
            if wanted.form == "json":
                await _json(reading, tracker, wanted)
            else:
                await _drawn(reading, tracker, wanted, client.connection.server)


async def _json(reading: Reading, tracker: Tracker, wanted: Wanted) -> None:
    while True:
        await reading.wait()
        plain = document(_scene(reading, tracker, wanted))
        encoded = msgspec.json.encode(plain)
        click.echo(msgspec.json.format(encoded, indent=2 if wanted.once else 0).decode())
        if wanted.once:
            _end(reading, wanted)
            return
        await asyncio.sleep(wanted.interval)


async def _drawn(reading: Reading, tracker: Tracker, wanted: Wanted, title: str) -> None:
    from rich.console import Console  # noqa: PLC0415  JSON does not need it
    from rich.live import Live  # noqa: PLC0415  as above

    piped = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED
    console = Console(highlight=False, markup=False, width=piped)
    if wanted.once:
        await reading.wait()
        picture = Picture(title, wanted.sections, wanted.rows if wanted.rows is not None else 0)
        console.print(picture.draw(_scene(reading, tracker, wanted), console))
        _end(reading, wanted)
        return
    picture = Picture(title, wanted.sections, wanted.rows)
    await reading.wait(wanted.interval)
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as shown:
        while True:
            shown.update(picture.draw(_scene(reading, tracker, wanted), console), refresh=True)
            await (asyncio.sleep(wanted.interval) if reading.complete else reading.wait(wanted.interval))


def _scene(reading: Reading, tracker: Tracker, wanted: Wanted) -> Scene:
    if reading.refused():
        raise failing.CommandError("; ".join(reading.missing()))
    wrong = [section for section in reading.wrong() if section in wanted.sections]
    refused = tuple(f"{section} are not shown: without what you may not list they would be wrong" for section in wrong)
    seen = tracker.look(time.time_ns() // 1000, (*refused, *reading.missing()))
    if wrong:
        rows: dict[str, Any] = dict.fromkeys(wrong, ())
        seen = msgspec.structs.replace(seen, **rows)
    if wanted.queue:
        seen = msgspec.structs.replace(seen, jobs=tuple(job for job in seen.jobs if job.queue == wanted.queue))
    return scenes.ordered(seen, wanted.order)


def _end(reading: Reading, wanted: Wanted) -> None:
    """End with another status where a table that was asked for is refused."""
    if set(reading.wrong()) & set(wanted.sections):
        raise click.exceptions.Exit(rights.STATUS)


def document(seen: Scene) -> dict[str, Any]:
    """Give a scene as JSON has it, amounts written as Kubernetes writes them."""
    plain: dict[str, Any] = msgspec.to_builtins(seen)
    plain["total"] = _written(plain["total"])
    for row in (*plain["queues"], *plain["jobs"], *plain["nodes"]):
        for field in ("allocated", "deserved", "capability", "guarantee", "held", "asked", "allocatable", "used"):
            if field in row:
                row[field] = _written(row[field])
    return plain


def _written(amounts: dict[str, int]) -> dict[str, str]:
    return {name: resources.shown(name, units) for name, units in amounts.items()}
