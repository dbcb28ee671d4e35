"""Who has which device: what claims show, and what was decided for claims that do not show it yet.

A decision is made when a pod is placed, travels with its bind, and counts from that moment: its devices are nobody else's. It ends when the pod leaves
its node (the placement was undone, the bind failed, the pod is gone) or when the claim itself shows what it has.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from pumice.api import quantity, resource
from pumice.model import requests, resources
from pumice.model.devices import amounts, extended, mapped, offers, wanted
from pumice.model.devices.mapped import MappedResources

if TYPE_CHECKING:
    from pumice.api import core, meta
    from pumice.model.devices.decisions import ClaimReservation
    from pumice.model.devices.offers import DeviceId
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.resources import Vocabulary
    from pumice.model.shape import Shapes
    from pumice.model.task import Task

CLAIM = "ResourceClaim"
SLICE = "ResourceSlice"
CLASS = "DeviceClass"
RULE = "DeviceTaintRule"
KINDS = frozenset({CLAIM, SLICE, CLASS, RULE})
MOST_CHANGES = 10_000
WHOLE = -1
"""Stands for everything that a device has, where a claim's share of it cannot be read."""


class Use(msgspec.Struct):
    """Who has a device: claims that have it for themselves, and what others take of its capacities."""

    owners: dict[str, None]
    shares: dict[tuple[str, str], dict[str, int]]  # claim and share


def problem(found: meta.KubeObject) -> str:
    """Say which field of an object of these kinds makes no sense; empty if all do."""
    try:
        if isinstance(found, resource.ResourceSlice):
            offers.read(found)
    except resources.BadValueError as error:
        return str(error)
    return wanted.read(found.spec).problem if isinstance(found, resource.ResourceClaim) else ""


