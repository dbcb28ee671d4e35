"""What is done about jobs, whatever the name of the program that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pumice.api import kinds
from pumice.cli.volcano import (
    calls,
    columns,
    failing,
    files,
    gang_rows,
    job_rows,
    job_text,
    listing,
    lists,
    making,
    printing,
    start_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.cli.volcano.columns import Column

Manifest = dict[str, Any]


def run(place: calls.Place, given: dict[str, Any]) -> None:
    """Create the job that the flags describe, or those of a file."""
    try:
        jobs = _wanted(given)
    except (making.BadFlagError, files.BadFileError) as error:
        raise failing.CommandError(str(error)) from None

    async def create(cluster: calls.Cluster) -> None:
        for job in jobs:
            stored = await cluster.create(kinds.JOB, job)
            click.echo(f"run job {columns.name(stored)} successfully")

    calls.run(place, create)


def _wanted(given: dict[str, Any]) -> list[Manifest]:
    if given["file"]:
        return files.read(given["file"], kinds.JOB, given["namespace"] or "")
    wanted = making.Wanted(
        name=given["name"],
        namespace=given["namespace"] or "default",
        image=given["image"],
        minimum=given["minimum"],
        replicas=given["replicas"],
        requests=given["requests"],
        limits=given["limits"],
        scheduler=given["scheduler"],
        queue=given["queue"],
        command=given["command_line"],
    )
    return [making.job(wanted)]


def show_list(place: calls.Place, given: dict[str, Any]) -> None:
    """List jobs."""
    everywhere = given["all_namespaces"]

    def chosen(found: Sequence[list[Manifest]]) -> list[Manifest]:
        return list(
            job_rows.chosen(found[0], queue_name=given["queue"], scheduler=given["scheduler"], part=given["selector"])
        )

    wanted = lists.Listing(
        reads=(lists.Read(kinds.JOB, "" if everywhere else given["namespace"]),),
        table=Table(chosen, everywhere=everywhere, wide=given["output"] == "wide", follows=given["watch"]),
        chosen=chosen,
    )
    listing.show(place, wanted, given["output"] or "", watch=given["watch"])


def show_starts(place: calls.Place, given: dict[str, Any]) -> None:
    """List groups that wait, the next to start first."""
    everywhere = given["all_namespaces"]

    def chosen(found: Sequence[list[Manifest]]) -> list[Manifest]:
        return start_rows.chosen(found[0], queue_name=given["queue"], part=given["selector"])

    def table(_: Sequence[list[Manifest]]) -> tuple[Column, ...]:
        return (start_rows.NAMESPACE, *start_rows.COLUMNS) if everywhere else start_rows.COLUMNS

    wanted = lists.Listing((lists.Read(kinds.POD_GROUP, "" if everywhere else given["namespace"]),), table, chosen)
    listing.show(place, wanted, given["output"] or "", watch=given["watch"])


def show_gangs(place: calls.Place, given: dict[str, Any]) -> None:
    """List Kubernetes' own gangs, with how many of their pods stand how."""
    everywhere = given["all_namespaces"]
    namespace = "" if everywhere else given["namespace"]

    def chosen(found: Sequence[list[Manifest]]) -> list[Manifest]:
        return gang_rows.chosen(found[0], queue_name=given["queue"], part=given["selector"])

    def table(found: Sequence[list[Manifest]]) -> tuple[Column, ...]:
        return gang_rows.table(found[1], everywhere=everywhere)

    reads = (lists.Read(kinds.NATIVE_POD_GROUP, namespace), lists.Read(kinds.POD, namespace))
    listing.show(place, lists.Listing(reads, table, chosen), given["output"] or "", watch=given["watch"])


class Table:
    """The columns of a list of jobs, which stay from the first row on."""

    def __init__(
        self,
        chosen: Callable[[Sequence[list[Manifest]]], list[Manifest]],
        *,
        everywhere: bool,
        wide: bool,
        follows: bool,
    ) -> None:
        self._chosen, self._everywhere, self._follows = chosen, everywhere, follows
        namespace = (job_rows.NAMESPACE,) if everywhere else ()
        self._table: Sequence[Column] = (*namespace, *job_rows.COLUMNS, *job_rows.WIDE) if wide else ()

    def __call__(self, found: Sequence[list[Manifest]]) -> Sequence[Column]:
        """Choose columns for what was found first, and stay with them."""
        if self._table:
            return self._table
        jobs = self._chosen(found)
        table = job_rows.table(jobs, everywhere=self._everywhere, terminal=listing.terminal(), follows=self._follows)
        if jobs:
            self._table = table
        return table


def view(place: calls.Place, namespace: str, name: str, form: str | None) -> None:
    """Show one job."""

    async def look(cluster: calls.Cluster) -> tuple[Manifest, list[Manifest]]:
        job = await cluster.get(kinds.JOB, namespace, name)
        return job, [] if form else await _events(cluster, namespace, name)

    job, events = calls.run(place, look)
    if form == "name":
        click.echo(printing.named(kinds.JOB, job))
    elif form:
        click.echo(printing.document(job, form))
    else:
        click.echo("\n".join(job_text.text(job, events, lists.now())))


async def _events(cluster: calls.Cluster, namespace: str, name: str) -> list[Manifest]:
    """Read the events of a job; where they may not be read the job is shown without."""
    try:
        found = await cluster.listed(kinds.EVENT, namespace, fields=f"involvedObject.name={name}")
    except failing.CommandError as error:
        click.echo(f"events are left out: {error.message}", err=True)
        return []
    return [event for event in found if columns.name(event).startswith(f"{name}.")]


def order(place: calls.Place, namespace: str, name: str, action: str) -> None:
    """Make the Command that asks the controller for an action."""

    async def make(cluster: calls.Cluster) -> Manifest:
        job = await cluster.get(kinds.JOB, namespace, name)
        return await cluster.create(kinds.COMMAND, making.command(kinds.JOB, job, action))

    made = calls.run(place, make)
    click.echo(f"command {columns.name(made)} asks for {action} of job {namespace}/{name}", err=True)


def delete(place: calls.Place, namespace: str, name: str, verb: str) -> None:
    """Delete a job."""
    calls.run(place, lambda cluster: cluster.delete(kinds.JOB, namespace, name))
    click.echo(f"{verb} job {name} successfully")
