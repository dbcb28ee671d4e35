"""A cluster that starts from a dump: every object as it was, and nothing is done for want of what the dump lacks.

A dump of a scheduler holds what a scheduler looks at. Jobs and Deployments are not in it, of ReplicaSets it has a number and a selector: garbage
collection would take the pods for orphans, controllers would make other ones. So it is written down what was absent when the dump was loaded:

- an owner that is absent counts as alive, for as long as nobody deletes what it owns;
- a workload that the dump holds in part is left alone until somebody changes its spec;
- a pod that ran when the dump was written goes on for as long as it would have run from then on.

This is kept in the cluster itself (`ConfigMap` `kube-system/pumice-up-load`), so that a restart with `--data` knows it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver import definitions
from pumice.controllers.workloads import manifests
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.resources import Resource
    from pumice.sim.store import ObjectStore

Manifest = dict[str, Any]
Owner = tuple[str, str, str, str]  # apiVersion, kind, namespace, name
RECORD: Final = Key(kinds.CONFIG_MAP, "kube-system", "pumice-up-load")
_FIELD: Final = "record.json"
_COUNTS: Final[dict[kinds.Kind, tuple[str, ...]]] = {
    kinds.REPLICA_SET: ("replicas",),
    kinds.REPLICATION_CONTROLLER: ("replicas",),
    kinds.STATEFUL_SET: ("replicas",),
    kinds.DAEMON_SET: ("currentNumberScheduled",),
    kinds.BATCH_JOB: ("active",),
    kinds.JOB: ("pending", "running"),
}
"""Workloads that own pods, with the fields of their status that count those that have not ended."""
_PARTS: Final = {
    kinds.STATEFUL_SET: manifests.CONTROLLER_REVISION,
    kinds.DAEMON_SET: manifests.CONTROLLER_REVISION,
    manifests.DEPLOYMENT: kinds.REPLICA_SET,
}
"""What a workload owns beside pods, without which its controller would begin anew."""


class LoadError(ValueError):
    """A dump that cannot be loaded, with the object and why."""


class Record(msgspec.Struct):
    """What was absent when a dump was loaded."""

    loaded: int = 0
    absent: dict[str, Owner] = {}
    """Owners, and claims of volumes, by uid."""
    spared: dict[str, int] = {}
    """Objects that controllers leave alone, by uid, each with the generation for which that holds."""


class Loaded:
    """What a cluster knows of the dump that it began with; of none, nothing."""

    def __init__(self, record: Record) -> None:
        self.at = record.loaded
        self.absent = frozenset(record.absent)
        self._names = frozenset(record.absent.values())
        self._spared = record.spared

    def spares(self, kind: kinds.Kind, namespace: str, name: str, subject: Mapping[str, Any] | None) -> bool:
        """Tell whether controllers leave an object alone; one that is not there, if it was absent from the start."""
        if subject is None:
            return (kind.api_version, kind.name, namespace, name) in self._names
        metadata = subject["metadata"]
        return bool(self._spared.get(metadata.get("uid", "")) == metadata.get("generation", 0))


def recorded(store: ObjectStore) -> Loaded:
    """Give what was absent when a dump was loaded into a cluster."""
    text = structure.mapping(store.find(RECORD), "data").get(_FIELD)
    try:
        return Loaded(msgspec.json.decode(text, type=Record) if isinstance(text, str) else Record())
    except msgspec.MsgspecError:
        return Loaded(Record())  # somebody has written something else there: nothing is spared any more


def load(cluster: Cluster, path: Path, *, anew: bool = True) -> int:
    """Load a file of objects, each with the status it had; gives how many there were.

    In a cluster that begins `anew`, an object of the dump takes the place of what every cluster has; else what is there stays, and a dump is loaded once.
    """
    from pumice.study import files  # noqa: PLC0415  scenarios and their readers: only who loads waits for them
    from pumice.study.state import StudyError  # noqa: PLC0415

    if cluster.store.find(RECORD) is not None:
        return 0
    try:
        found = files.listed(str(path))
    except StudyError as error:
        raise LoadError(str(error)) from None
    for number, manifest in sorted(enumerate(found), key=lambda each: not _defines(each[1])):
        _put(cluster, manifest, f"{path}: object {number}", anew=anew)
        if _defines(manifest):
            cluster.definitions.serve_all()
    _write_down(cluster, found)
    return len(found)


def _defines(manifest: Manifest) -> bool:
    return manifest.get("kind") == definitions.DEFINITION.name


def _put(cluster: Cluster, manifest: Manifest, where: str, *, anew: bool) -> None:
    resource = _resource(cluster, manifest, where)
    metadata = manifest["metadata"]
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    if namespace:
        cluster.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    key = Key(resource.kind, namespace, str(metadata["name"]))
    present = cluster.store.find(key)
    if present is not None and anew and not _defines(manifest):
        cluster.store.remove(key)
        present = None
    if present is None:
        new = structure.copied(manifest)
        new["metadata"].pop("resourceVersion", None)
        cluster.store.adopt(new, key)


def _resource(cluster: Cluster, manifest: Manifest, where: str) -> Resource:
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    resource = cluster.registry.of_kind(str(api_version), str(kind))
    if resource is None:
        name = structure.mapping(manifest, "metadata").get("name")
        raise LoadError(f"{where} is a {api_version} {kind} named {name!r}: that is not served here")
    return resource


# ---- what is absent


def _write_down(cluster: Cluster, found: list[Manifest]) -> None:
    store = cluster.store
    owned, stranded = _owned(found), _stranded(found, store)
    partial = [
        uid
        for manifest in found
        if (uid := manifest["metadata"].get("uid"))
        and (uid in stranded or _lacks_parts(manifest, owned) or _lacks_claim(manifest, store))
    ]
    absent = {uid: owner for manifest in found for uid, owner in _named(manifest) if store.owner(uid) is None}
    record = Record(loaded=cluster.now(), absent=absent, spared={uid: _generation(store, uid) for uid in partial})
    metadata = {"name": RECORD.name, "namespace": RECORD.namespace}
    text = msgspec.json.encode(record).decode()
    store.adopt({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_FIELD: text}}, RECORD)


def _generation(store: ObjectStore, uid: str) -> int:
    key = store.owner(uid)
    found = store.find(key) if key is not None else None
    return int(structure.mapping(found, "metadata").get("generation", 0))


def _named(manifest: Manifest) -> Iterator[tuple[str, Owner]]:
    """Give whom an object names by uid: its owners, and the claim of a volume."""
    namespace = str(structure.mapping(manifest, "metadata").get("namespace") or "")
    for each in manifests.items(manifest, "metadata", "ownerReferences"):
        reference = structure.mapping(each)
        if reference.get("uid"):
            home = (str(reference.get("apiVersion")), str(reference.get("kind")))
            yield str(reference["uid"]), (*home, namespace, str(reference.get("name")))
    claim = structure.mapping(manifest, "spec", "claimRef")
    if claim.get("uid"):
        kind = kinds.PERSISTENT_VOLUME_CLAIM
        place = (str(claim.get("namespace")), str(claim.get("name")))
        yield str(claim["uid"]), (kind.api_version, kind.name, *place)


def _owned(found: list[Manifest]) -> dict[tuple[str, str], int]:
    """Count what each owner owns, by its uid and the kind of what it owns; pods that have ended do not count."""
    counted: dict[tuple[str, str], int] = {}
    for manifest in found:
        ended = structure.mapping(manifest, "status").get("phase") in ("Succeeded", "Failed")
        if manifest.get("kind") == kinds.POD.name and ended:
            continue
        for uid, _ in _named(manifest):
            key = (uid, str(manifest.get("kind")))
            counted[key] = counted.get(key, 0) + 1
    return counted


def _stranded(found: list[Manifest], store: ObjectStore) -> set[str]:
    """Give the uids of DaemonSets that have pods on nodes that are absent: its controller would take these pods away."""
    return {
        uid
        for manifest in found
        if (node := structure.mapping(manifest, "spec").get("nodeName"))
        and store.find(Key(kinds.NODE, "", str(node))) is None
        for uid, (_, kind, *_) in _named(manifest)
        if kind == kinds.DAEMON_SET.name
    }


def _lacks_parts(manifest: Manifest, owned: dict[tuple[str, str], int]) -> bool:
    """Tell whether a workload is there in part: without its template, its revisions, or pods that it counts."""
    kind = kinds.find(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind is None and manifest.get("kind") == manifests.DEPLOYMENT.name:
        kind = manifests.DEPLOYMENT
    if kind is None or (kind not in _COUNTS and kind not in _PARTS):
        return False
    spec, status = structure.mapping(manifest, "spec"), structure.mapping(manifest, "status")
    uid = str(manifest["metadata"]["uid"])
    part = _PARTS.get(kind)
    missing = part is not None and not owned.get((uid, part.name)) and spec.get("replicas") != 0
    counted = sum(manifests.number(status, field) for field in _COUNTS.get(kind, ()))
    template = spec.get("tasks") if kind == kinds.JOB else spec.get("template")
    return not template or missing or counted > owned.get((uid, kinds.POD.name), 0)


def _lacks_claim(manifest: Manifest, store: ObjectStore) -> bool:
    """Tell whether a volume is bound to a claim that is absent: its controller would give it back, or delete it."""
    claim = structure.mapping(manifest, "spec", "claimRef")
    bound = manifest.get("kind") == kinds.PERSISTENT_VOLUME.name and claim.get("uid")
    return bool(bound) and store.owner(str(claim["uid"])) is None
