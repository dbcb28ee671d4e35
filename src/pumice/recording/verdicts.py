"""What was decided about one job in one cycle, in a form that can be looked for in another cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from pumice.framework.reason_keys import reason_key
from pumice.recording import other_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.framework.record import Verdict
    from pumice.recording.player import Played, Player

_EVICTING: Final = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"})
_LETTING_IN: Final = "enqueue"


class JobVerdict(msgspec.Struct, frozen=True):
    """`starts`: pods by node; `evicted`: pods; `waits`: who said why, and the key of the reason, which holds whatever the numbers are."""

    is_: Literal["starts", "evicted", "waits"]
    pods: tuple[tuple[str, str], ...] = ()
    source: str = ""
    key: str = ""
    text: str = ""

    def is_same(self, other: JobVerdict | None) -> bool:
        """Tell whether the same was decided."""
        mine = (self.is_, self.pods, self.source, self.key)
        return other is not None and mine == (other.is_, other.pods, other.source, other.key)

    def __str__(self) -> str:
        """Say it in a few words."""
        if self.is_ == "waits":
            return f"waits: {self.source}: {self.text}"
        if self.is_ == "starts":
            return f"starts: {', '.join(f'{pod} on {node}' for pod, node in self.pods)}"
        return f"is evicted: {', '.join(pod for pod, _ in self.pods)}"


def of_cycle(player: Player, played: Played, job: str) -> JobVerdict | None:
    """Return what a cycle that was played decided about a job; None if nothing."""
    cluster = player.scheduler.cache.cluster
    known = cluster.jobs.get(job)
    if known is None or played.step.skipped:
        return None
    names = {f"pod {task.key}": task.key for task in known.tasks.values()}
    found = other_policy.decisions(played.repeated)
    mine = {names[subject]: text for subject, text in found.items() if subject in names}
    waiting = player.scheduler.cache.record.verdicts(job) if job in cluster.pending_jobs else ()
    return summed_up(
        {pod: text.removeprefix("bind to ") for pod, text in mine.items() if text.startswith("bind to ")},
        [pod for pod, text in mine.items() if text == "evict"],
        waiting,
    )


def summed_up(
    bound: Mapping[str, str], evicted: Iterable[str], said: Iterable[Verdict], wanted: JobVerdict | None = None
) -> JobVerdict | None:
    """Sum up what happened to a job: an eviction counts more than a start, and that more than waiting.

    Several actions may have said why it waits: the reason that matters counts, or the one that says what is looked for.
    """
    if gone := tuple((pod, "") for pod in sorted(evicted)):
        return JobVerdict("evicted", gone)
    if bound:
        return JobVerdict("starts", tuple(sorted(bound.items())))
    waits = [
        JobVerdict("waits", (), each.source, reason_key(each.text), each.text) for each in sorted(said, key=_weight)
    ]
    same = [each for each in waits if wanted is not None and wanted.is_same(each)]
    found = same or waits
    return found[-1] if found else None


def _weight(verdict: Verdict) -> tuple[bool, int, bool]:
    """Weigh why a job waits: what kept it from a place is the reason, and why nobody could be evicted for it only says that this was no way out.

    Of those who let in and place the latest counts; in one cycle that is whoever tried to place what was let in.
    """
    return verdict.source not in _EVICTING, verdict.cycle, verdict.source != _LETTING_IN
