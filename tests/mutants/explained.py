"""Changes that no test need notice, each with its reason: `explained.txt`, a line each.

    path | in function: before  ->  after | kind | reason

The change reads as `make mutants` prints it behind the line's number, so that it is known again where code has moved.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.mutants import changing

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("explained.txt")
KINDS = {
    "equal": "the changed code means the same",
    "cost": "only speed or memory changes",
    "limit": "a bound that was chosen freely",
}
_LINE = re.compile(rf"(src/\S+\.py) \| (in .+  ->  .+) \| ({'|'.join(KINDS)}) \| (\S.*)")


class Explanation(NamedTuple):
    """Why nobody need notice a change."""

    path: str
    change: str
    kind: str
    reason: str


def read(file: Path = FILE) -> dict[tuple[str, str], Explanation]:
    """Give what is explained, by path and change; a line that cannot be read is an error that names it."""
    found: dict[tuple[str, str], Explanation] = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        read = _LINE.fullmatch(line)
        if read is None:
            raise ValueError(f"{file.name}:{number}: not `path | change | {' or '.join(KINDS)} | reason`: {line}")
        each = Explanation(*read.groups())
        if found.setdefault((each.path, each.change), each) is not each:
            raise ValueError(f"{file.name}:{number}: this change is explained twice: {line}")
    return found


def dead(known: dict[tuple[str, str], Explanation]) -> Iterator[Explanation]:
    """Give those that explain what is no change of the code any more."""
    changes = {
        (path, each.change)
        for path in {path for path, _ in known}
        if Path(path).exists()
        for each in changing.mutants(path)
    }
    return (each for key, each in known.items() if key not in changes)
