"""Regular expressions as trees: what Go's package and Python's both know of them.

Only patterns that Python's matcher has accepted are read here, so what is written is sound; what looks around, refers back or takes no step back is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable  # noqa: TC003  msgspec reads the annotations at run time
from typing import Final

import msgspec

_LOOKS: Final = "it looks around or refers back, which patterns of names cannot"
_CATEGORIES: Final[dict[str, Callable[[str], bool]]] = {
    "d": str.isdecimal,
    "s": str.isspace,
    "w": lambda letter: letter.isalnum() or letter == "_",
    "D": lambda letter: not letter.isdecimal(),
    "S": lambda letter: not letter.isspace(),
    "W": lambda letter: not (letter.isalnum() or letter == "_"),
}
is_word: Final = _CATEGORIES["w"]
_PLACES: Final = {"A": "start", "Z": "end", "b": "boundary", "B": "no boundary"}
_CONTROLS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HEXADECIMAL: Final = {"x": 2, "u": 4, "U": 8}
_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "a": re.ASCII, "u": re.UNICODE}
_TIMES: Final = re.compile(r"\{(?P<least>[0-9]*)(?P<more>,(?P<most>[0-9]*))?\}")
_REMARK: Final = re.compile(r"\(\?#[^)]*\)")
_GROUP: Final = re.compile(r"\?(?:P<\w+>|(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)]))")


class PatternError(ValueError):
    """A pattern that cannot be used, and why."""


class Letters(msgspec.Struct):
    """One letter of some: in a range or of a category, or of none of them."""

    ranges: list[tuple[int, int]] = []
    categories: list[Callable[[str], bool]] = []
    inverted: bool = False
    folded: bool = False  # large and small letters are the same

    def accepts(self, letter: str) -> bool:
        """Tell whether a letter is meant."""
        meant = (letter, letter.lower(), letter.upper()) if self.folded else (letter,)
        return any(map(self._holds, meant)) != self.inverted

    def _holds(self, letter: str) -> bool:
        code = ord(letter[0])
        return any(low <= code <= high for low, high in self.ranges) or any(of(letter) for of in self.categories)


class Place(msgspec.Struct):
    """A place between letters."""

    kind: str

    def holds(self, name: str, position: int) -> bool:
        """Tell whether a position in a name is such a place."""
        if self.kind in ("start", "end"):
            return position == (0 if self.kind == "start" else len(name))
        before = position > 0 and is_word(name[position - 1])
        behind = position < len(name) and is_word(name[position])
        return (before != behind) == (self.kind == "boundary")


class Branch(msgspec.Struct):
    """One of several sequences."""

    ways: list[list[Part]]


class Repeat(msgspec.Struct):
    """A sequence several times; without `most` as often as may be."""

    least: int
    most: int | None
    body: list[Part]


Part = Letters | Place | Branch | Repeat


def parse(pattern: str) -> list[Part]:
    """Read a pattern that Python's matcher has accepted."""
    return _Parser(pattern).whole()


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> list[Part]:
        """Read everything, the flags at its beginning included."""
        flags = 0
        while (found := _GROUP.match(self._pattern, self._at + 1)) and self._next() == "(" and found["end"] == ")":
            flags = _flags(found, flags)
            self._at = found.end()
        return self._ways(flags)

    def _next(self, ahead: int = 0) -> str:
        return self._pattern[self._at + ahead : self._at + ahead + 1]

    def _take(self, count: int = 1) -> str:
        self._at += count
        return self._pattern[self._at - count : self._at]

    def _ways(self, flags: int) -> list[Part]:
        """Read up to the end of the group that is open."""
        ways: list[list[Part]] = [[]]
        while self._next() not in ("", ")"):
            if self._next() == "|":
                self._take()
                ways.append([])
            elif (remark := _REMARK.match(self._pattern, self._at)) is not None:
                self._at = remark.end()
            else:
                ways[-1] += self._repeated(self._part(flags))
        return ways[0] if len(ways) == 1 else [Branch(ways)]

    def _repeated(self, part: list[Part]) -> list[Part]:
        """Read how often a part comes."""
        while (remark := _REMARK.match(self._pattern, self._at)) is not None:
            self._at = remark.end()
        least, most = 1, None
        match self._next():
            case "*":
                least = 0
            case "+":
                pass
            case "?":
                least, most = 0, 1
            case "{" if (times := _TIMES.match(self._pattern, self._at)) is not None and times[0] != "{}":
                least = int(times["least"] or 0)
                most = least if times["more"] is None else int(times["most"]) if times["most"] else None
                self._take(len(times[0]) - 1)
            case _:
                return part
        self._take()
        if self._next() == "+":
            raise PatternError(_LOOKS)
        if self._next() == "?":
            self._take()
        return [Repeat(least, most, part)]

    def _part(self, flags: int) -> list[Part]:
        """Read one letter, class, place or group."""
        letter = self._take()
        match letter:
            case "(":
                return self._group(flags)
            case "[":
                return [self._class(flags)]
            case "^" | "$":
                return [Place("start" if letter == "^" else "end")]
            case ".":
                return [Letters([] if flags & re.DOTALL else [(10, 10)], [], inverted=True)]
            case "\\" if self._next() in _PLACES:
                return [Place(_PLACES[self._take()])]
            case "\\" if self._next() in _CATEGORIES:
                return [Letters([], [_CATEGORIES[self._take()]])]
        code = self._escaped(inside=False) if letter == "\\" else ord(letter)
        return [Letters([(code, code)], folded=bool(flags & re.IGNORECASE))]

    def _group(self, flags: int) -> list[Part]:
        if self._next() == "?":
            found = _GROUP.match(self._pattern, self._at)
            if found is None:
                raise PatternError(_LOOKS)
            flags = _flags(found, flags)
            self._at = found.end()
        inner = self._ways(flags)
        self._take()
        return inner

    def _class(self, flags: int) -> Letters:
        """Read a class up to its bracket; one that comes first is a letter."""
        inverted = self._next() == "^"
        self._take(int(inverted))
        found = Letters([], [], inverted=inverted, folded=bool(flags & re.IGNORECASE))
        start = self._at
        while self._next() != "]" or self._at == start:
            low = self._member(found)
            if low is None:
                continue
            high = low
            if self._next() == "-" and self._next(1) != "]":
                self._take()
                high = self._member(found) or low
            found.ranges.append((low, high))
        self._take()
        return found

    def _member(self, found: Letters) -> int | None:
        """Read a letter of a class and return its code; a category is added at once."""
        letter = self._take()
        if letter != "\\":
            return ord(letter)
        if self._next() in _CATEGORIES:
            found.categories.append(_CATEGORIES[self._take()])
            return None
        return self._escaped(inside=True)

    def _escaped(self, *, inside: bool) -> int:
        """Read the code of a letter behind a backslash."""
        letter = self._take()
        if letter in _HEXADECIMAL:
            return int(self._take(_HEXADECIMAL[letter]), 16)
        if letter == "N":
            end = self._pattern.index("}", self._at)
            return ord(unicodedata.lookup(self._take(end + 1 - self._at)[1:-1]))
        if letter.isdigit():
            octal = re.compile("0[0-7]{0,2}|[0-7]{3}|[0-7]{1,3}" if inside else "0[0-7]{0,2}|[0-7]{3}").match(
                self._pattern, self._at - 1
            )
            if octal is None:
                raise PatternError(_LOOKS)
            self._at = octal.end()
            return int(octal[0], 8)
        return _CONTROLS.get(letter, ord(letter))


def _flags(found: re.Match[str], flags: int) -> int:
    for letter in found["on"] or "":
        if letter not in _FLAGS:
            raise PatternError(f"the flag {letter} is not known; known are i, m and s")
        flags |= _FLAGS[letter]
    for letter in found["off"] or "":
        flags &= ~_FLAGS.get(letter, 0)
    return flags
