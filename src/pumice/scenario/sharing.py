"""What several documents share: `extends` takes configuration, flags, period and objects from another document, of the same file or of another.

The other document is a scenario, whose steps stay its own, or starts with `shared: its name` and is there for this alone. A document's own configuration and period
replace those it extends, flags are added by name, and its objects follow the others, so that one of the same identity replaces the earlier one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.scenario import given_files, policies
from pumice.scenario.manifests import Entry  # noqa: TC001  msgspec reads the annotations at run time
from pumice.scenario.policies import Policy  # noqa: TC001  as above
from pumice.scenario.reading import Cursor, Problem, suggestion
from pumice.scheduler import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FRAME = ("extends", "config", "given", "period", "flags")
_KEYS = ("shared", *FRAME)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says beside its name and its steps, with all that it extends."""

    policy: Policy | None = None
    given: tuple[Entry, ...] = ()
    period: int | None = None
    flags: dict[str, Any] = {}


class _NotFound(Exception):  # noqa: N818  a signal inside this module
    """A document that cannot be extended, with the reason."""


class _Circle(_NotFound):
    """A document that extends itself, over others or directly."""


class Library:
    """The documents of a file by name, and those of the files they extend."""

    def __init__(
        self, file: str, found: Iterable[documents.Located], above: tuple[str, ...] = (), *, foreign: bool = False
    ) -> None:
        self._file = file
        self._foreign = foreign
        self._found = [document for document in found if isinstance(document.data, dict)]
        self._above = above

    def read_shared(self, cursor: Cursor) -> None:
        """Read a document that is only there to be extended, for what is wrong with it."""
        fields = cursor.fields(_KEYS, "a shared document")
        if not plain(fields["shared"].text("text: the name by which others extend it")):
            fields["shared"].refuse("the name by which others extend it is missing")
        self.read_frame(fields)

    def read_frame(self, fields: dict[str, Cursor]) -> Frame:
        """Read what a document says beside its name and its steps."""
        base = self._extended(fields["extends"]) if "extends" in fields else Frame()
        return Frame(
            policy=policies.read(fields["config"]) if "config" in fields else base.policy,
            given=base.given + (given_files.read(fields["given"]) if "given" in fields else ()),
            period=fields["period"].duration() if "period" in fields else base.period,
            flags=base.flags | (_read_flags(fields["flags"]) if "flags" in fields else {}),
        )

    def _extended(self, cursor: Cursor) -> Frame:
        """Read the frame of the document that is named: NAME in the same file, FILE#NAME in another one."""
        file, mark, name = cursor.text("text: NAME, or FILE#NAME").partition("#")
        if not isinstance(cursor.value, str):
            return Frame()
        # One spelling for one file, or a circle through `sub/../` would never close.
        beside = os.path.normpath(Path(self._file).parent / file)
        file, name = (beside, name) if mark and file else (self._file, name or file)
        try:
            return self._at(file, plain(name)).frame(plain(name), cursor)
        except _NotFound as error:
            if isinstance(error, _Circle) and self._above:
                raise  # it belongs to the document that was read first, whichever one closed it
            cursor.refuse(str(error))
            return Frame()

    def _at(self, file: str, name: str) -> Library:
        """Open a library in which the named document is read; it knows from where it was reached."""
        place = f"{file}#{name}"
        above = (*self._above, place)
        if place in self._above:
            raise _Circle(f"a circle: {' extends '.join(above)}")
        if file == self._file:
            return Library(file, self._found, above, foreign=self._foreign)
        try:
            text = plain_files.text(file)
            return Library(file, documents.load_all(text, file), above, foreign=True)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise _NotFound(f"{file}: cannot be read: {reason}") from error
        except documents.DocumentError as error:
            raise _NotFound(f"{file}:{error.line}: {error.message}") from error

    def frame(self, name: str, asked: Cursor) -> Frame:
        """Read the frame of a document; in another file, what is wrong with it is told where it is extended."""
        document = self._named(name)
        problems: list[Problem] = []
        cursor = Cursor(document, problems, document.data)
        made = self.read_frame({key: cursor.at(key) for key in FRAME if key in document.data})
        for problem in problems if self._foreign else ():
            asked.refuse(f"{self._file}:{problem.line}: {problem.message}")
        return made

    def _named(self, name: str) -> documents.Located:
        names = {plain(_name(document.data)): None for document in self._found if _name(document.data)}
        found = [document for document in self._found if plain(_name(document.data)) == name]
        if not name or not found:
            hint = suggestion(name, tuple(names)) if names else ""
            raise _NotFound(f"{self._file}: no document has the name {name!r}{hint}")
        if len(found) > 1:
            lines = ", ".join(str(document.line_of(())) for document in found)
            raise _NotFound(f"{self._file}: {len(found)} documents have the name {name!r}, on the lines {lines}")
        return found[0]


def is_shared(data: Any) -> bool:
    """Tell whether a document is only there to be extended."""
    return isinstance(data, dict) and "shared" in data and "scenario" not in data


def plain(name: str) -> str:
    """Write a name on one line."""
    return " ".join(name.split())


def named_files(found: Iterable[documents.Located]) -> frozenset[Path]:
    """Give the files that documents take configurations and objects from."""
    return frozenset(
        (Path(document.source).parent / name).resolve()
        for document in found
        if isinstance(document.data, dict)
        for name in _names_in(document.data)
    )


def _names_in(data: dict[str, Any]) -> Iterator[str]:
    given, steps = data.get("given"), data.get("steps")
    yield from (each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str))
    for part in (data, *(steps if isinstance(steps, list) else ())):
        config = part.get("config") if isinstance(part, dict) else None
        if isinstance(config, dict) and isinstance(config.get("file"), str):
            yield config["file"]


def _name(data: dict[str, Any]) -> str:
    value = data.get("scenario", data.get("shared"))
    return value if isinstance(value, str) else ""


def _read_flags(cursor: Cursor) -> dict[str, Any]:
    flags = {name: entry.value for name, entry in cursor.entries("a map of the scheduler's flags")}
    for name, value in flags.items():
        try:
            Options.from_flags({name: value})
        except ValueError as error:
            cursor.at(name).refuse(str(error))
    return flags
