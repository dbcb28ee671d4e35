"""Patches of exactly our fields, objects we cannot do without, and objects in doubt."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.watches import discovery
from pumice.kube.writes import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.writes.writing import Api

_OLDER = (kinds.INCUBATOR_POD_GROUP.group, kinds.SIGS_POD_GROUP.group)
_MISSING = 404
_EXISTS = "AlreadyExists"
_REMEMBERED = 600.0  # seconds for which a group's list of resources is believed


class ApiUpdater:
    """Sends merge patches, each for one uid only.

    Whether the status of a custom resource is a subresource is up to the definition that was installed: if it is, a status sent through
    the main one is silently dropped, and if not, the other one does not exist. So the server is asked.
    """

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._asking = asyncio.Lock()
        self._served: dict[str, tuple[float, set[tuple[str, str]]]] = {}

    async def patch(self, effect: effects.Patch) -> effects.Outcome:
        """Merge a body into an object."""
        try:
            answer = await self._send(effect)
        except errors.ApiError as error:
            if error.status != _MISSING or effect.kind.api_version not in self._served:
                raise
            # Perhaps the subresource has come or gone: a definition was replaced since it was read.
            del self._served[effect.kind.api_version]
            answer = await self._send(effect)
        return effects.Outcome(effect=effect, object=answer)

    async def _send(self, effect: effects.Patch) -> dict[str, Any]:
        return await writing.patch_only(
            self._api,
            effect.kind,
            effect.uid,
            (effect.namespace, effect.name),
            effect.body,
            subresource=await self._subresource(effect),
            strategic=effect.strategic,
        )

    async def _subresource(self, effect: effects.Patch) -> str:
        if "status" not in effect.body or not is_custom(effect.kind):
            return effect.subresource
        version = effect.kind.api_version
        return "status" if (version, f"{effect.kind.plural}/status") in await self._resources(version) else ""

    async def _resources(self, api_version: str) -> set[tuple[str, str]]:
        """Give what a group version serves; many that want to know at once ask once."""
        async with self._asking:
            known = self._served.get(api_version)
            if known is None or self._clock() - known[0] > _REMEMBERED:
                known = self._clock(), await discovery.served(self._api, [api_version])
                self._served[api_version] = known
            return known[1]


class ApiObjects:
    """Creates and reads single objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def create(self, effect: effects.Create) -> effects.Outcome:
        """Create an object; one that exists already is a success, and is given as it is."""
        try:
            created = await self._api.create(effect.kind, effect.manifest)
        except errors.ApiError as error:
            if error.reason != _EXISTS:
                raise
            metadata = effect.manifest["metadata"]
            created = await self._api.get(effect.kind, metadata.get("namespace", ""), metadata["name"])
        return effects.Outcome(effect=effect, object=created)

    async def read(self, effect: effects.Read) -> effects.Outcome:
        """Read an object."""
        found = await self._api.get(effect.kind, effect.namespace, effect.name)
        return effects.Outcome(effect=effect, object=found)


def is_custom(kind: kinds.Kind) -> bool:
    """Tell a kind that was installed from one that every cluster has."""
    return kind.group.endswith(".volcano.sh") or kind.group in _OLDER
