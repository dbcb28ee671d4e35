"""The difference between two documents, as a JSON patch (RFC 6902)."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
Operation = dict[str, Any]


def difference(old: Document, new: Document) -> list[Operation]:
    """Give the operations that make one document the other."""
    operations: list[Operation] = []
    _compare(old, new, "", operations)
    return operations


def copied(value: Any) -> Any:
    """Copy a document at every depth."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def _compare(old: Any, new: Any, path: str, operations: list[Operation]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        operations += [{"op": "remove", "path": f"{path}/{_escaped(key)}"} for key in old if key not in new]
        for key, value in new.items():
            where = f"{path}/{_escaped(key)}"
            if key not in old:
                operations.append({"op": "add", "path": where, "value": value})
            else:
                _compare(old[key], value, where, operations)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            _compare(before, after, f"{path}/{index}", operations)
    elif type(old) is not type(new) or old != new:
        operations.append({"op": "replace", "path": path, "value": new})


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
