"""JSON patches (RFC 6902): a list of operations, all of which happen or none."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import json_depth
from pumice.sim import structure

_MOST_OPERATIONS: Final = 10_000
_DEEPEST: Final = 200
_MOST_BYTES: Final = 3 * 1024 * 1024  # that all copies of a patch may have together, as kube-apiserver has it


class PatchError(ValueError):
    """A patch that cannot be applied, with the operation and why."""


def apply(target: Any, operations: Any) -> Any:
    """Give a copy of a document with the operations performed."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise PatchError("a JSON patch is a list of operations, each an object with op and path")
    if len(operations) > _MOST_OPERATIONS:
        raise PatchError(f"the JSON patch has {len(operations)} operations; at most {_MOST_OPERATIONS} are accepted")
    document = structure.copied(target)
    copied = 0
    for number, operation in enumerate(operations):
        try:
            if operation.get("op") == "copy":
                copied = _counted(copied, _find(document, _pointer(operation.get("from"))))
            document = _perform(document, operation)
        except PatchError as error:
            raise PatchError(f"operation {number} ({operation.get('op')} {operation.get('path')}): {error}") from None
    if json_depth.exceeds(msgspec.json.encode(document), _DEEPEST):
        raise PatchError(f"the object would be nested deeper than {_DEEPEST} levels")
    return document


def _counted(copied: int, value: Any) -> int:
    """Add what is copied to what was, so that no document doubles itself without an end."""
    copied += len(msgspec.json.encode(value))
    if copied > _MOST_BYTES:
        raise PatchError(f"with it {copied} bytes are copied; at most {_MOST_BYTES} are in one patch")
    return copied


def _perform(document: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, path, structure.copied(_stated(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, structure.copied(_stated(operation)))
        case "move":
            source = _pointer(operation.get("from"))
            if path[: len(source)] == source and path != source:
                raise PatchError("a value cannot be moved into itself")
            value = _find(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, structure.copied(_find(document, _pointer(operation.get("from")))))
        case "test":
            if not structure.same(_find(document, path), _stated(operation)):
                raise PatchError("the value is another one: test failed")
            return document
        case other:
            raise PatchError(f"{other!r} is no operation; use add, remove, replace, move, copy or test")


def _stated(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError("it states no value")
    return operation["value"]


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is no JSON pointer; write it as /spec/replicas")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _find(document: Any, path: list[str]) -> Any:
    for depth, part in enumerate(path):
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part)]
        else:
            raise PatchError(f"there is nothing at /{'/'.join(path[: depth + 1])}")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        place = len(parent) if path[-1] == "-" else _index(parent, path[-1], end=True)
        parent.insert(place, value)
    else:
        raise PatchError("its parent is neither an object nor a list")
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    """Put a value in the place of another; a field of an object need not be there, as for kube-apiserver."""
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1])] = value
        return document
    return _add(document, path, value)


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    _find(document, path)
    parent = _find(document, path[:-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[_index(parent, path[-1])]
    return document


def _index(items: list[Any], part: str, *, end: bool = False) -> int:
    if not part.isdecimal() or len(part) > 12 or int(part) >= len(items) + end:
        raise PatchError(f"{part!r} is no index of a list of {len(items)}")
    return int(part)
