"""What is wrong with an object: one remark for each rule that is broken, with the field."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pumice.admission import laws

Path = tuple[str | int, ...]
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
MOST: Final = 100  # remarks on one object; a list of ten thousand helps nobody
MOST_CHARACTERS: Final = 16_000  # of all of them in one message


class Remark(msgspec.Struct, frozen=True):
    """One thing that is wrong: where, and which rule with which numbers; a warning refuses nothing."""

    path: Path
    message: str
    refuses: bool = True
    law: laws.Law = laws.SCHEMA

    @property
    def field(self) -> str:
        """The JSON path, such as `spec.tasks[0].template.spec.containers[1].image`."""
        return field(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


class Remarks:
    """Gathers remarks in the order in which they are made, each of them once; `strict` ones refuse by rules of our own, too."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._found: dict[Remark, None] = {}

    def add(self, path: Path, message: str, law: laws.Law) -> None:
        """Note a remark; of very many the rest is left out, of those that refuse last."""
        refuses = law.refuses(strict=self.strict)
        if len(self._found) < MOST or (refuses and not self.refusals):
            self._found[Remark(path, message, refuses, law)] = None

    def include(self, others: Remarks, instead: laws.Law) -> None:
        """Take remarks on what only a later object will be judged by: what its schema does not refuse breaks the law `instead`."""
        for each in others.all:
            kept = each.law.refused_by in ("schema", "nobody")
            self.add(each.path, each.message, each.law if kept else instead)

    @property
    def all(self) -> list[Remark]:
        """Everything that was found."""
        return list(self._found)

    @property
    def refusals(self) -> list[Remark]:
        """What keeps the object from being stored."""
        return [each for each in self._found if each.refuses]

    @property
    def warnings(self) -> list[Remark]:
        """What its author should know."""
        return [each for each in self._found if not each.refuses]


def field(path: Path) -> str:
    """Write a path as people read it: `spec.tasks[0].resources.requests[nvidia.com/gpu]`."""
    text = ""
    for step in path:
        if isinstance(step, str) and _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]"
    return text


def listed(found: list[Remark]) -> str:
    """Put remarks in one line, as the answer to a client carries them."""
    text = "; ".join(map(str, found))
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
