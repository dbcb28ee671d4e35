"""Steps that several controllers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import kinds
    from pumice.controllers.queueing.requests import Propagation, Step

Manifest = dict[str, Any]


def patch(
    kind: kinds.Kind, subject: Mapping[str, Any], body: Manifest, *, exact: bool = False, status: bool = False
) -> Step:
    """Merge a body into an object; an exact patch is refused if anybody has changed the object since we saw it."""
    metadata = subject["metadata"]
    if exact:
        stated = {**manifests.mapping(body, "metadata"), "resourceVersion": metadata.get("resourceVersion", "")}
        body = {**body, "metadata": stated}
    request = effects.Patch(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        body=body,
        subresource="status" if status else "",
    )
    return requests.Step(request=request)


def write_status(kind: kinds.Kind, subject: Mapping[str, Any], status: Manifest, *, exact: bool = False) -> list[Step]:
    """Write what has changed in a status, if anything has."""
    changed = manifests.merge_patch(manifests.mapping(subject, "status"), status)
    return [patch(kind, subject, {"status": changed}, exact=exact, status=True)] if changed else []


def delete(kind: kinds.Kind, subject: Mapping[str, Any], policy: Propagation = "Background") -> Step:
    """Delete an object."""
    metadata = subject["metadata"]
    request = requests.Delete(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        policy=policy,
    )
    return requests.Step(request=request)


def create(kind: kinds.Kind, manifest: Manifest, said: tuple[str, str] | None = None) -> Step:
    """Create an object."""
    request = effects.Create(kind=kind, manifest=manifest)
    return requests.Step(request=request, said=said, refused=("FailedCreate", f"Error creating {kind.name}: "))
