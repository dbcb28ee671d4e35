"""What a replay says of a cycle and of a difference, as lines of text."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from pumice.api import timestamp
from pumice.recording import effects, lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

    from pumice.recording.other_policy import Parting
    from pumice.recording.player import Played

MOST: Final = 50  # lines of one list
LONGEST: Final = 400  # characters of a line


def cycle(played: Played, trace: Iterable[str]) -> list[str]:
    """Show a cycle: what came in, what was decided, and why."""
    step = played.step
    events = [_event(each) for look in step.events for each in look]
    told = [f"cycle {step.cycle} at {timestamp.format_timestamp(step.now)}{', skipped' if step.skipped else ''}"]
    failed = [text for text in map(_failure, step.outcomes) if text]
    told += _listed(f"came in ({len(events)} events, {len(step.outcomes)} outcomes)", [*events, *failed])
    told += _listed("decided", list(map(_described, played.repeated)))
    return told + _listed("trace", list(trace))


def difference(played: Played) -> list[str]:
    """Name the first decision that differs."""
    step = played.step
    told = [f"cycle {step.cycle} at {timestamp.format_timestamp(step.now)} differs: {played.problem}"]
    here, there = played.recorded, played.repeated
    for index, (was, now) in enumerate(zip_longest(here, there)):
        if was != now:
            told.append(f"  recorded: {_short(_described(was)) if was is not None else 'nothing more'}")
            told.append(f"  replayed: {_short(_described(now)) if now is not None else 'nothing more'}")
            told.append(f"  the {index} effects before it are the same; recorded {len(here)}, replayed {len(there)}")
            break
    return told


def partings(found: Iterable[Parting]) -> list[str]:
    """Show where two policies part, as an aligned table."""
    rows: list[tuple[str, ...]] = [("cycle", "time", "about", "recorded", "other policy")]
    for each in found:
        often = f" ({each.cycles} cycles)" if each.cycles > 1 else ""
        time = timestamp.format_timestamp(each.now)
        rows.append((str(each.cycle), time, *map(_short, (each.subject, each.recorded, each.other + often))))
    left = len(rows) - 1 - MOST
    rows = rows[: MOST + 1]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*told, f"… and {left} more"] if left > 0 else told


def _listed(head: str, found: list[str]) -> list[str]:
    if not found:
        return [f"{head}: nothing"]
    more = [f"  … and {len(found) - MOST} more"] if len(found) > MOST else []
    return [f"{head}:", *(f"  {_short(line)}" for line in found[:MOST]), *more]


def _short(text: str) -> str:
    """Return what a terminal shows as it is, and not too much of it."""
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def _described(effect: effects.Plain) -> str:
    try:
        return effects.described(effect)
    except (LookupError, TypeError, ValueError, AttributeError):
        return f"an effect that cannot be read: {effect}"


def _event(found: list[msgspec.Raw]) -> str:
    kind, event_type, thing = lines.event(found)
    metadata = thing.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return f"{event_type} {kind.name} {name}"


def _failure(found: list[msgspec.Raw]) -> str:
    """Say what became of an effect that failed; nothing of one that went well."""
    number, failure, _ = lines.outcome(found)
    return f"effect {number} failed ({failure[0]}): {failure[1]}" if failure else ""
