"""Bodies of requests: read within bounds, decoded from JSON, YAML or protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from pumice.apiserver import protobuf, statuses

if TYPE_CHECKING:
    from aiohttp import web

MOST_BYTES: Final = 3 * 1024 * 1024  # as kube-apiserver has it
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

    def decoded(self) -> Any:
        """Decode it; none is an empty object."""
        if not self.data:
            return {}
        try:
            if self._media == protobuf.MEDIA:
                return self._decoder.decode(self.data)
            if "yaml" in self._media and self.data.lstrip()[:1] != b"{":
                return yaml.load(self.data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  safe both
            return msgspec.json.decode(self.data)
        except (msgspec.MsgspecError, protobuf.WireError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
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
    content = request.content
    data = b"" if content.at_eof() else await content.readany()
    while not content.at_eof():  # most bodies come in one piece
        data += await content.readany()
        if len(data) > MOST_BYTES:
            raise _too_large(len(data))
    return Body(data, media, decoder)


def _too_large(size: int) -> statuses.Problem:
    message = f"Request entity too large: limit is {MOST_BYTES} bytes, and the body has {size} or more"
    return statuses.Problem(413, message)
