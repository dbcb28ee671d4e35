"""What controllers know of the cluster: what watches have told, and what the cluster has answered to their own writes.

Of kinds that are remembered, an object that vanished is known to whoever looks at its controller next, until that look has ended well: this is the one
thing that a restart forgets.

A watch may be late. So an answer counts as seen at once, an object that we have deleted counts as being deleted until a watch or a read says otherwise,
and of two accounts of an object the one with the newer version is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.cache import reflector
from pumice.controllers.queueing import name_book

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pumice.api import kinds
    from pumice.cache.reflector import EventType

Manifest = dict[str, Any]
Reference = tuple["kinds.Kind", str, str]
_Owner = tuple[str, str, str, str]  # apiVersion, kind, namespace, name
_MOST_LOST: Final = 10_000
_MOST_TAKEN: Final = 10_000
_DELETED: Final = "1970-01-01T00:00:00Z"  # when we have deleted something and nobody has said when that was


class Observed:
    """Objects by kind, namespace and name, with two indexes: by the uid of their controller, and those that have none."""

    def __init__(
        self,
        remembered: Iterable[tuple[kinds.Kind, kinds.Kind]] = (),
        trim: Callable[[kinds.Kind, Manifest], Manifest] | None = None,
        packed: Iterable[kinds.Kind] = (),
    ) -> None:
        """Begin with nothing; `remembered` are kinds of owners, each with a kind of theirs that is remembered.

        `trim` gives what is kept of an object; those of the kinds that are `packed` are kept as JSON, which takes a fifth of the room.
        """
        self._trim = trim
        self._packed = frozenset(packed)
        self._remembered = {(owner.api_version, owner.name, kind): owner for owner, kind in remembered}
        self._vanished: dict[_Owner, dict[str, tuple[kinds.Kind, Manifest]]] = {}
        self._objects: dict[kinds.Kind, dict[str, dict[str, Manifest | bytes]]] = {}
        self._owned: dict[tuple[kinds.Kind, str], dict[tuple[str, str], None]] = {}
        self._orphans: dict[tuple[kinds.Kind, str], dict[str, None]] = {}
        self._versions: dict[kinds.Kind, str] = {}  # how far the watch of a kind has come
        self._deleted: dict[str, None] = {}  # uids of objects that we have deleted, until they are gone
        self._lost: dict[str, None] = {}  # uids of objects that a read did not find, of which the watch may still tell
        self._taken: dict[Reference, None] = {}  # what somebody else has taken from its owner, of late
        self.unconfirmed: dict[Reference, str] = {}  # known from answers alone, and the version of the first of these
        self._unpacked: tuple[bytes, Manifest] = (b"", {})  # the last one that was asked for by name
        self.names = name_book.NameBook()

    # ---- reading

    def find(self, kind: kinds.Kind, namespace: str, name: str) -> Manifest | None:
        """Give an object, to be read and never changed."""
        found = self._objects.get(kind, {}).get(namespace, {}).get(name)
        if not isinstance(found, bytes):
            return found
        if found is not self._unpacked[0]:
            self._unpacked = found, _unpacked(found)
        return self._unpacked[1]

    def has(self, kind: kinds.Kind, namespace: str, name: str) -> bool:
        """Tell whether an object is known."""
        return name in self._objects.get(kind, {}).get(namespace, {})

    def owned(self, kind: kinds.Kind, uid: str) -> list[Manifest]:
        """Give the objects of a kind whose controller has a uid, by name."""
        homes = self._objects.get(kind, {})
        return [_unpacked(homes[namespace][name]) for namespace, name in sorted(self._owned.get((kind, uid), ()))]

    def first_owned(self, kind: kinds.Kind, uid: str, suits: Callable[[Manifest], bool]) -> Manifest | None:
        """Give one of the objects of a kind whose controller has a uid that suits: the one that has not changed for longest."""
        homes = self._objects.get(kind, {})
        found = (_unpacked(homes[namespace][name]) for namespace, name in self._owned.get((kind, uid), ()))
        return next((each for each in found if suits(each)), None)

    def orphans(self, kind: kinds.Kind, namespace: str) -> list[Manifest]:
        """Give the objects of a kind in a namespace that have no controller, by name."""
        home = self._objects.get(kind, {}).get(namespace, {})
        return [_unpacked(home[name]) for name in sorted(self._orphans.get((kind, namespace), ()))]

    def inside(self, kind: kinds.Kind, namespace: str) -> Iterator[Manifest]:
        """Go over the objects of a kind in a namespace."""
        return map(_unpacked, list(self._objects.get(kind, {}).get(namespace, {}).values()))

    def all(self, kind: kinds.Kind) -> Iterator[Manifest]:
        """Go over all objects of a kind."""
        homes = list(self._objects.get(kind, {}).values())
        return (_unpacked(each) for home in homes for each in list(home.values()))

    def count(self, kind: kinds.Kind) -> int:
        """Give how many objects of a kind there are."""
        return sum(map(len, self._objects.get(kind, {}).values()))

    def vanished(self, kind: kinds.Kind, owner_kind: kinds.Kind, owner: Mapping[str, Any]) -> list[Manifest]:
        """Give the objects of a kind that are gone since their controller was last looked at, as they were last known."""
        metadata = owner["metadata"]
        gone = self._vanished.get(_owner(owner_kind, metadata.get("namespace", ""), metadata["name"]), {})
        uid = metadata.get("uid", "")
        return [each for of, each in gone.values() if of == kind and (controller(each) or {}).get("uid") == uid]

    def untold(self, owner_kind: kinds.Kind, namespace: str, name: str) -> list[str]:
        """Give the uids of what has vanished since a controller was last looked at."""
        return list(self._vanished.get(_owner(owner_kind, namespace, name), ()))

    def taken(self, kind: kinds.Kind, namespace: str, name: str) -> bool:
        """Tell, once, whether an object with this name was taken from its owner by somebody else."""
        return self._taken.pop((kind, namespace, name), True) is None

    # ---- learning

    def feed(self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any]) -> bool:
        """Take a watch event; tells whether it was news."""
        metadata = manifest["metadata"]
        version = metadata.get("resourceVersion", "")
        if not self._versions.get(kind) or reflector.newer(version, self._versions[kind]):
            self._versions[kind] = version
        reference = (kind, metadata.get("namespace", ""), metadata["name"])
        self._spend(manifest)
        known = self.find(*reference)
        if metadata.get("uid") in self._lost:
            if event_type == "DELETED":
                del self._lost[metadata["uid"]]
            return False
        if event_type == "DELETED":
            if known is None or known["metadata"].get("uid") != metadata.get("uid"):
                return False
            self._drop(reference, known)
            return True
        self._confirmed(reference, known, manifest)
        if known is not None and not reflector.newer(version, known["metadata"].get("resourceVersion", "")):
            return False
        self._put(reference, dict(manifest))
        return True

    def echoed(self, kind: kinds.Kind, namespace: str, name: str, version: str) -> bool:
        """Tell whether a watch says of an object just what an answer has said, and take note that it was confirmed."""
        reference = (kind, namespace, name)
        if not version or self.unconfirmed.get(reference) != version:
            return False
        del self.unconfirmed[reference]
        if not self._versions.get(kind) or reflector.newer(version, self._versions[kind]):
            self._versions[kind] = version
        return True

    def learned(self, kind: kinds.Kind, manifest: Mapping[str, Any], *, read: bool = False) -> bool:
        """Take what the cluster has answered: to a write, or to a read, which also tells whether it is being deleted. Tells whether it was news."""
        metadata = manifest["metadata"]
        reference = (kind, metadata.get("namespace", ""), metadata["name"])
        version, known = metadata.get("resourceVersion", ""), self.find(*reference)
        self._spend(manifest)
        if read:
            if not metadata.get("deletionTimestamp"):
                self._deleted.pop(metadata.get("uid", ""), None)
            self.unconfirmed.pop(reference, None)
        if known is not None and reflector.newer(known["metadata"].get("resourceVersion", ""), version):
            return False
        if known is None:
            watched = self._versions.get(kind, "")
            if watched and not reflector.newer(version, watched):
                return False  # the watch has come further, and the object was deleted since
            if not read:
                self.unconfirmed[reference] = version
        self._put(reference, dict(manifest))
        return known is None or self.find(*reference) != known

    def deleted(self, kind: kinds.Kind, namespace: str, name: str, uid: str) -> None:
        """Take note of an object that we have deleted: it goes, even if that takes a while."""
        known = self.find(kind, namespace, name)
        if known is not None and known["metadata"].get("uid") == uid:
            self._deleted[uid] = None
            self.unconfirmed[kind, namespace, name] = ""  # what confirms it is a version that nobody knows yet
            self._put((kind, namespace, name), known)

    def lost(self, kind: kinds.Kind, namespace: str, name: str) -> None:
        """Take note of an object that a read did not find."""
        known = self.find(kind, namespace, name)
        if known is not None:
            self._drop((kind, namespace, name), known)
            self._lost[known["metadata"].get("uid", "")] = None
            if len(self._lost) > _MOST_LOST:
                del self._lost[next(iter(self._lost))]

    def forget(self, owner_kind: kinds.Kind, namespace: str, name: str, uids: Iterable[str]) -> None:
        """Remember some that vanished no longer."""
        owner = _owner(owner_kind, namespace, name)
        gone = self._vanished.get(owner, {})
        for uid in uids:
            gone.pop(uid, None)
        if not gone:
            self._vanished.pop(owner, None)

    # ---- keeping

    def _spend(self, manifest: Mapping[str, Any]) -> None:
        """Take note that a name which we have asked for is in use."""
        owner = controller(manifest)
        if owner is not None:
            self.names.spend(owner["uid"], manifest["metadata"]["name"])

    def _confirmed(self, reference: Reference, known: Manifest | None, manifest: Mapping[str, Any]) -> None:
        if known is None or reference not in self.unconfirmed:
            return
        metadata, held = manifest["metadata"], known["metadata"]
        if held.get("uid") != metadata.get("uid"):
            return
        if metadata.get("uid") not in self._deleted or metadata.get("deletionTimestamp"):
            del self.unconfirmed[reference]

    def _put(self, reference: Reference, manifest: Manifest) -> None:
        kind, namespace, name = reference
        if self._trim is not None:
            manifest = self._trim(kind, manifest)
        known = self.find(*reference)
        if known is not None:
            self._unindex(reference, known)
        metadata = manifest["metadata"]
        if metadata.get("uid") in self._deleted and not metadata.get("deletionTimestamp"):
            manifest = {**manifest, "metadata": {**metadata, "deletionTimestamp": _DELETED}}
        kept = msgspec.json.encode(manifest) if kind in self._packed else manifest
        self._objects.setdefault(kind, {}).setdefault(namespace, {})[name] = kept
        owner = controller(manifest)
        if owner:
            self._owned.setdefault((kind, owner["uid"]), {})[namespace, name] = None
        else:
            self._orphans.setdefault((kind, namespace), {})[name] = None

    def _drop(self, reference: Reference, known: Manifest) -> None:
        kind, namespace, name = reference
        self._unindex(reference, known)
        if controller(known) and known["metadata"].get("uid") not in self._deleted:
            self._taken[reference] = None
            if len(self._taken) > _MOST_TAKEN:
                del self._taken[next(iter(self._taken))]
        self._remember(kind, namespace, known)
        self._vanished.pop(_owner(kind, namespace, name), None)
        home = self._objects[kind][namespace]
        del home[name]
        if not home:
            del self._objects[kind][namespace]
        self._deleted.pop(known["metadata"].get("uid", ""), None)
        self.unconfirmed.pop(reference, None)
        self.names.forget(known["metadata"].get("uid", ""))

    def _remember(self, kind: kinds.Kind, namespace: str, known: Manifest) -> None:
        """Remember what has vanished for its owner, if there is one that could be told."""
        owner = controller(known) or {}
        api_version, name = str(owner.get("apiVersion")), str(owner.get("kind"))
        of = self._remembered.get((api_version, name, kind))
        if of is not None and self.has(of, namespace, str(owner.get("name"))):
            gone = self._vanished.setdefault((api_version, name, namespace, str(owner.get("name"))), {})
            gone[known["metadata"].get("uid", "")] = kind, known

    def _unindex(self, reference: Reference, known: Manifest) -> None:
        kind, namespace, name = reference
        owner = controller(known)
        if not owner:
            self._orphans[kind, namespace].pop(name, None)
            return
        owned = self._owned[kind, owner["uid"]]
        owned.pop((namespace, name), None)
        if not owned:
            del self._owned[kind, owner["uid"]]


def _unpacked(kept: Manifest | bytes) -> Manifest:
    if isinstance(kept, dict):
        return kept
    manifest: Manifest = msgspec.json.decode(kept)
    return manifest


def _owner(kind: kinds.Kind, namespace: str, name: str) -> _Owner:
    return kind.api_version, kind.name, namespace, name


def controller(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the owner reference of an object's controller."""
    references = manifest["metadata"].get("ownerReferences")
    if not isinstance(references, list):
        return None
    found = (each for each in references if isinstance(each, dict) and each.get("controller") is True)
    return next((each for each in found if isinstance(each.get("uid"), str) and each["uid"]), None)
