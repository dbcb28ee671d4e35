"""Expectations about nodes, counted over the stored pods bound there that have not finished; terminating ones count."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from pumice.scenario import manifests, requests, view
from pumice.scenario.expectations import amounts

if TYPE_CHECKING:
    from pumice.scenario.expectations.amounts import AmountRule
    from pumice.scenario.reading import Cursor

_KEYS = ("pods", "used", "idle")
_FINISHED = ("Succeeded", "Failed")


class NodeRule(msgspec.Struct, frozen=True, kw_only=True):
    """What must be on the nodes that a pattern matches."""

    line: int
    pattern: str
    pods: int | None = None
    used: tuple[AmountRule, ...] = ()
    idle: tuple[AmountRule, ...] = ()


def read(cursor: Cursor) -> tuple[NodeRule, ...]:
    """Read a map of node patterns to rules."""
    return tuple(_read_rule(pattern, entry) for pattern, entry in cursor.entries("a map of node names"))


def check(rules: tuple[NodeRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold."""
    found: list[view.Mismatch] = []
    placed = _placed(seen)
    for rule in rules:
        matched = view.select(rule.pattern, seen.nodes)
        if not matched:
            subject = f"nodes {rule.pattern}"
            found.append(view.Mismatch(line=rule.line, subject=subject, expected="exists", found="no such node"))
        for name in matched:
            missed = _misses(rule, seen.nodes[name], placed.get(name, {}))
            found += [
                view.Mismatch(line=rule.line, subject=f"nodes {name}", expected=wanted, found=actual)
                for wanted, actual in missed
            ]
    return found


def _read_rule(pattern: str, cursor: Cursor) -> NodeRule:
    fields = cursor.fields(_KEYS, "a node expectation")
    return NodeRule(
        line=cursor.line,
        pattern=pattern,
        pods=fields["pods"].integer() if "pods" in fields else None,
        used=amounts.read(fields["used"]) if "used" in fields else (),
        idle=amounts.read(fields["idle"]) if "idle" in fields else (),
    )


def _placed(seen: view.View) -> dict[str, dict[str, manifests.Stored]]:
    """Group the pods that count by the node they are bound to."""
    placed: dict[str, dict[str, manifests.Stored]] = {}
    for name, pod in seen.pods.items():
        node = manifests.text(manifests.dig(pod, "spec", "nodeName"))
        if node and manifests.dig(pod, "status", "phase") not in _FINISHED:
            placed.setdefault(node, {})[name] = pod
    return placed


def _misses(rule: NodeRule, node: manifests.Stored, there: dict[str, manifests.Stored]) -> list[tuple[str, str]]:
    used: requests.Amounts = {}
    if rule.used or rule.idle:
        for pod in there.values():
            for resource, amount in requests.of_pod(pod).items():
                used[resource] = used.get(resource, Fraction(0)) + amount
    missed: list[tuple[str, str]] = []
    if rule.pods is not None and rule.pods != len(there):
        names = f" ({', '.join(sorted(there))})" if there else ""
        missed.append((f"pods: {rule.pods}", f"pods: {len(there)}{names}"))
    missed += amounts.misses("used", rule.used, used)
    offered = amounts.listed(manifests.dig(node, "status", "allocatable"))
    idle = {name: offered.get(name, Fraction(0)) - used.get(name, Fraction(0)) for name in offered | used}
    return missed + amounts.misses("idle", rule.idle, idle)
