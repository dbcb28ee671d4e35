"""Reads the ConfigMap that says into which MIG instances cards can be cut, where the configuration shares virtual GPUs, and feeds its text to the cache like any other event."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.api import kinds, meta, usage
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.configuration import Configuration

KEY: Final = "device-config.yaml"
NAME: Final = "cluster"  # of the one object that the text becomes
_NOT_FOUND: Final = 404
_PAUSE: Final = 60.0  # seconds between two looks


class Getter(Protocol):
    """Whoever reads one object."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
        """Return an object, or raise a `KubeError`."""


def place(configuration: Configuration | None) -> tuple[str, str] | None:
    """Return namespace and name of the ConfigMap; None if nobody would read it."""
    for tier in configuration.tiers if configuration is not None else ():
        for setting in tier:
            told = setting.arguments
            if setting.name == "deviceshare" and told.get("deviceshare.VGPUEnable"):
                return told["deviceshare.KnownGeometriesCMNamespace"], told["deviceshare.KnownGeometriesCMName"]
    return None


class Reader:
    """Looks now and then; one that is not there means that no card is cut, one that may not be read is told of once."""

    def __init__(
        self,
        client: Getter,
        configuration: Callable[[], Configuration | None],
        feed: Callable[[usage.CardGeometries], None],
        complain: Callable[[str], None],
        *,
        pause: float = _PAUSE,
    ) -> None:
        self._client = client
        self._configuration = configuration
        self._feed = feed
        self._complain = complain
        self._pause = pause
        self._text = self._told = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._pause)

    async def look(self) -> None:
        """Look once, and feed what has changed."""
        where = place(self._configuration())
        if where is None:
            return
        problem = ""
        try:
            found = await self._client.get(kinds.CONFIG_MAP, *where)
            text = str((found.get("data") or {}).get(KEY, ""))
        except errors.KubeError as error:
            absent = isinstance(error, errors.ApiError) and error.status == _NOT_FOUND
            text = "" if absent else self._text
            problem = "" if absent else f"ConfigMap {'/'.join(where)} cannot be read: {error}"
        if problem and problem != self._told:
            self._complain(problem)
        self._told = problem
        if text != self._text:
            self._text = text
            self._feed(usage.CardGeometries(metadata=meta.ObjectMeta(name=NAME), text=text))
