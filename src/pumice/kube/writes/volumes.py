"""Volumes before pods: each claim is given what was decided for it, and the volume controller is waited for.

A volume that was chosen is claimed (its `claimRef`); where one is to be made, the claim names the node it is made for. Every write is for the
version of the object that was looked at, so nothing that others did in between is lost. If anything fails, what was begun is undone in reverse,
as far as it still is as we left it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names
from pumice.kube import errors
from pumice.kube.writes.writing import BegunClaim

if TYPE_CHECKING:
    from pumice.cache.effects import Bind
    from pumice.kube.writes.writing import Api
    from pumice.model.volumes import VolumeDecision

Manifest = dict[str, Any]

_CONFLICT, _MISSING = 409, 404
_ATTEMPTS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0


class VolumesNotReadyError(errors.KubeError):
    """Claims that were not bound in time."""


class ApiVolumeBinder:
    """Claims volumes, selects nodes, waits, and undoes it all if it must."""

    def __init__(self, api: Api, *, first_pause: float = _FIRST_PAUSE, longest_pause: float = _LONGEST_PAUSE) -> None:
        self._api = api
        self._first_pause = first_pause
        self._longest_pause = longest_pause

    async def prepare(self, effect: Bind) -> list[BegunClaim]:
        """Carry out the decisions of a bind and wait until its claims are bound; if that fails, undo what was begun and raise."""
        deadline = asyncio.get_running_loop().time() + effect.volume_patience / 1e6
        begun: list[BegunClaim] = []
        try:
            for decision in effect.volumes:
                await self._begin(BegunClaim(claim=decision, node=effect.node), begun)
            await self._wait(effect, deadline)
        except BaseException:
            await self.roll_back(begun)
            raise
        return begun

    async def roll_back(self, begun: list[BegunClaim]) -> None:
        """Undo what was begun, the last first; a claim that is bound stays bound, and what cannot be undone is left."""
        for one in reversed(begun):
            try:
                await self._undo(one)
            except errors.KubeError:
                continue

    # -- beginning ---------------------------------------------------------------------------------------------

    async def _begin(self, one: BegunClaim, begun: list[BegunClaim]) -> None:
        """Satisfy one decision; a write that another one overtook is decided anew from what is there now."""
        for attempt in range(_ATTEMPTS):
            claim = await self._claim(one.claim)
            if claim["spec"].get("volumeName"):
                return
            try:
                if one.claim.volume:
                    await self._claim_volume(one, begun)
                else:
                    await self._select_node(one, claim, begun)
            except errors.ApiError as error:
                if error.status != _CONFLICT or attempt == _ATTEMPTS - 1 or isinstance(error, _TakenError):
                    raise
            else:
                return

    async def _claim_volume(self, one: BegunClaim, begun: list[BegunClaim]) -> None:
        decision = one.claim
        volume = await self._api.get(kinds.PERSISTENT_VOLUME, "", decision.volume)
        reference = volume["spec"].get("claimRef") or {}
        if reference and not _is_for(reference, decision):
            holder = f"{reference.get('namespace')}/{reference.get('name')} (uid {reference.get('uid')})"
            raise _TakenError(f"volume {decision.volume} is claimed by {holder}; it cannot be given to {decision.key}")
        if reference.get("uid"):
            return
        metadata: Manifest = {"resourceVersion": volume["metadata"]["resourceVersion"]}
        if not reference:
            # A reference without uid is its owner's wish: we complete it, and it is not for us to take back.
            metadata["annotations"] = {names.BOUND_BY_CONTROLLER: "yes"}
            _note(one, begun)
        claimed = {"apiVersion": "v1", "kind": kinds.PERSISTENT_VOLUME_CLAIM.name, "uid": decision.uid}
        claimed |= {"namespace": decision.namespace, "name": decision.claim}
        body = {"metadata": metadata, "spec": {"claimRef": claimed}}
        await self._api.patch(kinds.PERSISTENT_VOLUME, "", decision.volume, body)

    async def _select_node(self, one: BegunClaim, claim: Manifest, begun: list[BegunClaim]) -> None:
        selected = _selected(claim)
        if selected == one.node:
            return
        if selected:
            raise _TakenError(f"a volume for claim {one.claim.key} is being made on node {selected}, not {one.node}")
        _note(one, begun)
        await self._annotate(one.claim, claim, one.node)

    async def _annotate(self, decision: VolumeDecision, claim: Manifest, node: str | None) -> None:
        metadata = {"resourceVersion": claim["metadata"]["resourceVersion"], "annotations": {names.SELECTED_NODE: node}}
        body = {"metadata": metadata}
        await self._api.patch(kinds.PERSISTENT_VOLUME_CLAIM, decision.namespace, decision.claim, body)

    async def _claim(self, decision: VolumeDecision) -> Manifest:
        """Read a claim and make sure that it is the one that was decided for."""
        claim = await self._api.get(kinds.PERSISTENT_VOLUME_CLAIM, decision.namespace, decision.claim)
        uid, volume = claim["metadata"].get("uid"), claim.setdefault("spec", {}).get("volumeName")
        if decision.uid and uid != decision.uid:
            raise _TakenError(f"claim {decision.key} has uid {uid}, not {decision.uid}; it was replaced")
        if volume and decision.volume and volume != decision.volume:
            raise _TakenError(f"claim {decision.key} is bound to volume {volume}, not {decision.volume}")
        return claim

    # -- waiting -----------------------------------------------------------------------------------------------

    async def _wait(self, effect: Bind, deadline: float) -> None:
        """Wait until every claim is bound, looking less and less often."""
        clock = asyncio.get_running_loop().time
        pause = self._first_pause
        waiting = list(effect.volumes)
        while waiting := [decision for decision in waiting if not await self._is_bound(decision, effect.node)]:
            left = deadline - clock()
            if left <= 0:
                raise VolumesNotReadyError(_late(waiting, effect))
            await asyncio.sleep(min(pause, left))
            await self._check_pod(effect)
            pause = min(pause * 2, self._longest_pause)

    async def _is_bound(self, decision: VolumeDecision, node: str) -> bool:
        """Look at a claim; a server that is away for a while is waited for like a volume."""
        try:
            claim = await self._claim(decision)
        except errors.KubeError as error:
            if error.failure.code == "unavailable":
                return False
            raise
        if claim["spec"].get("volumeName"):
            return bool((claim.get("status") or {}).get("phase") == "Bound")
        if not decision.volume and _selected(claim) != node:
            raise _TakenError(
                f"no volume for claim {decision.key} could be made for node {node}: its selected node was taken back"
            )
        return False

    async def _check_pod(self, effect: Bind) -> None:
        """Stop waiting for the volumes of a pod that is gone or going."""
        try:
            metadata = (await self._api.get(kinds.POD, effect.namespace, effect.name))["metadata"]
        except errors.KubeError as error:
            if error.failure.code == "unavailable":
                return
            raise
        if metadata.get("deletionTimestamp") or (effect.uid and metadata.get("uid") != effect.uid):
            text = f"pod {effect.namespace}/{effect.name} went while its volumes were prepared"
            raise errors.ApiError(_MISSING, "NotFound", text)

    # -- undoing -----------------------------------------------------------------------------------------------

    async def _undo(self, one: BegunClaim) -> None:
        decision = one.claim
        claim = await self._present(decision)
        if claim is not None and claim.get("spec", {}).get("volumeName"):
            return
        if decision.volume:
            await self._release(decision)
        elif claim is not None and _selected(claim) == one.node:
            await self._annotate(decision, claim, None)

    async def _present(self, decision: VolumeDecision) -> Manifest | None:
        """Read a claim; None if it is gone, or another one has its name."""
        try:
            claim = await self._api.get(kinds.PERSISTENT_VOLUME_CLAIM, decision.namespace, decision.claim)
        except errors.ApiError as error:
            if error.status != _MISSING:
                raise
            return None
        return claim if claim["metadata"].get("uid") == decision.uid else None

    async def _release(self, decision: VolumeDecision) -> None:
        volume = await self._api.get(kinds.PERSISTENT_VOLUME, "", decision.volume)
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != decision.uid:
            return
        version = volume["metadata"]["resourceVersion"]
        metadata = {"resourceVersion": version, "annotations": {names.BOUND_BY_CONTROLLER: None}}
        body = {"metadata": metadata, "spec": {"claimRef": None}}
        await self._api.patch(kinds.PERSISTENT_VOLUME, "", decision.volume, body)


class _TakenError(errors.ApiError):
    """A conflict that looking again does not solve."""

    def __init__(self, message: str) -> None:
        super().__init__(_CONFLICT, "Conflict", message)


def _note(one: BegunClaim, begun: list[BegunClaim]) -> None:
    """Remember a claim before it is touched: its answer may be lost."""
    if one not in begun:
        begun.append(one)


def _selected(claim: Manifest) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    node: str = annotations.get(names.SELECTED_NODE) or ""
    return node


def _is_for(reference: Manifest, decision: VolumeDecision) -> bool:
    named = (reference.get("namespace"), reference.get("name")) == (decision.namespace, decision.claim)
    return named and reference.get("uid") in (None, "", decision.uid)


def _late(waiting: list[VolumeDecision], effect: Bind) -> str:
    claims = ", ".join(decision.key for decision in waiting)
    return (
        f"{len(waiting)} of {len(effect.volumes)} claims of pod {effect.namespace}/{effect.name} were not bound within "
        f"{effect.volume_patience / 1e6:g} s: {claims}; look at the events of these claims"
    )
