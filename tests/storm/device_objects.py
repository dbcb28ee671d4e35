"""Devices of the storm: who offers them, by which class and template they are asked for, and claims."""

from __future__ import annotations

from pumice.api import kinds
from tests.storm.extended import DEVICE

DRIVER = "dev.example.com"
CLASSES = {  # by name: what a device must be
    "any": f'device.driver == "{DRIVER}"',
    "large": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size == "large"',
}
BUSY = "busy"  # the key of taints that some claims tolerate
WANTED = {  # by template: class, count and the key of taints that are tolerated
    "one": ("any", 1, ""),
    "two": ("any", 2, ""),
    "one-large": ("large", 1, ""),
    "one-busy": ("any", 1, BUSY),
}
SIZES = ("small", "large")
KEYS = (BUSY, "sick")
EFFECTS = ("NoSchedule", "NoExecute", "None")


def taint(rng):
    """Draw a taint."""
    return {"key": rng.choice(KEYS), "effect": rng.choice(EFFECTS)}


def taint_rule(name, selector, given):
    return {
        "apiVersion": kinds.DEVICE_TAINT_RULE.api_version,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": given},
    }


def slices(node, sizes, generation, parts, taints=()):
    """What a driver says of a node's devices, in so many parts of one pool; `taints` are of the first ones."""
    devices = [
        {"name": f"dev{number}", "attributes": {"size": {"string": size}}}
        for number, size in enumerate(sizes)
        if size is not None
    ]
    for device, given in zip(devices, taints):  # noqa: B905  the rest has none
        device["taints"] = given
    for part in range(parts):
        pool = {"name": node, "generation": generation, "resourceSliceCount": parts}
        yield {
            "apiVersion": kinds.RESOURCE_SLICE.api_version,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{part}"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices[part::parts]},
        }


def device_class(name):
    stands_for = {"extendedResourceName": DEVICE} if name == "any" else {}
    return {
        "apiVersion": kinds.DEVICE_CLASS.api_version,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": CLASSES[name]}}], **stands_for},
    }


def _asked(wanted):
    name, count, borne = WANTED[wanted]
    tolerations = {"tolerations": [{"key": borne, "operator": "Exists"}]} if borne else {}
    exactly = {"deviceClassName": name, "count": count, **tolerations}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def template(namespace, wanted):
    return {
        "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": wanted, "namespace": namespace},
        "spec": {"spec": _asked(wanted)},
    }


def claim(namespace, name, wanted):
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": _asked(wanted),
    }


def standing(namespace):
    """Classes and templates, which are there unless somebody takes them away for a while."""
    yield from map(device_class, CLASSES)
    for wanted in WANTED:
        yield template(namespace, wanted)
