"""Manifests in files, folders and the standard input: each with its file and the lines of its parts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice import plain_files
from pumice.api import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.api.documents import Located

    Place = tuple[str | int, ...]

STDIN: Final = "-"
_ENDINGS: Final = (".yaml", ".yml", ".json")


class UnreadableError(Exception):
    """A file that cannot be read at all."""


class Entry(msgspec.Struct, frozen=True):
    """One manifest; `place` is where it stands in its document, which may be a list of several."""

    source: str
    manifest: dict[str, Any]
    document: Any
    place: tuple[str | int, ...] = ()

    def line_of(self, path: tuple[str | int, ...]) -> int:
        """Give the line of a part of the manifest."""
        located: Located = self.document
        line: int = located.line_of((*self.place, *path))
        return line


class Trouble(msgspec.Struct, frozen=True):
    """Something in a file that is no manifest."""

    source: str
    line: int
    message: str


def read(paths: Iterable[str]) -> Iterator[Entry | Trouble]:
    """Read everything that was named; in a folder, files without manifests are passed over."""
    for path in paths:
        if path == STDIN:
            yield from _parsed(_bounded(sys.stdin.buffer, "<stdin>"), "<stdin>", strict=True)
            continue
        found = Path(path)
        if found.is_dir():
            for file in _files(found):
                yield from _parsed(_load(file), str(file), strict=False)
        else:
            yield from _parsed(_load(found), path, strict=True)


def _files(folder: Path) -> list[Path]:
    found = [each for each in folder.rglob("*") if each.suffix in _ENDINGS and each.is_file()]
    return sorted(each for each in found if not any(part.startswith(".") for part in each.relative_to(folder).parts))


def _load(path: Path) -> str:
    try:
        with plain_files.opened(path) as file:
            return _bounded(file, str(path))
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from None


def _bounded(file: Any, source: str) -> str:
    data: bytes = file.read(documents.MAX_BYTES + 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(data) > documents.MAX_BYTES:
            return data.decode("utf-8", "replace")  # its size is refused in a moment
        raise UnreadableError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _parsed(text: str, source: str, *, strict: bool) -> Iterator[Entry | Trouble]:
    try:
        for located in documents.load_all(text, source):
            yield from _manifests(located.data, located, source, (), strict=strict)
    except documents.DocumentError as error:
        yield Trouble(source, error.line, error.message)


def _manifests(data: Any, located: Located, source: str, place: Place, *, strict: bool) -> Iterator[Entry | Trouble]:
    items = data.get("items") if isinstance(data, dict) else None
    if isinstance(data, dict) and str(data.get("kind", "")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _manifests(item, located, source, (*place, "items", index), strict=True)
    elif isinstance(data, dict) and data.get("apiVersion") and data.get("kind"):
        yield Entry(source, data, located, place)
    elif strict:
        line = located.line_of(place)
        yield Trouble(source, line, "is no manifest: it has no apiVersion and kind")
