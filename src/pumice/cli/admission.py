"""`pumice admission`: judge and complete objects before a cluster stores them."""

from __future__ import annotations

import sys

import click

import pumice
from pumice.cli import go_flags
from pumice.server.admission import flags

_EXAMPLES = """\b
Examples:
  pumice admission --webhook-namespace pumice-system --webhook-service-name pumice-admission-service
  pumice admission --kubeconfig ~/.kube/config --webhook-url https://10.0.0.7:8443 --listen-address 10.0.0.7
  pumice admission --enabled-admission /pods/mutate --admission-conf resource-groups.yaml

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, 2 wrong flags.
The same rules without a cluster: pumice vet FILE.
"""


def _run() -> None:
    """Serve the admission webhooks of Volcano's kinds, in place of Volcano's webhook manager."""
    context = click.get_current_context()
    given = go_flags.given(context, flags.FLAGS)
    if given.get("version"):
        click.echo(f"pumice {pumice.__version__}\nPython {sys.version.split()[0]}")
        return
    from pumice.server.admission import process, settings  # noqa: PLC0415  imports aiohttp, which help does not need
    from pumice.server.flags.settings import SettingsError  # noqa: PLC0415

    try:
        read = settings.read(given)
    except SettingsError as error:
        raise click.UsageError(str(error), context) from None
    context.exit(process.run(read))


command = go_flags.GoCommand(
    "admission",
    flags.FLAGS,
    callback=lambda **_: _run(),
    help=_run.__doc__,
    epilog=_EXAMPLES,
    options_metavar="[FLAGS]",
)
