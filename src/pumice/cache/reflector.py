"""List/watch bookkeeping for one kind, without any input or output of its own.

A client lists, watches from the list's version, and tells the reflector what arrived; the reflector answers with the deliveries that a
consumer needs to follow the cluster: nothing twice, nothing stale, nothing missed. After a `410 Gone` it wants a fresh list, and the
difference between that list and what is known takes the place of the events that were lost.

A list is the truth (the client reads it consistently); only watch events can be stale. They come in the order of their versions, so one that is
not newer than everything seen before tells nothing about an object that is not known: it was deleted since. Per object the reflector keeps the
uid and the version and nothing else, so a deletion that was missed is delivered as a tombstone: an object that has only its identity.

What an object is, is the client's choice: it brings the functions that read an object's identity and make a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from pumice.api import kinds

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Manifest = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""
Edition = tuple[str, str]
"""Uid and resourceVersion."""

T = TypeVar("T")
Delivery = tuple[EventType, T]
Identify = Callable[[T], tuple[Key, Edition]]
Bury = Callable[["kinds.Kind", Key, Edition], T]


class Listing(Generic[T]):
    """A list that is being read: held against what is known, so that only what differs is kept until the list is complete."""

    def __init__(self, known: Mapping[Key, Edition], identify: Identify[T]) -> None:
        self.found: dict[Key, Edition] = {}
        self.changed: dict[Key, T] = {}
        self._known = known
        self._identify = identify

    def add(self, listed: T) -> None:
        """Take an object of the list; the same name again replaces it."""
        key, edition = self._identify(listed)
        self.found[key] = edition
        if self._known.get(key) != edition:
            self.changed[key] = listed
        else:
            self.changed.pop(key, None)

    def remove(self, listed: T) -> None:
        """Take an object out again, because it was deleted while the list was read."""
        key, _ = self._identify(listed)
        self.found.pop(key, None)
        self.changed.pop(key, None)


class Reflector(Generic[T]):
    """Follows one kind: `listed` and `event` give what to deliver, `must_list` says when a list is due."""

    def __init__(self, kind: kinds.Kind, identify: Identify[T], bury: Bury[T]) -> None:
        self.kind = kind
        self.resource_version = ""
        self.must_list = True
        self._identify = identify
        self._bury = bury
        self._known: dict[Key, Edition] = {}

    def __len__(self) -> int:
        return len(self._known)

    def listing(self) -> Listing[T]:
        """Begin a list; nothing changes before it is completed, so that one which fails is simply dropped."""
        return Listing(self._known, self._identify)

    def complete(self, listing: Listing[T], resource_version: str) -> list[Delivery[T]]:
        """Take a complete list and give the difference to what was known, deletions first."""
        before, self._known = self._known, listing.found
        deliveries: list[Delivery[T]] = [
            ("DELETED", self._bury(self.kind, key, edition))
            for key, edition in before.items()
            if key not in listing.found
        ]
        changed, listing.changed = listing.changed, {}
        for key, listed in changed.items():
            known = before.get(key)
            if known is None:
                deliveries.append(("ADDED", listed))
            elif known[0] != listing.found[key][0]:
                deliveries += [("DELETED", self._bury(self.kind, key, known)), ("ADDED", listed)]
            else:
                deliveries.append(("MODIFIED", listed))
        self.resource_version = resource_version
        self.must_list = False
        return deliveries

    def listed(self, objects: Iterable[T], resource_version: str) -> list[Delivery[T]]:
        """Take a whole list at once and give the difference to what was known."""
        listing = self.listing()
        for listed in objects:
            listing.add(listed)
        return self.complete(listing, resource_version)

    def event(self, event_type: EventType, subject: T) -> list[Delivery[T]]:
        """Take one watch event and give what to deliver: usually itself, nothing if it is stale."""
        key, edition = self._identify(subject)
        uid, version = edition
        before = self.resource_version
        self.bookmark(version)
        known = self._known.get(key)
        if event_type == "DELETED":
            return self._deleted(key, edition, subject)
        if not newer(version, before if known is None else known[1]):
            return []
        self._known[key] = edition
        if known is None:
            return [("ADDED", subject)]
        if known[0] != uid:
            return [("DELETED", self._bury(self.kind, key, known)), ("ADDED", subject)]
        return [("MODIFIED", subject)]

    def bookmark(self, resource_version: str) -> None:
        """Note the version from which a broken watch may be resumed; it never goes back."""
        if not self.resource_version or newer(resource_version, self.resource_version):
            self.resource_version = resource_version

    def gone(self) -> None:
        """Note that the server no longer has the history after our version: the next step is a list."""
        self.must_list = True

    def _deleted(self, key: Key, edition: Edition, subject: T) -> list[Delivery[T]]:
        known = self._known.get(key)
        if known is None or newer(known[1], edition[1]):
            return []
        del self._known[key]
        return [("DELETED", subject if edition[0] == known[0] else self._bury(self.kind, key, known))]


def of_manifests(kind: kinds.Kind) -> Reflector[Mapping[str, Any]]:
    """Return a reflector of manifests; its tombstones have apiVersion, kind and the identifying part of the metadata."""
    return Reflector(kind, _identify_manifest, tombstone)


def tombstone(kind: kinds.Kind, key: Key, edition: Edition) -> Manifest:
    """Return the manifest of an object of which only the identity is known."""
    namespace, name = key
    uid, version = edition
    metadata = {"name": name, "uid": uid, "resourceVersion": version}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}


def newer(version: str, known: str) -> bool:
    """Compare versions as the whole numbers they are in every API server; others only tell same from different."""
    if version.isdecimal() and known.isdecimal():
        return follows(version, known)
    return version != known


def follows(version: str, known: str) -> bool:
    """Tell whether both versions are whole numbers and the first is the larger one."""
    if not (version.isdecimal() and known.isdecimal()):
        return False
    # As texts, by length first: Python refuses to read numbers of very many digits.
    left, right = version.lstrip("0"), known.lstrip("0")
    return (len(left), left) > (len(right), right)


def _identify_manifest(manifest: Mapping[str, Any]) -> tuple[Key, Edition]:
    metadata = manifest["metadata"]
    key = (metadata.get("namespace", ""), metadata["name"])
    return key, (metadata.get("uid", ""), metadata.get("resourceVersion", ""))
