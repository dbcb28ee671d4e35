"""Asking servers beside the cluster: whole answers within bounds of size and time.

Redirects are not followed, and neither headers nor what was answered appear in what is said about a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import aiohttp

from pumice.kube.calls.open_sockets import OpenSockets

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHUNK: Final = 1 << 16


class OutsideError(ValueError):
    """A question that got no answer, in words that name no secret."""


async def ask(
    method: str,
    url: str,
    title: str,
    *,
    headers: Mapping[str, str],
    largest: int,
    timeout: float,  # noqa: ASYNC109  a part of the request
    body: bytes | None = None,
    insecure: bool = False,
) -> bytes:
    """Send a request and return the body of its answer; whatever goes wrong is an `OutsideError` that calls the request by its title."""
    limit, sockets = aiohttp.ClientTimeout(total=timeout), OpenSockets()
    connector = aiohttp.TCPConnector(socket_factory=sockets.make)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=limit, headers=headers) as session,
            session.request(method, url, data=body, ssl=not insecure, allow_redirects=False) as response,
        ):
            return await _body(response, title, largest)
    except TimeoutError:
        raise OutsideError(f"{title} took longer than {timeout:g} s") from None
    except OutsideError:
        raise
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise OutsideError(f"{title} failed: {type(error).__name__}") from None
    finally:
        await sockets.end()


async def _body(response: aiohttp.ClientResponse, title: str, largest: int) -> bytes:
    if response.status != 200:
        raise OutsideError(f"{title} is answered with status {response.status}, not 200")
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > largest:
            raise OutsideError(f"the answer to {title} is larger than {largest} bytes")
    return bytes(body)
