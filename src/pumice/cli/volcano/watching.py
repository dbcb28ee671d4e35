"""`--watch`: a list that is printed once, and then each row again when it changes, as kubectl does.

A watch that is cut is taken up again where it was; after some failures in a row without a word from the server the command gives up and says why.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, Final

import click

from pumice.cli.volcano import calls, columns, failing, lists, printing
from pumice.kube import errors
from pumice.kube.calls.scoped import Scoped
from pumice.kube.watches import watching
from pumice.kube.watches.following import Follower

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.cli.volcano.columns import Row
    from pumice.cli.volcano.lists import Listing, Read
    from pumice.kube.calls.client import Client

Manifest = dict[str, Any]
Key = tuple[str, str]

MOST_FAILURES: Final = 6
PAUSE: Final = 0.1
"""Seconds between two looks at what has changed, so that a storm of events costs little."""
DELETED: Final = "Deleted"
_INTERRUPTED: Final = 130


def follow(place: calls.Place, wanted: Listing, form: str) -> None:
    """Print a list and its changes until somebody presses Ctrl-C."""
    try:
        asyncio.run(run(place, wanted, form))
    except errors.KubeError as error:
        raise failing.CommandError(str(error)) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None


async def run(place: calls.Place, wanted: Listing, form: str) -> None:
    """Print a list and its changes until cancelled."""
    async with place.client() as client:
        page = Page(wanted, form)
        sources = [Source(client, each, page.changed) for each in wanted.reads]
        try:
            async with asyncio.TaskGroup() as running:
                for source in sources:
                    running.create_task(source.follower.run())
                running.create_task(_print(page, sources))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None


async def _print(page: Page, sources: Sequence[Source]) -> None:
    """Print what is new whenever something has changed, from the moment that every list is complete."""
    while True:
        await page.changed.wait()
        page.changed.clear()
        if all(source.follower.synced for source in sources):
            for line in page.news([list(source.items.values()) for source in sources], lists.now()):
                click.echo(line)
        await asyncio.sleep(PAUSE)


class Source:
    """The objects of one kind as they are now."""

    def __init__(self, client: Client, read: Read, changed: asyncio.Event) -> None:
        self.items: dict[Key, Manifest] = {}
        self._read = read
        self._changed = changed
        around = watching.Surroundings(
            Scoped(client, read.namespace),
            self,
            watching.FollowSettings(),
            rng=random.Random(),  # noqa: S311  jitter
            now=time.monotonic,
            sleep=Patience(self.state, asyncio.sleep),
        )
        spec = watching.WatchSpec(read.kind, label_selector=read.labels, keep_raw=True)
        self.follower = Follower(spec, around, changed.set)

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change."""
        key = (found.metadata.namespace, found.metadata.name)
        wanted = self._read.wanted
        if event_type == "DELETED" or (wanted is not None and not wanted(found.metadata)):
            self.items.pop(key, None)
        else:
            self.items[key] = calls.decoded(kind, raw)
        self._changed.set()

    def state(self) -> tuple[str, float | None, str]:
        """Say how the watch is doing, when it last heard something, and what went wrong."""
        follower = self.follower
        if follower.state == "absent":
            return "absent", follower.last_heard, failing.unserved(self._read.kind)
        return follower.state, follower.last_heard, follower.error


class Patience:
    """Waits between two attempts, and gives up after some in a row, or at once where waiting is of no use."""

    def __init__(
        self, state: Callable[[], tuple[str, float | None, str]], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._state = state
        self._sleep = sleep
        self._heard: float | None = None
        self._failures = 0

    async def __call__(self, seconds: float) -> None:
        """Wait, or raise."""
        state, heard, error = self._state()
        self._failures = self._failures + 1 if heard == self._heard else 1
        self._heard = heard
        if state in ("forbidden", "absent"):
            raise failing.CommandError(error)
        if self._failures > MOST_FAILURES:
            raise failing.CommandError(f"gave up after {MOST_FAILURES} attempts in a row: {error}")
        await self._sleep(seconds)


class Page:
    """Remembers what was printed, and gives what is new."""

    def __init__(self, wanted: Listing, form: str) -> None:
        self.changed = asyncio.Event()
        self._listing = wanted
        self._form = form
        self._rows: dict[Key, Row] = {}
        self._items: dict[Key, Manifest] = {}
        self._widths: tuple[int, ...] = ()

    def news(self, found: Sequence[list[Manifest]], now: int) -> list[str]:
        """Give the lines to print, in the order of the list; those that are gone come last."""
        items = {(columns.namespace(item), columns.name(item)): item for item in self._listing.chosen(found)}
        if self._form in ("json", "yaml", "name"):
            return self._documents(items)
        return self._table(items, found, now)

    def _documents(self, items: dict[Key, Manifest]) -> list[str]:
        new = [item for key, item in items.items() if self._items.get(key) != item]
        first, self._items = not self._items, items
        if self._form == "name":
            return [printing.named(self._listing.kind, item) for item in new]
        lines = [printing.document(item, self._form) for item in new]
        if self._form == "yaml":
            return [f"---\n{line}" for line in lines] if not first else ["\n---\n".join(lines)] if lines else []
        return lines

    def _table(self, items: dict[Key, Manifest], found: Sequence[list[Manifest]], now: int) -> list[str]:
        table = self._listing.table(found)
        rows = {key: columns.row(table, item, now) for key, item in items.items()}
        new = [row for key, row in rows.items() if _still(table, row) != _still(table, self._rows.get(key))]
        gone = [_gone(table, row) for key, row in self._rows.items() if key not in rows]
        self._rows = rows
        lines = []
        if new and not self._widths:
            self._widths = columns.widths(table, new)
            lines = [columns.line(columns.headings(table), self._widths)]
        return lines + [columns.line(row, self._widths) for row in (*new, *gone)]


def _still(table: Sequence[columns.Column], row: Row | None) -> list[str] | None:
    """Give the cells that do not change by themselves."""
    return None if row is None else [cell for column, cell in zip(table, row, strict=True) if not column.moves]


def _gone(table: Sequence[columns.Column], row: Row) -> Row:
    """Give the last row of an object that was deleted."""
    return tuple(DELETED if column.is_state else cell for column, cell in zip(table, row, strict=True))
