"""Expectations about entries of `status.conditions`, the same for pods, pod groups and queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.scenario import manifests

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor

_KEYS = ("status", "reason", "message~")


class ConditionRule(msgspec.Struct, frozen=True, kw_only=True):
    """What one condition must say; what is None may be anything."""

    type: str
    status: str | None = None
    reason: str | None = None
    message: str | None = None

    @property
    def expected(self) -> str:
        """Put the rule into words."""
        wanted = {"status": self.status, "reason": self.reason, "message~": self.message}
        said = ", ".join(f"{key} {value}" for key, value in wanted.items() if value is not None)
        return f"condition {self.type}" + (f": {said}" if said else "")


def read(cursor: Cursor) -> tuple[ConditionRule, ...]:
    """Read a map of condition types to what each must say."""
    return tuple(_read_rule(name, rule) for name, rule in cursor.entries("a map of condition types"))


def misses(rules: tuple[ConditionRule, ...], conditions: Any) -> list[tuple[str, str]]:
    """Give (expected, found) for each rule that the conditions do not satisfy."""
    listed = manifests.sequence(conditions)
    return [
        (rule.expected, _found(rule.type, listed)) for rule in rules if not any(_holds(rule, entry) for entry in listed)
    ]


def _read_rule(name: str, cursor: Cursor) -> ConditionRule:
    fields = cursor.fields(_KEYS, "a condition")
    return ConditionRule(
        type=name,
        status=_read_status(fields["status"]) if "status" in fields else None,
        reason=fields["reason"].text() if "reason" in fields else None,
        message=fields["message~"].regex() if "message~" in fields else None,
    )


def _read_status(cursor: Cursor) -> str:
    """Read `True`, which YAML takes for a boolean, as the word it can only mean here."""
    return str(cursor.value) if isinstance(cursor.value, bool) else cursor.text()


def _holds(rule: ConditionRule, condition: Any) -> bool:
    return (
        manifests.dig(condition, "type") == rule.type
        and rule.status in {None, manifests.dig(condition, "status")}
        and rule.reason in {None, manifests.text(manifests.dig(condition, "reason"))}
        and (rule.message is None or bool(re.search(rule.message, manifests.text(manifests.dig(condition, "message")))))
    )


def _found(name: str, conditions: list[Any]) -> str:
    for condition in conditions:
        if manifests.dig(condition, "type") == name:
            said = [
                f"{key} {manifests.dig(condition, key)}"
                for key in ("status", "reason", "message")
                if manifests.dig(condition, key)
            ]
            return f"condition {name}: {', '.join(said)}"
    others = ", ".join(str(manifests.dig(condition, "type")) for condition in conditions)
    return f"no condition {name}" + (f" (only {others})" if others else "")
