"""Lists: read, chosen from, printed in one of the forms, and followed where that is asked for."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from pumice.cli.volcano import calls, columns, failing, printing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.api.kinds import Kind
    from pumice.cli.volcano.columns import Column

Manifest = dict[str, Any]

EMPTY: Final = "No resources found"
UNKNOWN: Final[Manifest] = {}
"""Stands in place of objects that may not be read."""


def _first(found: Sequence[list[Manifest]]) -> list[Manifest]:
    return found[0]


class Read(NamedTuple):
    """A kind that a list is made from, and which of its objects: `wanted` judges by their metadata what nobody can select by."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    wanted: calls.Wanted | None = None
    optional: bool = False  # what it adds is told as unknown to whoever may not read it


class Listing(NamedTuple):
    """A list that a command shows.

    `chosen` takes the objects of every kind that is read, in that order, and gives those that are shown; `table` takes the same and gives the columns.
    """

    reads: tuple[Read, ...]
    table: Callable[[Sequence[list[Manifest]]], Sequence[Column]]
    chosen: Callable[[Sequence[list[Manifest]]], Iterable[Manifest]] = _first

    @property
    def kind(self) -> Kind:
        """The kind that is shown."""
        return self.reads[0].kind


def show(place: calls.Place, listing: Listing, form: str, *, watch: bool = False) -> None:
    """Print a list, and with `watch` each row again when it changes."""
    if watch:
        from pumice.cli.volcano import watching  # noqa: PLC0415  a plain list does without

        watching.follow(place, listing, form)
        return
    found = calls.run(place, lambda cluster: read(cluster, listing))
    items = list(listing.chosen(found))
    if form in ("json", "yaml"):
        click.echo(printing.document(items, form))
    elif form == "name":
        for item in items:
            click.echo(printing.named(listing.kind, item))
    elif items:
        click.echo("\n".join(columns.text(listing.table(found), items, now())))
    else:
        click.echo(EMPTY)
    end(found)


def show_one(listing: Listing, found: Sequence[list[Manifest]], form: str) -> None:
    """Print the one object that was asked for by name."""
    (item,) = listing.chosen(found)
    if form in ("json", "yaml"):
        click.echo(printing.document(item, form))
    elif form == "name":
        click.echo(printing.named(listing.kind, item))
    else:
        click.echo("\n".join(columns.text(listing.table(found), [item], now())))
    end(found)


def is_unknown(listed: list[Manifest]) -> bool:
    """Tell whether objects of a kind may not be read."""
    return bool(listed) and listed[0] is UNKNOWN


def end(found: Sequence[list[Manifest]]) -> None:
    """End with another status where something that was shown is unknown."""
    if any(is_unknown(listed) for listed in found):
        from pumice.study import rights  # noqa: PLC0415  who may read everything does without

        raise click.exceptions.Exit(rights.STATUS)


async def read(cluster: calls.Cluster, listing: Listing) -> list[list[Manifest]]:
    """Read what a list is made from; nothing stands for what is optional and may not be read."""
    return [await read_one(cluster, each) for each in listing.reads]


async def read_one(cluster: calls.Cluster, each: Read) -> list[Manifest]:
    """Read a kind that a list is made from."""
    try:
        return await cluster.listed(each.kind, each.namespace, labels=each.labels, wanted=each.wanted)
    except failing.ForbiddenError as error:
        if not each.optional:
            raise
        click.echo(f"unknown is what you may not read: {error.message}", err=True)
        return [UNKNOWN]


def now() -> int:
    """Give the time in microseconds."""
    return time.time_ns() // 1000


def terminal() -> int:
    """Give the width of the terminal that is printed to; 0 where a script reads."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
