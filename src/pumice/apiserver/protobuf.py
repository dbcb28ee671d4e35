"""Read objects in Kubernetes' protobuf form: what kubectl and Go clients send by default for built-in kinds. Answers are always JSON."""

from __future__ import annotations

import base64
import re
import struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Document = dict[str, Any]
Field = list[str]  # name, type, `one`, `many` or `map`, and how an empty value is told
MAGIC: Final = b"k8s\x00"
MEDIA: Final = "application/vnd.kubernetes.protobuf"
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_DEEPEST: Final = 100
_SIGNED: Final = frozenset({"int32", "int64"})


class WireError(ValueError):
    """A body that is no such message, and where it ends to be one."""


class Decoder:
    """Knows the messages of the built-in kinds."""

    def __init__(self, messages: Mapping[str, Mapping[str, Field]]) -> None:
        self._messages = messages
        self._kinds: dict[tuple[str, str], str] = {}
        for name in messages:
            package, _, kind = name.rpartition(".")
            self._kinds.setdefault((_api_version(package), kind), name)

    def decode(self, data: bytes) -> Document:
        """Give the object in an envelope."""
        if not data.startswith(MAGIC):
            raise WireError("it does not begin with the four bytes of Kubernetes' protobuf form")
        envelope = dict(_fields(memoryview(data)[4:]))
        stated = dict(_fields(_bytes(envelope.get(1, b""))))
        api_version, kind = (bytes(_bytes(stated.get(number, b""))).decode() for number in (1, 2))
        name = self._kinds.get((api_version, kind)) or self._kinds.get(("meta.k8s.io/v1", kind))
        if name is None:
            raise WireError(f"{api_version} {kind} is not read in this form here; send it as JSON")
        try:
            found = self._message(name, _bytes(envelope.get(2, b"")), 0)
        except (TypeError, OverflowError, struct.error) as error:
            raise WireError(f"a field of {kind} has another type on the wire than the kind has: {error}") from None
        return {"apiVersion": api_version, "kind": kind, **found}

    def _message(self, name: str, data: memoryview, depth: int) -> Any:
        if depth > _DEEPEST:
            raise WireError(f"{name} is nested more than {_DEEPEST} levels deep")
        special = _SPECIAL.get(name)
        if special is not None:
            return special(dict(_fields(data)))
        known = self._messages.get(name, {})
        result: Document = {}
        for number, raw in _fields(data):
            field = known.get(str(number))
            if field is not None:
                self._put(result, field, raw, depth)
        if name == _EXTENSIONS + "JSONSchemaProps":
            return {_schema_field(key): value for key, value in result.items()}
        return result

    def _put(self, result: Document, field: Field, raw: Any, depth: int) -> None:
        name, kind, often, told = field
        if often == "map":
            entry = dict(_fields(_bytes(raw)))
            key = bytes(_bytes(entry.get(1, b""))).decode()
            result.setdefault(name, {})[key] = self._value(kind, entry.get(2, b"" if kind not in _SIGNED else 0), depth)
            return
        value = self._value(kind, raw, depth)
        if often == "many":
            result.setdefault(name, []).append(value)
        elif told == "inline":
            result.update(value)
        elif value is not None and not (told == "drop" and value in ("", 0, False, {}, 0.0)):
            result[name] = value

    def _value(self, kind: str, raw: Any, depth: int) -> Any:
        match kind:
            case "string":
                return bytes(_bytes(raw)).decode()
            case "bytes":
                return base64.b64encode(_bytes(raw)).decode()
            case "bool":
                return bool(raw)
            case "int32" | "int64":
                return raw - 2**64 if raw >= 2**63 else raw
            case "uint32" | "uint64":
                return raw
            case "double":
                return struct.unpack("<d", raw)[0]
        return self._message(kind, _bytes(raw), depth + 1)


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Go through the fields of a message: numbers for varints, pieces of the data for everything else."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire, -1)
        if wire == 2:
            size, position = _varint(data, position)
        if size < 0 or position + size > end:
            raise WireError(f"field {number} does not end within its message")
        yield number, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise WireError("a number does not end within its message")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7


def _bytes(raw: Any) -> memoryview:
    if isinstance(raw, int):
        raise WireError("a number stands where a text or a message is expected")
    return memoryview(raw)


def _api_version(package: str) -> str:
    """Give the apiVersion of a package: `k8s.io.api.apps.v1` is apps/v1."""
    if package + "." == _META:
        return "meta.k8s.io/v1"
    if package + "." == _EXTENSIONS:
        return "apiextensions.k8s.io/v1"
    *_, group, version = package.split(".")
    full = {
        "core": "",
        "admissionregistration": "admissionregistration.k8s.io",
        "authentication": "authentication.k8s.io",
        "authorization": "authorization.k8s.io",
        "coordination": "coordination.k8s.io",
        "discovery": "discovery.k8s.io",
        "events": "events.k8s.io",
        "flowcontrol": "flowcontrol.apiserver.k8s.io",
        "networking": "networking.k8s.io",
        "node": "node.k8s.io",
        "rbac": "rbac.authorization.k8s.io",
        "resource": "resource.k8s.io",
        "scheduling": "scheduling.k8s.io",
        "storage": "storage.k8s.io",
    }.get(group, group)
    return f"{full}/{version}" if full else version


# ---- messages that are no objects in JSON


def _text(fields: Mapping[int, Any]) -> str:
    return bytes(_bytes(fields.get(1, b""))).decode()


def _int_or_string(fields: Mapping[int, Any]) -> Any:
    if fields.get(1, 0):
        return bytes(_bytes(fields.get(3, b""))).decode()
    number = fields.get(2, 0)
    return number - 2**64 if number >= 2**63 else number


def _raw_json(fields: Mapping[int, Any]) -> Any:
    raw = bytes(_bytes(fields.get(1, b"")))
    return msgspec.json.decode(raw) if raw else None


def _moment(fields: Mapping[int, Any]) -> str | None:
    seconds = fields.get(1, 0)
    seconds = seconds - 2**64 if seconds >= 2**63 else seconds
    if not fields or seconds <= -62_135_596_800:
        return None  # what Go calls the zero time
    return timestamp.format_timestamp(seconds * duration.SECOND)


def _precise(fields: Mapping[int, Any]) -> str | None:
    whole = _moment(fields)
    return None if whole is None else f"{whole.removesuffix('Z').partition('.')[0]}.{fields.get(2, 0) // 1000:06d}Z"


def _items(fields: Mapping[int, Any]) -> list[str]:
    return [bytes(_bytes(value)).decode() for value in fields.values()]


def _go_duration(fields: Mapping[int, Any]) -> str:
    return f"{fields.get(1, 0) / 1e9:g}s"


_SPECIAL: Final[dict[str, Callable[[Mapping[int, Any]], Any]]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _text,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    f"{_META}Time": _moment,
    f"{_META}MicroTime": _precise,
    f"{_META}Duration": _go_duration,
    f"{_META}FieldsV1": _raw_json,
    f"{_EXTENSIONS}JSON": _raw_json,
    "k8s.io.api.authentication.v1.ExtraValue": _items,
    "k8s.io.api.authorization.v1.ExtraValue": _items,
}


def _schema_field(name: str) -> str:
    """Give the name of a schema's field as JSON has it: `xKubernetesListType` is x-kubernetes-list-type."""
    if name.startswith("xKubernetes"):
        return re.sub(r"([A-Z])", lambda match: f"-{match[1].lower()}", name)
    return {"ref": "$ref", "schema": "$schema"}.get(name, name)
