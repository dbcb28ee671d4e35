"""DeviceTaintRules, which an API server of Kubernetes serves only if somebody asks for it: they are added to what the description says of its own kinds."""

from __future__ import annotations

from typing import Any, Final

from pumice.api import kinds

Document = dict[str, Any]
KIND: Final = kinds.DEVICE_TAINT_RULE
_PREFIX: Final = f"io.k8s.api.resource.{KIND.version}"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"


def _named(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _part(name: str) -> Document:
    return {"allOf": [_named(name)], "default": {}}


def _object(properties: Document, *required: str, kind: str = "") -> Document:
    found: Document = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    if kind:
        stated = {"group": KIND.group, "version": KIND.version, "kind": kind}
        found["properties"] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **properties}
        found["x-kubernetes-group-version-kind"] = [stated]
    return found


_TEXT: Final[Document] = {"type": "string"}
_SELECTOR: Final = _object({"driver": _TEXT, "pool": _TEXT, "device": _TEXT})
_CONDITIONS: Final[Document] = {
    "type": "array",
    "items": _part(f"{_META}.Condition"),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "x-kubernetes-patch-merge-key": "type",
    "x-kubernetes-patch-strategy": "merge",
}

SCHEMAS: Final[dict[str, Document]] = {
    f"{_PREFIX}.DeviceTaintSelector": _SELECTOR,
    f"{_PREFIX}.DeviceTaintRuleSpec": _object(
        {
            "deviceSelector": {"allOf": [_named(f"{_PREFIX}.DeviceTaintSelector")]},
            "taint": {"allOf": [_named("io.k8s.api.resource.v1.DeviceTaint")]},
        },
        "taint",
    ),
    f"{_PREFIX}.DeviceTaintRuleStatus": _object({"conditions": _CONDITIONS}),
    f"{_PREFIX}.DeviceTaintRule": _object(
        {
            "metadata": _part(f"{_META}.ObjectMeta"),
            "spec": _part(f"{_PREFIX}.DeviceTaintRuleSpec"),
            "status": _part(f"{_PREFIX}.DeviceTaintRuleStatus"),
        },
        "spec",
        kind=KIND.name,
    ),
    f"{_PREFIX}.DeviceTaintRuleList": _object(
        {
            "items": {"type": "array", "items": _part(f"{_PREFIX}.DeviceTaintRule")},
            "metadata": _part(f"{_META}.ListMeta"),
        },
        "items",
        kind=f"{KIND.name}List",
    ),
}

_RESPONSE: Final = {"group": "", "version": "", "kind": KIND.name}
RESOURCE: Final[Document] = {
    "group": KIND.group,
    "version": KIND.version,
    "resource": KIND.plural,
    "responseKind": _RESPONSE,
    "scope": "Cluster",
    "singularResource": KIND.name.lower(),
    "subresources": [{"responseKind": _RESPONSE, "subresource": "status", "verbs": ["get", "patch", "update"]}],
    "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
}
