"""What the deciding thread hands over, made into lines by the thread that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import decoding, names
from pumice.recording import effects, lines

if TYPE_CHECKING:
    from pumice.api import kinds
    from pumice.cache.effects import Effect, Outcome
    from pumice.recording import graph
    from pumice.recording.redaction import Redaction

_encoder: Final = msgspec.json.Encoder()


class Taken:
    """One step as it happened; nothing in it changes any more once it is handed over."""

    __slots__ = ("broke", "cycle", "effects", "looks", "now", "outcomes", "skipped")

    def __init__(self, now: int) -> None:
        self.now = now
        self.cycle = 0
        self.looks: list[list[tuple[kinds.Kind, str, Any]]] = []
        self.outcomes: list[tuple[int, Outcome]] = []
        self.effects: list[Effect] = []
        self.skipped = False
        self.broke = False

    @property
    def weight(self) -> int:
        """How much there is to write, roughly in events."""
        return 1 + len(self.effects) + len(self.outcomes) + sum(map(len, self.looks))


def step(taken: Taken, redaction: Redaction) -> bytes:
    """Write a step as a line."""
    looks = [[_event(each, redaction) for each in look] for look in taken.looks]
    while looks and not looks[-1]:
        looks.pop()
    return encode(
        lines.Step(
            cycle=taken.cycle,
            now=taken.now,
            events=looks,
            outcomes=[_outcome(number, outcome, redaction) for number, outcome in taken.outcomes],
            effects=list(map(effects.plain, taken.effects)),
            skipped=taken.skipped,
            broke=taken.broke,
        )
    )


def state(captured: graph.Captured | None) -> bytes:
    """Write a state as a line."""
    return encode(lines.State(table=None if captured is None else captured.table()))


def encode(line: lines.Line) -> bytes:
    """Write a line."""
    return _encoder.encode(line) + b"\n"


def sent(found: list[Effect]) -> bytes:
    """Write effects, to be compared with those of a step."""
    return _encoder.encode(list(map(effects.plain, found)))


def _event(taken: tuple[kinds.Kind, str, Any], redaction: Redaction) -> tuple[Any, ...]:
    kind, event_type, found = taken
    if names.LAST_APPLIED in found.metadata.annotations:
        found = redaction.clean(found)
    if type(found) is decoding.Malformed:
        return effects.kind_name(kind), event_type, found.metadata, (found.field, found.message)
    if type(found) is decoding.Opaque:
        return effects.kind_name(kind), event_type, {"metadata": found.metadata}
    return effects.kind_name(kind), event_type, found


def _outcome(number: int, outcome: Outcome, redaction: Redaction) -> list[Any]:
    failure = None if outcome.failure is None else [outcome.failure.code, outcome.failure.message]
    answer = redaction.answer(outcome)
    return [number, failure, answer] if answer is not None else [number, failure] if failure else [number]
