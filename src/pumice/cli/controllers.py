"""`pumice controllers`: run the controllers of Volcano's kinds on a real cluster."""

from __future__ import annotations

import sys

import click

import pumice
from pumice.cli import go_flags
from pumice.server.flags import controller_flags

_EXAMPLES = """\b
Examples:
  pumice controllers --kubeconfig ~/.kube/config --leader-elect=false -v 3
  pumice controllers --enable-healthz --enable-metrics
  pumice controllers --controllers '*,-gc-controller'    all but one
  pumice controllers --controllers +job-controller       one alone
  pumice scheduler --controllers                         in the scheduler's own process

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, or lost the lease or the connection, 2 wrong flags.
"""


def _run() -> None:
    """Run the controllers of Jobs, Queues, CronJobs, JobFlows and HyperNodes, in place of Volcano's controller manager."""
    context = click.get_current_context()
    given = go_flags.given(context, controller_flags.FLAGS)
    if given.get("version"):
        click.echo(f"pumice {pumice.__version__}\nPython {sys.version.split()[0]}")
        return
    from pumice.server.controlling import process  # noqa: PLC0415  imports aiohttp, which help does not need
    from pumice.server.flags import controller_settings, process_settings  # noqa: PLC0415

    try:
        read = controller_settings.read(given)
    except process_settings.SettingsError as error:
        raise click.UsageError(str(error), context) from None
    context.exit(process.run(read))


command = go_flags.GoCommand(
    "controllers",
    controller_flags.FLAGS,
    callback=lambda **_: _run(),
    help=_run.__doc__,
    epilog=_EXAMPLES,
    options_metavar="[FLAGS]",
)
