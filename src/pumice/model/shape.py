"""Shapes: pods whose scheduling-relevant spec is equal share one object, and with it every verdict about nodes.

A shape is a constraint class (what kind of node) times a request (how much of it). Names, indices and uids never enter; labels enter only
through keys that some live selector names, or no two pods of a job would be equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import core, names
from pumice.model import bonds, marks, requests, resources
from pumice.model.constraints import Constraints, HostPort
from pumice.model.volumes import ClaimUse, in_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENCODER = msgspec.json.Encoder(order="deterministic")
_AS_WRITTEN = msgspec.msgpack.Encoder()  # orders may differ: such pods are only worked out once more
# The annotations that a shape follows from.
_SHAPING = frozenset(
    {
        names.STRATEGY_SCORING_TYPE,
        names.REVOCABLE_ZONE,
        names.PREEMPTABLE,
        names.NUMA_TOPOLOGY_POLICY,
        *marks.DEVICES,
    }
)


class ConstraintClass:
    """An interned set of constraints; identity stands for equality. What is asked of every pod that is placed is worked out once."""

    __slots__ = ("concerns_pods", "constraints", "has_device_claims", "has_volumes", "key", "takes_ports", "users")

    def __init__(self, key: bytes, constraints: Constraints) -> None:
        self.key = key
        self.constraints = constraints
        self.concerns_pods = bonds.concern_pods(constraints)
        self.has_volumes = constraints.has_volumes
        self.has_device_claims = bool(constraints.resource_claims)
        self.takes_ports = bool(constraints.ports)
        self.users = 0


class Shape:
    """An interned constraint class with a request; its serial number is never given to another one."""

    __slots__ = ("blueprints", "constraint_class", "key", "non_zero", "request", "serial", "users")

    def __init__(
        self,
        key: tuple[Any, ...],
        constraint_class: ConstraintClass,
        request: resources.Request,
        non_zero: tuple[int, int],
        serial: int,
    ) -> None:
        self.key = key
        self.constraint_class = constraint_class
        self.request = request
        self.non_zero = non_zero
        self.serial = serial
        self.users = 0
        self.blueprints: list[bytes] = []

    @property
    def constraints(self) -> Constraints:
        """The constraints of the class."""
        return self.constraint_class.constraints

    def __repr__(self) -> str:
        asked = ", ".join(
            f"{name}={resources.shown(name, units)}" for name, units in self.request.key if name != "pods"
        )
        return f"<shape {asked or 'best-effort'}>"


class Shapes:
    """The interning table; a shape lives while some task uses it."""

    __slots__ = ("_blueprints", "_classes", "_made", "_shapes")

    def __init__(self) -> None:
        self._made = 0
        self._blueprints: dict[bytes, Shape] = {}
        self._classes: dict[bytes, ConstraintClass] = {}
        self._shapes: dict[tuple[Any, ...], Shape] = {}

    def __len__(self) -> int:
        return len(self._shapes)

    def __iter__(self) -> Iterator[Shape]:
        return iter(self._shapes.values())

    def intern(self, constraints: Constraints, amounts: Mapping[str, int], non_zero: tuple[int, int]) -> Shape:
        """Return the one shape that stands for these constraints and amounts, counting one more user."""
        class_key = _ENCODER.encode(constraints)
        key = (class_key, tuple(sorted(amounts.items())), non_zero)
        shape = self._shapes.get(key)
        if shape is None:
            constraint_class = self._classes.get(class_key)
            if constraint_class is None:
                constraint_class = self._classes[class_key] = ConstraintClass(class_key, constraints)
            constraint_class.users += 1
            self._made += 1
            request = resources.Request(dict(amounts))
            shape = self._shapes[key] = Shape(key, constraint_class, request, non_zero, self._made)
        shape.users += 1
        return shape

    def recall(self, blueprint: bytes) -> Shape | None:
        """Return the shape of pods that are written alike, counting one more user, if there is one."""
        shape = self._blueprints.get(blueprint)
        if shape is not None:
            shape.users += 1
        return shape

    def known(self, blueprint: bytes) -> Shape | None:
        """Return the shape of pods that are written alike, for whoever only compares."""
        return self._blueprints.get(blueprint)

    def remember(self, blueprint: bytes, shape: Shape) -> None:
        """Have the next pod that is written like this one found without working its shape out."""
        self._blueprints[blueprint] = shape
        shape.blueprints.append(blueprint)

    def release(self, shape: Shape) -> None:
        """Count one user less; the last one takes the shape out of the table."""
        shape.users -= 1
        if shape.users == 0:
            for blueprint in shape.blueprints:
                del self._blueprints[blueprint]
            shape.blueprints.clear()
            del self._shapes[shape.key]
            shape.constraint_class.users -= 1
            if shape.constraint_class.users == 0:
                del self._classes[shape.constraint_class.key]


def blueprint_of(pod: core.Pod) -> bytes | None:
    """Write down everything that a pod's shape is worked out from.

    None if that depends on its volumes, which name the pod itself, or holds a number that is too large to be written.
    """
    spec = pod.spec
    for volume in spec.volumes:
        if volume.persistent_volume_claim or volume.ephemeral or volume.image or in_tree(volume):
            return None
    notes = pod.metadata.annotations
    written = (
        spec.containers,
        spec.init_containers,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.overhead,
        spec.resources,
        _device_claims(pod) if spec.resource_claims else (),
        _features(spec),
        # Asked of every pod, and nearly all of them say nothing of the kind.
        None if notes.keys().isdisjoint(_SHAPING) else _said_of_shape(notes),
        *reports_of(pod),
    )
    try:
        return _AS_WRITTEN.encode(written)
    except OverflowError:
        return None


def _said_of_shape(notes: Mapping[str, str]) -> tuple[Any, ...]:
    """Return what annotations say that a shape follows from."""
    numa = notes.get(names.NUMA_TOPOLOGY_POLICY, "")
    return _strategy(notes), marks.is_revocable(notes), numa, [notes.get(key) for key in marks.DEVICES]


def reports_of(pod: core.Pod) -> tuple[Any, ...]:
    """Return what a kubelet reports of a pod that its shape follows from: nothing while it has no node."""
    status = pod.status
    if not pod.spec.node_name or not (status.container_statuses or status.init_container_statuses or status.resources):
        return ()
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        requests.is_resize_infeasible(pod),
    )


def constraints_of(pod: core.Pod) -> Constraints:
    """Collect what filters and scores read of a pod."""
    spec = pod.spec
    bonds.check(spec)
    images = _images(spec)
    return Constraints(
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=tuple(spec.tolerations),
        ports=_ports(spec),
        spread=spec.topology_spread_constraints,
        images=images,
        image_count=len(spec.containers) + len(spec.init_containers) if images else 0,
        claims=_claims(pod) if spec.volumes else (),
        disks=tuple(disk for volume in spec.volumes if (disk := in_tree(volume)) is not None),
        resource_claims=_device_claims(pod),
        strategy=_strategy(pod.metadata.annotations),
        features=_features(spec),
        revocable=marks.is_revocable(pod.metadata.annotations),
        numa=_numa(pod),
        devices=marks.devices(pod),
    )


def _features(spec: core.PodSpec) -> tuple[str, ...]:
    """Return what the kubelet of a pod's node must be able to do, of what Kubernetes has nodes declare."""
    found = []
    rules = [rule for each in spec.containers for rule in each.restart_policy_rules]
    if spec.init_containers:
        rules += [rule for each in spec.init_containers for rule in each.restart_policy_rules]
    if rules and any(rule.action == "RestartAllContainers" for rule in rules):
        found.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        found.append("UserNamespacesHostNetworkSupport")
    return tuple(found)


