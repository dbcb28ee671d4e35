"""Expectations about how often the scheduler wrote, since the last `expect` that counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from pumice.scenario import view

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor

_KEYS = ("binds", "evictions", "statusWrites")
_COMPARISON = re.compile(r"\s*(<=|>=)\s*([0-9]{1,18})\s*")


class CountRule(msgspec.Struct, frozen=True, kw_only=True):
    """How many writes of one sort there must have been."""

    line: int
    sort: str
    comparison: Literal["==", "<=", ">="]
    number: int

    def holds(self, actual: int) -> bool:
        """Compare a count with the rule."""
        if self.comparison == "<=":
            return actual <= self.number
        return actual >= self.number if self.comparison == ">=" else actual == self.number


def read(cursor: Cursor) -> tuple[CountRule, ...]:
    """Read a map of sorts of writes to numbers or comparisons."""
    return tuple(_read_rule(sort, entry) for sort, entry in cursor.fields(_KEYS, "counts").items())


def check(rules: tuple[CountRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold."""
    actual = {"binds": seen.counts.binds, "evictions": seen.counts.evictions, "statusWrites": seen.counts.status_writes}
    return [
        view.Mismatch(
            line=rule.line,
            subject=f"counts {rule.sort}",
            expected=str(rule.number) if rule.comparison == "==" else f"{rule.comparison} {rule.number}",
            found=f"{actual[rule.sort]} since the last counts",
        )
        for rule in rules
        if not rule.holds(actual[rule.sort])
    ]


def _read_rule(sort: str, cursor: Cursor) -> CountRule:
    if not isinstance(cursor.value, str):
        return CountRule(line=cursor.line, sort=sort, comparison="==", number=cursor.integer())
    compared = _COMPARISON.fullmatch(cursor.value)
    if compared is None:
        cursor.refuse(f'{cursor.value[:40]!r} is no count; write a whole number, "<= 3" or ">= 1"')
        return CountRule(line=cursor.line, sort=sort, comparison="==", number=0)
    return CountRule(
        line=cursor.line, sort=sort, comparison="<=" if compared[1] == "<=" else ">=", number=int(compared[2])
    )