class Devices:
    """Slices, classes, rules and claims of the cluster, and who has what."""

    def __init__(self, nodes: NodeTable, shapes: Shapes, vocabulary: Vocabulary) -> None:
        self._nodes = nodes
        self._shapes = shapes
        self._vocabulary = vocabulary
        self._askers: dict[str, dict[str, Task]] = {}  # claim -> tasks that have it
        self._asked: dict[str, tuple[str, ...]] = {}  # uid of a task -> the claims it is listed under
        self.mapped = MappedResources(nodes, vocabulary)
        self._special: dict[str, None] = {}  # uids of tasks that ask for resources that classes stand for
        self._mapped = (-1, -1)
        self._reduced: dict[str, None] = {}  # uids of tasks whose shape leaves out what they get by a claim
        self.slices: dict[str, offers.Slice] = {}
        self.classes: dict[str, resource.DeviceClass] = {}
        self.rules: dict[str, resource.DeviceTaintRule] = {}
        self.claims: dict[str, resource.ResourceClaim] = {}
        self.unreadable: dict[str, str] = {}  # claims of which only a part could be read, and why
        self.uses: dict[DeviceId, Use] = {}
        self.offered = 0  # grows when a slice, a class or a rule changes
        self.used = 0  # grows when a claim gets or loses devices, or changes
        self.changes: dict[DeviceId, None] = {}  # devices whose users changed, since whoever reads them emptied it
        self.overflows = 0  # grows when these were too many to list, so that anything may have changed
        # Claims whose allocation keeps their pods from every node, with the reason: they are to be freed, so that the next attempt starts afresh.
        self.to_free: dict[str, str] = {}
        # Claims that were made for a pod and ask for something else than it does now, by the uid of the pod: they are to be deleted.
        self.to_delete: dict[str, str] = {}
        self._users: dict[str, dict[str, NodeRecord]] = {}  # claim -> uids of pods on nodes
        self._claims_of: dict[str, tuple[str, ...]] = {}  # uid of a pod on a node -> its claims
        self.reservations: dict[str, ClaimReservation] = {}
        self.withdrawn: dict[
            str, ClaimReservation
        ] = {}  # of pods that left their node, for those that come back in the same cycle
        self.in_flight: dict[str, resource.Allocation] = {}  # claim -> what it will have
        self._holders: dict[str, dict[str, None]] = {}  # claim -> uids of pods that rely on that

    # -- objects -----------------------------------------------------------------------------------------------

    def changed(self, kind: str, key: str, found: meta.KubeObject | None, unreadable: str = "") -> None:
        """Take over an object of one of these kinds, or drop it; one of which nothing can be read counts as gone.

        A claim that is `unreadable` is what is left of it: it has what it has, and no pod is placed by it.
        """
        if kind == CLAIM:
            self.unreadable.pop(key, None)
            if unreadable and found is not None:
                self.unreadable[key] = unreadable
            self._claim_changed(key, found if isinstance(found, resource.ResourceClaim) else None)
        else:
            self.offered += 1
            self._offer_changed(kind, key, found)
        self._nodes.restate_claims()

    def _offer_changed(self, kind: str, key: str, found: meta.KubeObject | None) -> None:
        if kind == SLICE:
            self.slices.pop(key, None)
            if isinstance(found, resource.ResourceSlice) and not problem(found):
                self.slices[key] = offers.read(found)
        elif kind == CLASS:
            self.classes.pop(key, None)
            if isinstance(found, resource.DeviceClass):
                self.classes[key] = found
        elif kind == RULE:
            self.rules.pop(key, None)
            if isinstance(found, resource.DeviceTaintRule):
                self.rules[key] = found

    def _claim_changed(self, key: str, after: resource.ResourceClaim | None) -> None:
        before = self.claims.pop(key, None)
        if before is not None and before.status.allocation is not None:
            self._count(key, before.status.allocation, -1)
        if after is None or after.status.allocation is not None:
            self._settle(key)
        if after is not None:
            self.claims[key] = after
            if after.status.allocation is not None:
                self._count(key, after.status.allocation, 1)
        self.to_free.pop(key, None)
        self.to_delete.pop(key, None)
        self.used += 1
        for task in self._askers.get(key, {}).values():
            self._reshape(task)

    # -- pods and their claims ---------------------------------------------------------------------------------

    def uses_of(self, pod: core.Pod, natives: frozenset[str] = mapped.NOTHING) -> tuple[wanted.ClaimUse, ...]:
        """List the claims of a pod, the one that is to be made for extended resources last: for those that its node does not offer itself."""
        uses = wanted.uses_of(pod)
        classes = self.mapped.classes
        if classes and natives:
            classes = {name: kind for name, kind in classes.items() if name not in natives}
        special = extended.special_claim(pod, classes) if classes else None
        if special is None:
            return uses
        key = f"{pod.metadata.namespace}/{special.name}"
        return *uses, wanted.ClaimUse("extended resources", key, pod.metadata.uid, special)

    @property
    def has_special(self) -> bool:
        """Whether a pod asks for extended resources that it gets by a claim."""
        return bool(self._special)

    @property
    def is_asked(self) -> bool:
        """Whether a pod names claims, be they there or not."""
        return bool(self._asked)

    def takes_over(self, task: Task) -> bool:
        """Tell whether a pod asks for a resource that a class stands for."""
        classes = self.mapped.classes
        return bool(classes) and any(name in classes for name in task.shape.request.amounts)

    def stands_for(self, name: str) -> bool:
        """Tell whether a class stands for a resource that no node offers: how much of it there is, is found with the devices."""
        return name in self.mapped.classes and name not in self._vocabulary.columns

    def remap(self) -> bool:
        """Find out anew which resources classes stand for; tells whether that has changed, so that pods are to be looked at again."""
        state = (self.offered, len(self._vocabulary))
        if state == self._mapped:
            return False
        self._mapped = state
        return self.mapped.update(self.classes.values(), self.slices.values())

    def reconsider(self, task: Task) -> None:
        """Look at a pod again now that other resources are had by claims."""
        if task.uid in self._asked or self.takes_over(task):
            self.part(task)
            self.join(task)
            if task.node is not None:
                self._list(task, task.node)

    def join(self, task: Task) -> None:
        """Take note of a pod with claims."""
        uses = self.uses_of(task.pod)
        if uses:
            self._asked[task.uid] = tuple(use.key for use in uses)
        for use in uses:
            self._askers.setdefault(use.key, {})[task.uid] = task
        self._reshape(task)

    def part(self, task: Task) -> None:
        """Forget a pod with claims."""
        for key in self._asked.pop(task.uid, ()):
            askers = self._askers.get(key, {})
            askers.pop(task.uid, None)
            if not askers:
                self._askers.pop(key, None)

    def forget(self, task: Task) -> None:
        """Forget a pod that leaves."""
        self.part(task)
        self._reduced.pop(task.uid, None)
        self._special.pop(task.uid, None)

    def _reshape(self, task: Task) -> None:
        """Let the shape of a pod say what its claims ask for: pods whose own claims ask for the same stay equal, whatever these are called.

        What is had by a claim on every node is asked of none.
        """
        shape, uses = task.shape, self.uses_of(task.pod)
        parts = tuple(self._asks(use) for use in uses) or (("none",) if task.pod.spec.resource_claims else ())
        amounts = shape.request.amounts if task.uid not in self._reduced else requests.of_pod(task.pod)
        special = uses[-1].special if uses else None
        self._reduced.pop(task.uid, None)
        self._special.pop(task.uid, None)
        if special is not None:
            self._special[task.uid] = None
            columns = self._vocabulary.columns
            left = {name: units for name, units in amounts.items() if name not in special.resources or name in columns}
            if len(left) < len(amounts):
                self._reduced[task.uid] = None
                amounts = left
        if parts == shape.constraints.resource_claims and amounts == shape.request.amounts:
            return
        constraints = msgspec.structs.replace(shape.constraints, resource_claims=parts)
        task.shape = self._shapes.intern(constraints, amounts, shape.non_zero)
        task.shape.request.lay(self._vocabulary)
        self._shapes.release(shape)
        if task.job is not None:
            task.job.version += 1

    def _asks(self, use: wanted.ClaimUse) -> str:
        """Write down what a claim is to its pod: what it asks for, if it is the pod's own and in order, otherwise itself."""
        claim = self.claims.get(use.key)
        if claim is None and use.special is not None:
            return f"like {hashlib.sha256(wanted.read(use.special.spec).content).hexdigest()}"
        if claim is None or not use.owner or claim.metadata.deletion_timestamp or claim.status.allocation is not None:
            return f"{use.name} is {use.key}"
        if not any(each.controller and each.uid == use.owner for each in claim.metadata.owner_references):
            return f"{use.name} is {use.key}"
        return f"like {hashlib.sha256(wanted.read(claim.spec).content).hexdigest()}"

    # -- who has what ------------------------------------------------------------------------------------------

    def allocation(self, key: str) -> resource.Allocation | None:
        """Return what a claim has, or will have."""
        claim = self.claims.get(key)
        shown = claim.status.allocation if claim is not None else None
        return shown if shown is not None else self.in_flight.get(key)

    def consumers(self, key: str) -> frozenset[str]:
        """Return the uids of everybody who uses a claim: pods that it is reserved for, and pods that are on nodes with it."""
        claim = self.claims.get(key)
        reserved = (each.uid for each in claim.status.reserved_for) if claim is not None else ()
        return frozenset((*reserved, *self._users.get(key, ())))

    def _count(self, key: str, allocation: resource.Allocation, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            use = self.uses.setdefault(device, Use({}, {}))
            share = (key, result.share_id or "")
            if result.share_id and sign > 0:
                use.shares[share] = _consumed(result)
            elif result.share_id:
                use.shares.pop(share, None)
            elif sign > 0:
                use.owners[key] = None
            else:
                use.owners.pop(key, None)
            if not use.owners and not use.shares:
                del self.uses[device]
            self._changed(device)

    def _changed(self, device: DeviceId) -> None:
        """Note that a device is used by others; what nobody reads for long is not listed without end."""
        if len(self.changes) >= MOST_CHANGES:
            self.changes.clear()
            self.overflows += 1
        self.changes[device] = None

    # -- pods on nodes -----------------------------------------------------------------------------------------

    def enter(self, task: Task, record: NodeRecord) -> None:
        """Note that a pod with claims is on a node, or on its way there."""
        self._list(task, record)
        self.used += 1

    def leave(self, task: Task) -> None:
        """Note that a pod with claims left its node; what was decided for it is void."""
        self._unlist(task.uid)
        self._release(task.uid)
        self.used += 1

    def _list(self, task: Task, record: NodeRecord) -> None:
        """List a pod on a node under its claims, and under no others."""
        self._unlist(task.uid)
        keys = tuple(use.key for use in self.uses_of(task.pod, self.mapped.natives(record)) if use.key)
        if keys:
            self._claims_of[task.uid] = keys
        for key in keys:
            self._users.setdefault(key, {})[task.uid] = record
            self._stir(key)

    def _unlist(self, uid: str) -> None:
        for key in self._claims_of.pop(uid, ()):
            self._stir(key)
            users = self._users.get(key, {})
            users.pop(uid, None)
            if not users:
                self._users.pop(key, None)

    def _stir(self, key: str) -> None:
        """Note that those who use what a claim has are others now."""
        allocation = self.allocation(key)
        for result in allocation.devices.results if allocation is not None else ():
            self._changed((result.driver, result.pool, result.device))

    # -- decisions ---------------------------------------------------------------------------------------------

    def reserve(self, uid: str, reservation: ClaimReservation) -> None:
        """Let what was decided for a pod count from now on; pods that share a claim rely on one decision."""
        self.reservations[uid] = reservation
        for decision in reservation.decisions:
            key = decision.key
            self._holders.setdefault(key, {})[uid] = None
            if self.allocation(key) is None:
                self.in_flight[key] = decision.allocation
                self._count(key, decision.allocation, 1)
        self.used += 1

    def release(self, uid: str) -> None:
        """Let what was decided for somebody not count any more."""
        self._release(uid)
        self.used += 1

    def relying(self, key: str) -> tuple[str, ...]:
        """Return the uids of the pods that rely on what was decided for a claim."""
        return tuple(self._holders.get(key, ()))

    def _release(self, uid: str) -> None:
        reservation = self.reservations.pop(uid, None)
        if reservation is not None:
            self.withdrawn[uid] = reservation
        for decision in reservation.decisions if reservation is not None else ():
            key = decision.key
            holders = self._holders.get(key, {})
            holders.pop(uid, None)
            if not holders:
                self._settle(key)

    def _settle(self, key: str) -> None:
        """Drop what was decided for a claim: it speaks for itself now, or nobody relies on it any more."""
        self._holders.pop(key, None)
        allocation = self.in_flight.pop(key, None)
        if allocation is not None:
            self._count(key, allocation, -1)


def _consumed(result: resource.DeviceResult) -> dict[str, int]:
    consumed: dict[str, int] = {}
    for name, text in result.consumed_capacity.items():
        try:
            consumed[name] = amounts.nanos(text)
        except quantity.QuantityError:
            consumed[name] = WHOLE
    return consumed