def _strategy(annotations: Mapping[str, str]) -> tuple[str, ...]:
    kind = annotations.get(names.STRATEGY_SCORING_TYPE)
    return () if kind is None else (kind, annotations.get(names.STRATEGY_WEIGHT, ""))


def _numa(pod: core.Pod) -> tuple[str, ...]:
    """Return what a kubelet aligns the CPUs of a pod by; empty if it does not, because the pod is not guaranteed what it asks for or asks for no whole CPU."""
    if not requests.is_guaranteed(pod):
        return ()
    counts = [requests.whole_cpus(container) for container in pod.spec.containers]
    policy = pod.metadata.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
    return (policy, *map(str, counts)) if policy or any(counts) else ()


def _images(spec: core.PodSpec) -> tuple[str, ...]:
    """List the images of containers and image volumes by their full names, sorted, each as often as it is used."""
    named = [container.image for container in (*spec.containers, *spec.init_containers)]
    named += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(sorted(image_name(name) for name in named if name))


def image_name(name: str) -> str:
    """Write an image name with its tag."""
    return name if ":" in name[name.rfind("/") + 1 :] else f"{name}:latest"


def _claims(pod: core.Pod) -> tuple[ClaimUse, ...]:
    """List the claims of a pod, once each; that of an ephemeral volume is named after pod and volume."""
    meta = pod.metadata
    uses: dict[ClaimUse, None] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            uses[ClaimUse(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")] = None
        elif volume.ephemeral is not None:
            uses[ClaimUse(f"{meta.namespace}/{meta.name}-{volume.name}", meta.uid)] = None
    return tuple(uses)


def _device_claims(pod: core.Pod) -> tuple[str, ...]:
    """List the claims for devices: by the name of the claim, or of the template that it is made from."""
    return tuple(
        f"{pod.metadata.namespace}/{claim.resource_claim_name}"
        if claim.resource_claim_name
        else f"{claim.name} of {pod.metadata.namespace}/{claim.resource_claim_template_name}"
        for claim in pod.spec.resource_claims
    )


def _ports(spec: core.PodSpec) -> tuple[HostPort, ...]:
    """List the host ports of containers and sidecars, sorted and once each."""
    containers = [*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always")]
    wanted = {
        HostPort(port.protocol or "TCP", port.host_ip or "0.0.0.0", port.host_port)  # noqa: S104  compared, not bound
        for container in containers
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(wanted))
