"""Make a value conform to its schema: drop fields nobody knows, find values of a wrong type, fill in defaults.

Values are changed in place: whoever calls has just decoded them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver.schemas.nodes import MISSING
from pumice.sim import structure

if TYPE_CHECKING:
    from pumice.apiserver.schemas.nodes import Node

Document = dict[str, Any]
_META = ("apiVersion", "kind", "metadata")


def prune(value: Any, node: Node, path: str = "", *, root: bool = False) -> list[str]:
    """Drop the fields that the schema does not know and give their paths."""
    dropped: list[str] = []
    _prune(value, node, path, dropped, root)
    return dropped


def _prune(value: Any, node: Node, path: str, dropped: list[str], root: bool) -> None:
    if type(value) is dict:
        _prune_fields(value, node, path, dropped, root)
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                _prune(item, node.items, f"{path}[{index}]", dropped, False)


def _prune_fields(value: Document, node: Node, path: str, dropped: list[str], root: bool) -> None:
    properties, additional = node.properties, node.additional
    free = node.keep_unknown or node.type == "any"
    unknown = None
    for name, item in value.items():
        child = properties.get(name) or additional
        if child is not None:
            if type(item) is dict or type(item) is list:
                _prune(item, child, f"{path}.{name}" if path else name, dropped, False)
        elif not free and not (name in _META and (root or node.embedded)):
            unknown = [*(unknown or ()), name]
    for name in unknown or ():
        del value[name]
        dropped.append(f"{path}.{name}" if path else name)


def mistyped(value: Any, node: Node, path: str = "") -> tuple[str, str, str] | None:
    """Give the path of the first value that is of a wrong type, what it is and what it should be."""
    found = JSON_NAMES.get(type(value), "object")
    kind = node.type
    if value is None or kind == "any":
        return None
    if kind in {"object", "map"}:
        if found != "object":
            return path, found, "object"
        return _mistyped_fields(value, node, path)
    if kind == "array":
        if found != "array":
            return path, found, "array"
        return _mistyped_items(value, node, path)
    if kind in {"int-or-string", "quantity"}:
        wanted = found in (("integer", "string") if kind == "int-or-string" else ("integer", "number", "string"))
    elif kind == "number":
        wanted = found in ("integer", "number")
    else:
        wanted = found == kind
    return None if wanted else (path, "number" if found == "integer" else found, kind)


def _mistyped_fields(value: Document, node: Node, path: str) -> tuple[str, str, str] | None:
    for name, item in value.items():
        child = node.properties.get(name) or node.additional
        if child is not None and (problem := mistyped(item, child, f"{path}.{name}" if path else name)):
            return problem
    return None


def _mistyped_items(value: list[Any], node: Node, path: str) -> tuple[str, str, str] | None:
    if node.items is not None:
        for index, item in enumerate(value):
            if problem := mistyped(item, node.items, f"{path}[{index}]"):
                return problem
    return None


JSON_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def drop_nulls(value: Any) -> None:
    """Take out null fields, at every depth: for a built-in kind null means that nothing is said."""
    if type(value) is dict:
        for name in [name for name, item in value.items() if item is None]:
            del value[name]
        for item in value.values():
            if type(item) is dict or type(item) is list:
                drop_nulls(item)
    elif type(value) is list:
        for item in value:
            drop_nulls(item)


def fill_defaults(value: Any, node: Node) -> None:
    """Fill in what a custom resource's schema states as defaults; null stands for a missing value unless it may be null."""
    if type(value) is dict:
        for name in [name for name, item in value.items() if item is None]:
            below = node.child(name)
            if below is not None and not below.nullable:
                del value[name]
        for name, child in node.properties.items():
            if child.default is not MISSING and name not in value:
                value[name] = structure.copied(child.default)
        for name, item in value.items():
            below = node.child(name)
            if below is not None and (type(item) is dict or type(item) is list):
                fill_defaults(item, below)
    elif type(value) is list and node.items is not None:
        for item in value:
            fill_defaults(item, node.items)
