"""Label and field selectors of lists and watches: read once, then asked about each object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver import statuses
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.resources import Resource

    Matches = Callable[[Mapping[str, Any]], bool]

_REQUIREMENT: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[^\s,=!()]+)|(?P<key>[^\s,=!()<>]+)\s*"
    r"(?:(?P<sign>==|=|!=|<|>)\s*(?P<value>[^\s,]*)|(?P<word>in|notin)\s*\((?P<values>[^)]*)\))?)\s*(?:,|$)"
)
_KEY: Final = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
_VALUE: Final = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
        "status.podIP", "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Event": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
        "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
        "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
    ),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "Job": ("status.successful",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Service": ("spec.clusterIP", "spec.type"),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
}  # fmt: skip


def everything(_: Mapping[str, Any]) -> bool:
    """Match any object."""
    return True


def labels(text: str) -> Matches:
    """Give what a label selector asks."""
    tests: list[Matches] = []
    position = 0
    while position < len(text):
        found = _REQUIREMENT.match(text, position)
        if found is None or found.end() == position:
            raise statuses.bad_request(
                f"unable to parse requirement: {text[position:].strip()!r} is no requirement on a label"
            )
        position = found.end()
        tests.append(_requirement(found))
    if len(tests) == 1:
        return tests[0]
    return lambda manifest: all(test(manifest) for test in tests)


def _requirement(found: re.Match[str]) -> Matches:
    key = found["missing"] or found["key"]
    if not _KEY.fullmatch(key) or len(key) > 317:
        raise statuses.bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must consist of alphanumeric characters'
        )
    values = [each.strip() for each in (found["values"] or "").split(",")] if found["word"] else [found["value"] or ""]
    if not found["word"] and any(sign in values[0] for sign in "=!"):
        sign = next(each for each in values[0] if each in "=!")
        raise statuses.bad_request(f"unable to parse requirement: found '{sign}', expected: ',' or 'end of string'")
    for value in values:
        if not _VALUE.fullmatch(value) or len(value) > 63:
            raise statuses.bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": a valid label must be an empty string or consist of alphanumeric characters')  # fmt: skip
    wanted = frozenset(values)
    if found["absent"]:
        return lambda manifest: key not in _labels(manifest)
    if found["sign"] in ("<", ">"):
        return _ordered(key, values[0], less=found["sign"] == "<")
    if found["sign"] == "!=" or found["word"] == "notin":
        return lambda manifest: _labels(manifest).get(key) not in wanted
    if found["sign"] or found["word"]:
        return lambda manifest: _labels(manifest).get(key) in wanted
    return lambda manifest: key in _labels(manifest)


def _ordered(key: str, value: str, *, less: bool) -> Matches:
    if not value.lstrip("-").isdecimal():
        raise statuses.bad_request(f'unable to parse requirement: values[0]: Invalid value: "{value}": for \'Gt\', \'Lt\' operators, the value must be an integer')  # fmt: skip

    def test(manifest: Mapping[str, Any]) -> bool:
        held = str(_labels(manifest).get(key, ""))
        return held.lstrip("-").isdecimal() and (int(held) < int(value) if less else int(held) > int(value))

    return test


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    found = manifest["metadata"].get("labels")
    return found if type(found) is dict else {}


def fields(text: str, resource: Resource) -> Matches:
    """Give what a field selector asks; only the fields that a kind is indexed by may be named."""
    tests: list[tuple[tuple[str, ...], str, bool]] = []
    for part in (each for each in text.split(",") if each):
        key, sign, value = _field(part)
        known = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.kind_name, ()), *resource.selectable)
        if key not in known:
            plain = not resource.custom and resource.kind_name not in _FIELDS
            why = f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            raise statuses.bad_request(why if plain else f"field label not supported: {key}")
        tests.append((tuple(key.split(".")), value, sign != "!="))
    return lambda manifest: all((_text(manifest, path) == value) is equal for path, value, equal in tests)


def named(text: str) -> str:
    """Give the name that a field selector asks for, if it asks for one and for nothing else."""
    key, sign, value = _field(text) if text and "," not in text else ("", "", "")
    return value if key == "metadata.name" and sign in ("=", "==") else ""


def _field(part: str) -> tuple[str, str, str]:
    # One run of blanks at a time: where several parts of a pattern could take the same ones, a long run takes for ever.
    match = re.fullmatch(r"([^=!\s]+)\s*(==|=|!=)(.*)", part.strip(), re.DOTALL)
    if match is None:
        raise statuses.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    return match[1], match[2], match[3].strip()


def _text(manifest: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = structure.mapping(manifest, *path[:-1]).get(path[-1])
    if path == ("source",):
        return str(structure.mapping(manifest, "source").get("component", ""))
    if path[0] == "regarding" and value is None:
        value = structure.mapping(manifest, "involvedObject", *path[1:-1]).get(path[-1])
    if path == ("status", "successful"):
        value = structure.mapping(manifest, "status").get("succeeded", 0)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return (
            "false" if path[-1] in ("unschedulable", "hostNetwork") else "0" if path == ("status", "replicas") else ""
        )
    return str(value)
