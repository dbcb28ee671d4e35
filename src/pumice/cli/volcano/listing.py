"""Lists: read, chosen from, printed in one of the forms, and followed where that is asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from pumice.cli.volcano import calls, columns, printing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.api.kinds import Kind
    from pumice.cli.volcano.columns import Column

Manifest = dict[str, Any]

EMPTY: Final = "No resources found"


def _first(found: Sequence[list[Manifest]]) -> list[Manifest]:
    return found[0]


class Read(NamedTuple):
    """A kind that a list is made from, and which of its objects: `wanted` judges by their metadata what nobody can select by."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    wanted: calls.Wanted | None = None


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


def show_one(listing: Listing, found: Sequence[list[Manifest]], form: str) -> None:
    """Print the one object that was asked for by name."""
    (item,) = listing.chosen(found)
    if form in ("json", "yaml"):
        click.echo(printing.document(item, form))
    elif form == "name":
        click.echo(printing.named(listing.kind, item))
    else:
        click.echo("\n".join(columns.text(listing.table(found), [item], now())))


async def read(cluster: calls.Cluster, listing: Listing) -> list[list[Manifest]]:
    """Read what a list is made from."""
    return [
        await cluster.listed(each.kind, each.namespace, labels=each.labels, wanted=each.wanted)
        for each in listing.reads
    ]


def now() -> int:
    """Give the time in microseconds."""
    return time.time_ns() // 1000
