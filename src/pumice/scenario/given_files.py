"""Files named in `given`: manifests as a scheduler dumped them (JSON), or as `kubectl get -o yaml` prints them.

`given` is the name of a file, or a list in which names of files and manifests stand in any order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.scenario import manifest_reading
from pumice.scenario.reading import Cursor, Problem

if TYPE_CHECKING:
    from pumice.scenario.manifests import Entry


def read(cursor: Cursor) -> tuple[Entry, ...]:
    """Read what exists before the first cycle: manifests, files that hold them, or both in their order."""
    if isinstance(cursor.value, str):
        return _read_file(cursor)
    entries: list[Entry] = []
    for item in cursor.items("a list of manifests"):
        entries += _read_file(item) if isinstance(item.value, str) else manifest_reading.read_one(item)
    return tuple(entries)


def _read_file(cursor: Cursor) -> tuple[Entry, ...]:
    """Read the manifests of a file, relative to the place of the one that names it; what is wrong with them is wrong with the scenario."""
    path = Path(cursor.source).parent / cursor.text("text: the name of a file")
    try:
        found = _documents(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        cursor.refuse(f"{cursor.value}: cannot be read: {reason}")
        return ()
    except (msgspec.DecodeError, RecursionError, documents.DocumentError) as error:
        cursor.refuse(f"{cursor.value}: {error}")
        return ()
    problems: list[Problem] = []
    entries: list[Entry] = []
    for document in found:
        inside = Cursor(document, problems, document.data)
        # A document is one manifest or a list of them.
        entries += (
            manifest_reading.read_one(inside) if isinstance(inside.value, dict) else manifest_reading.read(inside)
        )
    for problem in problems:
        place = f"{cursor.value}:{problem.line}" if path.suffix != ".json" else cursor.value
        cursor.refuse(f"{place}: {problem.message}")
    return tuple(entries)


LARGEST: Final = 1 << 30
"""Bytes that are read of a file of JSON."""


def _documents(path: Path) -> list[documents.Located]:
    """Read a file; JSON, which may be large, without keeping its lines."""
    if path.suffix == ".json":
        data = msgspec.json.decode(plain_files.read(path, LARGEST))
        return [documents.Located(data, documents.Mark(1), str(path))]
    return documents.load_all(plain_files.text(path), str(path))
