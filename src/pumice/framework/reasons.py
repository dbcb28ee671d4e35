"""Why a node does not take a task: interned reasons, and their summary over many nodes."""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

ReasonVector = npt.NDArray[np.int16]


class Code(IntEnum):
    """What eviction could do about a refusal: Unschedulable may be cured by it, Unresolvable and Error may not."""

    UNSCHEDULABLE = 1
    UNRESOLVABLE = 2
    ERROR = 3


class Invalid:
    """Why a job cannot be scheduled at all."""

    __slots__ = ("message", "reason")

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message


class Reason(msgspec.Struct, frozen=True):
    """One constant reason of one plugin."""

    plugin: str
    code: Code
    text: str


class Reasons:
    """The table that gives every reason a small number; 0 means that the node fits."""

    __slots__ = ("_numbers", "curable", "table")

    def __init__(self) -> None:
        self.table: list[Reason] = [Reason("", Code.UNSCHEDULABLE, "fits")]
        self._numbers: dict[Reason, int] = {}
        self.curable: npt.NDArray[np.bool_] = np.ones(1, dtype=np.bool_)

    def number(self, plugin: str, code: Code, text: str) -> int:
        """Return the number of a reason, giving it one when it is new."""
        reason = Reason(plugin, code, text)
        number = self._numbers.get(reason)
        if number is None:
            number = self._numbers[reason] = len(self.table)
            self.table.append(reason)
            self.curable = np.array([r.code == Code.UNSCHEDULABLE for r in self.table], dtype=np.bool_)
        return number


class OfQueue(str):
    """Why a pod is protected, where that holds for every pod of its queue: the others need not be asked about."""

    __slots__ = ()


class BeyondDue(str):
    """Why a queue gets nothing more, where nothing but its due is in the way: room that nobody else can use is still given to it."""

    __slots__ = ()


class FitSummary(msgspec.Struct, frozen=True, gc=False):
    """Why no node of a search took a task: how many nodes gave which reason; or, before any node was asked, that a `queue` has no room for it, maybe by its `due` alone."""

    nodes: int
    counts: tuple[tuple[str, int], ...]
    prefix: str = ""
    queue: str = ""
    due: bool = False

    def __str__(self) -> str:
        return _told(self.nodes, self.counts, self.prefix)

    @property
    def is_shortage(self) -> bool:
        """Tell whether every node has too little of something."""
        return bool(self.counts) and all(text.startswith("Insufficient ") for text, _ in self.counts)


def of_queue(queue: str, refusal: str) -> FitSummary:
    """Say that a queue may not take a task on."""
    return FitSummary(0, (), f"queue {queue}: {refusal}", queue, isinstance(refusal, BeyondDue))


@functools.lru_cache(maxsize=1024)
def _told(nodes: int, counts: tuple[tuple[str, int], ...], prefix: str) -> str:
    """Write a summary out; thousands of pods may share one."""
    head = prefix or f"0/{nodes} nodes are unavailable"
    if not counts:
        return head
    items = sorted(f"{count} {text}" for text, count in counts)
    return f"{head}: {', '.join(items)}."


def summary(nodes: int, counted: Iterable[tuple[str, int]], prefix: str = "") -> FitSummary:
    """Make a summary, adding up equal texts."""
    totals: dict[str, int] = {}
    for text, count in counted:
        if count:
            totals[text] = totals.get(text, 0) + count
    return FitSummary(nodes, tuple(sorted(totals.items())), prefix)
