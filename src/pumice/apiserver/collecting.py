"""Kubernetes' garbage collection: what becomes of objects whose owners are gone or going, in the background, in the foreground, or as orphans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver import deleting
from pumice.sim import deletion, structure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]


class Collector:
    """Follows who owns whom by uid; `collect` does what has to be done since it was last called."""

    def __init__(self, store: ObjectStore, absent: Collection[str] = ()) -> None:
        """Begin with what is there; owners whose uids are `absent` count as alive though nobody sees them."""
        self._store = store
        self._absent = absent
        self._owners: dict[Key, tuple[str, ...]] = {}
        self._dependents: dict[str, dict[Key, None]] = {}  # uid of an owner -> those who name it
        self._suspects: dict[Key, None] = {}  # whose owners may be gone or going
        self._going: dict[Key, None] = {}  # owners that wait for what they own
        for key, manifest in list(store.everything()):
            self._seen(key, "ADDED", manifest)
        store.observe(self._seen)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        before = self._owners.get(key, ())
        uids = () if event_type == "DELETED" else tuple(each["uid"] for each in references(manifest))
        if before != uids:
            self._index(key, before, uids)
        if event_type == "DELETED":
            self._suspects.pop(key, None)
            self._going.pop(key, None)
            self._suspects.update(self._dependents.get(manifest["metadata"]["uid"], {}))
        if deletion.is_terminating(manifest) and waits(manifest) and event_type != "DELETED":
            self._going[key] = None
        if before != uids or event_type == "DELETED":
            for uid in {*before, *uids}:
                owner = self._store.owner(uid)
                if owner is not None and (found := self._store.find(owner)) is not None and waits(found):
                    self._going[owner] = None

    def _index(self, key: Key, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        for uid in before:
            named = self._dependents.get(uid, {})
            named.pop(key, None)
            if not named:
                self._dependents.pop(uid, None)
        for uid in after:
            self._dependents.setdefault(uid, {})[key] = None
        if after:
            self._owners[key] = after
            self._suspects[key] = None
        else:
            self._owners.pop(key, None)

    def collect(self) -> int:
        """Delete, orphan and release what is due, and give how many objects were looked at."""
        count = 0
        going, self._going = self._going, {}
        for key in going:
            count += 1
            self._release(key)
        suspects, self._suspects = self._suspects, {}
        for key in suspects:
            count += 1
            self._judge(key)
        return count

    def _judge(self, key: Key) -> None:
        """Delete an object whose owners are all gone or wait for it to go; forget owners that are gone if others are left."""
        manifest = self._store.find(key)
        named = references(manifest) if manifest is not None else []
        if manifest is None or not named or deletion.is_terminating(manifest):
            return
        alive = [each for each in named if self._store.owner(each["uid"]) is not None or each["uid"] in self._absent]
        staying = [each for each in alive if not self._is_waiting(each["uid"])]
        if staying:
            if len(staying) < len(named):
                self._rewrite(key, manifest, {"ownerReferences": [dict(each) for each in staying]})
        elif alive and self._dependents.get(manifest["metadata"]["uid"]):
            self._finalise(key, manifest, deleting.FOREGROUND)
            self._store.delete(key)
        else:
            self._store.delete(key)

    def _is_waiting(self, uid: str) -> bool:
        owner = self._store.owner(uid)
        found = self._store.find(owner) if owner is not None else None
        return found is not None and deletion.is_terminating(found) and deleting.FOREGROUND in _finalizers(found)

    def _release(self, key: Key) -> None:
        """Let an owner go that waits for nobody any more."""
        manifest = self._store.find(key)
        if manifest is None or not deletion.is_terminating(manifest):
            return
        dependents = self._dependents.get(manifest["metadata"]["uid"], {})
        uid = manifest["metadata"]["uid"]
        if deleting.ORPHAN in _finalizers(manifest):
            for each in list(dependents):
                found = self._store.peek(each)
                left = [dict(owner) for owner in references(found) if owner["uid"] != uid]
                self._rewrite(each, found, {"ownerReferences": left})
            self._finalise(key, self._store.peek(key), deleting.ORPHAN, remove=True)
        elif deleting.FOREGROUND in _finalizers(manifest):
            self._suspects.update(dependents)
            if not any(_blocks(self._store.find(each), uid) for each in dependents):
                self._finalise(key, manifest, deleting.FOREGROUND, remove=True)

    def _finalise(self, key: Key, manifest: Mapping[str, Any], name: str, *, remove: bool = False) -> None:
        left = [each for each in _finalizers(manifest) if each != name]
        self._rewrite(key, manifest, {"finalizers": left if remove else [*left, name]})

    def _rewrite(self, key: Key, manifest: Mapping[str, Any], fields: Document) -> None:
        metadata = {**manifest["metadata"], **fields}
        for field in fields:
            if not metadata[field]:
                del metadata[field]
        self._store.overwrite(key, {**manifest, "metadata": metadata})


def references(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the owner references of an object that name a uid."""
    found = structure.mapping(manifest, "metadata").get("ownerReferences")
    return [each for each in found if structure.mapping(each).get("uid")] if isinstance(found, list) else []


def waits(manifest: Mapping[str, Any]) -> bool:
    """Tell whether an object is held until the garbage collector has looked after those it owns."""
    return any(each in (deleting.ORPHAN, deleting.FOREGROUND) for each in _finalizers(manifest))


def _finalizers(manifest: Mapping[str, Any]) -> list[str]:
    found = structure.mapping(manifest, "metadata").get("finalizers")
    return found if isinstance(found, list) else []


def _blocks(manifest: Mapping[str, Any] | None, uid: str) -> bool:
    named = references(manifest) if manifest is not None else []
    return any(each["uid"] == uid and each.get("blockOwnerDeletion") is True for each in named)
