"""Bodies of requests: read within bounds, decoded from JSON, YAML or protobuf."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import documents, json_depth
from pumice.apiserver import protobuf, statuses

if TYPE_CHECKING:
    from aiohttp import StreamReader, web

MOST_BYTES: Final = 3 * 1024 * 1024  # as kube-apiserver has it
MOST_DEPTH: Final = 200
MOST_VALUES: Final = 200_000
_AT_ONCE: Final = 1 << 16  # bytes of YAML or protobuf that are decoded while others wait: some milliseconds
_UNREAD: Final = object()
_PATCHES: Final = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_UNKNOWN: Final = "the body of the request was in an unknown format - accepted media types include: "
_READ: Final = frozenset(
    {"", "application/json", "application/yaml", "application/octet-stream", protobuf.MEDIA, *_PATCHES}
)
"""What is read; `application/octet-stream` is what a body without a type is said to be."""


class Body:
    """What came with a request; it is decoded when it is looked at."""

    def __init__(self, data: bytes, media: str, decoder: protobuf.Decoder) -> None:
        self.data = data
        self._media = media
        self._decoder = decoder
        self._found: Any = _UNREAD

    @property
    def is_json(self) -> bool:
        """Tell whether it is JSON, and some."""
        return bool(self.data) and self._media in ("application/json", "application/octet-stream", "")

    @property
    def patch_kind(self) -> str:
        """Say which patch it is."""
        kind = _PATCHES.get(self._media, "")
        if not kind:
            raise statuses.Problem(415, _UNKNOWN + ", ".join(_PATCHES))
        return kind

    @property
    def is_yaml(self) -> bool:
        """Tell whether it is YAML that is not JSON."""
        return "yaml" in self._media and self.data.lstrip()[:1] != b"{"

    @property
    def is_slow(self) -> bool:
        """Tell whether decoding it takes so long that others should not wait for it."""
        return len(self.data) > _AT_ONCE and (self._media == protobuf.MEDIA or self.is_yaml)

    def decoded(self) -> Any:
        """Decode it; none is an empty object. What could be too deep, or too much, is refused before anything is built."""
        if self._found is _UNREAD:
            self._found = self._decoded() if self.data else {}
        return self._found

    def _decoded(self) -> Any:
        try:
            if self._media == protobuf.MEDIA:
                return self._decoder.decode(self.data)
            if self.is_yaml:
                return documents.load_one(self.data, "body", MOST_VALUES)
            return msgspec.json.decode(self.data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise unreadable(error) from None


def unreadable(error: Exception) -> statuses.Problem:
    """Say that a body cannot be decoded."""
    return statuses.bad_request(f"couldn't get version/kind; json parse error: {error}")


async def read(request: web.BaseRequest, decoder: protobuf.Decoder) -> Body:
    """Read a body, at most as much as is accepted."""
    media = request.content_type
    if media not in _READ and request.method != "PATCH" and (request.content_length or request.content_length is None):
        raise statuses.Problem(415, f"{_UNKNOWN}application/json, application/yaml, {protobuf.MEDIA}")
    if request.content_length is not None and request.content_length > MOST_BYTES:
        raise _too_large(request.content_length)
    body = Body(await _data(request.content), media, decoder)
    if media != protobuf.MEDIA and not body.is_yaml and json_depth.exceeds(body.data, MOST_DEPTH):
        raise statuses.bad_request(f"the body is nested deeper than {MOST_DEPTH} levels")
    if body.is_slow:
        await asyncio.to_thread(body.decoded)
    return body


async def _data(content: StreamReader) -> bytes:
    """Read all of a body; however small its pieces are, they are put together once."""
    data = b"" if content.at_eof() else await content.readany()
    if content.at_eof():
        return data  # as most bodies come
    pieces = bytearray(data)
    while not content.at_eof():
        pieces += await content.readany()
        if len(pieces) > MOST_BYTES:
            raise _too_large(len(pieces))
    return bytes(pieces)


def _too_large(size: int) -> statuses.Problem:
    message = f"Request entity too large: limit is {MOST_BYTES} bytes, and the body has {size} or more"
    return statuses.Problem(413, message)
