"""What claims, volumes and storage classes say; the volume rules read them through here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pumice.api import names, quantity, storage, volumes
from pumice.model import volumes as usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.api import meta
    from pumice.model.cluster import Cluster

T = TypeVar("T")

DELAYED = "WaitForFirstConsumer"
LOST = "Lost"
AVAILABLE = "Available"
STORAGE = "storage"


class StorageObjects:
    """Looks up the objects of a cluster that have to do with storage; what is missing is None."""

    def __init__(self, cluster: Cluster) -> None:
        self._objects = cluster.objects

    def claim(self, key: str) -> volumes.PersistentVolumeClaim | None:
        """Return a claim by namespace and name."""
        return self._find(usage.CLAIM, key, volumes.PersistentVolumeClaim)

    def volume(self, name: str) -> volumes.PersistentVolume | None:
        """Return a volume."""
        return self._find(usage.VOLUME, name, volumes.PersistentVolume)

    def all_volumes(self) -> Iterable[volumes.PersistentVolume]:
        """Go through all volumes."""
        found = self._objects.get(usage.VOLUME, {}).values()
        return (volume for volume in found if isinstance(volume, volumes.PersistentVolume))

    def storage_class(self, name: str) -> storage.StorageClass | None:
        """Return a storage class."""
        return self._find(usage.STORAGE_CLASS, name, storage.StorageClass)

    def driver(self, name: str) -> storage.CSIDriver | None:
        """Return a CSI driver."""
        return self._find(usage.CSI_DRIVER, name, storage.CSIDriver)

    def csi_nodes(self) -> Iterable[storage.CSINode]:
        """Go through what nodes say about their drivers."""
        found = self._objects.get(usage.CSI_NODE, {}).values()
        return (node for node in found if isinstance(node, storage.CSINode))

    def csi_node(self, name: str) -> storage.CSINode | None:
        """Return what a node says about its drivers."""
        return self._find(usage.CSI_NODE, name, storage.CSINode)

    def capacities(self) -> Iterable[storage.CSIStorageCapacity]:
        """Go through what drivers say about their free room."""
        found = self._objects.get(usage.CAPACITY, {}).values()
        return (capacity for capacity in found if isinstance(capacity, storage.CSIStorageCapacity))

    def _find(self, kind: str, key: str, struct: type[T]) -> T | None:
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, struct) else None

    def is_delayed(self, claim: volumes.PersistentVolumeClaim) -> bool:
        """Tell whether a claim waits for its first pod to be placed."""
        if claim.spec.volume_name:
            return False
        found = self.storage_class(class_of(claim))
        return found is not None and found.volume_binding_mode == DELAYED


def class_of(claim: volumes.PersistentVolumeClaim) -> str:
    """Return the name of a claim's storage class, empty if it names none."""
    annotated = claim.metadata.annotations.get(names.OLDER_STORAGE_CLASS)
    return (claim.spec.storage_class_name or "") if annotated is None else annotated


def class_of_volume(volume: volumes.PersistentVolume) -> str:
    """Return the name of a volume's storage class, empty if it names none."""
    return volume.metadata.annotations.get(names.OLDER_STORAGE_CLASS, volume.spec.storage_class_name)


def is_bound(claim: volumes.PersistentVolumeClaim) -> bool:
    """Tell whether a claim has its volume for good."""
    return bool(claim.spec.volume_name) and names.BIND_COMPLETED in claim.metadata.annotations


def requested(claim: volumes.PersistentVolumeClaim) -> int:
    """Return the bytes a claim asks for, or raise the `QuantityError` of a size that cannot be read."""
    return quantity.whole(claim.spec.resources.requests.get(STORAGE, 0))


def size(amounts: meta.ResourceList) -> int | None:
    """Return the bytes of a volume, None if they cannot be read."""
    try:
        return quantity.whole(amounts.get(STORAGE, 0))
    except quantity.QuantityError:
        return None


def is_for(volume: volumes.PersistentVolume, claim: volumes.PersistentVolumeClaim) -> bool:
    """Tell whether a volume is claimed by this very claim."""
    reference = volume.spec.claim_ref
    if reference is None or reference.name != claim.metadata.name:
        return False
    return reference.namespace == claim.metadata.namespace and reference.uid in ("", claim.metadata.uid)
