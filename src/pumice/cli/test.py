"""`pumice test`: run scenario files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli import completing, plugins_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.framework.registry import Registry
    from pumice.scenario.policies import Policy
    from pumice.scenario.results import Result

_EXAMPLES = """\b
Examples:
  pumice test scenarios/                  every *.yaml below the folder
  pumice test gangs.yaml -k "waits" -x    only some, and stop at the first failure
  pumice test scenarios/ --jobs 4 --junit report.xml
  pumice test policy.yaml --plugins-dir ./plugins
  pumice test policy/ --config deploy/scheduler.yaml   try another configuration on all
  pumice test policy/ --plain             is a shortcut to blame for a decision?

\b
Exit status: 0 all passed, 1 a scenario failed, 2 a file is not a valid scenario.
"""


class _RefusedError(click.ClickException):
    """A configuration with which nothing can be run: like a file that is no valid scenario."""

    exit_code = 2


@click.command(epilog=_EXAMPLES)
@click.argument("paths", metavar="PATH...", nargs=-1, shell_complete=completing.files)
@click.option("-k", "selection", metavar="TEXT", default="", help="Run only scenarios whose name contains TEXT.")
@click.option("-x", "stop", is_flag=True, help="Stop at the first failure.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a JUnit report.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a JSON report."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Run on N processes."
)
@click.option(
    "--config",
    "config",
    metavar="FILE[#KEY]",
    default="",
    shell_complete=completing.files,
    help="Run every scenario with the configuration in FILE, or in a key of the ConfigMap there, instead of its own.",
)
@click.option("--plain", is_flag=True, help="Take no shortcuts: everything is decided the long way, to the same end.")
@plugins_dir.option
@click.pass_context
def command(
    context: click.Context,
    *,
    paths: tuple[str, ...],
    selection: str,
    stop: bool,
    junit: Path | None,
    json_file: Path | None,
    jobs: int,
    config: str,
    plain: bool,
    folder: str,
) -> None:
    """Run every scenario in the given files and folders on a simulated cluster."""
    if not paths:
        raise click.UsageError("name at least one scenario file or folder, for example: pumice test scenarios/")
    from pumice.scenario import format as scenario_format  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.scenario import report, results, suite  # noqa: PLC0415  imports numpy, which help does not need

    known = plugins_dir.load(folder)
    policy = _policy(config, known) if config else None
    try:
        items = suite.collect(paths, selection, policy)
    except scenario_format.NothingFoundError as error:
        raise click.UsageError(str(error)) from error
    writer = report.Writer([suite.name_of(item) for item in items], fancy=_is_fancy())
    done: list[Result] = []
    for result in suite.run(items, jobs, known, plain=plain):
        done.append(result)
        click.echo(writer.line(result))
        if stop and result.status != "passed":
            break
    for result in done:
        if result.status != "passed":
            click.echo("\n".join(writer.details(result)))
    # A file that is not valid counts even if `-x` stopped before it: it was read, and its scenarios could never run.
    unreached = [results.invalid(item) for item in items[len(done) :] if isinstance(item, scenario_format.ScenarioFile)]
    for result in unreached:
        click.echo(f"\nstopped before {result.failures[0]}")
    click.echo(f"\n{report.summary(done, config)}")
    _write(junit, report.as_junit, done, config)
    _write(json_file, report.as_json, done, config)
    context.exit(results.exit_status([*done, *unreached]))


def _policy(given: str, known: Registry) -> Policy:
    """Read the configuration for all scenarios; one that is refused is told of once instead of by each of them."""
    from pumice.scenario import policies  # noqa: PLC0415  imports numpy, which help does not need

    try:
        return policies.checked(given, known.catalog())
    except policies.PolicyError as error:
        raise _RefusedError(f"--config {error}") from error


def _is_fancy() -> bool:
    """Tell whether somebody watches on a terminal that can show more than ASCII."""
    if not sys.stdout.isatty():
        return False
    try:
        "✓✗".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _write(
    file: Path | None, form: Callable[[Sequence[Result], str], bytes], done: Sequence[Result], config: str
) -> None:
    if file is None:
        return
    try:
        file.write_bytes(form(done, config))
    except OSError as error:
        raise click.ClickException(f"{file}: the report cannot be written: {error.strerror}") from error
