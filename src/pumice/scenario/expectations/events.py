"""Expectations about recorded Kubernetes events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pumice.scenario import references, view

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor

_KEYS = ("reason", "object", "message~")
_SHOWN = 5


class EventRule(msgspec.Struct, frozen=True, kw_only=True):
    """An event that must have been recorded; what is None may be anything."""

    line: int
    reason: str | None = None
    object: str | None = None
    message: str | None = None

    @property
    def expected(self) -> str:
        """Put the rule into words."""
        wanted = {"reason": self.reason, "object": self.object, "message~": self.message}
        return ", ".join(f"{key} {value}" for key, value in wanted.items() if value is not None) or "any event"

    def holds(self, event: view.Recorded) -> bool:
        """Tell whether an event is the one."""
        return (
            self.reason in {None, event.reason}
            and (self.object is None or view.matches(self.object, event.reference))
            and (self.message is None or bool(re.search(self.message, event.message)))
        )


def read(cursor: Cursor) -> tuple[EventRule, ...]:
    """Read a list of events."""
    return tuple(_read_rule(entry) for entry in cursor.items("a list of events"))


def check(rules: tuple[EventRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the events that were not recorded, beside those that come nearest."""
    return [
        view.Mismatch(line=rule.line, subject="events", expected=rule.expected, found=_found(rule, seen))
        for rule in rules
        if not any(rule.holds(event) for event in seen.events)
    ]


def _read_rule(cursor: Cursor) -> EventRule:
    fields = cursor.fields(_KEYS, "an event")
    return EventRule(
        line=cursor.line,
        reason=fields["reason"].text() if "reason" in fields else None,
        object=references.read(fields["object"]).pattern if "object" in fields else None,
        message=fields["message~"].regex() if "message~" in fields else None,
    )


def _found(rule: EventRule, seen: view.View) -> str:
    near = [event for event in seen.events if rule.object is None or view.matches(rule.object, event.reference)]
    if not near:
        about = f" about {rule.object}" if rule.object else ""
        return f"no event{about} ({len(seen.events)} recorded in all)"
    near = [event for event in near if event.reason == rule.reason] or near
    told = list(dict.fromkeys(f"{event.reason} on {event.reference}: {event.message}" for event in near))
    return "; ".join(told[-_SHOWN:]) + (f"; and {len(told) - _SHOWN} earlier ones" if len(told) > _SHOWN else "")
