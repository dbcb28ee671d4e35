"""What pods count for, and sums over some of them."""

from __future__ import annotations

from typing import NamedTuple

from pumice.api import names
from pumice.study.following import rows
from pumice.study.following.scene import Amounts, PodRow

Key = tuple[str, str]


class Use(NamedTuple):
    """What one pod counts for; `ended` is how it ended, if it has. Times are as they are written."""

    key: Key
    node: str
    group: Key | None
    amounts: Amounts
    placed: bool
    ended: str
    phase: str
    going: bool
    created: str | None
    bound: str | None
    started: str | None
    nominated: str


class Tally:
    """Sums over some pods."""

    __slots__ = ("amounts", "asked", "nominated", "pods", "ready", "uses")

    def __init__(self) -> None:
        self.amounts: Amounts = {}
        self.asked: Amounts = {}
        self.pods = 0
        self.ready = 0
        self.nominated = 0
        self.uses: dict[Key, Use] = {}

    @property
    def members(self) -> int:
        """How many pods there are."""
        return len(self.uses)

    def add(self, use: Use) -> None:
        """Add a pod."""
        self.uses[use.key] = use
        self._sum(use, 1)

    def remove(self, use: Use) -> None:
        """Take a pod away."""
        del self.uses[use.key]
        self._sum(use, -1)

    def _sum(self, use: Use, sign: int) -> None:
        self.ready += sign * (use.placed and use.ended != names.PHASE_FAILED)
        if use.ended:
            return
        self.nominated += sign * (bool(use.nominated) and not use.node)
        sums = self.amounts if use.node else self.asked
        self.pods += sign * bool(use.node)
        for name, amount in use.amounts.items():
            if left := sums.get(name, 0) + sign * amount:
                sums[name] = left
            else:
                sums.pop(name, None)


def pod_row(use: Use) -> PodRow:
    """Give the row of a pod."""
    return PodRow(
        namespace=use.key[0],
        name=use.key[1],
        group=use.group[1] if use.group is not None else "",
        node=use.node,
        phase=use.phase or names.PHASE_PENDING,
        going=use.going,
        request=use.amounts,
        created=rows.moment(use.created),
        placed=rows.moment(use.bound),
        started=rows.moment(use.started),
        nominated=use.nominated,
    )
