"""Manifests and bytes into typed objects.

A bad manifest is a value, not an exception: `Malformed` says which object and which field, and keeps as much metadata as could be read, so that
the object alone is disabled and its user told. Numbers of the right type are taken as they are; judging them is not done here.
"""

import difflib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pumice.api import claim_remains, kinds, mending, scheduling
from pumice.api.kinds import Kind
from pumice.api.meta import KubeObject, ObjectMeta, Wire

MAX_ANNOTATION_BYTES: Final = 262_144

_OLDER: Final[dict[Kind, type[scheduling.OlderPodGroup | scheduling.OlderQueue]]] = {
    kinds.INCUBATOR_POD_GROUP: scheduling.OlderPodGroup,
    kinds.INCUBATOR_QUEUE: scheduling.OlderQueue,
    kinds.SIGS_POD_GROUP: scheduling.OlderPodGroup,
    kinds.SIGS_QUEUE: scheduling.OlderQueue,
}


class Identity(msgspec.Struct, frozen=True):
    """Which object is meant."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """Return kind and name as messages show them: "PodGroup a/g"."""
        name = self.name or "(unnamed)"
        return f"{self.kind.name} {self.namespace}/{name}" if self.namespace else f"{self.kind.name} {name}"


class Malformed(msgspec.Struct, frozen=True):
    """An object that cannot be read, the field at fault, and why; `rest` is what of it counts nevertheless."""

    identity: Identity
    field: str
    message: str
    metadata: ObjectMeta
    rest: KubeObject | None = None


class Opaque(KubeObject, frozen=True, kw_only=True):
    """An object of a kind that is stored and otherwise ignored."""

    identity: Identity


class _Envelope(Wire, frozen=True, kw_only=True):
    """Any object, reduced to its metadata."""

    metadata: ObjectMeta = ObjectMeta()


_STRUCTS: Final[list[type[KubeObject | _Envelope]]] = [
    _Envelope,
    *_OLDER.values(),
    *(kind.struct for kind in kinds.KINDS if kind.struct is not None),
]
# Here, while this module is imported, and not when one is first needed: two threads that make msgspec look at one struct for the first time crash the interpreter.
_DECODERS: Final = {struct: msgspec.json.Decoder(struct) for struct in _STRUCTS}


def decode(manifest: Mapping[str, Any]) -> KubeObject | Malformed:
    """Turn a manifest into the struct of its kind."""
    kind = _kind_of(manifest)
    if isinstance(kind, Malformed):
        return kind
    try:
        decoded = msgspec.convert(manifest, _wire(kind))
    except (msgspec.ValidationError, RecursionError) as error:
        return _second_look(kind, manifest, error)
    return _finish(kind, decoded)


def decode_json(kind: Kind, data: bytes) -> KubeObject | Malformed:
    """Turn JSON text of a known kind into its struct; items of a list, which do not name their kind, are fine."""
    try:
        decoded = _DECODERS[_wire(kind)].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            manifest = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _malformed(kind, _salvaged_json(data), "", f"is not valid JSON: {error}")
        return _second_look(kind, manifest, error)
    return _finish(kind, decoded)


def _wire(kind: Kind) -> type[KubeObject | _Envelope]:
    return _OLDER.get(kind) or kind.struct or _Envelope


def _finish(kind: Kind, decoded: KubeObject | _Envelope) -> KubeObject | Malformed:
    """Check what holds for every object, and give it its final form."""
    metadata = decoded.metadata
    if not metadata.name:
        return _malformed(kind, metadata, "metadata.name", "must be set, but is absent or empty")
    size = _size(metadata.annotations)
    if size > MAX_ANNOTATION_BYTES:
        text = f"has {size} bytes in {len(metadata.annotations)} entries; the limit is {MAX_ANNOTATION_BYTES} bytes"
        return _malformed(kind, metadata, "metadata.annotations", text)
    if isinstance(decoded, _Envelope):
        return Opaque(identity=_identity(kind, metadata), metadata=metadata)
    if isinstance(decoded, scheduling.OlderPodGroup | scheduling.OlderQueue):
        return decoded.current()
    return decoded


def _size(entries: dict[str, str]) -> int:
    """Return the bytes of all keys and values; exact only where it could matter."""
    characters = sum(map(len, entries)) + sum(map(len, entries.values()))
    if characters * 4 <= MAX_ANNOTATION_BYTES:
        return characters
    return sum(
        len(key.encode(errors="replace")) + len(value.encode(errors="replace")) for key, value in entries.items()
    )


def _second_look(kind: Kind, manifest: Any, error: Exception) -> KubeObject | Malformed:
    """Try again without nulls, or name the first field that is wrong."""
    wire = _wire(kind)
    try:
        decoded = msgspec.convert(mending.mend(manifest, wire), wire)
    except mending.Mismatch as mismatch:
        field, text = mismatch.field, mismatch.message
    except (msgspec.ValidationError, RecursionError):
        field, text = "", f"cannot be read: {error}"
    else:
        return _finish(kind, decoded)
    metadata = _salvaged(manifest)
    rest = claim_remains.read(manifest, metadata) if kind is kinds.RESOURCE_CLAIM else None
    return _malformed(kind, metadata, field, text, rest)


def _malformed(kind: Kind, metadata: ObjectMeta, field: str, text: str, rest: KubeObject | None = None) -> Malformed:
    identity = _identity(kind, metadata)
    return Malformed(identity, field, f"{identity}: {field + ' ' if field else ''}{text}", metadata, rest)


def _identity(kind: Kind, metadata: ObjectMeta) -> Identity:
    return Identity(kind, metadata.namespace, metadata.name, metadata.uid)


def _salvaged(manifest: object) -> ObjectMeta:
    """Return the metadata of a bad manifest, without the fields of it that are bad themselves."""
    metadata = manifest.get("metadata") if isinstance(manifest, Mapping) else None
    if not isinstance(metadata, Mapping):
        return ObjectMeta()
    kept: dict[str, Any] = {}
    for field in ObjectMeta.__struct_encode_fields__:
        try:
            kept |= mending.mend({field: metadata.get(field)}, ObjectMeta)
        except mending.Mismatch:
            continue
    return msgspec.convert(kept, ObjectMeta)


def _salvaged_json(data: bytes) -> ObjectMeta:
    try:
        return _DECODERS[_Envelope].decode(data).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ObjectMeta()


def _kind_of(manifest: object) -> Kind | Malformed:
    if not isinstance(manifest, Mapping):
        return _malformed(_unknown("", ""), ObjectMeta(), "", f"must be an object, but is {mending.describe(manifest)}")
    version, name = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        field, value = ("kind", name) if isinstance(version, str) else ("apiVersion", version)
        text = f"must be a string, but is {mending.describe(value)}"
        return _malformed(_unknown("", ""), _salvaged(manifest), field, text)
    kind = kinds.find(version, name)
    if kind is not None:
        return kind
    field, text = _suggestion(version, name)
    return _malformed(_unknown(version, name), _salvaged(manifest), field, text)


def _suggestion(version: str, name: str) -> tuple[str, str]:
    versions = [kind.api_version for kind in kinds.KINDS if kind.name == name]
    if versions:
        return "apiVersion", f"{_quoted(version)} is not known for this kind; known are {', '.join(versions)}"
    nearest = difflib.get_close_matches(name[:80], [kind.name for kind in kinds.KINDS], n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return "kind", f"{_quoted(name)} of apiVersion {_quoted(version)} is not known{hint}"


def _quoted(text: str) -> str:
    return mending.describe(text).removeprefix("the string ")


def _unknown(api_version: str, name: str) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(name=name or "object", group=group, version=version, plural="", namespaced=True)
