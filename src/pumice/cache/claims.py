"""Claims for devices, as the cache writes about them: what is prepared for a pod, what is waited for, and which claims lose their devices.

A claim as an answer shows it is taken in like one that a watch tells of, so that devices count as given from the moment that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice.api import decoding, kinds, names, resource, timestamp
from pumice.cache.effects import Patch, TakeBack
from pumice.cache.mirror import Mirror
from pumice.model import preparations
from pumice.model.devices import decisions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.cache.effects import Outcome
    from pumice.cache.reflector import EventType
    from pumice.model.devices.decisions import ClaimReservation
    from pumice.model.devices.registry import Devices
    from pumice.model.preparations import Preparation
    from pumice.model.task import Task

FREED: Final = "deallocation of ResourceClaim completed"


class TakenIn(Protocol):
    """Everything but pods that was taken in."""

    def apply(self, kind: kinds.Kind, event_type: EventType, found: Any) -> None:
        """Apply one event."""


class ClaimsMirror(Mirror, Protocol):
    """The cache, as what writes about claims sees it."""

    @property
    def objects(self) -> TakenIn:
        """Everything but pods that was taken in."""


class Wait(msgspec.Struct, frozen=True):
    """What the devices of a pod still lack before it may be bound: conditions, until when, or those that say that it will never be."""

    waiting: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    until: int = 0


def preparations_for(task: Task, devices: Devices, *, all_of_it: bool) -> tuple[Preparation, ...]:
    """Return what is to be written for the claims of a pod before it is bound; those that are as they should be are left out, unless they will not stay so."""
    reservation = devices.reservations.get(task.uid)
    return tuple(_of(task, reservation, devices, all_of_it=all_of_it)) if reservation is not None else ()


def _of(task: Task, reservation: ClaimReservation, devices: Devices, *, all_of_it: bool) -> Iterator[Preparation]:
    pod: dict[str, str] = {"pod": task.name, "pod_uid": task.uid}
    for decision in reservation.decisions:
        name, uid = decision.claim, decision.uid
        if decision.made is not None:
            name, uid = made_name(decision.made, task.uid), ""
            metadata = {**decision.made.get("metadata", {}), "name": name, "namespace": decision.namespace}
            manifest = {**decision.made, "metadata": metadata}
            yield preparations.NewClaim(namespace=decision.namespace, claim=name, manifest=manifest, **pod)
        claim = devices.claims.get(decision.key)
        done = claim is not None and decisions.has(claim, decision) and decisions.is_reserved(claim, task.uid)
        if all_of_it or not done:
            yield preparations.ClaimGrant(
                namespace=decision.namespace,
                claim=name,
                uid=uid,
                allocation=decisions.written(decision.allocation),
                **pod,
            )
        if decision.made is not None:
            told = {"resourceClaimName": name, "requestMappings": [dict(each) for each in decision.mappings]}
            yield preparations.ExtendedClaimStatus(namespace=decision.namespace, status=told, **pod)


def made_name(manifest: Mapping[str, Any], uid: str) -> str:
    """Name a claim that is made for a pod: who asks twice asks for the same."""
    metadata = manifest.get("metadata", {})
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}{preparations.suffix(uid)}")


def unmet(task: Task, devices: Devices, since: int) -> Wait:
    """Say what the devices of a pod still lack; a claim that does not say when it was allocated was so by now."""
    reservation = devices.reservations.get(task.uid)
    waiting: list[str] = []
    failed: list[str] = []
    ends = [since + decisions.CONDITION_PATIENCE]
    for decision in reservation.decisions if reservation is not None else ():
        if not decision.waits:
            continue
        claim = devices.claims.get(decision.key)
        if claim is None:
            failed.append(f"claim {decision.key} is gone")
            continue
        if claim.status.allocation is None:
            waiting.append(f"claim {decision.key}: its allocation")
        lacks, fails = decisions.unmet_conditions(claim)
        waiting += [f"claim {decision.key}, device {each}" for each in lacks]
        failed += [f"claim {decision.key}, device {each}" for each in fails]
        try:
            allocation = claim.status.allocation
            given = timestamp.parse((allocation.allocation_timestamp if allocation is not None else None) or "")
        except timestamp.TimestampError:
            continue
        ends.append(given + decisions.CONDITION_PATIENCE)
    return Wait(tuple(waiting), tuple(failed), min(ends))


class Claims:
    """Takes in claims that answers show, and has those freed that keep their pods from every node."""

    def __init__(self, cache: ClaimsMirror) -> None:
        self._cache = cache
        self._freeing: dict[str, str] = {}  # claim -> the version of it that was to be freed

    def learn(self, outcome: Outcome) -> None:
        """Take in claims as an answer shows them; one that was to be deleted and could not be is found again by the next cycle."""
        for manifest in (outcome.object or {}).get("claims", ()):
            self._take_in(manifest)
        if outcome.failure is not None and isinstance(outcome.effect, TakeBack):
            made = [each for each in outcome.effect.preparations if isinstance(each, preparations.NewClaim)]
            for key in (f"{each.namespace}/{each.claim}" for each in made):
                if key in self._freeing:
                    del self._freeing[key]
                    self._cache.cluster.changed += 1

    def _take_in(self, manifest: Mapping[str, Any]) -> None:
        """Take a claim in as an answer shows it; one that is gone meanwhile stays so."""
        found = decoding.decode(manifest)
        known = self._cache.cluster.devices.claims.get(f"{found.metadata.namespace}/{found.metadata.name}")
        if known is not None and known.metadata.uid == found.metadata.uid:
            self._cache.objects.apply(kinds.RESOURCE_CLAIM, "MODIFIED", found)

    def free(self) -> None:
        """Have devices taken from claims that nobody uses and that fit nowhere any more."""
        devices = self._cache.cluster.devices
        self._delete(devices)
        wanted, devices.to_free = devices.to_free, {}
        self._freeing = {key: version for key, version in self._freeing.items() if key in devices.claims}
        for key, reason in wanted.items():
            claim = devices.claims.get(key)
            if claim is None or self._freeing.get(key) == claim.metadata.resource_version:
                continue
            self._freeing[key] = claim.metadata.resource_version
            self._cache.world.send(_freed(claim))
            self._cache.record.say("dynamic resources", f"claim {key}: its devices are taken back: {reason}")

    def _delete(self, devices: Devices) -> None:
        """Have claims deleted that an attempt which broke off has left; one that is still there when it is looked at again is sent once more."""
        wanted, devices.to_delete = devices.to_delete, {}
        for key, uid in wanted.items():
            claim, task = devices.claims.get(key), self._cache.cluster.tasks.get(uid)
            if claim is None or task is None or self._freeing.get(key) == claim.metadata.resource_version:
                continue
            self._freeing[key] = claim.metadata.resource_version
            namespace, name = claim.metadata.namespace, claim.metadata.name
            made = preparations.NewClaim(namespace=namespace, claim=name, pod=task.name, pod_uid=uid, manifest={})
            self._cache.world.send(TakeBack(namespace=namespace, name=task.name, uid=uid, preparations=(made,)))
            self._cache.record.say(
                "dynamic resources", f"claim {key} asks for something else than pod {task.key}: it is deleted"
            )

    def settle(self, effect: Patch, outcome: Outcome) -> None:
        """Take the answer about a claim that was to be freed; one that failed is found again by the next cycle."""
        key = f"{effect.namespace}/{effect.name}"
        claim = self._cache.cluster.devices.claims.get(key)
        if outcome.failure is None:
            if outcome.object is not None:
                self._take_in(outcome.object)
            if claim is not None:
                self._cache.note(kinds.RESOURCE_CLAIM, claim.metadata, "Normal", names.EVENT_CLAIM_FREED, FREED)
            return
        self._freeing.pop(key, None)
        self._cache.record.say(
            "dynamic resources", f"claim {key}: its devices could not be taken back: {outcome.failure.message}"
        )
        self._cache.cluster.changed += 1


def _freed(claim: resource.ResourceClaim) -> Patch:
    metadata = claim.metadata
    body: dict[str, Any] = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
    if metadata.resource_version:
        body["metadata"] = {"resourceVersion": metadata.resource_version}
    return Patch(
        kind=kinds.RESOURCE_CLAIM,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        body=body,
        subresource="status",
    )
