"""An explanation as text for a terminal: what the cycle says, what is written on the objects, what would start it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.framework import explaining

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.study.explanation import Answer
    from pumice.study.search import Search, Trial, Verdict

NAMED: Final = 3
REASON: Final = 110
WRITTEN: Final = 6


def whole(answer: Answer) -> str:
    """Write an answer out, with where it comes from."""
    schedulers = ", ".join(answer.schedulers)
    foot = f"read from {answer.source} at {answer.time}; configuration: {answer.configuration}; scheduler {schedulers}"
    return "\n".join([*body(answer), "", foot])


def body(answer: Answer) -> list[str]:
    """Write what does not change by itself from one look to the next."""
    lines: list[str] = []
    if answer.explanation is not None:
        lines += explaining.text(answer.explanation)
    else:
        lines += [
            f"{answer.what} {answer.name}: you may not read what a scheduler reads, so this is what is written on it"
        ]
    if answer.explanation is None or _tells_more(answer):
        lines += ["", "Written by the scheduler:", *_written(answer)]
    if answer.search is not None:
        lines += ["", *_search(answer.search)]
    if answer.missing_rights:
        needed = "missing rights, in all namespaces" if answer.explanation is None else "left out, you may not"
        lines += ["", f"{needed}: {', '.join(answer.missing_rights)}"]
    lines += [f"note: {note}" for note in answer.notes]
    return lines


def _tells_more(answer: Answer) -> bool:
    """Tell whether a condition says what only the running scheduler knows."""
    return any(
        each.type == "Event" or each.reason == "SchedulerError" or "broke down" in each.message
        for each in answer.written
    )


def _written(answer: Answer) -> Iterator[str]:
    for each in answer.written[:WRITTEN]:
        since = f" since {each.since}" if each.since else ""
        yield f"  {each.object}: {each.type} {each.status}, {each.reason}{since}"
        if each.message:
            yield f"    {each.message}"
    if len(answer.written) > WRITTEN:
        yield f"  and {len(answer.written) - WRITTEN} more; -o json has all"
    if not answer.written:
        yield "  no conditions"


def _search(found: Search) -> Iterator[str]:
    if found.nothing_to_change:
        yield f"Nothing to change: {found.nothing_to_change}"
        return
    tried = len(found.enough) + len(found.not_enough)
    if not tried:
        yield "Nothing to try: no object here could be changed so that it starts."
        return
    yield (
        f"Smallest change that would start it: {found.smallest}"
        if found.smallest
        else "No change that was tried would start it."
    )
    width = min(70, max(len(trial.change) for trial in (*found.enough, *found.not_enough)))
    for trial in found.enough:
        yield _line("enough", trial, width)
    for trial in found.not_enough:
        yield _line("not enough", trial, width)
    if found.untried:
        yield f"  {found.untried} more were not tried: a cycle takes too long here"


def _line(head: str, trial: Trial, width: int) -> str:
    return f"  {head:<10}  {trial.change:<{width}}  {_outcome(trial.verdict)}"


def _outcome(verdict: Verdict) -> str:
    if verdict.standing == "waits":
        placed = f"{verdict.placed} would fit; " if verdict.placed else ""
        return placed + (verdict.reason if len(verdict.reason) <= REASON else f"{verdict.reason[: REASON - 1]}…")
    if verdict.standing == "is let in":
        return verdict.reason
    where = f"{_pods(verdict.placed)} on {_listed(verdict.nodes)}"
    if verdict.evicted:
        return f"{where}, once {_listed(verdict.evicted)} {'is' if len(verdict.evicted) == 1 else 'are'} evicted"
    return where


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
