"""`pumice top`: queues, jobs and nodes of a real cluster, live.

What is followed (`tracking`) and what is drawn (`picture`, from `cli.drawing`) are pure; `reading` lists and watches with the user's own rights, `showing`
owns the terminal. Nothing is written to the cluster.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from pumice.cli import completing
from pumice.cli.volcano import options

SECTIONS: Final = ("queues", "jobs", "nodes")

_EXAMPLES = """\b
Examples:
  pumice top                             live, drawn anew every two seconds; Ctrl-C ends it
  pumice top --show jobs -q research     one table, and one queue's jobs
  pumice top --sort use --interval 10
  pumice top --once | less               everything, once
  pumice top --once -o json | jq '.jobs[] | select(.since != null)'

\b
HELD/DUE/MOST are what a queue's pods ask for, its deserved and its capability; the bar is drawn
against the capability, else against the cluster, with a mark at what is deserved. READY/MIN are
the pods of a job that have a node, and how many it needs. What you may not list is left out, and
a line names it with the rule to add; a table that would be wrong without it is not shown. Colours
are left out with NO_COLOR, or where the output is no terminal.
Exit status: 0 shown, 1 the cluster cannot be read, 2 wrong usage, 3 a table is refused for want
of rights (with --once), 130 ended by Ctrl-C.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--show", "sections", multiple=True, type=click.Choice(SECTIONS), help="Only this table; may be repeated."
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(["waiting", "use", "name"]),
    default="waiting",
    show_default=True,
    help="Who waits longest, who holds most, or by name.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Only the jobs and pods of one namespace.",
)
@click.option(
    "-q", "--queue", default="", metavar="NAME", shell_complete=completing.queues, help="Only the jobs of one queue."
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two pictures.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most so many rows of each table; else as many as fit, and with --once all.",
)
@click.option("--once", is_flag=True, help="Print once and end; the default if the output is no terminal.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="JSON is one document, without --once one a line for each interval.",
)
@options.cluster
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Watch queues, jobs and nodes of a real cluster: shares, who waits since when and why, how full nodes are."""
    from pumice.cli.top import showing  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.kube.errors import KubeError  # noqa: PLC0415  as above

    once = given["once"] or (given["form"] == "text" and not _is_terminal())
    wanted = showing.Wanted(
        sections=tuple(each for each in SECTIONS if not given["sections"] or each in given["sections"]),
        order=given["order"],
        interval=given["interval"],
        form=given["form"],
        namespace=given["namespace"],
        queue=given["queue"],
        rows=given["rows"],
        once=once,
    )
    try:
        showing.show(options.place(given), wanted)
    except KubeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        context.exit(130)


def _is_terminal() -> bool:
    """Tell whether the output goes to a terminal that can redraw itself."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
