"""Copying and merging of manifests: plain maps, lists and scalars, as JSON has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]
_CONTAINERS = (dict, list)


def copied(value: Any) -> Any:
    """Copy maps and lists; scalars are shared, being immutable (several times cheaper than `copy.deepcopy`)."""
    if isinstance(value, dict):
        return {key: copied(item) if isinstance(item, _CONTAINERS) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) if isinstance(item, _CONTAINERS) else item for item in value]
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """Follow keys into nested maps; what is missing or of another type reads as an empty map."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def merged(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386); only changed levels are new, and an unchanged target is returned itself."""
    if not isinstance(patch, dict):
        return target if same(target, patch) else copied(patch)
    result: Manifest | None = None if isinstance(target, dict) else {}
    base: Mapping[str, Any] = target if isinstance(target, dict) else {}
    for key, change in patch.items():
        if change is None:
            if key in base:
                result = dict(base) if result is None else result
                del result[key]
            continue
        old = base.get(key)
        new = merged(old, change)
        if new is not old or key not in base:
            result = dict(base) if result is None else result
            result[key] = new
    return target if result is None else result


def same(left: Any, right: Any) -> bool:
    """Tell whether two values are equal as JSON, where `true` is not 1; what differs is found at the speed of `==`."""
    return bool(left == right) and _same_types(left, right)


def _same_types(left: Any, right: Any) -> bool:
    """Tell whether two equal values agree on what is a boolean."""
    if left is right:
        return True
    if isinstance(left, dict):
        return all(_same_types(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


_KEYS = {"conditions": "type", "reservedFor": "uid"}


def strategic(target: Mapping[str, Any], patch: Manifest) -> Manifest:
    """Turn a strategic patch into a merge patch: lists in `status` that have a key become the whole list, merged by it."""
    status = patch.get("status")
    if not isinstance(status, dict):
        return patch
    whole: Manifest = {}
    for field, key in _KEYS.items():
        changes, present = status.get(field), mapping(target, "status").get(field)
        if isinstance(changes, list):
            whole[field] = with_entries(present if isinstance(present, list) else [], changes, key) or None
    return {**patch, "status": {**status, **whole}} if whole else patch


def with_entries(present: list[Any], changes: list[Any], key: str = "type") -> list[Any]:
    """Merge entries into a list by their key; new ones are appended, and those that say `$patch: delete` go."""
    whole = list(present)
    for change in changes:
        name = mapping(change).get(key)
        at = next((index for index, old in enumerate(whole) if mapping(old).get(key) == name), None)
        if mapping(change).get("$patch") == "delete":
            whole = [old for old in whole if mapping(old).get(key) != name]
        elif at is None:
            whole.append(copied(change))
        else:
            whole[at] = merged(whole[at], change)
    return whole


def with_condition(manifest: Mapping[str, Any], entry: Manifest) -> Manifest:
    """Give an object with one condition in place of the one of its type, if any; only the levels that change are new."""
    status = mapping(manifest, "status")
    present = status.get("conditions")
    whole = (
        [each for each in present if mapping(each).get("type") != entry["type"]] if isinstance(present, list) else []
    )
    return {**manifest, "status": {**status, "conditions": [*whole, entry]}}


def condition(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Give an object's condition of a type."""
    conditions = mapping(manifest, "status").get("conditions")
    if not isinstance(conditions, list):
        return None
    return next((entry for entry in conditions if mapping(entry).get("type") == name), None)
