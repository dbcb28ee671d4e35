"""The validation rules of custom resources and the conditions of webhooks, evaluated as CEL.

A rule that cannot be compiled is refused by name when its definition is created, and never when an object comes. Without the extra `cel` there is nothing to evaluate rules
with: they are taken as kept, and whoever starts the server is told so.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from pumice.cel import language
from pumice.cel.language import CelError as CelError  # noqa: PLC0414  whoever catches it finds it here

Document = dict[str, Any]
Scope = dict[str, Any]
Budget = list[int]

MOST_STEPS: Final = 200_000
"""How many items of lists and maps all rules about one object may look at, by what their loops could come to."""
_MOST_AT_ONCE: Final = 10_000  # iterations after which the evaluator ends by itself
_LOOPS: Final = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transformList|sortBy)\s*\(")
_RULES: Final = ("self", "oldSelf")
_CONDITIONS: Final = ("object", "oldObject", "request")
NOT_EVALUATED: Final = f"validation rules of custom resources are not evaluated: {language.MISSING}"


@functools.lru_cache(maxsize=4096)
def _compiled(rule: str, variables: tuple[str, ...]) -> language.Program:
    return language.over(*variables).compile(rule)


def parse(rule: str) -> None:
    """Refuse a rule that cannot be compiled; without an evaluator none is."""
    _check(rule, _RULES)


def parse_condition(rule: str) -> None:
    """Refuse a condition that cannot be compiled."""
    _check(rule, _CONDITIONS)


def _check(rule: str, variables: tuple[str, ...]) -> None:
    try:
        _compiled(rule, variables)
    except language.MissingError:
        return


_LITERAL: Final = re.compile(r"r?'(?:[^'\\]|\\.)*'|r?\"(?:[^\"\\]|\\.)*\"")
_SELECTION: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")


def undefined(rule: str, schema: Document) -> str:
    """Name the first field that a rule reads of a value and its schema does not have, or nothing."""
    for found in _SELECTION.finditer(_LITERAL.sub("''", rule)):
        names = found[1].split(".")[1:]
        below: Any = schema
        for name in names[:-1] if found[2] else names:
            stated = below.get("properties")
            if not isinstance(stated, dict) or name.startswith("__"):
                break  # a map, a value of any form, or a name that is written in another way
            if name not in stated:
                return "" if _is_open(below) else name
            below = stated[name]
    return ""


def _is_open(schema: Document) -> bool:
    """Tell whether a value has fields that its schema does not name."""
    unknown = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties")
    return bool(unknown or schema.get("x-kubernetes-embedded-resource") or schema.get("x-kubernetes-int-or-string"))


def budget() -> Budget:
    """Give what the rules about one object may spend together."""
    return [MOST_STEPS]


def violations(rules: list[Document], value: Any, old: Any, left: Budget | None = None) -> list[tuple[str, str]]:
    """Give reason and message of every rule that a value breaks; rules about a change are asked only where there was something."""
    found = []
    left = budget() if left is None else left
    longest = _longest(value) if any(_LOOPS.search(rule["rule"]) for rule in rules) else 1
    for rule in rules:
        text = rule["rule"]
        if "oldSelf" in text and old is None:
            continue
        scope = {"self": value, "oldSelf": old}
        try:
            _spend(left, min(_MOST_AT_ONCE, longest ** len(_LOOPS.findall(text))))
            kept = _compiled(text, _RULES).evaluate(scope)
            message = "" if kept is True else _message(rule, scope)
        except language.MissingError:
            return []
        except CelError as problem:
            kept, message = False, f"{problem} evaluating rule: {text}"
        if kept is not True:
            found.append((rule.get("reason", "FieldValueInvalid"), message))
    return found


def condition(rule: str, scope: Scope) -> bool:
    """Tell whether a condition over some variables holds; raise `CelError` where it cannot be told."""
    found = _compiled(rule, _CONDITIONS).evaluate({name: scope.get(name) for name in _CONDITIONS})
    if not isinstance(found, bool):
        raise CelError(f"it gives {type(found).__name__}, not bool")
    return found


def _message(rule: Document, scope: Scope) -> str:
    if rule.get("messageExpression"):
        try:
            return str(_compiled(rule["messageExpression"], _RULES).evaluate(scope))[: language.LONGEST]
        except CelError:
            pass  # as Kubernetes does: the plain message then
    return rule.get("message") or f"failed rule: {rule['rule']}"


def _spend(left: Budget, steps: int) -> None:
    left[0] -= steps
    if left[0] < 0:
        raise CelError("call cost exceeds limit")


def _longest(value: Any) -> int:
    """Return the length of the longest list or map of a value, itself included."""
    most, todo = 1, [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict | list):
            most = max(most, len(each))
            todo += each.values() if isinstance(each, dict) else each
    return most
