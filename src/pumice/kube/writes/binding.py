"""Binding a pod to its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors

if TYPE_CHECKING:
    from pumice.kube.writes.writing import Api

_CONFLICT = 409


class ApiBinder:
    """Posts bindings.

    A conflict may be the echo of our own bind, whose answer was lost on the way: a pod that is on the node we wanted is bound, whoever asks.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    async def bind(self, effect: effects.Bind) -> effects.Outcome:
        """Bind a pod."""
        try:
            await self._api.bind(effect.namespace, effect.name, effect.uid, effect.node, effect.annotations)
        except errors.ApiError as error:
            if error.status != _CONFLICT or not await self._is_bound(effect):
                raise
        return effects.Outcome(effect=effect)

    async def _is_bound(self, effect: effects.Bind) -> bool:
        """Look whether the pod is where it was to go; if that cannot be found out, the conflict stands."""
        try:
            pod = await self._api.get(kinds.POD, effect.namespace, effect.name)
        except errors.KubeError:
            return False
        uid, node = pod["metadata"].get("uid"), pod.get("spec", {}).get("nodeName")
        return effect.uid in ("", uid) and effect.node == node
