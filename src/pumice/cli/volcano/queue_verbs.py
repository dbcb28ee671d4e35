"""What is done about queues, whatever the name of the program that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pumice.api import kinds
from pumice.cli.volcano import calls, columns, failing, listing, lists, making, queue_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Manifest = dict[str, Any]

ACTIONS: Final = {"open": making.OPEN, "close": making.CLOSE}


def create(place: calls.Place, name: str, weight: int, state: str) -> None:
    """Create a queue; its state is the controller's to write, so a closed one is closed by a Command."""

    async def make(cluster: calls.Cluster) -> None:
        queue = await cluster.create(kinds.QUEUE, making.queue(name, weight))
        if state == "Closed":
            await cluster.create(kinds.COMMAND, making.command(kinds.QUEUE, queue, making.CLOSE))

    calls.run(place, make)
    closing = ", which is being closed" if state == "Closed" else ""
    click.echo(f"queue {name} created with weight {weight}{closing}", err=True)


def delete(place: calls.Place, name: str) -> None:
    """Delete a queue."""

    async def remove(cluster: calls.Cluster) -> None:
        try:
            await cluster.delete(kinds.QUEUE, "", name)
        except failing.CommandError as error:
            if "Closed" not in error.message:
                raise
            raise failing.CommandError(
                f"{error.message}; close it first: pumice queue operate -n {name} -a close"
            ) from error

    calls.run(place, remove)
    click.echo(f"queue {name} deleted", err=True)


def show_list(place: calls.Place, form: str, *, watch: bool) -> None:
    """List queues."""
    listing.show(place, _listing(form), form, watch=watch)


def show(place: calls.Place, name: str, form: str) -> None:
    """Show one queue."""
    wanted = _listing(form)

    async def read(cluster: calls.Cluster) -> list[list[Manifest]]:
        queue = await cluster.get(kinds.QUEUE, "", name)
        counted = wanted.reads[1:]
        return [[queue], *[await listing.read_one(cluster, each) for each in counted]]

    listing.show_one(wanted, calls.run(place, read), form)


def _listing(form: str) -> lists.Listing:
    """Describe the list of queues; their groups are read only where they are counted."""
    counted = form in ("", "wide")

    def table(found: Sequence[list[Manifest]]) -> Sequence[columns.Column]:
        unknown = listing.is_unknown(found[1])
        plain = queue_rows.table(None if unknown else queue_rows.counted(found[1]))
        return (*plain, *queue_rows.WIDE) if form == "wide" else plain

    groups = (lists.Read(kinds.POD_GROUP, optional=True),) if counted else ()
    return lists.Listing(reads=(lists.Read(kinds.QUEUE), *groups), table=table)


def operate(place: Callable[[], calls.Place], name: str, action: str, weight: int) -> None:
    """Open or close a queue by a Command, or change its weight."""
    if action == "update":
        _update(place, name, weight)
        return
    if action not in ACTIONS:
        given = f"action {action!r} is not known" if action else "the action is missing"
        raise failing.CommandError(f"{given}; give -a open, -a close or -a update")

    async def make(cluster: calls.Cluster) -> Manifest:
        queue = await cluster.get(kinds.QUEUE, "", name)
        return await cluster.create(kinds.COMMAND, making.command(kinds.QUEUE, queue, ACTIONS[action]))

    made = calls.run(place(), make)
    click.echo(f"command {columns.name(made)} asks for {ACTIONS[action]} of queue {name}", err=True)


def _update(place: Callable[[], calls.Place], name: str, weight: int) -> None:
    if weight < 1:
        raise failing.CommandError(f"the new weight of queue {name} is missing; give -w N, 1 or more")
    calls.run(place(), lambda cluster: cluster.patch(kinds.QUEUE, "", name, {"spec": {"weight": weight}}))
    click.echo(f"queue {name} has weight {weight} now", err=True)
