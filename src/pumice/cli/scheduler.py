"""`pumice scheduler`: schedule the pods of a real cluster."""

from __future__ import annotations

import sys

import click

import pumice
from pumice.cli import go_flags
from pumice.server.flags import flags

_EXAMPLES = """\b
Examples:
  pumice scheduler --kubeconfig ~/.kube/config --leader-elect=false -v 3
  pumice scheduler --scheduler-conf /volcano.scheduler/volcano-scheduler.conf --enable-healthz --enable-metrics
  pumice scheduler --scheduler-conf volcano-system/volcano-scheduler-configmap

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, or lost the lease or the connection, 2 wrong flags.
SIGUSR1 writes what the scheduler knows to a file that a scenario can start from; SIGUSR2 logs a summary.
"""


def _run() -> None:
    """Schedule the pods of a cluster, in place of Volcano's or kube-batch's scheduler."""
    context = click.get_current_context()
    given = go_flags.given(context, flags.FLAGS)
    if given.get("version"):
        click.echo(f"pumice {pumice.__version__}\nPython {sys.version.split()[0]}")
        return
    from pumice.server import process  # noqa: PLC0415  imports numpy and aiohttp, which help does not need
    from pumice.server.flags import settings  # noqa: PLC0415  imports numpy and aiohttp, which help does not need

    try:
        read = settings.read(given)
    except settings.SettingsError as error:
        raise click.UsageError(str(error), context) from None
    context.exit(process.run(read))


command = go_flags.GoCommand(
    "scheduler",
    flags.FLAGS,
    callback=lambda **_: _run(),
    help=_run.__doc__,
    epilog=_EXAMPLES,
    options_metavar="[FLAGS]",
)
