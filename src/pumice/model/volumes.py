"""What is known of volumes: the claims and disks that pods use, what is decided for a claim before its pod is bound, and the in-tree plugins that drivers took over.

Volumes are counted by the filter that knows them by name, never as an amount of a resource: the same volume used by two pods of a node is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pumice.api import volumes

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"
STORAGE_CLASS = "StorageClass"
CSI_NODE = "CSINode"
CSI_DRIVER = "CSIDriver"
CAPACITY = "CSIStorageCapacity"
ATTACHMENT = "VolumeAttachment"
KINDS = frozenset({CLAIM, VOLUME, STORAGE_CLASS, CSI_NODE, CSI_DRIVER, CAPACITY, ATTACHMENT})


class ClaimUse(msgspec.Struct, frozen=True):
    """A claim of a pod, by namespace and name; `owner` is the pod's uid if the claim must have been made for it."""

    key: str
    owner: str = ""

    @property
    def name(self) -> str:
        """The claim's name."""
        return self.key.partition("/")[2]


class Disk(msgspec.Struct, frozen=True):
    """A volume that a CSI driver attaches; `plugin` is the in-tree plugin it was written for, if any."""

    driver: str
    handle: str
    plugin: str = ""


class VolumeDecision(msgspec.Struct, frozen=True, kw_only=True):
    """How a claim is to be satisfied before its pod is bound: by an existing volume, or by a new one for the pod's node."""

    namespace: str
    claim: str
    uid: str
    volume: str = ""

    @property
    def key(self) -> str:
        """The claim's namespace and name."""
        return f"{self.namespace}/{self.claim}"


class Reservation(msgspec.Struct, frozen=True):
    """What was decided for the claims of one placed pod: for its node, with the time (microseconds) that carrying it out may take.

    `problem` says why nothing could be decided; such a pod must not be bound.
    """

    node: str
    decisions: tuple[VolumeDecision, ...] = ()
    patience: int = 0
    problem: str = ""


# -- in-tree volumes -------------------------------------------------------------------------------------------

# In-tree plugin -> the driver that took it over, the source that marks a volume of it, and the fields that tell it from others.
_IN_TREE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "kubernetes.io/aws-ebs": ("ebs.csi.aws.com", "aws_elastic_block_store", ("volume_id",)),
    "kubernetes.io/azure-disk": ("disk.csi.azure.com", "azure_disk", ("disk_uri",)),
    "kubernetes.io/azure-file": ("file.csi.azure.com", "azure_file", ("secret_name", "share_name")),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", "cinder", ("volume_id",)),
    "kubernetes.io/gce-pd": ("pd.csi.storage.gke.io", "gce_persistent_disk", ("pd_name",)),
    "kubernetes.io/portworx-volume": ("pxd.portworx.com", "portworx_volume", ("volume_id",)),
    "kubernetes.io/vsphere-volume": ("csi.vsphere.vmware.com", "vsphere_volume", ("volume_path",)),
}


def migrated_driver(plugin: str) -> str | None:
    """Return the driver that took an in-tree plugin over, None if it is no such plugin."""
    found = _IN_TREE.get(plugin)
    return found[0] if found else None


def in_tree(volume: volumes.Volume | volumes.PersistentVolumeSpec) -> Disk | None:
    """Return the disk that an in-tree volume is to the driver that took its plugin over."""
    for plugin, (driver, attribute, fields) in _IN_TREE.items():
        source = getattr(volume, attribute)
        if source is not None:
            # An AWS volume may be written with its zone in front: aws://zone/vol-1 is vol-1.
            parts = [getattr(source, field) for field in fields]
            return Disk(driver, "#".join(parts) if driver != "ebs.csi.aws.com" else parts[0].rpartition("/")[2], plugin)
    return None
