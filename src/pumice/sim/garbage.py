"""Kubernetes' collection of objects whose owner was deleted, as far as it is needed here: PodGroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore


class GarbageCollector:
    """Deletes a PodGroup when an owner of it has been deleted and no other one is there."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._owned: dict[str, dict[Key, None]] = {}  # uid of an owner -> the groups that name it, in order
        self._orphans: dict[Key, str] = {}  # group -> the owner that was deleted
        store.observe(self._seen)

    def collect(self) -> int:
        """Delete what has lost its last owner and give how many went."""
        count = 0
        while self._orphans:
            key, deleted = next(iter(self._orphans.items()))
            del self._orphans[key]
            owners = _owners(self._store.find(key))
            if deleted in owners and not any(self._store.owner(uid) for uid in owners):
                self._store.delete(key)
                count += 1
        return count

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.POD_GROUP:
            for uid in _owners(manifest):
                owned = self._owned.setdefault(uid, {})
                owned.pop(key, None)
                if event_type != "DELETED":
                    owned[key] = None
        if event_type == "DELETED":
            uid = manifest["metadata"]["uid"]
            self._orphans.update(dict.fromkeys(self._owned.pop(uid, {}), uid))


def _owners(manifest: Mapping[str, Any] | None) -> list[str]:
    references = structure.mapping(manifest, "metadata").get("ownerReferences")
    uids = [structure.mapping(each).get("uid") for each in references] if isinstance(references, list) else []
    return [uid for uid in uids if isinstance(uid, str)]
