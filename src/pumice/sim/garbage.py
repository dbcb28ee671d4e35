"""Kubernetes' collection of objects whose owner was deleted: whatever names an owner goes with its last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore


class GarbageCollector:
    """Deletes an object when an owner of it has been deleted and no other one is there; owners that never were do no harm."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._owned: dict[str, dict[Key, None]] = {}  # uid of an owner -> the objects that name it, in order
        self._deleted: set[str] = set()  # uids of everything that was deleted
        self._orphans: dict[Key, str] = {}  # object -> the owner that was deleted
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
        for uid in _owners(manifest):
            owned = self._owned.setdefault(uid, {})
            owned.pop(key, None)
            if event_type == "DELETED":
                continue
            owned[key] = None
            if event_type == "ADDED" and uid in self._deleted:
                self._orphans[key] = uid  # made for an owner that was gone already
        if event_type == "DELETED":
            uid = manifest["metadata"]["uid"]
            self._deleted.add(uid)
            self._orphans.update(dict.fromkeys(self._owned.pop(uid, {}), uid))


def _owners(manifest: Mapping[str, Any] | None) -> list[str]:
    references = structure.mapping(manifest, "metadata").get("ownerReferences")
    uids = [structure.mapping(each).get("uid") for each in references] if isinstance(references, list) else []
    return [uid for uid in uids if isinstance(uid, str)]
