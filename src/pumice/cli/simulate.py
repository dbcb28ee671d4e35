"""`pumice simulate`: run a trace through policies, and say how good they are."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing, plugins_dir

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.registry import Registry
    from pumice.simulate.loading import Loaded
    from pumice.simulate.outcomes import Outcome
    from pumice.simulate.results import Result
    from pumice.simulate.running import Run
    from pumice.simulate.settings import PolicyFile, Settings

_EXAMPLES = """\b
Examples:
  pumice simulate jobs.jsonl --cluster nodes.yaml       last month's jobs under the default policy
  pumice simulate trace.swf --config a.yaml --config b=new.yaml    two policies side by side
  pumice simulate trace.swf --load 0.9 --shake 5        another load; mean and deviation of five
  pumice simulate pods.csv --cluster nodes.csv --stay --load 1.3   how full GPUs get
  pumice simulate jobs.csv --cluster nodes.yaml --out report       plots: report/index.html
  pumice simulate trace.swf --config easy=e.yaml --config greedy=g.yaml
      --assert 'easy.wait.mean < greedy.wait.mean'      a test for CI

\b
Exit status: 0 simulated, 1 an assertion is false, 2 a trace, a cluster, a configuration or an
assertion cannot be used, 130 interrupted (the report is partial and says so).
"""


_INTERRUPTED = 130


class _RefusedError(click.ClickException):
    """Something that cannot be simulated at all."""

    exit_code = 2


_file = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog=_EXAMPLES)
@click.argument("trace", metavar="TRACE", shell_complete=completing.files)
@click.option(
    "--cluster", metavar="FILE", default="", shell_complete=completing.files, help="Manifests or an openb node list."
)
@click.option(
    "--config",
    "configs",
    metavar="[NAME=]FILE[#KEY]",
    multiple=True,
    shell_complete=completing.files,
    help="A policy; several are compared. Without any: the default one.",
)
@click.option("--format", "format_", type=click.Choice(["swf", "openb", "jobs", "recording"]), help="Of the trace.")
@click.option(
    "--as", "form", type=click.Choice(["pod", "gang"]), default="pod", show_default=True, help="What a job of SWF is."
)
@click.option("--first", type=click.IntRange(min=1), metavar="N", default=None, help="Take the first N jobs only.")
@click.option("--load", type=click.FloatRange(min=0, min_open=True), metavar="X", help="Stretch arrivals to this load.")
@click.option("--stay", is_flag=True, help="Pods arrive one by one and never end: how much gets placed.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=42, show_default=True, metavar="N", help="Of all that is drawn."
)
@click.option("--shake", type=click.IntRange(min=2), metavar="N", help="Run N times, submits moved by up to 60 s.")
@click.option(
    "--estimates",
    type=click.Choice(["trace", "exact", "modal", "none"]),
    default="trace",
    show_default=True,
    help="What the scheduler is told about run times.",
)
@click.option(
    "--typical",
    type=click.Choice(["history", "trace"]),
    default="history",
    show_default=True,
    help="What fragmentation takes for typical: what has arrived, or the whole trace.",
)
@click.option(
    "--node-order",
    type=click.Choice(["seeded", "name"]),
    default="seeded",
    show_default=True,
    help="With --stay: which of equal nodes comes first.",
)
@click.option(
    "--period", metavar="DURATION", default="", help="Keep the scheduler's grid, such as 1s; else from event to event."
)
@click.option("--isolated", is_flag=True, help="Run every queue alone, too: finish-time fairness.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write plots and an HTML page."
)
@click.option("--json", "json_file", type=_file, metavar="FILE", help="Write everything, with a record per job.")
@click.option("--assert", "claims", metavar="CLAIM", multiple=True, help="Fail unless it holds: easy.wait.mean < 60.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Run on N processes."
)
@click.option("-q", "--quiet", is_flag=True, help="Tell no progress.")
@plugins_dir.option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Run a trace through the scheduler in virtual time, once per policy, and say how good each is.

    A trace is a file in the Standard Workload Format (.swf), a list of openb pods (.csv), jobs of our own (.jsonl, .csv) or a recording; .gz is read too.
    """
    from pumice.simulate import claims, engine, loading, running  # noqa: PLC0415  imports numpy, which help needs not
    from pumice.simulate.trace import TraceError  # noqa: PLC0415  as above

    known = plugins_dir.load(given["folder"])
    settings = _settings(given, known)
    try:
        for claim in given["claims"]:
            claims.check(claim, [policy.name for policy in settings.policies])
        loaded = loading.load(settings)
        for note in loaded.trace.notes:
            click.echo(f"note: {note}", err=True)
        registry = _registry(given["folder"])
        done = running.everything(settings, loaded, registry, processes=given["jobs"], quiet=given["quiet"])
        context.exit(_report(given, settings, loaded, done))
    except (TraceError, claims.ClaimError, engine.CircularPolicyError) as error:
        raise _RefusedError(str(error)) from error


