"""Validate a custom resource against its structural schema, with the words that kube-apiserver uses."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pumice.api import timestamp
from pumice.apiserver.ownership import places
from pumice.apiserver.schemas import cel, conforming

if TYPE_CHECKING:
    from pumice.apiserver.schemas.nodes import Node
    from pumice.apiserver.statuses import Causes

_MOST_CAUSES = 20
_BLOCKING = frozenset(f"FieldValue{what}" for what in ("Required", "TooLong", "TooMany", "TypeInvalid", "NotSupported"))
_WORDS = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
_UNCHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"


def causes(value: Any, node: Node, old: Any = None, path: str = "") -> Causes:
    """Give what is wrong with a value; at most a page of it. Rules are asked about a value that is otherwise good."""
    found: Causes = []
    _check(value, node, path, found)
    blocked = any(reason in _BLOCKING for reason, _, _ in found)
    if node.ruled and not blocked:
        _check_rules(value, node, old, path, (found, cel.budget()))
    elif node.ruled and not path:
        found.append(("FieldValueInvalid", "<nil>", f"Invalid value: null: {_UNCHECKED}"))
    return found[:_MOST_CAUSES]


def _check_rules(value: Any, node: Node, old: Any, path: str, told: tuple[Causes, cel.Budget]) -> None:
    if not node.ruled or (value is None and node.nullable):
        return
    if node.rules:
        found, left = told
        broken = cel.violations(node.rules, value, old, left)
        found += [
            (reason, path or "<nil>", f"{_WORDS.get(reason, 'Invalid value')}: {text}") for reason, text in broken
        ]
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            below = node.child(name)
            if below is not None:
                _check_rules(item, below, before.get(name), f"{path}.{name}" if path else name, told)
    elif isinstance(value, list) and node.items is not None:
        known = places.Places()
        for index, item in enumerate(value):
            _check_rules(item, node.items, _before(item, old, node, known), f"{path}[{index}]", told)


def _check(value: Any, node: Node, path: str, found: Causes) -> None:
    if len(found) >= _MOST_CAUSES or (value is None and node.nullable):
        return
    if problem := _type_problem(value, node):
        found.append(("FieldValueTypeInvalid", path or "<nil>", f"Invalid value: {_shown(_name(value))}: {path} in body must be of type {problem}: {_shown(_name(value))}"))  # fmt: skip
        return
    if node.enum is not None and value not in node.enum:
        supported = ", ".join(_shown(each) for each in node.enum)
        found.append(
            ("FieldValueNotSupported", path, f"Unsupported value: {_shown(value)}: supported values: {supported}")
        )
    if excess := _excess(value, node):
        found.append((excess[0], path, excess[1]))
        return
    stated = len(value) if isinstance(value, list) else value
    for text in _limit_problems(value, node):
        reason = "FieldValueTypeInvalid" if text.startswith("must be of type") else "FieldValueInvalid"
        found.append((reason, path, f"Invalid value: {_shown(stated)}: {path} in body {text}"))
    if isinstance(value, dict):
        _check_fields(value, node, path, found)
    elif isinstance(value, list):
        _check_items(value, node, path, found)
    _check_combined(value, node, path, found)


def _check_fields(value: dict[str, Any], node: Node, path: str, found: Causes) -> None:
    for name in node.required:
        if name not in value:
            found.append(("FieldValueRequired", f"{path}.{name}" if path else name, "Required value"))
    for name, item in value.items():
        below = node.child(name)
        if below is not None:
            _check(item, below, f"{path}.{name}" if path else name, found)


def _check_items(value: list[Any], node: Node, path: str, found: Causes) -> None:
    if node.list_type in ("map", "set"):
        seen: set[str] = set()
        for index, item in enumerate(value):
            keys = {key: item.get(key) for key in node.list_keys} if isinstance(item, dict) and node.list_keys else item
            text = json.dumps(keys, sort_keys=True)
            if text in seen:
                found.append(("FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {_shown(keys)}"))
            seen.add(text)
    if node.items is not None:
        for index, item in enumerate(value):
            _check(item, node.items, f"{path}[{index}]", found)


def _before(item: Any, old: Any, node: Node, known: places.Places) -> Any:
    """Find what stood in the place of an item: by its keys where the list has some, else nothing is known."""
    if node.list_type != "map" or not isinstance(item, dict) or not isinstance(old, list):
        return None
    place = known.with_fields(old, {key: item.get(key) for key in node.list_keys})
    return None if place is None else old[place]


def _check_combined(value: Any, node: Node, path: str, found: Causes) -> None:
    for word, branches in node.combined.items():
        fitting = sum(not causes(value, branch, None, path) for branch in branches)
        text = {
            "allOf": "" if fitting == len(branches) else "must validate all the schemas (allOf)",
            "anyOf": "" if fitting else "must validate at least one schema (anyOf)",
            "oneOf": "" if fitting == 1 else "must validate one and only one schema (oneOf)",
            "not": "must not validate the schema (not)" if fitting else "",
        }[word]
        if text and not (word == "anyOf" and node.type == "int-or-string"):
            found.append(("FieldValueInvalid", path, f"Invalid value: {_shown(value)}: {path} in body {text}"))


def _type_problem(value: Any, node: Node) -> str:
    name = _name(value)
    match node.type:
        case "any":
            return ""
        case "object" | "map":
            return "" if name == "object" else "object"
        case "int-or-string":
            return "" if name in ("integer", "string") else "integer,string"
        case "number" | "quantity":
            return "" if name in ("integer", "number") else "number"
        case "integer":
            whole = name == "integer" or (isinstance(value, float) and value.is_integer())
            return "" if whole else "integer"
        case kind:
            return "" if name == kind else kind


def _excess(value: Any, node: Node) -> tuple[str, str] | None:
    """Say that a text is too long, or that a list or a map has too many items; nothing else is said of such a one."""
    if isinstance(value, str) and len(value) > (most := node.limits.get("maxLength", math.inf)):
        return "FieldValueTooLong", f"Too long: may not be more than {most} byte{'s' * (most != 1)}"
    word = "maxItems" if isinstance(value, list) else "maxProperties" if isinstance(value, dict) else ""
    if word and len(value) > (most := node.limits.get(word, math.inf)):
        return "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} item{'s' * (most != 1)}"
    return None


def _limit_problems(value: Any, node: Node) -> list[str]:
    limits = node.limits
    problems = []
    if isinstance(value, str):
        problems += _text_problems(value, node)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        problems += _number_problems(value, node)
    elif isinstance(value, list):
        if len(value) < limits.get("minItems", 0):
            problems.append(f"should have at least {limits['minItems']} items")
    elif isinstance(value, dict) and len(value) < limits.get("minProperties", 0):
        problems.append(f"should have at least {limits['minProperties']} properties")
    return problems


def _text_problems(value: str, node: Node) -> list[str]:
    limits = node.limits
    problems = []
    if len(value) < limits.get("minLength", 0):
        problems.append(f"should be at least {limits['minLength']} chars long")
    if node.pattern is not None and not node.pattern.search(value):
        problems.append(f"should match '{node.source['pattern']}'")
    if limits.get("format") == "date-time":
        try:
            timestamp.parse(value)
        except timestamp.TimestampError:
            problems.append(f"must be of type date-time: {_shown(value)}")
    return problems


def _number_problems(value: float, node: Node) -> list[str]:
    limits = node.limits
    problems = []
    low, high = limits.get("minimum", -math.inf), limits.get("maximum", math.inf)
    if value < low or (value == low and limits.get("exclusiveMinimum")):
        problems.append(f"should be greater than {'or equal to ' * (not limits.get('exclusiveMinimum'))}{low}")
    if value > high or (value == high and limits.get("exclusiveMaximum")):
        problems.append(f"should be less than {'or equal to ' * (not limits.get('exclusiveMaximum'))}{high}")
    if "multipleOf" in limits and value % limits["multipleOf"]:
        problems.append(f"should be a multiple of {limits['multipleOf']}")
    if limits.get("format") == "int32" and not -(2**31) <= value < 2**31:
        problems.append(f"must be of type int32: {_shown(value)}")
    return problems


def _name(value: Any) -> str:
    return conforming.JSON_NAMES.get(type(value), "object")


def _shown(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= 200 else text[:197] + "..."
