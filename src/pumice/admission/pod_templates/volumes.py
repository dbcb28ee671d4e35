"""Volumes of a pod, and where containers mount them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming
from pumice.admission.pod_templates import amounts
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

Known = dict[str, str]
"""Names of the volumes, each with its source; job volumes come later and cannot be mounted by name."""

# What each source cannot do without.
_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "csi": ("driver",),
    "downwardAPI": (),
    "emptyDir": (),
    "ephemeral": ("volumeClaimTemplate",),
    "fc": (),
    "flexVolume": ("driver",),
    "flocker": (),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "image": (),
    "iscsi": ("targetPortal", "iqn"),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "projected": ("sources",),
    "quobyte": ("registry", "volume"),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "storageos": (),
    "vsphereVolume": ("volumePath",),
}
_PROPAGATION: Final = ("None", "HostToContainer", "Bidirectional")


def judge(spec: Part) -> Known:
    """Judge the volumes of a pod; returns the names of those that can be mounted."""
    known: Known = {}
    for volume in spec.items("volumes"):
        name = volume.required("name")
        if name and (problem := naming.label(name)):
            volume.refuse(f"is {documents.quoted(name)}, and {problem}", "name")
        if name in known:
            volume.refuse(f"is {documents.quoted(name)}, which another volume is called already", "name")
        sources = [key for key, value in volume.value.items() if key != "name" and value is not None]
        unknown = [key for key in sources if key not in _NEEDED]
        for key in unknown:
            near = documents.nearest(key, _NEEDED)
            if near:
                volume.breaks(laws.TEMPLATE_OF_USE, f"is no source of a volume; did you mean {near}?", key)
            else:  # a newer Kubernetes may know it
                volume.breaks(laws.TEMPLATE_NEWER, "is no source of a volume that is known here", key)
        if len(sources) > 1:
            law = laws.TEMPLATE_OF_USE if unknown else laws.TEMPLATE
            volume.breaks(law, f"must have one source, not {len(sources)}: {', '.join(sorted(sources))}")
        if name:
            known.setdefault(name, sources[0] if sources else "emptyDir")
        for key in sources:
            if key not in unknown:
                _judge_source(volume.record(key), key)
    return known


def _judge_source(source: Part, kind: str) -> None:
    for field in _NEEDED[kind]:
        if not source.part(field).value:
            law = laws.TEMPLATE_OF_USE if kind == "projected" else laws.TEMPLATE
            source.breaks(law, "is missing, and must be given", field)
    if kind == "hostPath" and ".." in source.text("path").split("/"):
        source.refuse("may not hold ..", "path")
    if kind == "emptyDir":
        source.under(laws.TEMPLATE_OF_USE).among("medium", ("Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi"))
        if source.part("sizeLimit").value is not None:
            amounts.read_one(source.part("sizeLimit"))
    if kind in {"configMap", "secret"}:
        source.whole("defaultMode", least=0, most=0o777)
        for item in source.items("items"):
            item.required("key")
            _judge_relative(item, "path", item.required("path"))


def judge_mounts(container: Part, known: Known) -> None:
    """Judge what a container mounts."""
    at: dict[str, int] = {}
    for index, mount in enumerate(container.items("volumeMounts")):
        name = mount.required("name")
        if name and name not in known:
            near = documents.nearest(name, known)
            there = f"; did you mean {near}?" if near else f"; there are {', '.join(known)}" if known else ""
            mount.refuse(f"is {documents.quoted(name)}, and the pod has no volume of that name{there}", "name")
        path = mount.required("mountPath")
        if path and at.setdefault(path, index) != index:
            mount.refuse(f"is {documents.quoted(path)}, which volumeMounts[{at[path]}] mounts already", "mountPath")
        for field in ("subPath", "subPathExpr"):
            _judge_relative(mount, field, mount.text(field))
        if mount.text("subPath") and mount.text("subPathExpr"):
            mount.refuse("may not be given together with subPath", "subPathExpr")
        mount.among("mountPropagation", _PROPAGATION)
    for device in container.items("volumeDevices"):
        name = device.required("name")
        if name and name in known and known[name] not in ("persistentVolumeClaim", "ephemeral"):
            device.refuse(f"is {documents.quoted(name)}, and only a claim can be used as a device", "name")
        elif name and name not in known:
            device.refuse(f"is {documents.quoted(name)}, and the pod has no volume of that name", "name")
        device.required("devicePath")


def _judge_relative(part: Part, field: str, path: str) -> None:
    if path.startswith("/"):
        part.refuse(f"is {documents.quoted(path)}, and must be relative", field)
    if ".." in path.split("/"):
        part.refuse(f"is {documents.quoted(path)}, and may not hold ..", field)
