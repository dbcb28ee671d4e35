"""What a replay may stop at: `bound=NS/POD`, `evicted=NS/POD`, `nominated=NS/POD`, `pending=NS/GROUP`, `said=TEXT`, `time=WHEN`, `cycle=N`."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Final

from pumice.api import documents, duration, timestamp
from pumice.recording.other_policy import decisions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.recording.player import Played, Player

    Holds = Callable[[Player, Played], bool]

KNOWN: Final = ("bound", "evicted", "nominated", "pending", "said", "time", "cycle")
_SAID: Final = {"bound": "bind to ", "evicted": "evict", "nominated": "nominate to "}


class ConditionError(ValueError):
    """A condition that makes no sense; the text says why."""


def parse(text: str) -> Holds:
    """Read a condition: a function that tells after each step whether it holds."""
    word, equals, value = text.partition("=")
    if word not in KNOWN or not equals or not value:
        near = documents.nearest(word, dict.fromkeys(KNOWN))
        hint = f"; did you mean {near}=…?" if near and near != word else ""
        raise ConditionError(f"--until {text!r}: write one of {', '.join(f'{known}=…' for known in KNOWN)}{hint}")
    match word:
        case "pending":
            return lambda player, _: _waits(player, value)
        case "said":
            return lambda player, _: any(value in line for line in player.scheduler.cache.record.trace())
        case "time":
            return _at_time(value)
        case "cycle":
            if not value.isdecimal():
                raise ConditionError(f"--until cycle={value}: this is no number of a cycle")
            return lambda _, played: played.step.cycle >= int(value)
    return lambda _, played: _decided(played, value, _SAID[word])


def _decided(played: Played, pattern: str, words: str) -> bool:
    found = decisions(played.repeated)
    return any(
        text.startswith(words) and fnmatch.fnmatchcase(subject, f"pod {pattern}") for subject, text in found.items()
    )


def _waits(player: Player, pattern: str) -> bool:
    """Tell whether a group has pods that wait after the cycle."""
    jobs = player.scheduler.cache.cluster.pending_jobs
    return any(fnmatch.fnmatchcase(key, pattern) for key in jobs)


def _at_time(value: str) -> Holds:
    """Read a time: a timestamp, or `+30s` after the first step."""
    try:
        if not value.startswith("+"):
            moment = timestamp.parse(value)
            return lambda _, played: played.step.now >= moment
        span = duration.parse(value[1:])
    except ValueError as error:
        raise ConditionError(f"--until time={value}: {error}") from None
    first: list[int] = []

    def holds(_: Player, played: Played) -> bool:
        if not first:
            first.append(played.step.now)
        return played.step.now >= first[0] + span

    return holds
