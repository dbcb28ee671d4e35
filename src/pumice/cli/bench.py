"""`pumice bench`: measure deciding on workloads."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from pumice import plain_files
from pumice.cli import completing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.bench.measuring import Result
    from pumice.bench.workloads import Workload

_EXAMPLES = """\b
Examples:
  pumice bench --list                     the workloads that come with the program
  pumice bench ones-5000                  10,000 jobs of one pod in 20 shapes on 5,000 nodes
  pumice bench 1x10000 500x20             two of them, one after the other
  pumice bench my-cluster.yaml            a workload of your own
  pumice bench ones-5000 --scale 0.1      the same world, a tenth as large
  pumice bench churn-140000 -o json       everything that was measured, as JSON
  pumice bench ones-5000 --config scheduler.yaml
  pumice bench ones-5000 --scale 0.1 --plain   without shortcuts: how much are they worth?

\b
Columns:
  pods/s µs/pod     pods decided per second of processor time, and the time of each
  floor/s ratio     the same pods placed by a plain numpy scan, in the same run
  cycle p50 p99     a whole cycle, in ms of processor time
  ingest            taking the events in before it, in ms
  idle, 1 pod       a cycle in which nothing has changed, and one with a single pod
  B/pod B/node GB   bytes of a running pod and of a node; the process at its largest

\b
Exit status: 0 measured, 1 with --check if an expectation of a workload was missed, 2 a workload
or a configuration cannot be read.
"""


class _RefusedError(click.ClickException):
    """Something that cannot be run at all."""

    exit_code = 2


def _complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from pumice.bench import finding  # noqa: PLC0415  reads a folder, which help does not need

    known = [CompletionItem(name) for name in finding.names() if name.startswith(incomplete)]
    return known + completing.files(ctx, parameter, incomplete)


@click.command(epilog=_EXAMPLES)
@click.argument("workloads", metavar="[NAME|FILE]...", nargs=-1, shell_complete=_complete)
@click.option("--list", "listed", is_flag=True, help="Name the workloads that come with the program.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--scale", type=click.FloatRange(min=0, max=1, min_open=True), metavar="PART", help="Make the worlds smaller."
)
@click.option("--runs", type=click.IntRange(min=0), metavar="N", help="Timed runs; the file says how many otherwise.")
@click.option(
    "--config", "config", metavar="FILE", default="", shell_complete=completing.files, help="Use this configuration."
)
@click.option("--plain", is_flag=True, help="Take no shortcuts, to see what they are worth.")
@click.option("--check", is_flag=True, help="Fail if a workload misses what it expects.")
@click.option("-q", "--quiet", is_flag=True, help="Tell no progress.")
@click.pass_context
def command(
    context: click.Context,
    *,
    workloads: tuple[str, ...],
    listed: bool,
    output: str,
    scale: float | None,
    runs: int | None,
    config: str,
    plain: bool,
    check: bool,
    quiet: bool,
) -> None:
    """Measure how fast pods are decided on workloads: worlds as files, in memory, without a cluster."""
    if listed:
        click.echo(_catalogue())
        return
    if not workloads:
        raise click.UsageError("name at least one workload; pumice bench --list shows them")
    from pumice.bench import reporting  # noqa: PLC0415  imports numpy, which help does not need

    found = {name: _find(name, scale, config) for name in workloads}
    width = max(len(each.name) for each in found.values())
    if output == "text":
        click.echo("\n".join(reporting.heading(width)))
    results: list[Result] = []
    for name, workload in found.items():
        result = _measured(workload, runs, _teller(name, quiet=quiet), plain=plain)
        results.append(result)
        if output == "text":
            click.echo(reporting.line(result, width))
            click.echo(reporting.details(result))
    if output == "json":
        click.echo(reporting.as_json(results).decode())
    context.exit(1 if check and any(result.missed for result in results) else 0)


def _catalogue() -> str:
    from pumice.bench import finding  # noqa: PLC0415  as above

    names = finding.names()
    width = max(map(len, names))
    return "\n".join(f"{name:<{width}}  {finding.find(name).name}" for name in names)


def _find(name: str, scale: float | None, config: str) -> Workload:
    """Read a workload, and what was asked for instead of what it says."""
    from msgspec import structs  # noqa: PLC0415  as above

    from pumice.bench import finding  # noqa: PLC0415  as above

    try:
        workload = finding.find(name)
    except finding.WorkloadError as error:
        raise _RefusedError(str(error)) from None
    if scale is not None:
        workload = workload.scaled(scale)
    if config:
        workload = structs.replace(workload, configuration=_configuration(config))
    elif workload.configuration:
        _check_configuration(workload.configuration, f"{name}: configuration")
    return workload


def _configuration(file: str) -> str:
    try:
        text = plain_files.text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise _RefusedError(f"--config {file}: {error}") from None
    _check_configuration(text, f"--config {file}")
    return text


def _check_configuration(text: str, source: str) -> None:
    from pumice.framework import configuration, registry  # noqa: PLC0415  as above

    try:
        configuration.load(text, registry.catalog(), source)
    except configuration.ConfigurationError as error:
        told = "\n".join(f"  {problem}" for problem in error.problems)
        raise _RefusedError(f"{source} is refused:\n{told}") from None


def _measured(workload: Workload, runs: int | None, tell: Callable[[str], None], *, plain: bool) -> Result:
    """Measure in a process of its own: what one world leaves behind must not count for the next."""
    import multiprocessing  # noqa: PLC0415  help does not need it
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  as above

    from pumice.bench import measuring  # noqa: PLC0415  as above

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
        return alone.submit(measuring.run, workload, runs=runs, tell=tell, plain=plain).result()


class _Teller:
    """Tells on stderr what is going on, with the time since the start; it travels to the process that measures."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._started = time.time()

    def __call__(self, text: str) -> None:
        print(f"  {self._name} {time.time() - self._started:5.0f} s: {text}", file=sys.stderr, flush=True)  # noqa: T201  another process than click's


def _silent(text: str) -> None:
    del text


def _teller(name: str, *, quiet: bool) -> Callable[[str], None]:
    return _silent if quiet else _Teller(name)
