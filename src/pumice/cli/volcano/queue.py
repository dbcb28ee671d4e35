"""`pumice queue`: create, delete, get, list and operate queues."""

from __future__ import annotations

from typing import Any

import click

from pumice.cli import completing
from pumice.cli.volcano import options

_EXAMPLES = """\b
Examples:
  pumice queue list                          weights, states, and groups by phase
  pumice queue create -n research -w 4
  pumice queue operate -n research -a close  let nothing new in
  pumice queue operate -n research -a update -w 8
  pumice explain queue research              share, due, ceiling, who holds what
"""


@click.group(cls=options.VerbGroup, epilog=_EXAMPLES)
def command() -> None:
    """Create, delete, get, list and operate queues."""


@command.command(
    "create",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice queue create -n research -w 4\n  pumice queue create -n later -S Closed",
)
@options.name("queue [default: test]", "-n")
@click.option(
    "-w",
    "--weight",
    type=click.IntRange(1, 65535),
    default=1,
    show_default=True,
    metavar="N",
    help="Its weight among its siblings.",
)
@click.option(
    "-S",
    "--state",
    type=click.Choice(["Open", "Closed"]),
    default="Open",
    show_default=True,
    help="Whether it takes jobs.",
)
@options.cluster
def create(**given: Any) -> None:
    """Create a queue."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  imports the client of the cluster, which help does not need

    name = options.chosen_name(given, "queue", "-n", required=False) or "test"
    queue_verbs.create(options.place(given), name, given["weight"], given["state"])


@command.command(
    "delete",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice queue operate -n research -a close\n  pumice queue delete -n research",
)
@options.name("queue", "-n", completing.queues)
@options.cluster
def delete(**given: Any) -> None:
    """Delete a queue; it has to be closed."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  as above

    queue_verbs.delete(options.place(given), options.chosen_name(given, "queue", "-n"))


@command.command(
    "get",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice queue get -n research\n  pumice queue get research -o yaml",
)
@options.name("queue", "-n", completing.queues)
@options.output
@options.cluster
def get(**given: Any) -> None:
    """Show one queue."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  as above

    queue_verbs.show(options.place(given), options.chosen_name(given, "queue", "-n"), given["output"] or "")


@command.command(
    "list",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice queue list\n  pumice queue list -o wide --watch\n\n\b\nExit status: 0 listed, 1 it cannot be read, 3 you may not list podgroups: counts are unknown (?).",
)
@options.output
@options.watch
@options.cluster
def list_queues(**given: Any) -> None:
    """List queues with how many groups are in which phase."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  as above

    queue_verbs.show_list(options.place(given), given["output"] or "", watch=given["watch"])


_OPERATE = """\b
Examples:
  pumice queue operate -n research -a close       running jobs go on, nothing new is let in
  pumice queue operate -n research -a open
  pumice queue operate -n research -a update -w 8
"""


@command.command("operate", cls=options.VerbCommand, epilog=_OPERATE)
@options.name("queue", "-n", completing.queues)
@click.option(
    "-a",
    "--action",
    default="",
    metavar="open|close|update",
    shell_complete=completing.words("open", "close", "update"),
    help="What to do with it.",
)
@click.option(
    "-w", "--weight", type=click.IntRange(0, 65535), default=0, metavar="N", help="With update: its new weight."
)
@options.cluster
def operate(**given: Any) -> None:
    """Open or close a queue, or change its weight."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  as above

    name = options.chosen_name(given, "queue", "-n")
    queue_verbs.operate(lambda: options.place(given), name, given["action"], given["weight"])
