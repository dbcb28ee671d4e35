"""The objects of the simulated API server, with its versions, its concurrency rules and its watches.

Stored manifests are never changed in place: a write builds new maps for the levels that change and shares the rest with the object it
replaces, so an event, a list and the store may hold the same object without harm. What comes in is copied once (`adopt` and
`overwrite` take over what their caller has just built); `get`, `list` and `Watch.poll` hand out copies. `peek`, `find`, `scan` and
`Watch.take` hand out the stored objects themselves, to be read and never changed; they exist for the parts of this package that look
at every pod. A write answers with the version it has reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pumice.api import kinds, names, timestamp
from pumice.sim import deletion, errors, history, identity, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pumice.sim.history import Watch, WatchEventType
    from pumice.sim.identity import Key

Manifest = dict[str, Any]
Subresource = Literal["", "status"]

_NO_STATUS_SUBRESOURCE = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "CardGeometries",
        "Command",
        "ConfigMap",
        "DeviceClass",
        "Event",
        "Lease",
        "NetworkPolicy",
        "Numatopology",
        "PodGroup",  # its status is part of the object, in every group that has one
        "PriorityClass",
        "ResourceSlice",
        "Secret",
        "StorageClass",
        "UnservedKind",
        "Workload",
    }
)
_LEGACY_GROUPS = frozenset({"scheduling.incubator.k8s.io", "scheduling.sigs.dev"})
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def has_status_subresource(kind: kinds.Kind) -> bool:
    """Tell whether a kind's status is written apart, through a subresource."""
    if kind is kinds.NATIVE_POD_GROUP:
        return True
    return kind.name not in _NO_STATUS_SUBRESOURCE and kind.group not in _LEGACY_GROUPS


def is_custom(kind: kinds.Kind) -> bool:
    """Tell whether a kind is a custom resource, which knows no strategic merge patch."""
    return kind.group.endswith(".volcano.sh") or kind.group in _LEGACY_GROUPS


