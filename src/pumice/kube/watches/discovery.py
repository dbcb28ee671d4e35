"""Which resources and subresources an API server serves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pumice.api import kinds
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

KNOWN: Final = tuple(sorted({kind.api_version for kind in kinds.SCHEDULING}))


class Getter(Protocol):
    """The part of the client that discovery needs."""

    async def request(self, method: str, path: str, /) -> bytes:
        """Send a request and return the body of the answer."""
        ...


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] | None = None


_DECODER: Final = msgspec.json.Decoder(_Resources)


async def served(client: Getter, group_versions: Iterable[str] = KNOWN) -> set[tuple[str, str]]:
    """Return what is served of some group versions, those of all known kinds by default: `("v1", "pods/binding")` and the like."""
    wanted = list(group_versions)
    answers = await asyncio.gather(*(_resources(client, group_version) for group_version in wanted))
    return {(group_version, name) for group_version, answer in zip(wanted, answers, strict=True) for name in answer}


async def _resources(client: Getter, group_version: str) -> list[str]:
    """Return the resources of one group version; none if the server does not have it."""
    path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
    try:
        answer = await client.request("GET", path)
    except errors.ApiError as error:
        if error.status == 404:
            return []
        raise
    try:
        found = _DECODER.decode(answer).resources or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.ApiError(
            500, "", f"GET {path}: the answer, {len(answer)} bytes, cannot be read: {error}"
        ) from None
    return [resource.name for resource in found]
