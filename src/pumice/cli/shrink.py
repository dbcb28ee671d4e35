"""`pumice shrink`: from a recording to a scenario file that shows one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing, plugins_dir, recordings

if TYPE_CHECKING:
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.recording.player import Player
    from pumice.recording.verdicts import JobVerdict

_EXAMPLES = """\b
Examples:
  pumice shrink DIR --job team-a/train                 the last thing that was decided about it
  pumice shrink DIR --job train --cycle 1204 -o why.yaml
  pumice test why.yaml

\b
Exit status: 0 a scenario was written, 1 nothing was decided about the job, or objects alone do
not show it, 2 the recording cannot be read.
"""


class _NothingError(click.ClickException):
    """Nothing that a scenario could be made of."""

    exit_code = 1


@click.command(epilog=_EXAMPLES)
@click.argument("recording", metavar="DIR|FILE", shell_complete=completing.files)
@click.option("--job", "job", required=True, metavar="[NS/]NAME", help="The PodGroup that the verdict is about.")
@click.option(
    "--cycle",
    type=click.IntRange(min=1),
    metavar="N",
    help="The cycle of the verdict; default: the last in which one was given.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there instead of to the standard output.",
)
@plugins_dir.option
def command(*, recording: str, job: str, cycle: int | None, output: Path | None, folder: str) -> None:
    """Reduce what a recording shows of a job to the fewest objects that bring the same verdict, as a scenario file.

    Whole jobs go first, then single objects, then fields. What is left is such that no object can be missed.
    """
    from pumice.recording import shrinking  # noqa: PLC0415  imports numpy, which help does not need

    known = plugins_dir.load(folder)
    player = recordings.player(recording, known)
    search = _Search(player, job, cycle)
    with recordings.reading(player):
        try:
            search.run()
            text = _scenario(search, recording, known)
        except shrinking.NotShownError as error:
            raise _NothingError(f"{search.job}: {error}") from error
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output}: the scenario cannot be written: {error.strerror}") from error
    click.echo(f"{output}: run it with pumice test {output}", err=True)


class _Search:
    """Finds the cycle of a verdict."""

    def __init__(self, player: Player, job: str, cycle: int | None) -> None:
        self.job = job
        self.verdict: JobVerdict | None = None
        self.place = ("", 0)  # run and cycle
        self._player = player
        self._cycle = cycle
        self._seen: dict[str, None] = {}

    def run(self) -> None:
        """Play the recording as far as needed."""
        from pumice.recording import verdicts  # noqa: PLC0415  as above

        for step, _ in self._player.steps():
            played = self._player.play(step)
            if not step.cycle or step.skipped or (self._cycle and step.cycle != self._cycle):
                continue
            for job in self._named():
                found = verdicts.of_cycle(self._player, played, job)
                if found is not None:
                    header: Any = self._player.header
                    self.verdict, self.place = found, (header.run, step.cycle)
            if self._cycle and self.verdict is not None:
                break
        self._check()

    def _named(self) -> list[str]:
        """Return the jobs that are meant; a name without a namespace may mean several."""
        jobs = self._player.scheduler.cache.cluster.jobs
        found = [self.job] if "/" in self.job else [key for key in jobs if key.partition("/")[2] == self.job]
        self._seen.update(dict.fromkeys(key for key in found if key in jobs))
        return found

    def _check(self) -> None:
        if len(self._seen) > 1:
            raise click.UsageError(f"--job {self.job}: there are {', '.join(self._seen)}; name one with its namespace")
        if not self._seen:
            raise _NothingError(f"no job {self.job} in this recording")
        self.job = next(iter(self._seen))
        if self.verdict is None:
            when = f"in cycle {self._cycle}" if self._cycle else "in this recording"
            raise _NothingError(f"nothing was decided about {self.job} {when}")


def _scenario(search: _Search, recording: str, known: Registry) -> str:
    from pumice.recording import scenario_text, shrinking  # noqa: PLC0415  as above

    verdict: Any = search.verdict
    click.echo(f"cycle {search.place[1]}: {search.job} {verdict}", err=True)
    objects, policy, header = _known_in(recording, search.place, known)
    trial = shrinking.Trial(search.job, verdict, policy, header.options, known)
    kept = shrinking.shrink(objects, trial, lambda line: click.echo(line, err=True))
    remark = f"pumice shrink: {len(kept)} of {len(objects)} objects bring what cycle {search.place[1]} of a recording decided about {search.job}"
    found = trial.found or verdict
    return scenario_text.render(
        search.job, found, kept, policy.text, header.options, cycles=trial.cycles, remark=remark
    )


def _known_in(recording: str, place: tuple[str, int], known: Registry) -> tuple[list[Any], Configuration, Any]:
    """Return what was known when a cycle decided: its inputs taken in, nothing decided yet."""
    from pumice.recording import other_policy  # noqa: PLC0415  as above
    from pumice.server import dump  # noqa: PLC0415  as above

    player = recordings.player(recording, known)
    for step, _ in player.steps():
        header: Any = player.header
        if (header.run, step.cycle) == place:
            inputs = other_policy.copy(player)
            cache: Any = inputs.cache
            inputs.prepare(step)
            cache.inputs = inputs
            cache.apply(step.now, standby=True)
            return list(dump.manifests(cache.cluster)), player.scheduler.configuration, header
        player.play(step)
    raise AssertionError(place)  # pragma: no cover  it was found before
