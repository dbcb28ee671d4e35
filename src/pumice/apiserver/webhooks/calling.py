"""Calls to webhooks: HTTPS, within the time and the size that are allowed, and whatever goes wrong is an outcome."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from typing import Any, Final

import aiohttp
import msgspec

from pumice.apiserver.webhooks.asking import Call, Outcome

_MOST_BYTES: Final = 3 * 1024 * 1024
_MOST_KNOWN: Final = 256
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "kube-apiserver-admission"}  # fmt: skip


class Caller:
    """Calls webhooks; connections are kept, and as many as are asked for are open at a time."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._trusted: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        """Give up what is open."""
        if self._session is not None:
            await self._session.close()

    async def call(self, call: Call) -> Outcome:
        """Make a call and give its outcome."""
        url = f"{call.url}{'&' if '?' in call.url else '?'}timeout={call.seconds}s"
        try:
            async with asyncio.timeout(call.seconds):
                return await self._posted(call)
        except TimeoutError:
            return Outcome(failure=f'failed to call webhook: Post "{url}": context deadline exceeded')
        except (aiohttp.ClientError, OSError, ValueError, binascii.Error) as error:
            why = str(error) or type(error).__name__
            return Outcome(failure=f'failed to call webhook: Post "{url}": {why}')

    async def _posted(self, call: Call) -> Outcome:
        try:
            return await self._once(call)
        except aiohttp.ServerDisconnectedError:  # a kept connection that the other side has given up
            return await self._once(call)

    async def _once(self, call: Call) -> Outcome:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False)
        extra: dict[str, Any] = {"server_hostname": call.server_name} if call.server_name else {}
        async with self._session.post(
            call.address,
            params={"timeout": f"{call.seconds}s"},
            data=call.body,
            headers=_HEADERS,
            ssl=self._context(call.authorities),
            allow_redirects=False,
            **extra,
        ) as response:
            data = await response.content.read(_MOST_BYTES + 1)
            while len(data) <= _MOST_BYTES and not response.content.at_eof():
                data += await response.content.read(_MOST_BYTES + 1 - len(data))
            if len(data) > _MOST_BYTES:
                return Outcome(failure=f"failed to call webhook: the answer has more than {_MOST_BYTES} bytes")
            if not 200 <= response.status < 300:
                what = data[:200].decode(errors="replace").strip() or response.reason or ""
                return Outcome(failure=f"failed to call webhook: the server answered {response.status}: {what}")
        try:
            return Outcome(msgspec.json.decode(data))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Outcome(failure=f"failed to call webhook: the answer is no JSON: {error}")

    def _context(self, authorities: str) -> ssl.SSLContext:
        found = self._trusted.get(authorities)
        if found is None:
            if len(self._trusted) >= _MOST_KNOWN:
                self._trusted.clear()
            data = base64.b64decode(authorities).decode("ascii", "replace") if authorities else None
            found = self._trusted[authorities] = ssl.create_default_context(cadata=data)
        return found
