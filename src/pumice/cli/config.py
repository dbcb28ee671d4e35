"""`pumice config`: look at scheduler configurations before a scheduler does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli import completing, plugins_dir

if TYPE_CHECKING:
    from pumice.framework.configuration import Catalog, Configuration, Problem

_CHECK_EXAMPLES = """\b
Examples:
  pumice config check scheduler.yaml
  pumice config check scheduler.yaml --plugins-dir ./plugins
  kubectl get configmap volcano-scheduler-configmap -n volcano-system \\
    -o jsonpath='{.data.volcano-scheduler\\.conf}' | pumice config check -

\b
Exit status: 0 all files are valid, 1 one is not.
"""

_SHOW_EXAMPLES = """\b
Examples:
  pumice config show                   the built-in default
  pumice config show scheduler.yaml    what a file comes to, every argument with its value
"""


@click.group()
def command() -> None:
    """Check and show scheduler configurations."""


@command.command(epilog=_CHECK_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=completing.files)
@plugins_dir.option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], folder: str) -> None:
    """Check scheduler configuration files; - reads the standard input."""
    known = plugins_dir.load(folder).catalog()
    refused = [file for file in files if not _check(file, known)]
    context.exit(1 if refused else 0)


@command.command(epilog=_SHOW_EXAMPLES)
@click.argument("file", metavar="[FILE]", required=False, shell_complete=completing.files)
@plugins_dir.option
@click.pass_context
def show(context: click.Context, file: str | None, folder: str) -> None:
    """Show the effective configuration: the built-in default, or what a file comes to."""
    from pumice.cli import configuration_text  # noqa: PLC0415  imports yaml, which help does not need

    known = plugins_dir.load(folder).catalog()
    loaded = _load(file, known)
    if isinstance(loaded, list):
        _tell(file or "-", "error", loaded)
        context.exit(1)
    _tell(file or "-", "warning", list(loaded.warnings))
    click.echo(configuration_text.render(loaded, known), nl=False)


def _check(file: str, known: Catalog) -> bool:
    loaded = _load(file, known)
    if isinstance(loaded, list):
        _tell(file, "error", loaded)
        click.echo(f"{file}: not valid, {_number(len(loaded), 'problem')}")
        return False
    _tell(file, "warning", list(loaded.warnings))
    numbers = [_number(len(loaded.actions), "action"), _number(len(loaded.plugins), "plugin")]
    numbers += [_number(len(loaded.warnings), "warning")] if loaded.warnings else []
    click.echo(f"{file}: valid, {', '.join(numbers)}")
    return True


def _load(file: str | None, known: Catalog) -> Configuration | list[Problem]:
    from pumice.framework import configuration  # noqa: PLC0415  imports yaml, which help does not need

    if file is None:
        return configuration.default(known)
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return configuration.load(text, known, file)
    except OSError as error:
        return [configuration.Problem(0, "", f"the file cannot be read: {error.strerror}")]
    except UnicodeDecodeError as error:
        return [configuration.Problem(0, "", f"the file is not UTF-8 text: {error.reason} at byte {error.start}")]
    except configuration.ConfigurationError as error:
        return list(error.problems)


def _tell(file: str, severity: str, problems: list[Problem]) -> None:
    for problem in problems:
        place = f"{file}:{problem.line}" if problem.line else file
        click.echo(f"{place}: {severity}: {problem.key + ': ' if problem.key else ''}{problem.message}", err=True)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
