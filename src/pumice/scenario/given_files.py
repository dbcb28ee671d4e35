"""A `given` that names a file: manifests as a scheduler dumped them (JSON), or as `kubectl get -o yaml` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pumice.api import documents
from pumice.scenario import manifest_reading
from pumice.scenario.reading import Cursor, Problem

if TYPE_CHECKING:
    from pumice.scenario.manifests import Entry


def read(cursor: Cursor, scenario_file: str) -> tuple[Entry, ...]:
    """Read the manifests of the file that a scenario names, relative to its own place; what is wrong with them is wrong with the scenario."""
    path = Path(scenario_file).parent / cursor.text("text: the name of a file")
    try:
        found = _documents(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        cursor.refuse(f"{cursor.value}: cannot be read: {reason}")
        return ()
    except (msgspec.DecodeError, documents.DocumentError) as error:
        cursor.refuse(f"{cursor.value}: {error}")
        return ()
    problems: list[Problem] = []
    entries: list[Entry] = []
    for document in found:
        entries += manifest_reading.read(Cursor(document, problems, _listed(document)))
    for problem in problems:
        place = f"{cursor.value}:{problem.line}" if path.suffix != ".json" else cursor.value
        cursor.refuse(f"{place}: {problem.message}")
    return tuple(entries)


def _documents(path: Path) -> list[documents.Located]:
    """Read a file; JSON, which may be large, without keeping its lines."""
    if path.suffix == ".json":
        data = msgspec.json.decode(path.read_bytes())
        return [documents.Located(data, documents.Mark(1), str(path))]
    return documents.load_all(path.read_text(encoding="utf-8"), str(path))


def _listed(document: documents.Located) -> object:
    """Take a document that is one manifest as a list of one."""
    return [document.data] if isinstance(document.data, dict) else document.data
