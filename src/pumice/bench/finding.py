"""Workloads by name, which come with the program, or by the path of a file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.bench.workloads import Workload

FOLDER = Path(__file__).parent / "workloads"
LARGEST = 1_000_000
"""Bytes of a workload file: nobody writes a longer one."""


class WorkloadError(Exception):
    """A workload that does not exist, or cannot be read."""


def names() -> list[str]:
    """Name the workloads that come with the program."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(name: str) -> Workload:
    """Return the workload of a name, or of a file if there is one at that path."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return read(path)
    if name not in (known := names()):
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise WorkloadError(f"no workload {name!r}, and no file of that name; {hint}")
    return read(FOLDER / f"{name}.yaml")


def read(path: Path) -> Workload:
    """Read a file; what is wrong with it is said with its name and field."""
    try:
        with plain_files.opened(path) as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror}") from None
    if len(data) > LARGEST:
        raise WorkloadError(f"{path}: is larger than the {LARGEST:,} bytes that are read of a workload")
    try:
        found = msgspec.convert(documents.load_one(data, str(path)), Workload)
    except documents.DocumentError as error:
        raise WorkloadError(str(error)) from None
    except msgspec.ValidationError as error:
        raise WorkloadError(f"{path}: {error}") from None
    if problems := found.problems():
        raise WorkloadError("\n".join(f"{path}: {problem}" for problem in problems))
    return found
