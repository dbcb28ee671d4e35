"""Who uses which volume, and what was decided for claims that the cluster does not show as bound yet.

A decision is made when a pod is placed, travels with its bind, and counts from that moment: the volume it names is nobody else's. It ends when
the pod leaves its node (the placement was undone, the bind failed, the pod is gone) or when the claim itself shows what became of it. Nothing
here chooses; that is a filter's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import storage
from pumice.api import volumes as api_volumes
from pumice.model import volumes

if TYPE_CHECKING:
    from pumice.api import meta
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.task import Task
    from pumice.model.volumes import Reservation


class Volumes:
    """Who uses what, what is decided, and what has changed since somebody looked."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._users: dict[str, dict[str, NodeRecord]] = {}  # claim -> uids of pods on nodes
        self._claims_of: dict[str, dict[str, None]] = {}  # volume -> claims that name it
        self._nodes_of: dict[str, dict[str, str]] = {}  # volume -> attachments with their nodes
        self.reservations: dict[str, Reservation] = {}  # uid of a pod -> what was decided for it
        self._holders: dict[str, dict[str, None]] = {}  # claim -> uids of pods that rely on the decision
        self.chosen: dict[str, tuple[str, str]] = {}  # claim -> volume, or none to be made, and node
        self.taken: dict[str, str] = {}  # volume -> claim
        self.attached: dict[str, dict[str, str]] = {}  # node -> attachments with their volumes
        self.decided = 0
        self.versions = dict.fromkeys(sorted(volumes.KINDS), 0)

    # -- pods on nodes -----------------------------------------------------------------------------------------

    def enter(self, task: Task, record: NodeRecord) -> None:
        """Note that a pod with volumes is on a node, or on its way there."""
        record.volume_users[task.uid] = task
        record.volume_version += 1
        for use in task.shape.constraints.claims:
            self._users.setdefault(use.key, {})[task.uid] = record

    def leave(self, task: Task, record: NodeRecord) -> None:
        """Note that a pod with volumes left its node; what was decided for it is void."""
        del record.volume_users[task.uid]
        record.volume_version += 1
        for use in task.shape.constraints.claims:
            users = self._users[use.key]
            users.pop(task.uid, None)
            if not users:
                del self._users[use.key]
        self._release(task.uid)

    # -- decisions ---------------------------------------------------------------------------------------------

    def reserve(self, uid: str, reservation: Reservation) -> None:
        """Let what was decided for a pod count from now on; two pods that share a claim rely on one decision."""
        self.reservations[uid] = reservation
        for decision in reservation.decisions:
            key = decision.key
            self._holders.setdefault(key, {})[uid] = None
            self.chosen.setdefault(key, (decision.volume, reservation.node))
            if decision.volume:
                self.taken.setdefault(decision.volume, key)
        self.decided += 1

    def _release(self, uid: str) -> None:
        reservation = self.reservations.pop(uid, None)
        if reservation is None:
            return
        for decision in reservation.decisions:
            holders = self._holders.get(decision.key, {})
            if uid in holders:
                del holders[uid]
                if not holders:
                    self._forget(decision.key)
        self.decided += 1

    def _forget(self, claim: str) -> None:
        del self._holders[claim]
        volume, _ = self.chosen.pop(claim)
        if self.taken.get(volume) == claim:
            del self.taken[volume]

    def _settle(self, claim: str) -> None:
        """Drop what was decided for a claim that now speaks for itself."""
        holders = self._holders.get(claim)
        if holders is None:
            return
        for uid in holders:
            reservation = self.reservations[uid]
            rest = tuple(decision for decision in reservation.decisions if decision.key != claim)
            if rest:
                self.reservations[uid] = msgspec.structs.replace(reservation, decisions=rest)
            else:
                del self.reservations[uid]
        self._forget(claim)
        self.decided += 1

    # -- objects -----------------------------------------------------------------------------------------------

    def changed(self, kind: str, key: str, before: meta.KubeObject | None, after: meta.KubeObject | None) -> None:
        """Note that an object which verdicts about volumes rest on came, changed or went."""
        self.versions[kind] += 1
        self._nodes.restate_claims()
        match kind:
            case "PersistentVolumeClaim":
                self._claim_changed(key, before, after)
            case "PersistentVolume":
                for claim in self._claims_of.get(key, ()):
                    self._stir_users(claim)
                for node in self._nodes_of.get(key, {}).values():
                    self._stir(node)
            case "VolumeAttachment":
                self._attachment_changed(key, before, after)
            case "CSINode":
                self._stir(key)
            case "StorageClass":
                for record in self._nodes.records:
                    record.volume_version += 1

    def _claim_changed(self, key: str, before: meta.KubeObject | None, after: meta.KubeObject | None) -> None:
        for claim in (before, after):
            if isinstance(claim, api_volumes.PersistentVolumeClaim) and (volume := claim.spec.volume_name):
                named = self._claims_of.setdefault(volume, {})
                named.pop(key, None)
                if claim is after:
                    named[key] = None
                elif not named:
                    del self._claims_of[volume]
        if not isinstance(after, api_volumes.PersistentVolumeClaim) or after.spec.volume_name:
            self._settle(key)
        self._stir_users(key)

    def _attachment_changed(self, key: str, before: meta.KubeObject | None, after: meta.KubeObject | None) -> None:
        for attachment in (before, after):
            if not isinstance(attachment, storage.VolumeAttachment):
                continue
            volume, node = attachment.spec.source.persistent_volume_name, attachment.spec.node_name
            if volume:
                _index(self.attached, node, key, volume if attachment is after else None)
                _index(self._nodes_of, volume, key, node if attachment is after else None)
                self._stir(node)

    def _stir_users(self, claim: str) -> None:
        for record in self._users.get(claim, {}).values():
            record.volume_version += 1

    def _stir(self, node: str) -> None:
        record = self._nodes.by_name.get(node)
        if record is not None:
            record.volume_version += 1


def _index(index: dict[str, dict[str, str]], outer: str, inner: str, value: str | None) -> None:
    """Set an entry of an index, or take it out."""
    entries = index.setdefault(outer, {})
    if value is None:
        entries.pop(inner, None)
        if not entries:
            del index[outer]
    else:
        entries[inner] = value
