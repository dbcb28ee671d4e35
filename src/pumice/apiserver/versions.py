"""One object in several versions: what is stored in one of them is told in the one that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.resources import Resource

Document = dict[str, Any]
_EVENT_FIELDS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


def told(manifest: Mapping[str, Any], resource: Resource) -> Mapping[str, Any]:
    """Give a stored object as a version has it."""
    if manifest["apiVersion"] == resource.api_version:
        return manifest
    if resource.group == "events.k8s.io":
        return _renamed(manifest, resource.api_version, dict(_EVENT_FIELDS))
    return {**manifest, "apiVersion": resource.api_version}


def stored(manifest: Document, resource: Resource) -> Document:
    """Give an object as it is stored."""
    if resource.group == "events.k8s.io":
        return _renamed(manifest, "v1", {new: old for old, new in _EVENT_FIELDS})
    return {**manifest, "apiVersion": resource.kind.api_version, "kind": resource.kind.name}


def _renamed(manifest: Mapping[str, Any], api_version: str, names: Mapping[str, str]) -> Document:
    return {names.get(field, field): value for field, value in manifest.items()} | {"apiVersion": api_version}
