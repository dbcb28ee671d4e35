"""What the scheduler may do on an API server, each permission with the code that needs it.

The roles of the manifests and of the chart are made of this table. A test on a real API server runs the scheduler with these permissions alone,
and compares what it asked for with what is listed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.api import kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = Literal["cluster", "lease", "configuration", "geometries", "certificates", "webhooks"]
Rule = dict[str, Any]


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on one kind; `place` tells whether they hold everywhere or for objects of certain names: the Lease, the configuration, the geometries of cards, a certificate, webhooks."""

    kind: kinds.Kind
    verbs: tuple[str, ...]
    code: str
    subresource: str = ""
    place: Place = "cluster"

    @property
    def resource(self) -> str:
        """The resource as a rule names it, such as `pods/status`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def uses(self) -> frozenset[tuple[str, str, str]]:
        """Every verb with group and resource."""
        return frozenset((verb, self.kind.group, self.resource) for verb in self.verbs)


GEOMETRIES_NAMESPACE: Final = "kube-system"
GEOMETRIES: Final = "volcano-vgpu-device-config"
_CONFIG_MAP: Final = kinds.Kind(name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True)
_FOLLOWED: Final = (
    kinds.POD,
    kinds.NODE,
    kinds.NAMESPACE,
    kinds.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.SERVICE,
    kinds.REPLICATION_CONTROLLER,
    kinds.RESOURCE_QUOTA,
    kinds.POD_GROUP,
    kinds.NATIVE_POD_GROUP,
    kinds.QUEUE,
    kinds.INCUBATOR_POD_GROUP,
    kinds.INCUBATOR_QUEUE,
    kinds.SIGS_POD_GROUP,
    kinds.SIGS_QUEUE,
    kinds.HYPER_NODE,
    kinds.NUMATOPOLOGY,
    kinds.PRIORITY_CLASS,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
    kinds.RESOURCE_CLAIM,
    kinds.DEVICE_TAINT_RULE,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.BATCH_JOB,
    kinds.JOB,
    kinds.CRON_JOB,
    kinds.JOB_FLOW,
)


def may(kind: kinds.Kind, verbs: str, code: str, *, of: str = "", place: Place = "cluster") -> Permission:
    """Write one line of a table."""
    return Permission(kind=kind, verbs=tuple(verbs.split()), code=f"pumice.{code}", subresource=of, place=place)


PERMISSIONS: Final = (
    # A kind that the server does not serve is asked for as well: whoever may not see it is told "forbidden" and cannot know.
    *(may(kind, "list watch", "kube.watches.informers:standard") for kind in _FOLLOWED),
    may(kinds.POD, "get", "kube.writes.updating:ApiObjects.read"),
    may(kinds.POD, "create", "kube.writes.binding:ApiBinder.bind", of="binding"),
    may(kinds.POD, "patch", "kube.writes.updating:ApiUpdater.patch", of="status"),
    # Only with the feature gate SchedulingGatesQueueAdmission.
    may(kinds.POD, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.POD, "delete", "kube.writes.evicting:ApiEvictor.evict"),
    may(kinds.POD, "patch", "kube.grouping:Grouping"),
    may(kinds.POD_GROUP, "create delete get patch", "kube.grouping:Grouping"),
    # Volcano's definition has no status apart; one that has it is served as well.
    may(kinds.POD_GROUP, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.POD_GROUP, "patch", "kube.writes.updating:ApiUpdater.patch", of="status"),
    may(kinds.NATIVE_POD_GROUP, "patch", "kube.writes.updating:ApiUpdater.patch", of="status"),
    may(kinds.INCUBATOR_POD_GROUP, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.SIGS_POD_GROUP, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.QUEUE, "create get", "kube.writes.updating:ApiObjects.create"),
    may(kinds.QUEUE, "patch", "kube.writes.updating:ApiUpdater.patch", of="status"),
    may(kinds.INCUBATOR_QUEUE, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.SIGS_QUEUE, "patch", "kube.writes.updating:ApiUpdater.patch"),
    may(kinds.PERSISTENT_VOLUME, "get patch", "kube.writes.volumes:ApiVolumeBinder.prepare"),
    may(kinds.PERSISTENT_VOLUME_CLAIM, "get patch", "kube.writes.volumes:ApiVolumeBinder.prepare"),
    # Only where deviceshare locks nodes.
    may(kinds.NODE, "get patch", "kube.writes.preparing:ApiPreparer.prepare"),
    may(kinds.RESOURCE_CLAIM, "get patch", "kube.writes.preparing:ApiPreparer.prepare"),
    may(kinds.RESOURCE_CLAIM, "patch", "kube.writes.preparing:ApiPreparer.prepare", of="status"),
    # Since Kubernetes 1.36 whoever gives devices to a claim, or reserves it, must be allowed to; no request is ever made to it.
    may(kinds.RESOURCE_CLAIM, "patch update", "kube.writes.preparing:ApiPreparer.prepare", of="binding"),
    # Claims that are made for pods which ask for devices by the name of a resource.
    may(kinds.RESOURCE_CLAIM, "create delete", "kube.writes.preparing:ApiPreparer.prepare"),
    may(kinds.EVENT, "create patch", "kube.writes.eventing:EventRecorder.send"),
    # Other schedulers may be in any namespace; a rule cannot be limited to labels.
    may(kinds.LEASE, "list", "kube.rivals:Lookout.look"),
    may(kinds.LEASE, "list watch", "kube.lease_holders:LeaseHolders"),
    may(kinds.LEASE, "get create update", "kube.election:Election", place="lease"),
    # Only where the configuration is not a file.
    may(_CONFIG_MAP, "get", "server.configuration.sources:ConfigMapSource.read", place="configuration"),
    # Only where deviceshare shares virtual GPUs.
    may(_CONFIG_MAP, "get", "server.geometries:Reader.look", place="geometries"),
)


def cluster_rules(table: Sequence[Permission] = PERMISSIONS) -> list[Rule]:
    """Give the rules that hold in every namespace: resources of one group with the same verbs stand together."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for permission in _at("cluster", table):
        verbs.setdefault((permission.kind.group, permission.resource), []).extend(permission.verbs)
    rules: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), used in verbs.items():
        rules.setdefault((group, tuple(sorted(set(used)))), []).append(resource)
    return [_rule(group, sorted(resources), used) for (group, used), resources in sorted(rules.items())]


