"""Expectations about the explanation of a group's pending state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pumice.scenario import view
from pumice.scenario.expectations import pods

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor


class ExplainRule(msgspec.Struct, frozen=True, kw_only=True):
    """A pod group and what must be found in its explanation."""

    line: int
    group: str
    regex: str


def read(cursor: Cursor) -> tuple[ExplainRule, ...]:
    """Read a map of `namespace/podgroup` to regular expressions."""
    return tuple(
        ExplainRule(line=entry.line, group=pods.namespaced(group, entry), regex=entry.regex())
        for group, entry in cursor.entries("a map of namespace/podgroup")
    )


def check(rules: tuple[ExplainRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the groups that are explained otherwise."""
    found: list[view.Mismatch] = []
    for rule in rules:
        told = seen.explain(rule.group)
        if not told or not re.search(rule.regex, told):
            found.append(
                view.Mismatch(
                    line=rule.line, subject=f"explain {rule.group}", expected=rule.regex, found=told or "no explanation"
                )
            )
    return found
