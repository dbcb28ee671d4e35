"""Storage classes, CSI drivers and what nodes can attach."""

import msgspec

from pumice.api.meta import KubeObject, LabelSelector, Wire
from pumice.api.volumes import PersistentVolumeSpec


class TopologySelectorLabelRequirement(Wire, frozen=True, kw_only=True):
    """Values of a node label, one of which must be there."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire, frozen=True, kw_only=True):
    """Requirements all of which must hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True, kw_only=True):
    """How volumes of a class are made, and when they are bound."""

    provisioner: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Wire, frozen=True, kw_only=True):
    """How many volumes of a driver a node can attach; absent is unlimited."""

    count: int | None = None


class CSINodeDriver(Wire, frozen=True, kw_only=True):
    """A driver that runs on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Wire, frozen=True, kw_only=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True, kw_only=True):
    """The CSI side of the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, frozen=True, kw_only=True):
    """What a driver needs."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None


class CSIDriver(KubeObject, frozen=True, kw_only=True):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True, kw_only=True):
    """Free room of a storage class in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSource(Wire, frozen=True, kw_only=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Wire, frozen=True, kw_only=True):
    """Which driver attaches what to which node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Wire, frozen=True, kw_only=True):
    """Whether the volume is attached by now."""

    attached: bool = False


class VolumeAttachment(KubeObject, frozen=True, kw_only=True):
    """A volume on its way to a node, or there."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
