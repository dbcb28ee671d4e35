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
    """Pod groups, and what must be found in the explanation of each."""

    line: int
    group: str
    regex: str


def read(cursor: Cursor) -> tuple[ExplainRule, ...]:
    """Read a map of `namespace/podgroup`, globs allowed, to regular expressions."""
    return tuple(
        ExplainRule(line=entry.line, group=pods.namespaced(group, entry), regex=entry.regex())
        for group, entry in cursor.entries("a map of namespace/podgroup")
    )


def check(rules: tuple[ExplainRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the groups that are explained otherwise."""
    found: list[view.Mismatch] = []
    for rule in rules:
        # A group that only the scheduler knows has an explanation too, so a plain name need not be stored.
        names = view.select(rule.group, seen.pod_groups) if view.is_glob(rule.group) else [rule.group]
        for name in names:
            told = seen.explain(name)
            if not told or not re.search(rule.regex, told):
                found.append(_mismatch(rule, name, told or "no explanation"))
        if not names:
            found.append(_mismatch(rule, rule.group, "no such pod group"))
    return found


def _mismatch(rule: ExplainRule, name: str, told: str) -> view.Mismatch:
    return view.Mismatch(line=rule.line, subject=f"explain {name}", expected=rule.regex, found=told)
