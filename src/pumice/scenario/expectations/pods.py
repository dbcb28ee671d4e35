"""Expectations about pods: where they are, what became of them.

A pod that the scheduler evicted and that is gone is looked at only where the rule speaks of `evicted`; it then does not exist, and reads
otherwise as it was last seen, so that one can ask from which node victims were taken. Eviction belongs to the name: a pod created again
under the name of a victim still was evicted in this scenario.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from pumice.scenario import manifests, view
from pumice.scenario.expectations import conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.scenario.expectations.conditions import ConditionRule
    from pumice.scenario.reading import Cursor

_QUANTIFIERS = ("some", "atLeast", "atMost")
_KEYS = ("bound", "node", "phase", "exists", "evicted", "nominated", "condition", *_QUANTIFIERS)


class PodRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the pods that a pattern matches must be; what is None may be anything."""

    line: int
    pattern: str
    bound: bool | None = None
    node: tuple[str, ...] | None = None
    phase: str | None = None
    exists: bool | None = None
    evicted: bool | None = None
    nominated: tuple[str, ...] | None = None
    conditions: tuple[ConditionRule, ...] = ()
    some: int | None = None
    at_least: int | None = None
    at_most: int | None = None
    only_absence: bool = False

    @property
    def quantified(self) -> bool:
        """Tell whether a number of matches is asked for instead of all of them."""
        return (self.some, self.at_least, self.at_most) != (None, None, None)


