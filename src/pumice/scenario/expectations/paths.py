"""Dotted paths into objects: `spec.tasks[0].replicas`, `status.conditions[type=Ready].status`, `metadata.annotations["volcano.sh/x"]`.

A path is words between dots and brackets. Words that stand side by side may together be one key that contains dots: of the runs of words that are a
key of the map at hand, the longest is taken. What is not there is None, as is what is null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_QUOTED = re.compile(r"""\[(?:"([^"]*)"|'([^']*)')\]""")
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_SELECTOR = re.compile(r"""\[([^\]=\["']+)=(?:"([^"]*)"|'([^']*)'|([^\]]*))\]""")
_WORD = re.compile(r"[^.\[\]]+")


class Word(msgspec.Struct, frozen=True):
    """A part between dots; several may be one key."""

    text: str


class Key(msgspec.Struct, frozen=True):
    """A key that is quoted, whatever it contains."""

    text: str


class Index(msgspec.Struct, frozen=True):
    """A place in a list."""

    place: int


class Selector(msgspec.Struct, frozen=True):
    """The first entry of a list that has a value in a field."""

    field: tuple[Word, ...]
    value: str


Part = Word | Key | Index | Selector


class PathError(ValueError):
    """A path that cannot be read."""


def parse(path: str) -> tuple[Part, ...]:
    """Read a path."""
    parts: list[Part] = []
    position = 0
    while position < len(path):
        if path[position] == "[":
            part, position = _bracket(path, position)
        else:
            if parts:
                if path[position] != ".":
                    raise PathError(f"{path!r} cannot be read at {path[position:]!r}: put a dot before the next field")
                position += 1
            word = _WORD.match(path, position)
            if word is None:
                raise PathError(f"{path!r} cannot be read: a field is missing after {path[:position]!r}")
            part, position = Word(word[0]), word.end()
        parts.append(part)
    if not parts:
        raise PathError("a path is empty; write for example status.state.phase")
    return tuple(parts)


def _bracket(path: str, position: int) -> tuple[Part, int]:
    if quoted := _QUOTED.match(path, position):
        return Key(quoted[1] if quoted[1] is not None else quoted[2]), quoted.end()
    if index := _INDEX.match(path, position):
        return Index(int(index[1])), index.end()
    if chosen := _SELECTOR.match(path, position):
        value = next(group for group in chosen.groups()[1:] if group is not None)
        field = tuple(Word(word) for word in chosen[1].strip().split("."))
        return Selector(field, value), chosen.end()
    raise PathError(
        f"{path!r} cannot be read at {path[position:]!r}: in brackets stands a number, field=value or a quoted key"
    )


def find(value: Any, parts: tuple[Part, ...]) -> Any:
    """Follow a path; what is missing on the way, or is of another type, gives None."""
    place = 0
    while place < len(parts) and value is not None:
        value, place = _step(value, parts, place)
    return value


def _step(value: Any, parts: tuple[Part, ...], place: int) -> tuple[Any, int]:
    match parts[place]:
        case Word():
            return _longest(value, parts, place)
        case Key(key):
            return (value.get(key) if isinstance(value, Mapping) else None), place + 1
        case Index(index):
            return (value[index] if isinstance(value, list) and index < len(value) else None), place + 1
        case Selector(field, wanted):
            entries = value if isinstance(value, list) else []
            return next((each for each in entries if text(find(each, field)) == wanted), None), place + 1


def _longest(value: Any, parts: tuple[Part, ...], place: int) -> tuple[Any, int]:
    """Take the longest run of words that is a key."""
    if not isinstance(value, Mapping):
        return None, place + 1
    words: list[str] = []
    for part in parts[place:]:
        if not isinstance(part, Word):
            break
        words.append(part.text)
    for count in range(len(words), 0, -1):
        key = ".".join(words[:count])
        if key in value:
            return value[key], place + count
    return None, place + 1


def text(value: Any) -> str:
    """Write a value as it would stand in a file: text bare, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
