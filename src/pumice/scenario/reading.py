"""Typed reading of a YAML document: every value knows its line, every mistake is kept, and reading goes on.

A `Cursor` stands at one value. Its methods give the value in the asked type; when it has another one they note a problem and give a
neutral value instead, so that one pass over a file reports everything that is wrong with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import documents, duration

if TYPE_CHECKING:
    from collections.abc import Iterable


class Problem(msgspec.Struct, frozen=True, order=True):
    """Something that makes a file invalid, and its line."""

    line: int
    message: str


class Cursor:
    """One value of a document, where it stands, and the list its problems go to."""

    def __init__(
        self, document: documents.Located, problems: list[Problem], value: Any, path: documents.Path = ()
    ) -> None:
        self.value = value
        self.problems = problems
        self._document = document
        self._path = path

    @property
    def line(self) -> int:
        """The line this value, or its key, stands on."""
        return self._document.line_of(self._path)

    @property
    def value_line(self) -> int:
        """The line on which the value begins, which may follow that of its key."""
        return self._document.value_line_of(self._path)

    @property
    def source(self) -> str:
        """The file that this value stands in."""
        return self._document.source

    @property
    def name(self) -> str:
        """The path to this value, as written in messages: `steps[2].expect`."""
        parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in self._path]
        return "".join(parts).removeprefix(".") or "the document"

    def at(self, key: str | int) -> Cursor:
        """Move to a member that exists."""
        return Cursor(self._document, self.problems, self.value[key], (*self._path, key))

    def refuse(self, message: str) -> None:
        """Note a problem with this value."""
        self.problems.append(Problem(self.line, f"{self.name}: {message}"))

    def expected(self, wanted: str) -> None:
        """Note that this value has the wrong type."""
        hint = (
            "; put quotes around it" if wanted.startswith("text") and isinstance(self.value, bool | int | float) else ""
        )
        self.refuse(f"expected {wanted}, found {documents.described(self.value)}{hint}")

    def fields(self, known: Iterable[str], what: str) -> dict[str, Cursor]:
        """Read a map whose keys are all known; an unknown one is a problem and is left out."""
        names = tuple(known)
        found: dict[str, Cursor] = {}
        for key, cursor in self.entries(what):
            if key in names:
                found[key] = cursor
            else:
                self.problems.append(
                    Problem(cursor.line, f"{self.name}: unknown key {key!r} in {what}{suggestion(key, names)}")
                )
        return found

    def entries(self, what: str = "a map") -> list[tuple[str, Cursor]]:
        """Read a map with any text keys."""
        if not isinstance(self.value, dict):
            self.expected(what if what.startswith("a map") else f"{what} (a map)")
            return []
        return [(key, self.at(key)) for key in self.value]

    def items(self, what: str = "a list") -> list[Cursor]:
        """Read a list."""
        if not isinstance(self.value, list):
            self.expected(what)
            return []
        return [self.at(index) for index in range(len(self.value))]

    def text(self, what: str = "text") -> str:
        """Read a text."""
        if isinstance(self.value, str):
            return self.value
        self.expected(what)
        return ""

    def boolean(self) -> bool:
        """Read true or false."""
        if isinstance(self.value, bool):
            return self.value
        self.expected("true or false")
        return False

    def integer(self, least: int = 0) -> int:
        """Read a whole number of at least so much."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.expected("a whole number")
            return least
        if self.value < least:
            self.refuse(f"expected a whole number of {least} or more, found {self.value}")
            return least
        return self.value

    def duration(self) -> int:
        """Read a duration such as `500ms`, in microseconds."""
        text = self.text("a duration such as 30s")
        if not isinstance(self.value, str):
            return 0
        try:
            length = duration.parse(text)
        except duration.DurationError as error:
            self.refuse(f"expected a duration such as 500ms, 30s or 1h30m: {error}")
            return 0
        if length < 0:
            self.refuse(f"time does not run backwards: {text}")
        return length

    def regex(self) -> str:
        """Read a regular expression."""
        text = self.text("text: a regular expression")
        try:
            re.compile(text)
        except re.error as error:
            self.refuse(f"not a regular expression: {text!r}: {error}")
            return ""
        return text

    def choice(self, options: tuple[str, ...]) -> str:
        """Read one of a few words."""
        text = self.text(f"text: one of {', '.join(options)}")
        if text in options:
            return text
        if isinstance(self.value, str):
            self.refuse(f"{text!r} is none of {', '.join(options)}{suggestion(text, options, list_all=False)}")
        return options[0]


def suggestion(word: str, known: tuple[str, ...], *, list_all: bool = True) -> str:
    """Name the nearest valid word, or all of them when none is near."""
    near = documents.nearest(word, known)
    if near:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(known)}" if list_all else ""
