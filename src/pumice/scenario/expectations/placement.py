"""Expectations about where pods stand to one another: together, apart, under the same label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.scenario import manifests, view
from pumice.scenario.expectations import pods

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor


class PlacementRule(msgspec.Struct, frozen=True, kw_only=True):
    """Pods by pattern, and for `sameLabel` the node label they must share."""

    line: int
    pattern: str
    label: str = ""


def read(cursor: Cursor) -> tuple[PlacementRule, ...]:
    """Read a list of pod patterns."""
    return tuple(_read_pattern(entry, entry) for entry in cursor.items("a list of pod patterns"))


def read_same_label(cursor: Cursor) -> tuple[PlacementRule, ...]:
    """Read the pods and the label of `sameLabel`."""
    fields = cursor.fields(("pods", "label"), "sameLabel")
    for key in ("pods", "label"):
        if isinstance(cursor.value, dict) and key not in cursor.value:
            cursor.refuse(f"sameLabel needs the key {key!r}")
    if len(fields) < 2:
        return ()
    return (_read_pattern(cursor, fields["pods"], fields["label"].text()),)


def check_together(rules: tuple[PlacementRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the patterns whose pods are not all on one node."""
    found: list[view.Mismatch] = []
    for rule in rules:
        nodes = _nodes(rule, seen)
        if not nodes or "" in nodes.values() or len(dict.fromkeys(nodes.values())) > 1:
            found.append(_mismatch(rule, "together", "all on one node", nodes))
    return found


def check_apart(rules: tuple[PlacementRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the patterns with two pods on one node."""
    found: list[view.Mismatch] = []
    for rule in rules:
        nodes = _nodes(rule, seen)
        if not nodes or "" in nodes.values() or len(dict.fromkeys(nodes.values())) < len(nodes):
            found.append(_mismatch(rule, "apart", "all on different nodes", nodes))
    return found


def check_same_label(rules: tuple[PlacementRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give the patterns whose pods' nodes differ in the label, or lack it."""
    found: list[view.Mismatch] = []
    for rule in rules:
        nodes = _nodes(rule, seen)
        values = {
            pod: manifests.text(manifests.dig(seen.nodes.get(node), "metadata", "labels", rule.label))
            for pod, node in nodes.items()
        }
        if not nodes or "" in values.values() or len(dict.fromkeys(values.values())) > 1:
            placed = {
                pod: f"{node} ({rule.label}={values[pod] or 'none'})" if node else "" for pod, node in nodes.items()
            }
            found.append(_mismatch(rule, "sameLabel", f"all on nodes with the same label {rule.label}", placed))
    return found


def _read_pattern(place: Cursor, cursor: Cursor, label: str = "") -> PlacementRule:
    pattern = cursor.text("text: a pod pattern")
    if pattern:
        pods.namespaced(pattern, cursor)
    return PlacementRule(line=place.line, pattern=pattern, label=label)


def _nodes(rule: PlacementRule, seen: view.View) -> dict[str, str]:
    """Map the matched pods to their nodes, the empty text for one that has none."""
    return {
        name: manifests.text(manifests.dig(seen.pods[name], "spec", "nodeName"))
        for name in view.select(rule.pattern, seen.pods)
    }


def _mismatch(rule: PlacementRule, section: str, expected: str, nodes: dict[str, str]) -> view.Mismatch:
    found = (
        ", ".join(f"{pod} on {node}" if node else f"{pod} not bound" for pod, node in nodes.items()) or "no such pod"
    )
    return view.Mismatch(line=rule.line, subject=f"{section} {rule.pattern}", expected=expected, found=found)
