"""Extended resources that a device class stands for: pods ask for an amount by a name, and get devices by a claim that is made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import names, quantity, resource
from pumice.model import preparations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import core

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
ALWAYS: Final = "Always"


class SpecialClaim(msgspec.Struct, frozen=True):
    """The claim that is made for a pod: its name, what it asks for, which request each container has, and the resources that it stands for."""

    name: str
    spec: resource.ResourceClaimSpec
    mappings: tuple[dict[str, str], ...]
    resources: frozenset[str]


def classes_by_resource(classes: Iterable[resource.DeviceClass]) -> dict[str, str]:
    """Say which class a resource stands for; of two classes the newer, then the one with the smaller name."""
    found: dict[str, tuple[str, str]] = {}
    for each in sorted(classes, key=lambda found: found.metadata.name):
        created = each.metadata.creation_timestamp or ""
        named = [f"{IMPLICIT}{each.metadata.name}", *filter(None, [each.spec.extended_resource_name])]
        for name in named:
            if name not in found or created > found[name][0]:
                found[name] = (created, each.metadata.name)
    return {name: kind for name, (_, kind) in found.items()}


def special_claim(pod: core.Pod, classes: Mapping[str, str]) -> SpecialClaim | None:
    """Work out the claim for what a pod asks for by names of classes; None if it asks for nothing of the kind.

    Each container has a request of its own for each name. Init containers that end use what later ones hold; what the largest of them lacks beyond is one request more.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    asked = [_asked(container) for container in containers]
    taken = sorted({name for amounts in asked for name, units in amounts.items() if name in classes and units > 0})
    if not taken:
        return None
    ending = [
        index < len(pod.spec.init_containers) and container.restart_policy != ALWAYS
        for index, container in enumerate(containers)
    ]
    requests: list[tuple[str, str, int]] = []  # name of the request, class, count
    mappings: list[dict[str, str]] = []
    for name in taken:
        kept = [
            (index, _request(index, name, asked[index]), asked[index][name])
            for index in range(len(containers))
            if not ending[index] and asked[index].get(name, 0) > 0
        ]
        short = {
            index: asked[index][name] - sum(count for later, _, count in kept if later > index)
            for index in range(len(containers))
            if ending[index] and asked[index].get(name, 0) > 0
        }
        largest = max(short, key=lambda index: (short[index], -index), default=-1)
        extra = (_request(largest, name, asked[largest]), short[largest]) if short and short[largest] > 0 else None
        requests += [(request, classes[name], count) for _, request, count in kept]
        requests += [(extra[0], classes[name], extra[1])] if extra is not None else []
        mappings += [_mapping(containers[index], name, request) for index, request, _ in kept]
        for index in short:
            left = asked[index][name]
            for later, request, count in kept:
                if later > index and left > 0:
                    mappings.append(_mapping(containers[index], name, request))
                    left -= count
            if left > 0 and extra is not None:
                mappings.append(_mapping(containers[index], name, extra[0]))
    spec = resource.ResourceClaimSpec(
        devices=resource.DeviceClaim(
            requests=tuple(
                resource.DeviceRequest(
                    name=request,
                    exactly=resource.ExactDeviceRequest(
                        device_class_name=kind, allocation_mode="ExactCount", count=count
                    ),
                )
                for request, kind, count in requests
            )
        )
    )
    name = f"{_prefix(pod)}{preparations.suffix(pod.metadata.uid)}"
    return SpecialClaim(name, spec, tuple(mappings), frozenset(taken))


def manifest(pod: core.Pod, claim: SpecialClaim) -> dict[str, Any]:
    """Write the claim as it is created."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": _prefix(pod),
            "namespace": pod.metadata.namespace,
            "annotations": {names.EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": msgspec.json.decode(msgspec.json.encode(claim.spec)),
    }


def is_for(found: resource.ResourceClaimSpec, claim: SpecialClaim) -> bool:
    """Tell whether a claim that is there asks for what a pod needs: an attempt that broke off may have left one from when classes or the pod were others."""
    return _asked_by(found) == _asked_by(claim.spec)


def _asked_by(spec: resource.ResourceClaimSpec) -> list[tuple[str, str, int]]:
    return [
        (each.name, each.exactly.device_class_name, each.exactly.count)
        if each.exactly is not None
        else (each.name, "", 0)
        for each in spec.devices.requests
    ]


def _prefix(pod: core.Pod) -> str:
    return f"{pod.metadata.name}-extended-resources-"


def _asked(container: core.Container) -> dict[str, int]:
    """Return what a container asks for in whole units; what cannot be read, or is no whole number, is left to the rest of the scheduler."""
    listed = {**container.resources.limits, **container.resources.requests}
    found: dict[str, int] = {}
    for name, text in listed.items():
        try:
            found[name] = quantity.whole(text)
        except quantity.QuantityError:
            continue
    return found


def _request(index: int, name: str, asked: Mapping[str, int]) -> str:
    return f"container-{index}-request-{sorted(asked).index(name)}"


def _mapping(container: core.Container, name: str, request: str) -> dict[str, str]:
    return {"containerName": container.name, "resourceName": name, "requestName": request}
