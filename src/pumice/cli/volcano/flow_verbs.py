"""What is done about flows and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pumice.api import kinds
from pumice.cli.volcano import calls, columns, failing, files, flow_rows, listing, lists, printing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

Manifest = dict[str, Any]
SEPARATOR: Final = "---------------------------------"


class Flows:
    """The verbs of one kind."""

    def __init__(self, kind: kinds.Kind, table: Sequence[columns.Column], wide: Sequence[columns.Column]) -> None:
        self._kind = kind
        self._table = table
        self._wide = wide

    def create(self, place: calls.Place, file: str) -> None:
        """Create everything in a file; one that fails does not keep the others from being tried."""
        objects = self._read(file, "")

        async def one(cluster: calls.Cluster, item: Manifest) -> None:
            await cluster.create(self._kind, item)
            click.echo(f"Created {self._kind.name}: {_title(item)}")

        calls.run(place, lambda cluster: _each(cluster, objects, f"create {self._kind.name}", one))

    def delete(self, place: calls.Place, namespace: str, name: str, file: str) -> None:
        """Delete one by name, or everything in a file."""
        objects = self._read(file, "") if file else [{"metadata": {"namespace": namespace, "name": name}}]

        async def one(cluster: calls.Cluster, item: Manifest) -> None:
            await cluster.delete(self._kind, columns.namespace(item), columns.name(item))
            click.echo(f"Deleted {self._kind.name}: {_title(item)}")

        calls.run(place, lambda cluster: _each(cluster, objects, f"delete {self._kind.name}", one))

    def show_list(self, place: calls.Place, namespace: str, form: str, *, watch: bool) -> None:
        """List them."""
        listing.show(place, self._listing(namespace, form), form, watch=watch)

    def show(self, place: calls.Place, namespace: str, name: str, form: str) -> None:
        """Show one."""
        found = calls.run(place, lambda cluster: cluster.get(self._kind, namespace, name))
        listing.show_one(self._listing(namespace, form), [[found]], form)

    def describe(self, place: calls.Place, namespace: str, name: str, form: str) -> None:
        """Print one in full, or all of a namespace."""

        async def read(cluster: calls.Cluster) -> list[Manifest]:
            if name:
                return [await cluster.get(self._kind, namespace, name)]
            return await cluster.listed(self._kind, namespace)

        found = calls.run(place, read)
        if not found:
            click.echo(listing.EMPTY)
        for index, item in enumerate(found):
            if index:
                click.echo(SEPARATOR)
            click.echo(printing.document(item, form))

    def _listing(self, namespace: str, form: str) -> lists.Listing:
        table = (*self._table, *self._wide) if form == "wide" else self._table
        return lists.Listing((lists.Read(self._kind, namespace),), lambda _: table)

    def _read(self, file: str, namespace: str) -> list[Manifest]:
        if not file:
            raise failing.CommandError("the file is missing; give -f FILE")
        try:
            return files.read(file, self._kind, namespace)
        except files.BadFileError as error:
            raise failing.CommandError(str(error)) from None


async def _each(
    cluster: calls.Cluster,
    objects: Sequence[Manifest],
    what: str,
    one: Callable[[calls.Cluster, Manifest], Awaitable[None]],
) -> None:
    """Do something with every object, and say in the end which of them failed."""
    failed = []
    for item in objects:
        try:
            await one(cluster, item)
        except failing.CommandError as error:
            failed.append(f"{what} {_title(item)}: {error.message}" if len(objects) > 1 else error.message)
    if failed:
        raise failing.CommandError("\n".join(failed))


def _title(item: Manifest) -> str:
    return f"{columns.namespace(item)}/{columns.name(item)}"


KINDS: Final = {
    "jobflow": Flows(kinds.JOB_FLOW, flow_rows.FLOWS, flow_rows.WIDE_FLOWS),
    "jobtemplate": Flows(kinds.JOB_TEMPLATE, flow_rows.TEMPLATES, flow_rows.WIDE_TEMPLATES),
}
