"""List/watch bookkeeping for one kind, without any input or output of its own.

A client lists, watches from the list's version, and tells the reflector what arrived; the reflector answers with the deliveries that a
consumer needs to follow the cluster: nothing twice, nothing stale, nothing missed. After a `410 Gone` it wants a fresh list, and the
difference between that list and what is known takes the place of the events that were lost.

A list is the truth (the client reads it consistently); only watch events can be stale. Per object the reflector keeps the uid and the
version and nothing else, so a deletion that was missed is delivered as a bare manifest: apiVersion, kind and metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import kinds

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Manifest = dict[str, Any]
Delivery = tuple[EventType, "Mapping[str, Any]"]

_Key = tuple[str, str]


class Reflector:
    """Follows one kind: `listed` and `event` give what to deliver, `must_list` says when a list is due."""

    def __init__(self, kind: kinds.Kind) -> None:
        self.kind = kind
        self.resource_version = ""
        self.must_list = True
        self._known: dict[_Key, tuple[str, str]] = {}  # (namespace, name) -> (uid, resourceVersion)

    def __len__(self) -> int:
        return len(self._known)

    def listed(self, objects: Iterable[Mapping[str, Any]], resource_version: str) -> list[Delivery]:
        """Take a whole list and give the difference to what was known, deletions first."""
        before, self._known = self._known, {}
        deliveries: list[Delivery] = []
        for manifest in objects:
            key, uid, version = _identity(manifest)
            known = before.pop(key, None)
            self._known[key] = (uid, version)
            if known is None:
                deliveries.append(("ADDED", manifest))
            elif known[0] != uid:
                deliveries.append(("DELETED", self._tombstone(key, *known)))
                deliveries.append(("ADDED", manifest))
            elif known[1] != version:
                deliveries.append(("MODIFIED", manifest))
        missed: list[Delivery] = [("DELETED", self._tombstone(key, *known)) for key, known in before.items()]
        self.resource_version = resource_version
        self.must_list = False
        return missed + deliveries

    def event(self, event_type: EventType, manifest: Mapping[str, Any]) -> list[Delivery]:
        """Take one watch event and give what to deliver: usually itself, nothing if it is stale."""
        key, uid, version = _identity(manifest)
        self.bookmark(version)
        known = self._known.get(key)
        if event_type == "DELETED":
            return self._deleted(key, version, manifest)
        if known is None:
            self._known[key] = (uid, version)
            return [("ADDED", manifest)]
        if not _newer(version, known[1]):
            return []
        self._known[key] = (uid, version)
        if known[0] != uid:
            return [("DELETED", self._tombstone(key, *known)), ("ADDED", manifest)]
        return [("MODIFIED", manifest)]

    def bookmark(self, resource_version: str) -> None:
        """Note the version from which a broken watch may be resumed; it never goes back."""
        if not self.resource_version or _newer(resource_version, self.resource_version):
            self.resource_version = resource_version

    def gone(self) -> None:
        """Note that the server no longer has the history after our version: the next step is a list."""
        self.must_list = True

    def _deleted(self, key: _Key, version: str, manifest: Mapping[str, Any]) -> list[Delivery]:
        known = self._known.get(key)
        if known is None or _newer(known[1], version):
            return []
        del self._known[key]
        metadata = manifest.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else ""
        return [("DELETED", manifest if uid == known[0] else self._tombstone(key, *known))]

    def _tombstone(self, key: _Key, uid: str, version: str) -> Manifest:
        namespace, name = key
        metadata = {"name": name, "uid": uid, "resourceVersion": version}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": metadata}


def _identity(manifest: Mapping[str, Any]) -> tuple[_Key, str, str]:
    metadata = manifest["metadata"]
    key = (metadata.get("namespace", ""), metadata["name"])
    return key, metadata.get("uid", ""), metadata.get("resourceVersion", "")


def _newer(version: str, known: str) -> bool:
    """Compare versions as the whole numbers they are in every API server; others only tell same from different."""
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known