class ObjectStore:
    """Manifests by kind, namespace and name; every successful change has a version of its own."""

    def __init__(
        self,
        now: Callable[[], int],
        new_uid: Callable[[], str] | None = None,
        has_generation: Callable[[kinds.Kind], bool] = lambda _: True,
        *,
        limit: int = history.LIMIT,
    ) -> None:
        self._now = now
        self._has_generation = has_generation
        self.new_uid = new_uid or self._counted_uid
        self._objects: dict[kinds.Kind, dict[tuple[str, str], Manifest]] = {}
        self._history = history.History(limit)
        self._observers: list[Callable[[Key, WatchEventType, Mapping[str, Any]], None]] = []
        self._uids: dict[str, Key] = {}
        self._created = 0

    @property
    def resource_version(self) -> str:
        """Give the version of the latest write."""
        return str(self._history.version)

    def observe(self, observer: Callable[[Key, WatchEventType, Mapping[str, Any]], None]) -> None:
        """Have every event told at once, inside the write; an observer reads and remembers, and never writes."""
        self._observers.append(observer)

    # ---- reading

    def get(self, key: Key) -> Manifest:
        """Give a copy of an object."""
        copy: Manifest = structure.copied(self.peek(key))
        return copy

    def peek(self, key: Key) -> Mapping[str, Any]:
        """Give an object itself, to be read and never changed."""
        return self._existing(key)

    def find(self, key: Key) -> Mapping[str, Any] | None:
        """Give an object itself, to be read and never changed, or None."""
        return self._objects.get(key.kind, {}).get((key.namespace, key.name))

    def owner(self, uid: str) -> Key | None:
        """Give the identity of the object that has a uid."""
        return self._uids.get(uid)

    def list(self, kind: kinds.Kind) -> tuple[list[Manifest], str]:
        """Give copies of all objects of a kind, oldest first, and the version of the list."""
        return [structure.copied(manifest) for manifest in self.scan(kind)], self.resource_version

    def scan(self, kind: kinds.Kind) -> Iterator[Mapping[str, Any]]:
        """Go over the objects of a kind, oldest first, to be read and never changed."""
        return iter(self._objects.get(kind, {}).values())

    def inside(self, kind: kinds.Kind, namespace: str) -> Iterator[Mapping[str, Any]]:
        """Go over the objects of a kind in a namespace, to be read and never changed."""
        return (each for (home, _), each in self._objects.get(kind, {}).items() if home == namespace)

    def known_kinds(self) -> Iterator[kinds.Kind]:
        """Go over the kinds of which there are, or have been, objects."""
        return iter(self._objects)

    def everything(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """Go over all objects with their keys, to be read and never changed."""
        for kind, objects in self._objects.items():
            for (namespace, name), manifest in objects.items():
                yield identity.Key(kind, namespace, name), manifest

    def watch(self, kind: kinds.Kind, resource_version: str, *, bookmarks: bool = False) -> Watch:
        """Follow a kind from a version on."""
        if not resource_version.isdecimal():
            raise errors.InvalidError(
                f"{kind.plural}: resourceVersion {resource_version!r} is no number; use that of a list"
            )
        return history.Watch(self._history, kind, int(resource_version), bookmarks=bookmarks)

    def since(self, kind: kinds.Kind, version: int) -> Sequence[history.WatchEvent]:
        """Give the events of a kind after a version, to be read and never changed."""
        return history.Watch(self._history, kind, version).take()

    def restore(self, objects: Iterable[tuple[Key, Manifest]], version: int) -> None:
        """Start from what an earlier run has kept: its objects, each with the version it had, and the version it had reached."""
        for key, manifest in objects:
            self._objects.setdefault(key.kind, {})[key.namespace, key.name] = manifest
            self._uids[manifest["metadata"]["uid"]] = key
        self._history.start(version)

    def compact(self, before: str) -> None:
        """Forget the events older than a version."""
        self._history.compact(int(before))

    # ---- writing

    def create(self, manifest: Mapping[str, Any]) -> str:
        """Store a new object as it is written, its status included; a uid or creation time it states is kept."""
        return self.adopt(structure.copied(manifest))

    def adopt(self, new: Manifest, key: Key | None = None) -> str:
        """Create an object out of a manifest that nobody else holds; a kind that only the caller knows comes with its key."""
        key = identity.identify(new) if key is None else key
        if self.find(key) is not None:
            raise errors.AlreadyExistsError(f"{key} exists already")
        metadata = new["metadata"]
        self._created += 1
        uid = metadata.get("uid")
        metadata["uid"] = uid if isinstance(uid, str) and uid else self.new_uid()
        if metadata.get("creationTimestamp") is None:
            metadata["creationTimestamp"] = timestamp.format_timestamp(self._now())
        if key.namespace:
            metadata["namespace"] = key.namespace
        else:
            metadata.pop("namespace", None)
        if self._has_generation(key.kind):
            metadata.setdefault("generation", 1)
        return self._store(key, None, new, "ADDED")

    def update(self, manifest: Mapping[str, Any], *, subresource: Subresource = "") -> str:
        """Replace an object, or only its status; a resourceVersion in it must be the current one."""
        key = identity.identify(manifest)
        old = self._existing(key)
        _check_subresource(key, subresource)
        _check_current(key, old, structure.mapping(manifest, "metadata"))
        return self._write(key, old, _split(key, old, structure.copied(manifest), subresource))

    def patch(
        self, key: Key, body: Manifest, *, subresource: Subresource = "", strategic: bool = False, uid: str = ""
    ) -> str:
        """Merge a body into an object (JSON merge patch; strategic: conditions by their type)."""
        old = self._existing(key)
        _check_subresource(key, subresource)
        if strategic and is_custom(key.kind):
            raise errors.InvalidError(
                f"{key}: a custom resource takes no strategic merge patch; send a JSON merge patch"
            )
        _check_current(key, old, {"uid": uid, **structure.mapping(body, "metadata")})
        merged = structure.merged(old, structure.strategic(old, body) if strategic else body)
        return self._write(key, old, _split(key, old, merged, subresource))

    def patch_status(self, key: Key, body: Manifest, *, strategic: bool = False, uid: str = "") -> str:
        """Merge a body into an object's status."""
        return self.patch(key, body, subresource="status", strategic=strategic, uid=uid)

    def overwrite(self, key: Key, new: Manifest) -> str:
        """Replace an object whole, status included, whatever its version: what a scenario's author may do and no client can."""
        return self._write(key, self._existing(key), new)

    def bind(self, key: Key, *, uid: str, node: str, annotations: Mapping[str, str] | None = None) -> str:
        """Assign a pod to a node, as the binding subresource does: it gets the zone and the region of its node, and is nominated no more."""
        old = self._existing(key)
        deletion.check_bindable(key, old, uid)
        stated: Manifest = {"metadata": {"annotations": dict(annotations)}} if annotations else {}
        place = {key: text for key, text in self._labels_of(node).items() if key in (names.ZONE, names.REGION)}
        if place:
            stated.setdefault("metadata", {})["labels"] = place
        if structure.mapping(old, "status").get("nominatedNodeName"):
            stated["status"] = {"nominatedNodeName": None}
        annotated = structure.merged(old, stated)
        bound = {**annotated, "spec": {**structure.mapping(annotated, "spec"), "nodeName": node}}
        when = timestamp.format_timestamp(self._now())
        scheduled = {"type": names.CONDITION_POD_SCHEDULED, "status": "True", "lastTransitionTime": when}
        return self._write(key, old, structure.with_condition(bound, scheduled), counted=False)

    def _labels_of(self, node: str) -> Mapping[str, Any]:
        found = self._objects.get(kinds.NODE, {}).get(("", node))
        return {} if found is None else structure.mapping(found, "metadata", "labels")

    def delete(self, key: Key, *, grace: int | None = None, uid: str = "", held: bool = False) -> None:
        """Delete an object: a running pod after a grace (microseconds; default its own), anything with finalizers once they are gone.

        One that is held, as a namespace is by what is in it, is only marked; whoever holds it removes it.
        """
        old = self._existing(key)
        _check_current(key, old, {"uid": uid})
        marks = deletion.marks(old, is_pod=key.kind is kinds.POD, grace=grace, now=self._now())
        if marks.get("deletionGracePeriodSeconds") == 0 and not deletion.finalizers(old) and not held:
            self._remove(key, old)
        elif marks:
            self._write(key, old, {**old, "metadata": {**old["metadata"], **marks}}, deleting=True)

    def remove(self, key: Key) -> None:
        """Delete an object at once, finalizers or not."""
        self._remove(key, self._existing(key))

    # ---- how a write happens

    def _existing(self, key: Key) -> Manifest:
        manifest = self._objects.get(key.kind, {}).get((key.namespace, key.name))
        if manifest is None:
            raise errors.NotFoundError(f"{key} not found")
        return manifest

    def _write(self, key: Key, old: Manifest, new: Manifest, *, deleting: bool = False, counted: bool = True) -> str:
        """Store what replaces an object, unless nothing changed; an object that only its finalizers held goes.

        A generation counts what its author changes, so it does not count a binding.
        """
        if new is old:
            return self.resource_version
        metadata = dict(structure.mapping(new, "metadata"))
        owned = _SERVER_OWNED[:2] if deleting else _SERVER_OWNED
        metadata.update({"name": key.name, "resourceVersion": old["metadata"]["resourceVersion"]})
        for field in owned:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        if key.namespace:
            metadata["namespace"] = key.namespace
        new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": metadata}
        if structure.same(new, old):
            return self.resource_version
        if counted and self._has_generation(key.kind) and (deleting or _desired(new) != _desired(old)):
            metadata["generation"] = metadata.get("generation", 0) + 1
        self._store(key, old, new, "MODIFIED")
        if deletion.only_finalizers_held(old) and not deletion.finalizers(new):
            self._remove(key, new)
        return self.resource_version

    def _counted_uid(self) -> str:
        """Return a uid that nobody has: objects of another simulated cluster bring theirs along."""
        while (uid := f"00000000-0000-4000-8000-{self._created:012x}") in self._uids:
            self._created += 1
        return uid

    def _store(self, key: Key, old: Manifest | None, manifest: Manifest, event_type: WatchEventType) -> str:
        self._objects.setdefault(key.kind, {})[key.namespace, key.name] = manifest
        self._uids[manifest["metadata"]["uid"]] = key
        return self._announce(key, event_type, manifest, old)

    def _remove(self, key: Key, old: Manifest) -> None:
        del self._objects[key.kind][key.namespace, key.name]
        self._uids.pop(old["metadata"]["uid"], None)
        self._announce(key, "DELETED", {**old, "metadata": dict(old["metadata"])}, old)

    def _announce(self, key: Key, event_type: WatchEventType, manifest: Manifest, old: Manifest | None) -> str:
        self._history.version += 1
        version = manifest["metadata"]["resourceVersion"] = self.resource_version
        self._history.append(key.kind, history.WatchEvent(self._history.version, event_type, manifest, old))
        for observer in self._observers:
            observer(key, event_type, manifest)
        return version


def _check_subresource(key: Key, subresource: Subresource) -> None:
    if subresource == "status" and not has_status_subresource(key.kind):
        raise errors.NotFoundError(
            f"{key}/status not found: {key.kind.name} has no status subresource, patch the object itself"
        )


def _check_current(key: Key, old: Manifest, stated: Mapping[str, Any]) -> None:
    """Refuse a writer that states another uid or version than the present one."""
    for field in ("uid", "resourceVersion"):
        believed, present = stated.get(field), old["metadata"].get(field)
        if believed and believed != present:
            raise errors.ConflictError(f"{key} has {field} {present}, not {believed}; read it again")


def _split(key: Key, old: Manifest, new: Manifest, subresource: Subresource) -> Manifest:
    """Keep the half of an object that is not written: status for a write of the object, all else for one of its status."""
    if new is old or not has_status_subresource(key.kind):
        return new
    if subresource == "status":
        return {**old, "status": new["status"]} if "status" in new else without_status(old)
    return {**new, "status": old["status"]} if "status" in old else without_status(new)


def without_status(manifest: Manifest) -> Manifest:
    """Give an object without its status."""
    return {field: value for field, value in manifest.items() if field != "status"}


def _desired(manifest: Manifest) -> Manifest:
    """Give what a generation counts: all but metadata and status."""
    return {field: value for field, value in manifest.items() if field not in ("metadata", "status")}
