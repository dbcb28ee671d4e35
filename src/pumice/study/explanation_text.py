"""An explanation as text for a terminal: in five lines the cause and what would change it; verbosely also what the cycle says and what is written on the objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.framework import explaining

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.study.explanation import Answer, Written
    from pumice.study.search import Search, Trial, Verdict

NAMED: Final = 3
REASON: Final = 110
WRITTEN: Final = 6
FORECAST: Final = "  start "
BRIEF: Final = 4
"""Lines of a brief answer, the one that says where it comes from aside."""


def whole(answer: Answer, *, verbose: bool) -> str:
    """Write an answer out, with where it comes from."""
    schedulers = ", ".join(answer.schedulers)
    foot = f"read from {answer.source} at {answer.time}; configuration: {answer.configuration}; scheduler {schedulers}"
    if verbose:
        return "\n".join([*body(answer, verbose=True), "", foot])
    return "\n".join([*body(answer, verbose=False), f"{foot}; -v says more"])


def body(answer: Answer, *, verbose: bool) -> list[str]:
    """Write what does not change by itself from one look to the next."""
    return _all(answer) if verbose else _brief(answer)


def _brief(answer: Answer) -> list[str]:
    """Write the cause, what would change it, and two more lines: what else has to be known, and how it stands."""
    if answer.explanation is None:
        lines = _all(answer)  # its head, then, below a heading, what is written
        return [lines[0], *(line.strip() for line in lines[3:5] if line.strip()), *_aside(answer)]
    told, aside = explaining.text(answer.explanation), list(_aside(answer))
    if not answer.cause and answer.search is None:
        return [*told[: max(1, BRIEF - len(aside))], *aside]
    change = list(_search(answer.search))[:1] if answer.search is not None else []
    forecast = [line.strip() for line in told[-1:] if line.startswith(FORECAST)]
    return [told[0], *change, *[*aside, *told[1:2]][: BRIEF - 2 - len(forecast)], *forecast]


def _aside(answer: Answer) -> Iterator[str]:
    """Say what has to be known beside the cause: what could not be read, what only the running scheduler knows, and the first note, each in a line."""
    if answer.missing_rights:
        yield _rights(answer)
    more = [each for each in answer.written if _is_more(each) and not (answer.cause and answer.cause in each.message)]
    if answer.explanation is not None and more:
        yield f"{more[0].object}: {more[0].type} {more[0].status}, {more[0].reason}: {more[0].message}"
    if answer.notes:
        more_notes = f" (and {len(answer.notes) - 1} more notes)" if len(answer.notes) > 1 else ""
        yield f"note: {answer.notes[0]}{more_notes}"


def _rights(answer: Answer) -> str:
    if answer.refused:
        return f"refused, since it could be wrong: {answer.refused}"
    return f"not needed for this answer, and left out: you may not {', '.join(answer.missing_rights)}"


def _all(answer: Answer) -> list[str]:
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
        lines += ["", _rights(answer)]
    lines += [f"note: {note}" for note in answer.notes]
    return lines


def _tells_more(answer: Answer) -> bool:
    return any(map(_is_more, answer.written))


def _is_more(each: Written) -> bool:
    """Tell whether a condition says what only the running scheduler knows."""
    return each.type == "Event" or each.reason == "SchedulerError" or "broke down" in each.message


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
        else f"No change that was tried would start it{_nor_all(found)}."
    )
    width = min(70, max(len(trial.change) for trial in (*found.enough, *found.not_enough)))
    for trial in found.enough:
        yield _line("enough", trial, width)
    for trial in found.not_enough:
        yield _line("not enough", trial, width)
    if found.untried:
        yield f"  {found.untried} more were not tried: a cycle takes too long here"


def _nor_all(found: Search) -> str:
    return f", nor would {found.together} of them together" if found.together > 1 else ""


def _line(head: str, trial: Trial, width: int) -> str:
    return f"  {head:<10}  {trial.change:<{width}}  {_outcome(trial.verdict)}"


def _outcome(verdict: Verdict) -> str:
    if verdict.standing == "waits":
        placed = f"{verdict.placed} would fit; " if verdict.placed else ""
        placed = placed if verdict.settled else f"not settled after {verdict.seconds} s; {placed}"
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
