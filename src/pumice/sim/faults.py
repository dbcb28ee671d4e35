"""Writes that fail because a scenario says so."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Verb = Literal["bind", "prepare", "take back", "evict", "status"]
Error = Literal["conflict", "refused", "unavailable", "lost-reply"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The next `times` writes of a verb to matching objects fail; `lost-reply`: they are done and the answer is lost."""

    verb: Verb
    error: Error
    object: str = ""
    times: int = 1

    def matches(self, verb: Verb | None, reference: str) -> bool:
        """Match part by part, so that `*` does not reach over a slash; no object matches every one."""
        if verb != self.verb:
            return False
        patterns, parts = self.object.split("/"), reference.split("/")
        return not self.object or (len(patterns) == len(parts) and all(map(fnmatchcase, parts, patterns)))


class Faults:
    """The faults still to come, the oldest first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, int]] = []

    def __len__(self) -> int:
        return sum(left for _, left in self._waiting)

    def add(self, fault: Fault) -> None:
        """Let writes fail from now on."""
        if fault.times > 0:
            self._waiting.append((fault, fault.times))

    def take(self, verb: Verb | None, reference: str) -> Error | None:
        """Say how this write fails, if it does; one use of the oldest matching fault is spent."""
        for index, (fault, left) in enumerate(self._waiting):
            if fault.matches(verb, reference):
                self._waiting[index] = (fault, left - 1)
                if left == 1:
                    del self._waiting[index]
                return fault.error
        return None
