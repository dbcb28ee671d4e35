"""Lists: read, chosen from, printed in one of the forms, and followed where that is asked for."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final

import click

from pumice.cli.volcano import calls, columns, failing, lists, printing

if TYPE_CHECKING:
    from collections.abc import Sequence


EMPTY: Final = "No resources found"
UNKNOWN: Final[lists.Manifest] = {}
"""Stands in place of objects that may not be read."""


def show(place: calls.Place, listing: lists.Listing, form: str, *, watch: bool = False) -> None:
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
        click.echo("\n".join(columns.text(listing.table(found), items, lists.now())))
    else:
        click.echo(EMPTY)
    end(found)


def show_one(listing: lists.Listing, found: Sequence[list[lists.Manifest]], form: str) -> None:
    """Print the one object that was asked for by name."""
    (item,) = listing.chosen(found)
    if form in ("json", "yaml"):
        click.echo(printing.document(item, form))
    elif form == "name":
        click.echo(printing.named(listing.kind, item))
    else:
        click.echo("\n".join(columns.text(listing.table(found), [item], lists.now())))
    end(found)


def is_unknown(listed: list[lists.Manifest]) -> bool:
    """Tell whether objects of a kind may not be read."""
    return bool(listed) and listed[0] is UNKNOWN


def end(found: Sequence[list[lists.Manifest]]) -> None:
    """End with another status where something that was shown is unknown."""
    if any(is_unknown(listed) for listed in found):
        from pumice.study import rights  # noqa: PLC0415  who may read everything does without

        raise click.exceptions.Exit(rights.STATUS)


async def read(cluster: calls.Cluster, listing: lists.Listing) -> list[list[lists.Manifest]]:
    """lists.Read what a list is made from; nothing stands for what is optional and may not be read."""
    return [await read_one(cluster, each) for each in listing.reads]


async def read_one(cluster: calls.Cluster, each: lists.Read) -> list[lists.Manifest]:
    """lists.Read a kind that a list is made from."""
    try:
        return await cluster.listed(each.kind, each.namespace, labels=each.labels, wanted=each.wanted)
    except failing.ForbiddenError as error:
        if not each.optional:
            raise
        click.echo(f"unknown is what you may not read: {error.message}", err=True)
        return [UNKNOWN]


def terminal() -> int:
    """Give the width of the terminal that is printed to; 0 where a script reads."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
