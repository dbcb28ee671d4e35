"""Evicting a pod: first it is told why, then it is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names, timestamp
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.writes.writing import Api

_CONFLICT = 409


class ApiEvictor:
    """Writes the two conditions of a disruption and deletes the pod with its grace period.

    Neither write touches another pod of the same name: to the one that asked, such a pod is not found. A pod that is going already is not
    deleted again.
    """

    def __init__(self, api: Api, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now

    async def evict(self, effect: effects.Evict) -> effects.Outcome:
        """Mark a pod as disrupted and delete it."""
        try:
            await self._disrupt(effect)
        except errors.ApiError as error:
            if error.status != _CONFLICT:
                raise
            text = f"pod {effect.namespace}/{effect.name} with uid {effect.uid} is gone: {error.message}"
            return effects.Outcome(effect=effect, failure=effects.Failure("notfound", text))
        return effects.Outcome(effect=effect)

    async def _disrupt(self, effect: effects.Evict) -> None:
        where = (effect.namespace, effect.name)
        pod = await writing.patch_only(
            self._api, kinds.POD, effect.uid, where, self._marks(effect), subresource="status", strategic=True
        )
        if not pod.get("metadata", {}).get("deletionTimestamp"):
            await self._api.delete(kinds.POD, *where, uid=effect.uid, grace_seconds=effect.grace_seconds)

    def _marks(self, effect: effects.Evict) -> dict[str, Any]:
        """Give the patch that says why."""
        stamp: dict[str, Any] = {
            "lastTransitionTime": timestamp.format_timestamp(_whole_seconds(self._now())),
            "message": effect.reason,
        }
        if effect.generation:
            stamp["observedGeneration"] = effect.generation
        ready = {"type": names.CONDITION_READY, "status": "False", "reason": names.EVENT_EVICT, **stamp}
        disrupted = {"type": names.CONDITION_DISRUPTION_TARGET, "status": "True", "reason": names.REASON_PREEMPTION}
        return {"status": {"conditions": [ready, {**disrupted, **stamp}]}}


def _whole_seconds(now: int) -> int:
    return now - now % 1_000_000
