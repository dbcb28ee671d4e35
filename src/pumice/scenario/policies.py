"""The configuration that a scenario tests: text of its own, or the very file that is deployed.

That file is a scheduler configuration, or a manifest with the ConfigMap that holds one, alone or among other objects. What is wrong with it is told with the lines of that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.framework import configuration
from pumice.framework.configuration import config_maps
from pumice.scenario import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.configuration import Catalog, Problem
    from pumice.scenario.reading import Cursor

_TEXT = "text: the scheduler configuration as a block, `config: |`, or {file: scheduler.yaml}"


class PolicyError(Exception):
    """A file that holds no configuration; the message names it, and the line where there is one."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a configuration, and where it was read.

    `first` is the line of the file on which the text begins, 0 if its lines are not those of the file. `inline` text stands in a scenario file.
    """

    text: str
    file: str = ""
    first: int = 1
    key: str = ""
    inline: bool = False

    def told(self, problem: Problem, scenario_file: str) -> str:
        """Say what is wrong, with file, line and key; lines of text inside the scenario itself count from its beginning."""
        if self.inline and self.file == scenario_file:
            return str(problem)
        if self.first and problem.line:
            return ": ".join(part for part in (self._at(problem.line), problem.key, problem.message) if part)
        return f"{self.file}: {self.key + ': ' if self.key else ''}{problem}"

    def _at(self, line: int) -> str:
        return f"{self.file}:{self.first + line - 1}"


def checked(given: str, catalog: Catalog) -> Policy:
    """Read a file, or `FILE#KEY`, whose configuration holds; what is wrong with it is told with its lines."""
    file, _, key = given.partition("#")
    policy = load(file, key)
    try:
        configuration.load(policy.text, catalog, file)
    except configuration.ConfigurationError as error:
        told = "\n".join(policy.told(problem, "") for problem in error.problems)
        raise PolicyError(f"{given} is refused:\n{told}") from error
    return policy


def read(cursor: Cursor) -> Policy:
    """Read a configuration: text, the name of a file, or a ConfigMap."""
    value = cursor.value
    if isinstance(value, dict) and "kind" in value:
        return _inside(cursor)
    if not (isinstance(value, dict) and ("file" in value or "key" in value)):
        return _written(cursor, cursor.text(_TEXT))
    fields = cursor.fields(("file", "key"), "a configuration in a file")
    name = fields["file"].text("text: the name of a file") if "file" in fields else ""
    key = fields["key"].text("text: a key of the ConfigMap") if "key" in fields else ""
    if not name:
        (fields.get("file") or cursor).refuse("the name of a file is missing: {file: scheduler.yaml}")
        return Policy(text="")
    try:
        return load(str(Path(cursor.source).parent / name), key)
    except PolicyError as error:
        cursor.refuse(str(error))
        return Policy(text="")


def load(file: str, key: str = "") -> Policy:
    """Read a file; raise `PolicyError` if it cannot be read, or if its manifests hold no configuration."""
    try:
        text = plain_files.text(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PolicyError(f"{file}: cannot be read: {reason}") from error
    return of_text(text, file, key)


def of_text(text: str, file: str, key: str = "") -> Policy:
    """Take the text of a file, likewise."""
    try:
        found = [each for each in documents.load_all(text, file) if isinstance(each.data, dict)]
    except documents.DocumentError:
        return Policy(text=text, file=file)  # whoever loads it says what is wrong, and where
    if any("kind" in each.data for each in found):
        return _mapped(found, text.splitlines(), file, key)
    if key:
        raise PolicyError(f"{file}: no ConfigMap but a plain configuration, which has no key {key!r}")
    return Policy(text=text, file=file)


def _written(cursor: Cursor, text: str) -> Policy:
    """Take a text that stands in a scenario file; as a block it begins on the line after its key."""
    first = cursor.value_line + 1 if cursor.value == text and "\n" in text else 0
    return Policy(text=text, file=cursor.source, first=first, inline=True)


def _inside(cursor: Cursor) -> Policy:
    """Read a ConfigMap that stands in the scenario itself."""
    data = cursor.value.get("data")
    if cursor.value["kind"] != "ConfigMap" or not isinstance(data, dict):
        cursor.refuse(f"expected a ConfigMap with data, found the kind {cursor.value['kind']!r}")
        return Policy(text="")
    key = config_maps.choose(data)
    try:
        text = _text(data, key, cursor.source, cursor.line)
    except PolicyError as error:
        cursor.refuse(str(error))
        return Policy(text="")
    return _written(cursor.at("data").at(key) if key else cursor, text)


def _mapped(found: list[documents.Located], lines: list[str], file: str, key: str) -> Policy:
    """Take the configuration out of the one ConfigMap that has one."""
    maps = [(each, path) for each in found for path in _config_maps(each.data)]
    known = [(each, path) for each, path in maps if config_maps.choose(each.at(path)["data"], key) is not None]
    usual = [(each, path) for each, path in known if config_maps.is_usual(each.at(path)["data"])] if not key else known
    chosen = known if len(known) == 1 else usual
    if len(chosen) != 1:
        raise PolicyError(_none_or_many(maps, chosen or known, file, key))
    document, path = chosen[0]
    data = document.at(path)["data"]
    picked = config_maps.choose(data, key)
    text = _text(data, picked, file, document.line_of(path))
    place = document.value_line_of((*path, "data", picked)) if picked else 0
    return Policy(text=text, file=file, first=_first_line(text, lines, place), key=picked or "")


def _none_or_many(
    maps: list[tuple[documents.Located, documents.Path]],
    fitting: list[tuple[documents.Located, documents.Path]],
    file: str,
    key: str,
) -> str:
    if not maps:
        return f"{file}: manifests, but no ConfigMap with data among them"
    if fitting:
        names = [str(manifests.dig(each.at(path), "metadata", "name")) for each, path in fitting]
        return f"{file}: {len(names)} ConfigMaps may hold the configuration: {', '.join(names)}; leave the others out"
    document, path = maps[0]
    there = config_maps.listed(document.at(path)["data"])
    wanted = f"no key {key!r}" if key else "no key that is known to hold a configuration"
    hint = "" if key else "; say which with `key`, or FILE#KEY on the command line"
    return f"{file}:{document.line_of(path)}: the ConfigMap has {wanted}, it has {there}{hint}"


def _config_maps(data: dict[str, Any]) -> Iterator[documents.Path]:
    """Walk over the ConfigMaps with data: the document itself, or items of a list."""
    if data.get("kind") == "ConfigMap" and isinstance(data.get("data"), dict):
        yield ()
    elif data.get("kind") == "List" and isinstance(data.get("items"), list):
        for index, item in enumerate(data["items"]):
            if isinstance(item, dict) and item.get("kind") == "ConfigMap" and isinstance(item.get("data"), dict):
                yield ("items", index)


def _text(data: dict[str, Any], key: str | None, file: str, line: int) -> str:
    if key is None:
        raise PolicyError(
            f"{file}:{line}: the ConfigMap has {config_maps.listed(data)}, none known to hold a configuration"
        )
    wrong = [each for each, value in data.items() if key in (each, config_maps.WHOLE) and not isinstance(value, str)]
    if wrong:
        raise PolicyError(f"{file}:{line}: data.{wrong[0]}: expected text, found {documents.described(data[wrong[0]])}")
    return config_maps.text(data, key)


def _first_line(text: str, lines: list[str], place: int) -> int:
    """Return the line of a file on which a block of text begins, 0 if the text is written otherwise."""
    wanted = [line.strip() for line in text.splitlines()]
    there = [line.strip() for line in lines[place : place + len(wanted)]]
    return place + 1 if place and wanted == there else 0
