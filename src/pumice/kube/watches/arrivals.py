"""What list pages and watch lines say: decoded, object by object, without input or output.

An object that cannot be read is an arrival like any other, a `Malformed` one, as long as its metadata say which object it is.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pumice.api import decoding
from pumice.api.meta import KubeObject, ObjectMeta, Wire
from pumice.cache import reflector
from pumice.kube import errors
from pumice.kube.watches import nested_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.api.kinds import Kind
    from pumice.cache.reflector import Edition, Key
    from pumice.kube.watches.sharing import Sharing

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Marks the bookmark after which a stream has sent everything that existed."""


class ReportedError(errors.ApiError):
    """An ERROR event: the server ends a watch that it had accepted."""


class GarbledError(errors.KubeError):
    """An answer that is no list, or a line that is no watch event."""


class Arrival(NamedTuple):
    """An object that was listed or came with an event; `raw` is its JSON where that is kept, else empty."""

    object: KubeObject | decoding.Malformed
    raw: bytes


class Page(NamedTuple):
    """A piece of a list: the JSON of its objects, the list's version, and the token that the next piece is asked for with."""

    items: list[msgspec.Raw]
    version: str
    token: str


class Line(msgspec.Struct, frozen=True):
    """One watch event, its object not yet decoded."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")


class _ListMeta(Wire, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(Wire, frozen=True, kw_only=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Bookmark(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta


class _Status(Wire, frozen=True, kw_only=True):
    code: int = 500
    reason: str = ""
    message: str = ""


_LISTS: Final = msgspec.json.Decoder(_List)
_LINES: Final = msgspec.json.Decoder(Line)
_BOOKMARKS: Final = msgspec.json.Decoder(_Bookmark)
_STATUSES: Final = msgspec.json.Decoder(_Status)


def page(data: bytes) -> Page:
    """Read one answer to a list."""
    try:
        try:
            read = _LISTS.decode(data)
            items = read.items or []
        except RecursionError:
            rest, inner = nested_json.cut(data, "items")
            read = _LISTS.decode(rest)
            items = [msgspec.Raw(element) for element in nested_json.elements(inner)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledError(f"the answer to a list, {len(data)} bytes, cannot be read: {error}") from None
    return Page(items, read.metadata.resource_version, read.metadata.continue_)


def line(data: bytes) -> Line:
    """Read one line of a watch."""
    try:
        try:
            read = _LINES.decode(data)
        except RecursionError:
            rest, inner = nested_json.cut(data, "object")
            read = Line(_LINES.decode(rest).type, msgspec.Raw(inner))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledError(f"a watch event of {len(data)} bytes cannot be read: {error}") from None
    if read.type == "ERROR":
        raise _reported(read.object)
    if read.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not read.object:
        raise GarbledError(f"a watch event of {len(data)} bytes has the unknown type {read.type[:40]!r} or no object")
    return read


def bookmark(event: Line) -> tuple[str, bool]:
    """Return the version of a BOOKMARK, and whether it ends the initial events."""
    try:
        metadata = _BOOKMARKS.decode(event.object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledError(f"a bookmark cannot be read: {error}") from None
    return metadata.resource_version, metadata.annotations.get(INITIAL_EVENTS_END) == "true"


def arrival(
    kind: Kind,
    raw: msgspec.Raw,
    *,
    keep: bool,
    squeeze: Callable[[bytes], bytes] | None = None,
    sharing: Sharing | None = None,
) -> Arrival:
    """Decode an object, which shares parts with others if it may; with `keep`, its JSON stays with it, or what `squeeze` makes of it, and then nothing but its metadata is decoded."""
    if squeeze is not None:
        try:
            return _squeezed(kind, squeeze(bytes(raw)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
            pass  # whoever decodes it below says what is wrong with it
    decoded = decoding.decode_json(kind, raw)
    if not decoded.metadata.name:
        decoded = _salvaged(kind, raw, decoded)
    elif sharing is not None:
        decoded = sharing.share(decoded)
    return Arrival(decoded, bytes(raw) if keep else b"")


def _squeezed(kind: Kind, raw: bytes) -> Arrival:
    decoded = decoding.decode_json(_without_struct(kind), raw)
    metadata = msgspec.structs.replace(decoded.metadata, annotations={}, owner_references=())
    return Arrival(msgspec.structs.replace(decoded, metadata=metadata), raw)


@functools.cache
def _without_struct(kind: Kind) -> Kind:
    return msgspec.structs.replace(kind, struct=None)


def identify(arrived: Arrival) -> tuple[Key, Edition]:
    """Return what the reflector remembers of an object."""
    metadata = arrived.object.metadata
    return (metadata.namespace, metadata.name), (metadata.uid, metadata.resource_version)


def tombstone(kind: Kind, key: Key, edition: Edition) -> Arrival:
    """Return an object of which only the identity is known, as a struct of its kind and as JSON."""
    raw = msgspec.json.encode(reflector.tombstone(kind, key, edition))
    return Arrival(decoding.decode_json(kind, raw), raw)


def _reported(raw: msgspec.Raw) -> ReportedError:
    try:
        status = _STATUSES.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ReportedError(500, "", f"the watch ended with an error that cannot be read: {bytes(raw)[:200]!r}")
    return ReportedError(status.code, status.reason, status.message or "the watch ended with an error")


def _salvaged(kind: Kind, raw: bytes, found: KubeObject | decoding.Malformed) -> KubeObject | decoding.Malformed:
    """Look for the name of an object that is nested too deeply to be read."""
    _, inner = nested_json.cut(bytes(raw), "metadata")
    envelope = decoding.decode_json(kind, b'{"metadata":' + (inner or b"{}") + b"}")
    if not isinstance(found, decoding.Malformed) or not envelope.metadata.name:
        return found
    metadata = envelope.metadata
    identity = decoding.Identity(kind, metadata.namespace, metadata.name, metadata.uid)
    return decoding.Malformed(identity, "", f"{identity}: is nested too deeply to be read", metadata)
