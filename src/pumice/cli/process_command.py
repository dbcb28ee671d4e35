"""Commands that run until they are told to stop, with the flags of the Go program whose place they take."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pumice
from pumice.cli import go_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.server.flags.flags import Flag


def made(
    name: str, table: Sequence[Flag], run: Callable[[dict[str, Any]], int], *, meaning: str, examples: str
) -> go_flags.GoCommand:
    """Make such a command; `run` takes the flags that were given, and gives the exit status. It imports what help does not need."""

    def called(**_: object) -> None:
        context = click.get_current_context()
        given = go_flags.given(context, table)
        if given.get("version"):
            click.echo(f"pumice {pumice.__version__}\nPython {sys.version.split()[0]}")
            return
        from pumice.server.flags.process_settings import SettingsError  # noqa: PLC0415  help does not need it

        try:
            status = run(given)
        except SettingsError as error:
            raise click.UsageError(str(error), context) from None
        context.exit(status)

    return go_flags.GoCommand(name, table, callback=called, help=meaning, epilog=examples, options_metavar="[FLAGS]")