def lease_rules(name: str) -> list[Rule]:
    """Give the rules for one Lease; to create it cannot be limited to a name, which nothing has before it exists."""
    return named_rules("lease", [name])


def configuration_rules(name: str) -> list[Rule]:
    """Give the rules for one ConfigMap, needed where the configuration is read from the API server."""
    return named_rules("configuration", [name])


def geometries_rules() -> list[Rule]:
    """Give the rules for the ConfigMap of the vGPU device plugin, under the name that it has unless somebody chose another."""
    return named_rules("geometries", [GEOMETRIES])


def named_rules(place: Place, names: Sequence[str], table: Sequence[Permission] = PERMISSIONS) -> list[Rule]:
    """Give the rules for objects of certain names; to create one cannot be limited to a name, which nothing has before it exists."""
    rules = []
    for permission in _at(place, table):
        used = [verb for verb in permission.verbs if verb != "create"]
        named = _rule(permission.kind.group, [permission.resource], sorted(used))
        rules.append({**named, "resourceNames": list(names)})
        if "create" in permission.verbs:
            rules.append(_rule(permission.kind.group, [permission.resource], ["create"]))
    return rules


def _at(place: Place, table: Sequence[Permission]) -> list[Permission]:
    return [permission for permission in table if permission.place == place]


def _rule(group: str, resources: list[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