def _report(given: dict[str, Any], settings: Settings, loaded: Loaded, done: list[tuple[Run, Result]]) -> int:
    """Print the report, write the files that were asked for, and return the status to exit with."""
    from pumice.simulate import claims, outcomes, report  # noqa: PLC0415  as above

    found = outcomes.judge(settings, loaded, done)
    if found.partial:
        click.echo("INTERRUPTED: this report is partial; what had not happened by then is not in it.")
    click.echo("\n".join(report.table(found.policies)))
    for policy in found.policies:
        broken = [f"{policy.name} broke down: {each}" for each in policy.case.result.failures]
        click.echo("".join(f"{line}\n" for line in (*report.never(policy.case), *broken)), nl=False)
    if len(found.policies) > 1:
        names = [policy.name for policy in found.policies[:2]]
        click.echo("\n" + "\n".join(report.told(found.differences(), names)))
    _write(given, found)
    verdicts = [claims.judge(claim, found.policies) for claim in given["claims"]]
    for verdict in verdicts:
        click.echo(f"assertion {verdict}", err=not verdict.holds)
    if found.partial:
        return _INTERRUPTED
    return 0 if all(verdict.holds for verdict in verdicts) else 1


def _write(given: dict[str, Any], found: Outcome) -> None:
    try:
        if given["json_file"] is not None:
            given["json_file"].write_bytes(found.as_json())
        if given["out"] is not None:
            from pumice.simulate import pages  # noqa: PLC0415  as above

            given["out"].mkdir(parents=True, exist_ok=True)
            for name, content in pages.files(found).items():
                (given["out"] / name).write_bytes(content)
            click.echo(f"\nplots: {given['out'] / 'index.html'}")
    except OSError as error:
        raise click.ClickException(f"{error.filename}: the report cannot be written: {error.strerror}") from error


def _registry(folder: str) -> Callable[[], Registry]:
    from pumice.cli import own_plugins  # noqa: PLC0415  as above

    return functools.partial(own_plugins.load, folder)


def _settings(given: dict[str, Any], known: Registry) -> Settings:
    from pumice.simulate.settings import Settings  # noqa: PLC0415  as above

    return Settings(
        trace=given["trace"],
        policies=_policies(given["configs"], known),
        cluster=given["cluster"],
        format=given["format_"],
        form=given["form"],
        first=given["first"] or 0,
        load=given["load"] or 0.0,
        stay=given["stay"],
        seed=given["seed"],
        shake=given["shake"] or 0,
        estimates=given["estimates"],
        typical=given["typical"],
        node_order=given["node_order"],
        period=_duration(given["period"]),
        isolated=given["isolated"],
    )


def _duration(text: str) -> int:
    from pumice.api import duration  # noqa: PLC0415  as above

    if not text:
        return 0
    try:
        found = duration.parse(text)
    except duration.DurationError as error:
        raise click.UsageError(f"--period: {error}") from error
    if found <= 0:
        raise click.UsageError(f"--period: {text} is not above 0; write it as 1s or 500ms")
    return found


def _policies(configs: tuple[str, ...], known: Registry) -> tuple[PolicyFile, ...]:
    """Read the configurations, each under its name or that of its file."""
    from pumice.scenario import policies  # noqa: PLC0415  as above
    from pumice.simulate.settings import PolicyFile  # noqa: PLC0415  as above

    found: dict[str, PolicyFile] = {}
    for given in configs:
        name, equals, rest = given.partition("=")
        file = (rest if equals else given).partition("#")[0]
        name = name if equals else Path(file).stem
        if name in found:
            raise click.UsageError(f"--config: two policies are called {name!r}; name them: --config other={file}")
        try:
            policy = policies.checked(rest if equals else given, known.catalog())
        except policies.PolicyError as error:
            raise _RefusedError(f"--config {error}") from error
        found[name] = PolicyFile(name=name, text=policy.text, file=file)
    return tuple(found.values()) or (PolicyFile(name="default"),)
