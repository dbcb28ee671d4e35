"""How one effect is performed, whatever becomes of it, and what is counted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import msgspec

from pumice.cache import effects
from pumice.kube.writes import binding, evicting, updating, volumes, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Bind, Outcome
    from pumice.kube.writes.agenda import Task

Verb = Literal["bind", "evict", "patch", "create", "read"]

_VERBS: dict[type, Verb] = {
    effects.Bind: "bind",
    effects.Evict: "evict",
    effects.Patch: "patch",
    effects.Create: "create",
    effects.Read: "read",
}


class Tally(msgspec.Struct):
    """How many effects of a verb were performed, how many in vain, and how many seconds they took together."""

    sent: int = 0
    failed: int = 0
    seconds: float = 0.0


class Performer:
    """Performs effects through replaceable parts; each of them may fail in any way without harm to the others."""

    def __init__(
        self,
        api: writing.Api,
        *,
        now: Callable[[], int],
        binder: writing.AsyncBinder | None = None,
        evictor: writing.AsyncEvictor | None = None,
        updater: writing.AsyncUpdater | None = None,
        volume_binder: writing.AsyncVolumeBinder | None = None,
    ) -> None:
        self.tallies: dict[Verb, Tally] = {verb: Tally() for verb in _VERBS.values()}
        self._binder = binder or binding.ApiBinder(api)
        self._evictor = evictor or evicting.ApiEvictor(api, now)
        self._updater = updater or updating.ApiUpdater(api, time.monotonic)
        self._volume_binder = volume_binder or volumes.ApiVolumeBinder(api)
        self._objects = updating.ApiObjects(api)

    async def perform(self, effect: Task) -> Outcome:
        """Carry an effect out and give the answer; it does not raise."""
        tally = self.tallies[_VERBS[type(effect)]]
        started = time.monotonic()
        try:
            outcome = await self._send(effect)
        except Exception as error:  # noqa: BLE001  whatever a part fails with is the answer to its effect alone
            outcome = effects.Outcome(effect=effect, failure=writing.failure_of(error))
        tally.sent += 1
        tally.failed += outcome.failure is not None
        tally.seconds += time.monotonic() - started
        return outcome

    async def _send(self, effect: Task) -> Outcome:
        match effect:
            case effects.Bind():
                return await (self._bind_with_volumes(effect) if effect.volumes else self._binder.bind(effect))
            case effects.Evict():
                return await self._evictor.evict(effect)
            case effects.Patch():
                return await self._updater.patch(effect)
            case effects.Create():
                return await self._objects.create(effect)
            case effects.Read():
                return await self._objects.read(effect)

    async def _bind_with_volumes(self, effect: Bind) -> Outcome:
        """Bind volumes, then the pod; if the pod certainly was not bound, let go of volumes that are not bound either."""
        steps = await self._volume_binder.prepare(effect)
        try:
            outcome = await self._binder.bind(effect)
        except Exception as error:  # noqa: BLE001  as above
            outcome = effects.Outcome(effect=effect, failure=writing.failure_of(error))
        if outcome.failure is not None and outcome.failure.code != "unknown":
            await self._volume_binder.roll_back(steps)
        return outcome
