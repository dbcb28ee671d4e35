"""OpenAPI documents, version 2 and 3: what kubectl validates and explains by. Made from the registry when it is asked for, and kept until that changes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from pumice.apiserver.resources import Registry, Resource

Document = dict[str, Any]
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_LIST_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_V3: Final = "#/components/schemas/"
PROTOBUF: Final = "com.github.proto-openapi.spec.v2@v1.0+protobuf"  # as it is asked for
PROTOBUF_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # as it is given


class Documents:
    """Gives documents as bytes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, bytes] = {}
        self._generation = -1

    def index(self) -> bytes:
        """Give the index of version 3: where the document of each group and version is."""
        if (found := self._kept("index")) is not None:
            return found
        paths = {}
        for path in self._paths():
            digest = hashlib.sha256(self.version3(path) or b"").hexdigest().upper()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return self._keep("index", {"paths": paths})

    def version3(self, path: str) -> bytes | None:
        """Give the document of a group and version such as `apis/apps/v1`."""
        if (found := self._kept(path)) is not None:
            return found
        resources = [each for each in self._registry if each.path == f"/{path}"]
        if not resources:
            return None
        schemas: Document = {}
        for each in resources:
            self._add(schemas, each)
        paths: Document = {}
        for each in resources:
            paths |= _paths(each)
        document = {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self._registry.description.version},
            "paths": paths,
            "components": {"schemas": schemas},
        }
        return self._keep(path, document)

    def version2(self) -> bytes:
        """Give the one document of version 2."""
        if (found := self._kept("v2")) is not None:
            return found
        definitions: Document = {}
        paths: Document = {}
        for each in self._registry:
            self._add(definitions, each)
            paths |= {path: _older_path(item) for path, item in _paths(each).items()}
        document = {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": self._registry.description.version},
            "paths": paths,
            "definitions": {name: older(schema) for name, schema in definitions.items()},
        }
        return self._keep("v2", document)

    def version2_header(self) -> bytes:
        """Give the document of version 2 in protobuf, without kinds.

        kubectl asks for it when it is given a List, and leaves the checking of kinds that are not there to the server, which does it anyway.
        """
        title, version = b"Kubernetes", self._registry.description.version.encode()
        info = _text_field(1, title) + _text_field(2, version)
        return _text_field(1, b"2.0") + _text_field(2, info) + _text_field(8, b"")

    def _paths(self) -> list[str]:
        return list(dict.fromkeys(each.path.lstrip("/") for each in self._registry))

    def _kept(self, name: str) -> bytes | None:
        if self._generation != self._registry.generation:
            self._made.clear()
            self._generation = self._registry.generation
        return self._made.get(name)

    def _keep(self, name: str, document: Document) -> bytes:
        found = self._made[name] = msgspec.json.encode(document)
        return found

    def _add(self, schemas: Document, resource: Resource) -> None:
        """Add a kind, its list, and all that they refer to."""
        described = self._registry.description.schemas
        waiting = (
            [resource.schema_name, resource.schema_name + "List"]
            if resource.schema_name
            else [_METADATA, _LIST_METADATA]
        )
        if resource.custom:
            schemas |= _custom(resource)
        while waiting:
            name = waiting.pop()
            if name not in schemas and name in described:
                schemas[name] = described[name]
                waiting += _references(described[name])


def _text_field(number: int, data: bytes) -> bytes:
    """Write a field of a protobuf message: short texts only."""
    return bytes([number << 3 | 2, len(data)]) + data


def schema_name(resource: Resource) -> str:
    """Name the schema of a kind: a custom one by its group backwards."""
    if resource.schema_name:
        return resource.schema_name
    return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}.{resource.kind_name}"


def _custom(resource: Resource) -> Document:
    name = schema_name(resource)
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind_name}
    properties = {
        "apiVersion": {"type": "string", "description": "The versioned schema of this representation of an object."},
        "kind": {"type": "string", "description": "The REST resource that this object represents."},
        **(resource.schema.get("properties") or {}),
        "metadata": {"description": "Standard object's metadata.", "allOf": [{"$ref": _V3 + _METADATA}]},
    }
    one = {**resource.schema, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}
    several = {
        "type": "object",
        "description": f"{resource.list_kind} is a list of {resource.kind_name}",
        "required": ["items"],
        "properties": {
            "apiVersion": properties["apiVersion"],
            "kind": properties["kind"],
            "items": {"type": "array", "items": {"$ref": _V3 + name}},
            "metadata": {"allOf": [{"$ref": _V3 + _LIST_METADATA}]},
        },
        "x-kubernetes-group-version-kind": [{**gvk, "kind": resource.list_kind}],
    }
    return {name: one, f"{name}List": several}