class PodState(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule may ask of one pod."""

    name: str
    exists: bool
    evicted: bool
    manifest: manifests.Stored

    @property
    def node(self) -> str:
        """The node the pod is bound to, or nothing."""
        return manifests.text(manifests.dig(self.manifest, "spec", "nodeName"))

    @property
    def phase(self) -> str:
        """The pod's phase."""
        return manifests.text(manifests.dig(self.manifest, "status", "phase"))

    @property
    def nominated(self) -> str:
        """The node the pod waits for, or nothing."""
        return manifests.text(manifests.dig(self.manifest, "status", "nominatedNodeName"))

    @property
    def summary(self) -> str:
        """Say in a few words where the pod stands."""
        if not self.exists:
            return "evicted and gone" if self.evicted else "does not exist"
        place = f"bound to {self.node}" if self.node else "not bound"
        ending = ", terminating" if manifests.dig(self.manifest, "metadata", "deletionTimestamp") else ""
        return f"{place}, phase {self.phase or 'not set'}{ending}"


def read(cursor: Cursor) -> tuple[PodRule, ...]:
    """Read a map of pod patterns to rules."""
    return tuple(_read_rule(pattern, entry) for pattern, entry in cursor.entries("a map of namespace/name"))


def check(rules: tuple[PodRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold."""
    return [mismatch for rule in rules for mismatch in _check_rule(rule, seen)]


def namespaced(pattern: str, cursor: Cursor) -> str:
    """Demand that a pattern is `namespace/name`."""
    if pattern.count("/") != 1 or not all(pattern.split("/")):
        cursor.refuse(f"write it as namespace/name, for example default/{pattern.strip('/') or 'g-*'}")
    return pattern


def _read_rule(pattern: str, cursor: Cursor) -> PodRule:
    namespaced(pattern, cursor)
    fields = cursor.fields(_KEYS, "a pod expectation")
    numbers = {key: fields[key].integer() for key in _QUANTIFIERS if key in fields}
    flags = {key: fields[key].boolean() for key in ("bound", "exists", "evicted") if key in fields}
    return PodRule(
        line=cursor.line,
        pattern=pattern,
        bound=flags.get("bound"),
        node=_read_nodes(fields["node"]) if "node" in fields else None,
        phase=fields["phase"].text() if "phase" in fields else None,
        exists=flags.get("exists"),
        evicted=flags.get("evicted"),
        nominated=_read_nodes(fields["nominated"]) if "nominated" in fields else None,
        conditions=conditions.read(fields["condition"]) if "condition" in fields else (),
        some=numbers.get("some"),
        at_least=numbers.get("atLeast"),
        at_most=numbers.get("atMost"),
        only_absence=list(fields) == ["exists"] and flags["exists"] is False,
    )


def _read_nodes(cursor: Cursor) -> tuple[str, ...]:
    if isinstance(cursor.value, list):
        return tuple(item.text("text: a node name") for item in cursor.items())
    return (cursor.text("text: a node name, or a list of them"),)


def _check_rule(rule: PodRule, seen: view.View) -> list[view.Mismatch]:
    matched = _matched(rule, seen)
    if not matched:
        if rule.only_absence:
            return []
        return [
            view.Mismatch(line=rule.line, subject=f"pods {rule.pattern}", expected=_expected(rule), found="no such pod")
        ]
    if rule.quantified:
        return _check_number(rule, matched)
    return [
        view.Mismatch(line=rule.line, subject=f"pods {pod.name}", expected=expected, found=found)
        for pod in matched
        for expected, found in _misses(rule, pod)
    ]


def _matched(rule: PodRule, seen: view.View) -> list[PodState]:
    known: Mapping[str, manifests.Stored] = seen.pods if rule.evicted is None else {**seen.evicted, **seen.pods}
    return [
        PodState(name=name, exists=name in seen.pods, evicted=name in seen.evicted, manifest=known[name])
        for name in view.select(rule.pattern, known)
    ]


def _check_number(rule: PodRule, matched: list[PodState]) -> list[view.Mismatch]:
    satisfied = [pod.name for pod in matched if not _misses(rule, pod)]
    number = len(satisfied)
    fits = (
        rule.some in {None, number}
        and (rule.at_least is None or number >= rule.at_least)
        and (rule.at_most is None or number <= rule.at_most)
    )
    if fits:
        return []
    names = f": {', '.join(satisfied)}" if satisfied else ""
    found = f"{number} of {len(matched)} matches{names}"
    return [view.Mismatch(line=rule.line, subject=f"pods {rule.pattern}", expected=_expected(rule), found=found)]


def _misses(rule: PodRule, pod: PodState) -> list[tuple[str, str]]:
    """Give (expected, found) for each thing that the pod is not."""
    missed = [
        (f"{key}: {_said(wanted)}", f"{key}: {_said(not wanted)} ({pod.summary})")
        for key, wanted, actual in (
            ("exists", rule.exists, pod.exists),
            ("bound", rule.bound, bool(pod.node)),
            ("evicted", rule.evicted, pod.evicted),
        )
        if wanted is not None and wanted is not actual
    ]
    if rule.node is not None and not _named(rule.node, pod.node):
        missed.append((f"node: {_listed(rule.node)}", f"node: {pod.node or 'none'} ({pod.summary})"))
    if rule.phase not in {None, pod.phase}:
        missed.append((f"phase: {rule.phase}", f"phase: {pod.phase or 'none'} ({pod.summary})"))
    if rule.nominated is not None and not _named(rule.nominated, pod.nominated):
        missed.append(
            (f"nominated: {_listed(rule.nominated)}", f"nominated: {pod.nominated or 'none'} ({pod.summary})")
        )
    return missed + conditions.misses(rule.conditions, manifests.dig(pod.manifest, "status", "conditions"))


def _named(patterns: tuple[str, ...], node: str) -> bool:
    return any(pattern == node or (bool(node) and fnmatchcase(node, pattern)) for pattern in patterns)


def _expected(rule: PodRule) -> str:
    wanted = [
        f"{key}: {_said(value)}"
        for key, value in (("exists", rule.exists), ("bound", rule.bound), ("evicted", rule.evicted))
        if value is not None
    ]
    wanted += [
        f"{key}: {_listed(value)}"
        for key, value in (("node", rule.node), ("nominated", rule.nominated))
        if value is not None
    ]
    wanted += [f"phase: {rule.phase}"] if rule.phase is not None else []
    wanted += [condition.expected for condition in rule.conditions]
    numbers = [
        f"{words} {number}"
        for words, number in (("exactly", rule.some), ("at least", rule.at_least), ("at most", rule.at_most))
        if number is not None
    ]
    return (f"{' and '.join(numbers)} with " if numbers else "") + (", ".join(wanted) or "exists: true")


def _said(value: bool) -> str:
    return "true" if value else "false"


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(name or "none" for name in names)
