"""The lines of a recording: JSON, one record each, gzipped; see `docs/replay.md`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from pumice.api import decoding, kinds
from pumice.api.meta import KubeObject
from pumice.cache.cache import EventType
from pumice.cache.effects import FailureCode
from pumice.cache.options import Options  # noqa: TC001  msgspec reads the annotations at run time
from pumice.recording.effects import find_kind
from pumice.recording.graph import Table  # noqa: TC001  as above

FORMAT: Final = 1

Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, lt=253_402_300_800_000_000)]
"""Microseconds, from the year 1 to the year 9999: others cannot be shown."""
Count = Annotated[int, msgspec.Meta(ge=0)]


class Line(msgspec.Struct, tag_field="is", omit_defaults=True, kw_only=True):
    """The base of all lines."""


class Header(Line, tag="recording", kw_only=True):
    """The first line of a segment: who recorded, which run it belongs to and its place in it."""

    format: int
    version: str
    run: str
    segment: int
    options: Options
    member: str = ""
    members: int = 0


class State(Line, tag="state", kw_only=True):
    """What was known before the first step of a segment; nothing at the start of a run."""

    table: Table | None = None


class Configured(Line, tag="configuration", kw_only=True):
    """A configuration that was brought to life."""

    now: Time
    source: str
    text: str


class Step(Line, tag="step", kw_only=True):
    """A cycle, or with number 0 what a standby took in: what came in, in the order in which it was taken, and what was sent."""

    cycle: int
    now: int
    events: list[Any] = []
    outcomes: list[Any] = []
    effects: Any = []
    skipped: bool = False
    broke: bool = False


class End(Line, tag="end", kw_only=True):
    """The last line of a segment that another one of the run follows, or of a run that ended in good order."""

    last: bool = False


Event = tuple[kinds.Kind, EventType, KubeObject | decoding.Malformed]


class ReadStep(Line, tag="step", kw_only=True):
    """A step as it is read: objects and effects stay text until somebody wants them."""

    cycle: Count
    now: Time
    events: list[list[list[msgspec.Raw]]] = []
    outcomes: list[list[msgspec.Raw]] = []
    effects: msgspec.Raw = msgspec.Raw(b"[]")
    skipped: bool = False
    broke: bool = False


ReadLine = Header | State | Configured | ReadStep | End

_decoder: Final = msgspec.json.Decoder(ReadLine)
_text: Final = msgspec.json.Decoder(str)
_event_type: Final[msgspec.json.Decoder[EventType]] = msgspec.json.Decoder(EventType)
_number: Final = msgspec.json.Decoder(int)
_failure: Final = msgspec.json.Decoder(tuple[FailureCode, str] | None)
_answer: Final = msgspec.json.Decoder(dict[str, Any] | None)
_effects: Final = msgspec.json.Decoder(list[list[Any]])
_NONE: Final = msgspec.Raw(b"null")


def decode(line: bytes) -> ReadLine:
    """Read a line, or raise a `msgspec.DecodeError`."""
    found: ReadLine = _decoder.decode(line)
    return found


def event(found: list[msgspec.Raw]) -> Event:
    """Read an event."""
    kind = find_kind(_text.decode(found[0]))
    event_type = _event_type.decode(found[1])
    if len(found) > 3:
        bad = decoding.decode_json(kind, b'{"metadata":' + bytes(found[2]) + b"}")
        metadata = bad.metadata
        field, message = msgspec.json.decode(found[3], type=tuple[str, str])
        identity = decoding.Identity(kind, metadata.namespace, metadata.name, metadata.uid)
        return kind, event_type, decoding.Malformed(identity, field, message, metadata)
    return kind, event_type, _object(kind, bytes(found[2]))


def effects(step: ReadStep) -> list[list[Any]]:
    """Read the effects of a step."""
    return _effects.decode(step.effects)


def outcome(found: list[msgspec.Raw]) -> list[Any]:
    """Read an outcome: the number of an effect, a failure (code and text) and an answer; None for what is not there."""
    number, failure, answer = [*found, _NONE, _NONE][:3]
    return [_number.decode(number), _failure.decode(failure), _answer.decode(answer)]


def _object(kind: kinds.Kind, data: bytes) -> KubeObject | decoding.Malformed:
    """Read an object as it was written: in the form that its kind has here, whatever version it was read in."""
    if kind.struct is None:
        return decoding.decode_json(kind, data)
    found: KubeObject = msgspec.json.decode(data, type=kind.struct)
    return found
