"""`pumice plugin`: start a plugin of one's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from pumice.cli import completing, plugin_template

_NEW_EXAMPLES = """\b
Examples:
  pumice plugin new few-pods                    few-pods.py and few-pods.yaml in this folder
  pumice plugin new few-pods --folder plugins   in another one, which is made if it is missing
"""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 63


@click.group()
def command() -> None:
    """Start a plugin of your own; docs/plugins.md says what it can do."""


@command.command(epilog=_NEW_EXAMPLES)
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    shell_complete=completing.folders,
    help="Where to write; made if it is missing.  [default: this one]",
)
def new(name: str, folder: Path) -> None:
    """Write a plugin called NAME and a scenario that tests it; both are there to be changed."""
    _check(name)
    source, scenario = folder / f"{name}.py", folder / f"{name}.yaml"
    for file, text in ((source, plugin_template.source(name)), (scenario, plugin_template.scenario(name))):
        _write(file, text)
        click.echo(f"{file}: written")
    place = f"{shlex.quote(str(scenario))} --plugins-dir {shlex.quote(str(folder))}"
    click.echo(f"\nTry it:  pumice test {place}")


def _check(name: str) -> None:
    """Refuse a name that no configuration could list, or that would mean another plugin there."""
    from pumice.framework import registry  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.framework.configuration import PEER_PLUGINS  # noqa: PLC0415  as above

    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name of a plugin: lower-case letters and digits, words joined by -, at most {_LONGEST}",
            param_hint="NAME",
        )
    if name in registry.installed().plugins or name in PEER_PLUGINS:
        raise click.BadParameter(f"{name!r} is the name of another plugin; choose your own", param_hint="NAME")


def _write(file: Path, text: str) -> None:
    """Write a file that does not exist yet."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise click.ClickException(f"{file} exists already; nothing is written over it") from None
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None
