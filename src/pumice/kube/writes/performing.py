"""How one effect is performed, whatever becomes of it, and how long it takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pumice.cache import effects
from pumice.kube.writes import binding, evicting, preparing, updating, volumes, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Answerable, Bind, EffectObserver, Outcome


class Performer:
    """Performs effects through replaceable parts; each of them may fail in any way without harm to the others."""

    def __init__(
        self,
        api: writing.Api,
        *,
        now: Callable[[], int],
        seconds: Callable[[], float] = time.monotonic,
        observer: EffectObserver = effects.NOBODY,
        binder: writing.Binder | None = None,
        evictor: writing.Evictor | None = None,
        updater: writing.StatusUpdater | None = None,
        volume_binder: writing.VolumeBinder | None = None,
        preparer: writing.Preparer | None = None,
    ) -> None:
        self._observer = observer
        self._binder = binder or binding.ApiBinder(api)
        self._evictor = evictor or evicting.ApiEvictor(api, now)
        self._updater = updater or updating.ApiUpdater(api, seconds)
        self._volume_binder = volume_binder or volumes.ApiVolumeBinder(api)
        self._preparer = preparer or preparing.ApiPreparer(api, now)
        self._objects = updating.ApiObjects(api)

    async def perform(self, effect: Answerable) -> Outcome:
        """Carry an effect out and give the answer; it does not raise."""
        try:
            if isinstance(effect, effects.Bind) and effect.volumes:
                return await self._bind_with_volumes(effect)
            return await self._request(effect)
        except Exception as error:  # noqa: BLE001  whatever a part fails with is the answer to its effect alone
            return effects.Outcome(effect=effect, failure=writing.failure_of(error))

    async def _bind_with_volumes(self, effect: Bind) -> Outcome:
        """Bind volumes, then the pod; if the pod certainly was not bound, let go of volumes that are not bound either."""
        begun = await self._prepare(effect)
        outcome = await self._request(effect)
        if outcome.failure is not None and outcome.failure.code != "unknown":
            await self._volume_binder.roll_back(begun)
        return outcome

    async def _prepare(self, effect: Bind) -> list[writing.BegunClaim]:
        started, failed = time.perf_counter(), True
        try:
            begun = await self._volume_binder.prepare(effect)
            failed = False
        finally:
            self._observer.performed(effect, "volumes", time.perf_counter() - started, failed=failed)
        return begun

    async def _request(self, effect: Answerable) -> Outcome:
        started, failed = time.perf_counter(), True
        try:
            outcome = await self._send(effect)
            failed = outcome.failure is not None
        except Exception as error:  # noqa: BLE001  as above
            outcome = effects.Outcome(effect=effect, failure=writing.failure_of(error))
        finally:
            self._observer.performed(effect, "request", time.perf_counter() - started, failed=failed)
        return outcome

    async def _send(self, effect: Answerable) -> Outcome:
        match effect:
            case effects.Bind():
                return await self._binder.bind(effect)
            case effects.Prepare():
                return await self._preparer.prepare(effect)
            case effects.TakeBack():
                return await self._preparer.take_back(effect)
            case effects.Evict():
                return await self._evictor.evict(effect)
            case effects.Patch():
                return await self._updater.patch(effect)
            case effects.Create():
                return await self._objects.create(effect)
            case effects.Read():
                return await self._objects.read(effect)
