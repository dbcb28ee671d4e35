"""Asking a UFM fabric manager about its ports, and keeping the last answer for the controllers.

An answer is read whole within bounds of size and time. Credentials come from a Secret, are sent to the endpoint alone, redirects are not followed, and neither
they nor what the fabric manager answers appear in what is said about a failure.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.api import duration, kinds
from pumice.controllers.volcano.hyper_nodes import settings, ufm
from pumice.kube import errors, outside

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST: Final = 100 << 20
TIMEOUT: Final = 30.0  # seconds
_LOOK: Final = 5.0  # seconds between two looks at the settings


class Getter(Protocol):
    """The request that a Secret is read with."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
        """Read an object."""


class Poller:
    """Asks the fabric manager that the settings name, as often as they say; `links` is its last answer that could be read."""

    def __init__(
        self,
        client: Getter,
        wanted: Callable[[], settings.UfmSource | None],
        complain: Callable[[str], None] = lambda _: None,
        *,
        home: str = "volcano-system",
        look: float = _LOOK,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._complain = complain
        self._home = home
        self._look = look
        self._links: ufm.Links | None = None

    def links(self) -> ufm.Links | None:
        """Give the last answer."""
        return self._links

    async def run(self) -> None:
        """Ask until cancelled; whoever is named anew is asked at once."""
        clock = asyncio.get_running_loop().time
        asked: settings.UfmSource | None = None
        due = 0.0
        while True:
            source = self._wanted()
            if source is not None and (source != asked or clock() >= due):
                asked, due = source, clock() + source.interval / duration.SECOND
                await self.ask(source)
            await asyncio.sleep(self._look)

    async def ask(self, source: settings.UfmSource) -> None:
        """Ask once; a failure is said, and the last answer stays."""
        try:
            credentials = await self._credentials(source)
            answer = await fetch(source, credentials)
            self._links = await asyncio.to_thread(ufm.parse, source.endpoint, answer)
        except (ufm.UfmError, errors.KubeError) as error:
            self._complain(f"network topology of {source.endpoint}: {error}")

    async def _credentials(self, source: settings.UfmSource) -> str:
        """Give the value of the header that lets us in."""
        namespace = source.secret_namespace or self._home
        secret = await self._client.get(kinds.SECRET, namespace, source.secret_name)
        data = secret.get("data")
        found = [_decoded(data.get(key) if isinstance(data, dict) else None) for key in ("username", "password")]
        name, password = found
        if name is None or password is None:
            where = f"Secret {namespace}/{source.secret_name}"
            raise ufm.UfmError(f"{where} has no username and password that can be read; both are keys of its data")
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def fetch(
    source: settings.UfmSource,
    credentials: str,
    *,
    largest: int = LARGEST,
    timeout: float = TIMEOUT,  # noqa: ASYNC109  a part of the request
) -> bytes:
    """Read the ports of a fabric manager; whatever goes wrong is a `UfmError` that names no secret."""
    try:
        return await outside.ask(
            "GET",
            source.endpoint + ufm.PATH,
            f"GET {ufm.PATH}",
            headers={"Authorization": credentials},
            largest=largest,
            timeout=timeout,
            insecure=source.insecure,
        )
    except outside.OutsideError as error:
        raise ufm.UfmError(str(error)) from None


def _decoded(value: object) -> str | None:
    try:
        return base64.b64decode(str(value), validate=True).decode().rstrip("\n") if isinstance(value, str) else None
    except (binascii.Error, UnicodeDecodeError):
        return None
