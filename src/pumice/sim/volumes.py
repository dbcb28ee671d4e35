"""The volume controller and the provisioners of the cluster, as far as a scheduler needs them.

They act on what the scheduler decided and on nothing else: before a pod is bound, each claim it brings a decision for is bound, to the volume
that was chosen or to one that is made for the node. Claims that bind at once, the release of volumes and their deletion are left out: a scenario
states such objects as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names, quantity
from pumice.sim import errors, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pumice.cache.effects import Bind
    from pumice.sim.store import ObjectStore

Manifest = dict[str, Any]


class VolumeController:
    """Binds claims as decided, at once."""

    def __init__(self, store: ObjectStore, create: Callable[[Manifest], object]) -> None:
        self._store = store
        self._create = create

    def satisfy(self, effect: Bind) -> None:
        """Carry out the decisions of a bind; one that cannot be carried out is an API error, and later ones are not begun."""
        for decision in effect.volumes:
            key = Key(kinds.PERSISTENT_VOLUME_CLAIM, decision.namespace, decision.claim)
            claim = self._store.peek(key)
            if decision.uid and claim["metadata"]["uid"] != decision.uid:
                raise errors.ConflictError(
                    f"{key} has uid {claim['metadata']['uid']}, not {decision.uid}; it was replaced"
                )
            present = structure.mapping(claim, "spec").get("volumeName")
            if not present:
                self._bind(key, decision.volume or self._provision(key, effect.node))
            elif decision.volume and present != decision.volume:
                raise errors.ConflictError(f"{key} is bound to volume {present}, not {decision.volume}")

    def _bind(self, key: Key, volume: str) -> None:
        """Join a claim and a volume: the reference of the volume first, as everybody does."""
        claim = self._store.peek(key)
        target = Key(kinds.PERSISTENT_VOLUME, "", volume)
        reference = structure.mapping(self._store.peek(target), "spec", "claimRef")
        uid = claim["metadata"]["uid"]
        if reference and not _is_for(reference, key, uid):
            holder = f"{reference.get('namespace')}/{reference.get('name')}"
            raise errors.ConflictError(f"{target} is claimed by {holder}; it cannot be given to {key}")
        claimed = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": key.namespace,
            "name": key.name,
            "uid": uid,
        }
        bound_by = {names.BOUND_BY_CONTROLLER: "yes"}
        self._store.patch(target, {"metadata": {"annotations": bound_by}, "spec": {"claimRef": claimed}})
        self._store.patch_status(target, {"status": {"phase": "Bound"}})
        body: Manifest = {
            "metadata": {"annotations": {**bound_by, names.BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume},
        }
        self._store.patch(key, body)
        room = structure.mapping(self._store.peek(target), "spec", "capacity")
        self._store.patch_status(key, {"status": {"phase": "Bound", "capacity": dict(room)}})

    # ---- making volumes

    def _provision(self, key: Key, node: str) -> str:
        """Mark the claim with its node, and make a volume for it there; returns its name."""
        self._store.patch(key, {"metadata": {"annotations": {names.SELECTED_NODE: node}}})
        claim = self._store.peek(key)
        spec = structure.mapping(claim, "spec")
        storage_class = structure.mapping(claim, "metadata", "annotations").get(
            names.OLDER_STORAGE_CLASS, spec.get("storageClassName")
        )
        found = self._store.find(Key(kinds.STORAGE_CLASS, "", storage_class or ""))
        provisioner = structure.mapping(found).get("provisioner")
        if not provisioner or provisioner == names.NO_PROVISIONER:
            raise errors.InvalidError(f"{key}: storage class {storage_class} makes no volumes; give it one that exists")
        name = f"pvc-{claim['metadata']['uid']}"
        size = structure.mapping(spec, "resources", "requests").get("storage", "0")
        volume: Manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": spec.get("accessModes", []),
                "storageClassName": storage_class,
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "csi": {"driver": provisioner, "volumeHandle": name},
                **self._reach(provisioner, node),
            },
        }
        self._create(volume)
        self._reduce(str(storage_class), node, size)
        return name

    def _reach(self, provisioner: str, node: str) -> Manifest:
        """Give the part of a volume's spec that says which nodes reach it: those with the node's values of the driver's topology keys."""
        drivers = structure.mapping(self._store.find(Key(kinds.CSI_NODE, "", node)), "spec").get("drivers")
        entries = [structure.mapping(each) for each in drivers] if isinstance(drivers, list) else []
        keys = [key for each in entries if each.get("name") == provisioner for key in each.get("topologyKeys") or []]
        if not keys:
            return {}
        labels = self._labels(node)
        wanted = [{"key": key, "operator": "In", "values": [labels.get(key, "")]} for key in keys]
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}}

    def _reduce(self, storage_class: str, node: str, size: Any) -> None:
        """Take a new volume off the free room that its driver states for the node."""
        for capacity in list(self._stated(storage_class, self._labels(node))):
            metadata = capacity["metadata"]
            left = max(0, quantity.whole(capacity["capacity"]) - quantity.whole(size))
            key = Key(kinds.CSI_STORAGE_CAPACITY, metadata["namespace"], metadata["name"])
            self._store.patch(key, {"capacity": quantity.format_bytes(left)})

    def _stated(self, storage_class: str, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Go through the readable statements of free room for a class that name a node with such labels."""
        for capacity in self._store.scan(kinds.CSI_STORAGE_CAPACITY):
            wanted = structure.mapping(capacity, "nodeTopology", "matchLabels")
            if capacity.get("storageClassName") != storage_class or "nodeTopology" not in capacity:
                continue
            try:
                quantity.whole(capacity.get("capacity", ""))
            except quantity.QuantityError:
                continue
            if all(labels.get(label) == value for label, value in wanted.items()):
                yield capacity

    def _labels(self, node: str) -> Mapping[str, Any]:
        return structure.mapping(self._store.find(Key(kinds.NODE, "", node)), "metadata", "labels")


def _is_for(reference: Mapping[str, Any], key: Key, uid: str) -> bool:
    named = (reference.get("namespace"), reference.get("name")) == (key.namespace, key.name)
    return named and reference.get("uid") in (None, "", uid)