def _paths(resource: Resource) -> Document:
    """Give the paths of a resource, each with what may be done there."""
    base = resource.path + ("/namespaces/{namespace}" if resource.namespaced else "") + f"/{resource.plural}"
    several = {"get": "list", "post": "create", "delete": "deletecollection"}
    one = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    paths = {base: _operations(resource, several, "list"), base + "/{name}": _operations(resource, one, "")}
    if resource.namespaced and "list" in resource.verbs:
        paths[f"{resource.path}/{resource.plural}"] = _operations(resource, {"get": "list"}, "list")
    return {path: operations for path, operations in paths.items() if operations}


def _operations(resource: Resource, methods: dict[str, str], listed: str) -> Document:
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind_name}
    reference = {"$ref": _V3 + schema_name(resource)}
    operations: Document = {}
    for method, verb in methods.items():
        if verb not in resource.verbs:
            continue
        action = {"list": "list", "create": "post", "deletecollection": "deletecollection", "update": "put"}.get(
            verb, verb
        )
        answer = {"$ref": f"{_V3}{schema_name(resource)}List"} if listed and method == "get" else reference
        operation: Document = {
            "operationId": f"{action}{resource.group.title().replace('.', '')}{resource.version.title()}{resource.kind_name}",
            "parameters": _parameters(verb),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }
        if method in ("post", "put", "patch"):
            kinds = ("application/json",) if method != "patch" else _patch_kinds(resource)
            operation["requestBody"] = {"required": True, "content": {kind: {"schema": reference} for kind in kinds}}
        operations[method] = operation
    return operations


def _patch_kinds(resource: Resource) -> tuple[str, ...]:
    kinds = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
    return kinds if resource.custom else (*kinds, "application/strategic-merge-patch+json")


def _parameters(verb: str) -> list[Document]:
    names = {
        "create": ("dryRun", "fieldManager", "fieldValidation"),
        "update": ("dryRun", "fieldManager", "fieldValidation"),
        "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
        "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
        "list": ("labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion"),
    }.get(verb, ())
    return [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in names]


def _older_path(item: Document) -> Document:
    """Say a path in the words of version 2."""
    return {
        method: {
            "operationId": operation["operationId"],
            "consumes": ["*/*"],
            "produces": ["application/json"],
            "parameters": [
                {"name": each["name"], "in": "query", "type": "string", "uniqueItems": True}
                for each in operation["parameters"]
            ],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": operation["x-kubernetes-action"],
            "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
        }
        for method, operation in item.items()
    }


def older(schema: Any) -> Any:
    """Say a schema in the words of version 2: references point elsewhere, and a choice between types is a text."""
    if isinstance(schema, list):
        return [older(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = schema.get("allOf")
    if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict) and "$ref" in whole[0]:
        reference = whole[0]["$ref"].replace(_V3, "#/definitions/")
        return {
            "$ref": reference,
            **{key: older(value) for key, value in schema.items() if key not in ("allOf", "default", "nullable")},
        }
    if isinstance(schema.get("oneOf"), list) and "type" not in schema and "properties" not in schema:
        rest = {key: value for key, value in schema.items() if key not in ("oneOf", "anyOf")}
        return {**rest, "type": "string"}
    dropped = ("default", "nullable", "anyOf", "oneOf", "not") if "description" in schema or "type" in schema else ()
    result = {key: older(value) for key, value in schema.items() if key not in dropped}
    if isinstance(schema.get("$ref"), str):
        result["$ref"] = schema["$ref"].replace(_V3, "#/definitions/")
    return result


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        here = [value["$ref"].removeprefix(_V3)] if isinstance(value.get("$ref"), str) else []
        return here + [name for each in value.values() for name in _references(each)]
    if isinstance(value, list):
        return [name for each in value for name in _references(each)]
    return []
