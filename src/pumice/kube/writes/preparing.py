"""What has to be written before pods are bound: read the object, write what is missing against the version that was read, until nothing is.

Our own writes to one object are made one after the other, so that members of a gang that share a claim or a node do not overtake each other.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.cache import effects, preparation_writes
from pumice.cache.preparation_writes import Make, Remove, Write
from pumice.kube import errors
from pumice.kube.writes import writing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pumice.cache.preparation_writes import Next
    from pumice.kube.writes.writing import Api
    from pumice.model.preparations import Preparation

Manifest = dict[str, Any]
_Object = tuple[kinds.Kind, str, str]

_CONFLICT, _MISSING = 409, 404


class ApiPreparer:
    """Writes preparations, and takes them back."""

    def __init__(self, api: Api, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        self._busy: dict[_Object, tuple[asyncio.Lock, list[None]]] = {}

    async def prepare(self, effect: effects.Prepare) -> effects.Outcome:
        """Write what is not there, in order."""

        def forth(preparation: Preparation, found: Mapping[str, Any] | None) -> Next:
            return preparation_writes.forth(preparation, found, self._now())

        return await self._carry_out(effect, effect.preparations, forth)

    async def take_back(self, effect: effects.TakeBack) -> effects.Outcome:
        """Take back what is there, the last first."""
        return await self._carry_out(effect, effect.preparations[::-1], preparation_writes.back)

    async def _carry_out(
        self,
        effect: effects.Prepare | effects.TakeBack,
        preparations: tuple[Preparation, ...],
        rule: Callable[[Preparation, Mapping[str, Any] | None], Next],
    ) -> effects.Outcome:
        claims: dict[str, Manifest] = {}
        failure: effects.Failure | None = None
        try:
            for preparation in preparations:
                await self._bring_about(preparation, rule, claims)
        except preparation_writes.HinderedError as error:
            failure = effects.Failure(error.code, str(error))
        except errors.KubeError as error:
            failure = error.failure
        return effects.Outcome(effect=effect, failure=failure, object=preparation_writes.shown(claims))

    async def _bring_about(
        self,
        preparation: Preparation,
        rule: Callable[[Preparation, Mapping[str, Any] | None], Next],
        claims: dict[str, Manifest],
    ) -> None:
        """Write until the rule is content, and note claims as they are then; what others overtook, or nobody knows of, is decided anew from what is there now."""
        where = preparation_writes.target(preparation)
        async with self._alone(where):
            found = await self._read(where)
            preparation_writes.note(claims, where, found)
            attempts = 0
            while (wanted := rule(preparation, found)) is not None:
                try:
                    found = await self._write(where, wanted)
                except (errors.ApiError, errors.UnknownOutcomeError) as error:
                    attempts += 1
                    if attempts == preparation_writes.ATTEMPTS or not _may_differ_now(error):
                        raise
                    found = await self._read(where)
                preparation_writes.note(claims, where, found)

    @contextlib.asynccontextmanager
    async def _alone(self, where: _Object) -> AsyncIterator[None]:
        lock, waiting = self._busy.setdefault(where, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                del self._busy[where]

    async def _read(self, where: _Object) -> Manifest | None:
        try:
            return await self._api.get(*where)
        except errors.ApiError as error:
            if error.status != _MISSING:
                raise
            return None

    async def _write(self, where: _Object, wanted: Write | Make | Remove) -> Manifest | None:
        kind, namespace, name = where
        match wanted:
            case Write(body, subresource, strategic):
                uid = body["metadata"]["uid"]
                return await writing.patch_only(
                    self._api, kind, uid, (namespace, name), body, subresource=subresource, strategic=strategic
                )
            case Make(manifest):
                return await self._api.create(kind, manifest)
            case Remove(uid):
                await self._api.delete(kind, namespace, name, uid=uid)
                return await self._read(where)


def _may_differ_now(error: errors.KubeError) -> bool:
    return isinstance(error, errors.UnknownOutcomeError) or (
        isinstance(error, errors.ApiError) and error.status in (_CONFLICT, _MISSING)
    )
