"""What is filled in alike wherever an object is stored, by a scenario or by the API server of a local cluster.

A value of the wrong type stays as it is given, and what hangs below it is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.controllers import usage
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api.schemas.language import Schema

Manifest = dict[str, Any]
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def child(parent: Manifest, field: str) -> Manifest | None:
    """Give a map below a map, made if it is missing or null; None if something else stands there."""
    value = parent.get(field)
    if value is None:
        value = parent[field] = {}
    return value if isinstance(value, dict) else None


def fill(parent: Manifest | None, fields: Mapping[str, Any]) -> None:
    """Fill in fields that are missing or null."""
    if parent is not None:
        for field, value in fields.items():
            if parent.get(field) is None:
                parent[field] = value


def entries(parent: Manifest | None, field: str) -> list[Manifest]:
    """Give the maps in a list below a map."""
    value = parent.get(field) if parent is not None else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def by_schema(value: Any, schema: Schema) -> None:
    """Fill in what a schema states as defaults."""
    if isinstance(value, dict):
        for name, below in schema.get("properties", {}).items():
            if value.get(name) is not None:
                by_schema(value[name], below)
            elif "default" in below:
                value[name] = below["default"]
    elif isinstance(value, list):
        for item in value:
            by_schema(item, schema.get("items", {}))


def requests(spec: Manifest) -> None:
    """Let the containers of a pod, and the pod as a whole, request what they are limited to, unless they say otherwise."""
    for container in entries(spec, "initContainers") + entries(spec, "containers"):
        resources = container.get("resources")
        limits = structure.mapping(resources, "limits")
        if isinstance(resources, dict) and limits:
            fill(child(resources, "requests"), limits)
    _whole_requests(spec)


def _whole_requests(spec: Manifest) -> None:
    """Complete the requests of a pod with limits as a whole: what its containers ask for together, else the limit."""
    stated, limits = spec.get("resources"), structure.mapping(spec.get("resources"), "limits")
    if not isinstance(stated, dict) or not limits:
        return
    asked = dict(structure.mapping(stated, "requests"))
    for name, amount in usage.of_containers(spec, "requests").items():
        if usage.is_pod_level(name):
            asked.setdefault(name, usage.written(name, amount))
    for name, limit in limits.items():
        asked.setdefault(name, limit)
    spec["resources"] = {**stated, "requests": asked}


def node(manifest: Manifest) -> None:
    """Give a node its name as a label, and let it offer what it has, or have what it offers."""
    if (labels := child(manifest["metadata"], "labels")) is not None:
        labels.setdefault(names.HOSTNAME, manifest["metadata"]["name"])
    if (status := child(manifest, "status")) is not None:
        for field, other in (("allocatable", "capacity"), ("capacity", "allocatable")):
            if status.get(field) is None and status.get(other):
                status[field] = structure.copied(status[other])


def namespace(manifest: Manifest) -> None:
    """Give a namespace its name as a label, whatever it says, and its phase."""
    if (labels := child(manifest["metadata"], "labels")) is not None:
        labels[NAMESPACE_NAME] = manifest["metadata"]["name"]
    fill(child(manifest, "status"), {"phase": "Active"})


def volume(manifest: Manifest) -> None:
    """Let a volume be available."""
    fill(child(manifest, "status"), {"phase": "Available"})
