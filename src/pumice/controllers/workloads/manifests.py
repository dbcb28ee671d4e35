"""Reading manifests: their parts, times, selectors, and how two of them differ."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.requests import Moment

Manifest = dict[str, Any]
DEPLOYMENT: Final = kinds.Kind(name="Deployment", group="apps", version="v1", plural="deployments", namespaced=True)
CONTROLLER_REVISION: Final = kinds.Kind(
    name="ControllerRevision", group="apps", version="v1", plural="controllerrevisions", namespaced=True
)
_SECOND: Final = 1_000_000
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """Follow keys into nested maps; what is missing or of another type reads as an empty map."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Any, *path: str) -> list[Any]:
    """Follow keys to a list; what is missing or of another type reads as an empty one."""
    *rest, last = path
    found = mapping(value, *rest).get(last)
    return found if isinstance(found, list) else []


def number(value: Mapping[str, Any], field: str, default: int = 0) -> int:
    """Read a whole number."""
    found = value.get(field)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def written_number(text: Any, default: int = 0, *, signed: bool = False) -> int:
    """Read a whole number as annotations have it; what is none, or has more digits than anybody counts to, reads as the default."""
    digits = text.removeprefix("-") if signed and isinstance(text, str) else text
    return int(text) if isinstance(digits, str) and _NUMBER.fullmatch(digits) else default


def uid(manifest: Mapping[str, Any]) -> str:
    """Give an object's uid."""
    found: str = manifest["metadata"].get("uid", "")
    return found


def name(manifest: Mapping[str, Any]) -> str:
    """Give an object's name."""
    found: str = manifest["metadata"]["name"]
    return found


def is_going(manifest: Mapping[str, Any]) -> bool:
    """Tell whether an object is being deleted."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


def moment_of(text: Any) -> int | None:
    """Read a timestamp in microseconds, None where there is none."""
    try:
        return timestamp.parse(text)
    except timestamp.TimestampError:
        return None


def stamp(moment: Moment) -> str:
    """Write the time in whole seconds, as Kubernetes does."""
    return timestamp.format_timestamp(moment.now // _SECOND * _SECOND)


def created(manifest: Mapping[str, Any]) -> int:
    """Give when an object was created; one that does not say is the oldest."""
    return moment_of(manifest["metadata"].get("creationTimestamp")) or 0


def selector(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the label selector of a workload; a ReplicationController has a map of labels in its place."""
    stated = mapping(workload, "spec", "selector")
    is_plain = bool(stated) and all(isinstance(value, str) for value in stated.values())
    return {"matchLabels": stated} if is_plain else stated


def selects(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Tell whether a label selector matches; one that is empty or unreadable matches nothing, as no workload may have such a one."""
    wanted, expressions = mapping(selector, "matchLabels"), items(selector, "matchExpressions")
    if not wanted and not expressions:
        return False
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(mapping(each), labels) for each in expressions)


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    found, values = labels.get(str(requirement.get("key"))), items(requirement, "values")
    match requirement.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return False


def labels(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give an object's labels."""
    return mapping(manifest, "metadata", "labels")


def merge_patch(old: Any, new: Any) -> Manifest:
    """Give the JSON merge patch that turns one map into another."""
    before, after = mapping(old), mapping(new)
    patch: Manifest = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key in before and before[key] == value:
            continue
        both = isinstance(value, dict) and isinstance(before.get(key), dict)
        patch[key] = merge_patch(before[key], value) if both else value
    return patch


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Give a status's condition of a type, empty if it has none."""
    return next((each for each in items(status, "conditions") if mapping(each).get("type") == kind), {})


def has(status: Mapping[str, Any], kind: str) -> bool:
    """Tell whether a condition is true."""
    return condition(status, kind).get("status") == "True"


def with_condition(status: Mapping[str, Any], entry: Manifest) -> Manifest:
    """Give a status with a condition in place of the one of its type; its transition is the old one's if it says the same as before."""
    old = condition(status, entry["type"])
    if old.get("status") == entry["status"] and "lastTransitionTime" in old:
        entry = {**entry, "lastTransitionTime": old["lastTransitionTime"]}
    if {key: old.get(key) for key in ("status", "reason", "message")} == {
        key: entry.get(key) for key in ("status", "reason", "message")
    }:
        return dict(status)
    others = [each for each in items(status, "conditions") if mapping(each).get("type") != entry["type"]]
    return {**status, "conditions": [*others, entry]}


def without_condition(status: Mapping[str, Any], kind: str) -> Manifest:
    """Give a status without its condition of a type."""
    left = [each for each in items(status, "conditions") if mapping(each).get("type") != kind]
    rest = {field: value for field, value in status.items() if field != "conditions"}
    return {**rest, "conditions": left} if left else rest


def scaled(value: Any, total: int, *, up: bool) -> int:
    """Read a count or a percentage of a total, rounded up or down."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    text = str(value)
    if text.endswith("%"):
        share = written_number(text[:-1]) * total
        return -(-share // 100) if up else share // 100
    return written_number(text)


def first(times: Iterable[int | None]) -> int | None:
    """Give the earliest of some times, None if there is none."""
    found = [each for each in times if each is not None]
    return min(found) if found else None
