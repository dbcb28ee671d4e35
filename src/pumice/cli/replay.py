"""`pumice replay`: run a recording of the scheduler again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pumice.cli import completing, plugins_dir, recordings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Effect
    from pumice.framework.registry import Registry
    from pumice.recording.other_policy import OtherPolicy
    from pumice.recording.player import Played, Player

_EXAMPLES = """\b
Examples:
  pumice replay /var/lib/pumice/recording          does this version decide the same?
  pumice replay recording-1767225600-3f2a91bc-000004.jsonl.gz
  pumice replay DIR --cycle 1204                   one cycle: what came in, what was decided, why
  pumice replay DIR --until evicted=team-a/train-0
  pumice replay DIR --config new-policy.yaml       where another policy decides differently

\b
Conditions of --until, with globs in names:
  bound=NS/POD  evicted=NS/POD  nominated=NS/POD   it was decided in this cycle
  pending=NS/GROUP                                 the group has pods that wait after this cycle
  said=TEXT                                        the trace of the cycle holds the text
  time=2026-01-01T00:00:00Z  time=+30s  cycle=N    that late, or later

\b
Exit status: 0 the same decisions (with --until: the condition was met), 1 a decision differs, or
the condition was never met, 2 the recording cannot be read.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("recording", metavar="DIR|FILE", shell_complete=completing.files)
@click.option("--cycle", type=click.IntRange(min=1), metavar="N", help="Show cycle N, and stop there.")
@click.option(
    "--until",
    metavar="CONDITION",
    default="",
    help="Stop at the first cycle with which a condition holds, and show it.",
)
@click.option(
    "--config",
    "config",
    metavar="FILE[#KEY]",
    default="",
    shell_complete=completing.files,
    help="Decide every cycle under another configuration too, on the recorded state, and show where the two part.",
)
@plugins_dir.option
@click.pass_context
def command(context: click.Context, *, recording: str, cycle: int | None, until: str, config: str, folder: str) -> None:
    """Run a recording again, on this machine alone, and tell whether the same is decided, bit for bit.

    A recording is a folder that `pumice scheduler --record` wrote, or one of its files: each can be replayed by itself.
    """
    if sum(map(bool, (cycle, until, config))) > 1:
        raise click.UsageError("give one of --cycle, --until and --config")
    from pumice.recording import conditions  # noqa: PLC0415  imports numpy, which help does not need

    known = plugins_dir.load(folder)
    try:
        holds = conditions.parse(f"cycle={cycle}" if cycle else until) if cycle or until else None
    except conditions.ConditionError as error:
        raise click.UsageError(str(error)) from error
    other = _other(config, known) if config else None
    player = recordings.player(recording, known)
    with recordings.reading(player):
        context.exit(_Run(player, holds, other).run(f"--cycle {cycle}" if cycle else f"--until {until}"))


def _other(given: str, known: Registry) -> OtherPolicy:
    from pumice.framework import configuration  # noqa: PLC0415  as above
    from pumice.recording.other_policy import OtherPolicy  # noqa: PLC0415  as above
    from pumice.scenario import policies  # noqa: PLC0415  as above

    file, _, key = given.partition("#")
    try:
        return OtherPolicy(configuration.load(policies.load(file, key).text, known.catalog(), file))
    except policies.PolicyError as error:
        raise recordings.UnreadableError(f"--config {error}") from error
    except configuration.ConfigurationError as error:
        raise recordings.UnreadableError(f"--config {error}") from error


class _Run:
    """One replay, from its first step to the one where it ends."""

    def __init__(
        self, player: Player, holds: Callable[[Player, Played], bool] | None, other: OtherPolicy | None
    ) -> None:
        self._player = player
        self._holds = holds
        self._other = other
        self._counts = {"bind": 0, "evict": 0, "": 0}
        self._cycles = self._decided = 0
        self._span = 0
        self._last: tuple[str, int] | None = None

    def run(self, asked: str) -> int:
        """Play, tell, and return the exit status."""
        from pumice.recording import telling  # noqa: PLC0415  as above

        started = time.monotonic()
        for step, segment in self._player.steps():
            others = None
            if self._other is not None and step.cycle and not step.skipped:
                others = self._other.decide(self._player, step)
            played = self._player.play(step)
            self._count(played)
            if played.problem:
                _say([f"{segment.path}:", *telling.difference(played)])
                return 1
            if others is not None:
                self._compare(played, others)
            if self._holds is not None and step.cycle and self._holds(self._player, played):
                _say(telling.cycle(played, self._player.scheduler.cache.record.trace()))
                return 0
        self._sum_up(time.monotonic() - started)
        if self._other is not None:
            return self._tell_of_partings()
        if self._holds is not None:
            click.echo(f"{asked}: not in this recording")
            return 1
        click.echo("the same decisions, bit for bit")
        return 0

    def _compare(self, played: Played, others: list[Effect]) -> None:
        import msgspec  # noqa: PLC0415  as above

        from pumice.recording import writing  # noqa: PLC0415  as above

        if self._other is not None:
            self._other.compare(played.step, played.recorded, msgspec.json.decode(writing.sent(others)))

    def _count(self, played: Played) -> None:
        step = played.step
        self._cycles += step.cycle > 0
        self._decided += step.cycle > 0 and not step.skipped
        for effect in played.recorded:
            self._counts[effect[0] if effect[:1] in (["bind"], ["evict"]) else ""] += 1
        run = self._player.header.run if self._player.header is not None else ""
        if self._last is not None and self._last[0] == run:
            self._span += step.now - self._last[1]
        self._last = (run, step.now)

    def _sum_up(self, seconds: float) -> None:
        from pumice.api import duration  # noqa: PLC0415  as above

        for segment, header in self._player.started:
            where = "from the start of a run" if header.segment == 1 else "from the state that it begins with"
            click.echo(f"{segment.path}: pumice {header.version}, run {header.run}, segment {header.segment}, {where}")
        for segment in self._player.segments:
            if segment.cut:
                click.echo(f"{segment.path}: its end is missing: the process, or the copy, ended while it was written")
        times = f", {self._span / 1e6 / seconds:,.1f} times as fast" if seconds > 0 and self._span else ""
        click.echo(
            f"played {self._cycles:,} cycles ({self._decided:,} decided) of {duration.format_duration(self._span // 1000 * 1000)} "
            f"in {seconds:.1f}s{times}: {self._counts['bind']:,} binds, {self._counts['evict']:,} evictions, "
            f"{self._counts['']:,} other effects"
        )

    def _tell_of_partings(self) -> int:
        from pumice.recording import telling  # noqa: PLC0415  as above

        other = self._other
        assert other is not None  # noqa: S101  asked for by whoever calls
        if other.broke:
            click.echo(f"under the other policy {other.broke} cycles broke down")
        if not other.partings:
            click.echo("both policies decide the same in every cycle")
            return 1 if other.broke else 0
        _say(telling.partings(other.partings.values()))
        click.echo(f"the policies part in {other.cycles:,} of {self._decided:,} decided cycles")
        return 1


def _say(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)
