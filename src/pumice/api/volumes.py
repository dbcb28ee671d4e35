"""Volumes of pods, persistent volumes and the claims between them.

Of the volume kinds inside a pod only those are kept that a filter or score reads: claims, generic ephemeral volumes, CSI, images, and the
older in-tree kinds that count as volumes of a CSI driver.
"""

import msgspec

from pumice.api.affinity import NodeSelector
from pumice.api.meta import KubeObject, LabelSelector, ObjectReference, ResourceList, Wire


class VolumeResources(Wire, frozen=True, kw_only=True):
    """The room a claim asks for."""

    requests: ResourceList = msgspec.field(default_factory=dict)
    limits: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(Wire, frozen=True, kw_only=True):
    """What a claim asks for, and the volume it got."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Wire, frozen=True, kw_only=True):
    """Whether a claim is bound."""

    phase: str = ""
    capacity: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(KubeObject, frozen=True, kw_only=True):
    """A claim to a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(Wire, frozen=True, kw_only=True):
    """The claim that is made for one pod."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Wire, frozen=True, kw_only=True):
    """A volume whose claim lives as long as its pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class PersistentVolumeClaimVolumeSource(Wire, frozen=True, kw_only=True):
    """A volume given by a claim."""

    claim_name: str = ""
    read_only: bool = False


class CSIVolumeSource(Wire, frozen=True, kw_only=True):
    """An inline volume of a CSI driver."""

    driver: str = ""


class ImageVolumeSource(Wire, frozen=True, kw_only=True):
    """A volume filled from an image."""

    reference: str = ""


class AWSElasticBlockStoreVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of ebs.csi.aws.com."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class GCEPersistentDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of pd.csi.storage.gke.io."""

    pd_name: str = ""


class AzureDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of disk.csi.azure.com."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class AzureFileVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of file.csi.azure.com."""

    share_name: str = ""
    secret_name: str = ""


class CinderVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of cinder.csi.openstack.org."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of csi.vsphere.vmware.com."""

    volume_path: str = ""


class PortworxVolumeSource(Wire, frozen=True, kw_only=True):
    """An in-tree volume of pxd.portworx.com."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class Volume(Wire, frozen=True, kw_only=True):
    """A volume of a pod; at most one of the sources is set."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class CSIPersistentVolumeSource(Wire, frozen=True, kw_only=True):
    """A persistent volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire, frozen=True, kw_only=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True, kw_only=True):
    """Size, class, reach and claim of a volume."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PersistentVolumeStatus(Wire, frozen=True, kw_only=True):
    """Whether a volume is available."""

    phase: str = ""


class PersistentVolume(KubeObject, frozen=True, kw_only=True):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
