"""What the controllers of companion groups keep of an object: the few fields it reads, instead of the whole manifest.

A cluster has many pods and replica sets, and of most of them the controller needs nothing at all: a pod that has a group matters only if the
group follows the scale of its owner, or while it waits: the group may have to follow its size, or be made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import core, kinds, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import decoding
    from pumice.api.meta import KubeObject

Manifest = dict[str, Any]

_SCALED = (kinds.REPLICA_SET.name, kinds.STATEFUL_SET.name)


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    pass


class _Metadata(_Part, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Any = 1
    creation_timestamp: str = ""
    deletion_timestamp: Any = None
    labels: Any = None
    annotations: Any = None
    owner_references: Any = None


class _Container(_Part, frozen=True):
    resources: Any = None
    restart_policy: Any = None


class _PodSpec(_Part, frozen=True):
    scheduler_name: Any = None
    node_name: Any = None
    priority_class_name: Any = None
    scheduling_group: Any = None
    workload_ref: Any = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    overhead: Any = None
    resources: Any = None


class _Pod(_Part, frozen=True):
    metadata: _Metadata
    spec: _PodSpec = _PodSpec()


class _WorkloadSpec(_Part, frozen=True):
    replicas: Any = None
    active_deadline_seconds: Any = None


class _WorkloadStatus(_Part, frozen=True):
    update_revision: Any = None
    start_time: Any = None


class _Workload(_Part, frozen=True):
    metadata: _Metadata
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()


class _Group(_Part, frozen=True):
    metadata: _Metadata
    spec: Any = None


_DECODERS: dict[type[_Part], msgspec.json.Decoder[Any]] = {
    each: msgspec.json.Decoder(each) for each in (_Pod, _Group, _Workload)
}


def slim(kind: kinds.Kind, raw: bytes) -> Manifest | None:
    """Give the part of a manifest that is needed, None if it cannot be read."""
    try:
        manifest: Manifest = msgspec.to_builtins(_DECODERS[_read_as(kind)].decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return manifest


def trimmed(kind: kinds.Kind, manifest: Manifest) -> Manifest:
    """Give the part of a manifest that is needed, the whole if it cannot be read."""
    try:
        found: Manifest = msgspec.to_builtins(msgspec.convert(manifest, _read_as(kind)))
    except msgspec.ValidationError:
        return manifest
    return found


def _read_as(kind: kinds.Kind) -> type[_Part]:
    return {kinds.POD: _Pod, kinds.POD_GROUP: _Group}.get(kind, _Workload)


def matters(
    kind: kinds.Kind, found: KubeObject | decoding.Malformed, scheduler_names: Sequence[str], *, prefix: str
) -> bool:
    """Tell whether the controller has to know an object: a companion group, a workload, a pod of ours that may need either."""
    if kind is kinds.POD_GROUP:
        return found.metadata.name.startswith(prefix)
    if kind is not kinds.POD:
        return True
    if not isinstance(found, core.Pod) or found.spec.scheduler_name not in scheduler_names:
        return False
    if found.spec.scheduling_group is not None or found.spec.workload_ref is not None:
        return False
    if not found.metadata.annotations.get(names.GROUP_NAME):
        return True
    if not found.spec.node_name and found.metadata.annotations[names.GROUP_NAME].startswith(prefix):
        return True
    return any(owner.controller and owner.kind in _SCALED for owner in found.metadata.owner_references)
