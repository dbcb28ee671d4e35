"""`pumice demo`: a small cluster at work, to be watched.

The story and what is read of the cluster live here, and the two ways to show it: a live table and plain lines. Nothing here decides anything or
looks into the scheduler's model.
"""

from __future__ import annotations

import os
import sys

import click

LIVE_SPEED = 10.0

_EXAMPLES = """\b
Examples:
  pumice demo                 watch it live, about 15 seconds
  pumice demo --speed 3       slower, to follow every step
  pumice demo --plain         one line per change, at once: for logs and CI

\b
Ctrl-C ends it early, with the summary of what happened so far.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--speed",
    type=click.FloatRange(min=0.1, max=10_000),
    metavar="N",
    help=f"Let N simulated seconds pass per second; without it {LIVE_SPEED:g} live, and plain output does not wait.",
)
@click.option("--plain", is_flag=True, help="Print one line per change; the default if the output is no terminal.")
@click.pass_context
def command(context: click.Context, *, speed: float | None, plain: bool) -> None:
    """Watch gangs being scheduled on a simulated cluster.

    Four nodes, two queues; three gangs, an elastic job, a pod that asks for nothing, and a job that is too large. Everything runs on this
    machine, in simulated time.
    """
    from pumice.cli.demo import showing  # noqa: PLC0415  imports numpy, which help does not need

    live = not plain and _is_watched()
    stopped = showing.live(speed or LIVE_SPEED) if live else showing.plain(speed)
    context.exit(130 if stopped else 0)


def _is_watched() -> bool:
    """Tell whether the output goes to a terminal that can redraw itself and show blocks."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return sys.stdout.isatty() and encoding == "utf8" and os.environ.get("TERM") != "dumb"
