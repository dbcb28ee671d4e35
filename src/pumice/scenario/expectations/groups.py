"""Expectations about pod groups and queues: phases, states and the numbers their status shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.scenario import manifests, view
from pumice.scenario.expectations import amounts, conditions, pods

if TYPE_CHECKING:
    from pumice.scenario.expectations.amounts import AmountRule
    from pumice.scenario.expectations.conditions import ConditionRule
    from pumice.scenario.reading import Cursor

_MEMBERS = ("running", "succeeded", "failed")
_PHASES = ("pending", "inqueue", "running", "unknown", "completed")


class StatusRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the status of the objects that a pattern matches must show."""

    line: int
    pattern: str
    word: str | None = None
    numbers: dict[str, int] = {}
    allocated: tuple[AmountRule, ...] = ()
    conditions: tuple[ConditionRule, ...] = ()


def read_pod_groups(cursor: Cursor) -> tuple[StatusRule, ...]:
    """Read a map of `namespace/name` to what the group's status must show."""
    return tuple(
        _read_rule(pods.namespaced(pattern, entry), entry, "phase", _MEMBERS, "a pod group expectation")
        for pattern, entry in cursor.entries("a map of namespace/name")
    )


def read_queues(cursor: Cursor) -> tuple[StatusRule, ...]:
    """Read a map of queue names to what the queue's status must show."""
    return tuple(
        _read_rule(pattern, entry, "state", ("allocated", *_PHASES), "a queue expectation")
        for pattern, entry in cursor.entries("a map of queue names")
    )


def check_pod_groups(rules: tuple[StatusRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold of pod groups."""
    found: list[view.Mismatch] = []
    for rule in rules:
        matched = view.select(rule.pattern, seen.pod_groups)
        found += [] if matched else [_absent(rule, "podgroups", "pod group")]
        for name in matched:
            status = manifests.mapping(seen.pod_groups[name].get("status"))
            missed = _misses(rule, "phase", manifests.text(status.get("phase")) or "Pending", status)
            missed += [
                (f"{key}: {number}", f"{key}: {_number(status, key)}")
                for key, number in rule.numbers.items()
                if _number(status, key) != number
            ]
            found += [
                view.Mismatch(line=rule.line, subject=f"podgroups {name}", expected=wanted, found=actual)
                for wanted, actual in missed
            ]
    return found


def check_queues(rules: tuple[StatusRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold of queues; groups are counted from the stored PodGroups, since no peer writes these numbers."""
    found: list[view.Mismatch] = []
    for rule in rules:
        matched = view.select(rule.pattern, seen.queues)
        found += [] if matched else [_absent(rule, "queues", "queue")]
        for name in matched:
            status = manifests.mapping(seen.queues[name].get("status"))
            missed = _misses(rule, "state", manifests.text(status.get("state")) or "Open", status)
            missed += amounts.misses("allocated", rule.allocated, amounts.listed(status.get("allocated")))
            for key, number in rule.numbers.items():
                members = _groups_of(name, key, seen)
                if len(members) != number:
                    missed.append(
                        (f"{key}: {number}", f"{key}: {len(members)}" + (f" ({', '.join(members)})" if members else ""))
                    )
            found += [
                view.Mismatch(line=rule.line, subject=f"queues {name}", expected=wanted, found=actual)
                for wanted, actual in missed
            ]
    return found


def _read_rule(pattern: str, cursor: Cursor, word: str, keys: tuple[str, ...], what: str) -> StatusRule:
    fields = cursor.fields((word, *keys, "condition"), what)
    return StatusRule(
        line=cursor.line,
        pattern=pattern,
        word=fields[word].text() if word in fields else None,
        numbers={key: fields[key].integer() for key in fields if key not in {word, "allocated", "condition"}},
        allocated=amounts.read(fields["allocated"]) if "allocated" in fields else (),
        conditions=conditions.read(fields["condition"]) if "condition" in fields else (),
    )


def _absent(rule: StatusRule, section: str, what: str) -> view.Mismatch:
    return view.Mismatch(
        line=rule.line, subject=f"{section} {rule.pattern}", expected="exists", found=f"no such {what}"
    )


def _misses(rule: StatusRule, key: str, actual: str, status: Any) -> list[tuple[str, str]]:
    missed = [] if rule.word in {None, actual} else [(f"{key}: {rule.word}", f"{key}: {actual}")]
    return missed + conditions.misses(rule.conditions, manifests.dig(status, "conditions"))


def _number(status: Any, key: str) -> int:
    value = manifests.dig(status, key)
    return value if isinstance(value, int) else 0


def _groups_of(queue: str, phase: str, seen: view.View) -> list[str]:
    return [
        name
        for name, group in sorted(seen.pod_groups.items())
        if (manifests.text(manifests.dig(group, "spec", "queue")) or seen.default_queue) == queue
        and (manifests.text(manifests.dig(group, "status", "phase")) or "Pending").lower() == phase
    ]
