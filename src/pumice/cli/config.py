"""`pumice config`: look at scheduler configurations before a scheduler does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pumice import plain_files
from pumice.cli import cluster_options, completing, plugins_dir

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

_DIFF_EXAMPLES = """\b
Examples:
  pumice config diff deployed.yaml proposed.yaml --on monday.json friday.json
  pumice config diff deployed.yaml proposed.yaml --on dumps/*.json --cycles 20 -o json

\b
A dump is what the scheduler writes on SIGUSR1, or what kubectl get -o json prints. Each is
simulated with both configurations.
Exit status: 0 the same decisions, 1 they differ, 2 something cannot be read or is refused.
"""


@click.group()
def command() -> None:
    """Check, show and compare scheduler configurations."""


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
    from pumice.study import configuration_text  # noqa: PLC0415  imports yaml, which help does not need

    known = plugins_dir.load(folder).catalog()
    loaded = _load(file, known)
    if isinstance(loaded, list):
        _tell(file or "-", "error", loaded)
        context.exit(1)
    _tell(file or "-", "warning", list(loaded.warnings))
    click.echo(configuration_text.render(loaded, known), nl=False)


@command.command(epilog=_DIFF_EXAMPLES)
@click.argument("old", metavar="OLD", shell_complete=completing.files)
@click.argument("new", metavar="NEW", shell_complete=completing.files)
@click.argument("more", metavar="[DUMP...]", nargs=-1, shell_complete=completing.files)
@click.option(
    "--on", "dumps", metavar="DUMP...", multiple=True, shell_complete=completing.files, help="Dumps to try on."
)
@cluster_options.cycles
@cluster_options.output
@plugins_dir.option
@click.pass_context
def diff(  # noqa: PLR0917  one parameter per option
    context: click.Context,
    old: str,
    new: str,
    more: tuple[str, ...],
    dumps: tuple[str, ...],
    cycles: int | None,
    output: str,
    folder: str,
) -> None:
    """Show where two configurations decide differently on the same clusters."""
    from pumice.study import comparison_text, configuring, files  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.study.comparing import compare  # noqa: PLC0415  as above
    from pumice.study.state import StudyError  # noqa: PLC0415  as above

    if not (dumps or more):
        raise click.UsageError("name at least one dump: --on dump.json")
    known = plugins_dir.load(folder)
    found = []
    try:
        loaded = [(configuring.load_file(each, known), each) for each in (old, new)]
        for dump in (*dumps, *more):
            state = files.read(dump, known)
            flags = configuring.choose(state, known).options
            before, after = (configuring.Policy(policy, name, flags) for policy, name in loaded)
            found.append(compare(state, before, after, known, cycles=cycles))
            if output == "text":
                click.echo(
                    "\n".join([f"{dump}:", *(f"  {line}".rstrip() for line in comparison_text.lines(found[-1]))])
                )
    except StudyError as error:
        click.echo(f"Error: {error}", err=True)
        context.exit(2)
    if output != "text":
        click.echo(cluster_options.printed(found, output))
    context.exit(1 if any(each.differs for each in found) else 0)


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
        text = sys.stdin.read(plain_files.LARGEST_TEXT + 1) if file == "-" else plain_files.text(file)
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
