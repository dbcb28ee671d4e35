"""Schemas as linked nodes: what OpenAPI says about a field, ready to be walked.

Built-in kinds and custom resources share this form. References are resolved when they are first walked, so a schema may contain itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pumice.apiserver.schemas import bounded_patterns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.schemas.bounded_patterns import BoundedPattern

Document = dict[str, Any]
NodeType = Literal[
    "object", "map", "array", "string", "integer", "number", "boolean", "any", "int-or-string", "quantity"
]
MISSING: Final = object()
_PREFIX: Final = "#/components/schemas/"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_LIMITS: Final = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties", "uniqueItems", "format",
)  # fmt: skip


class Node:
    """What is known about one field; `limits` holds the plain numeric and length rules as they are written."""

    __slots__ = (
        "additional", "combined", "default", "embedded", "enum", "items", "keep_unknown", "limits", "list_keys", "list_type", "map_atomic",
        "merge_key", "nullable", "pattern", "properties", "required", "retain_keys", "ruled", "rules", "source", "type",
    )  # fmt: skip

    def __init__(self, kind: NodeType = "any", source: Mapping[str, Any] | None = None) -> None:
        self.type: NodeType = kind
        self.source: Mapping[str, Any] = source or {}
        self.properties: dict[str, Node] = {}
        self.additional: Node | None = None
        self.items: Node | None = None
        self.required: tuple[str, ...] = ()
        self.keep_unknown = False
        self.embedded = False
        self.nullable = False
        self.enum: list[Any] | None = None
        self.pattern: BoundedPattern | None = None
        self.limits: Document = {}
        self.combined: dict[str, list[Node]] = {}
        self.rules: list[Document] = []
        self.ruled = False  # there are rules here or below
        self.default: Any = MISSING
        self.list_type = "atomic"
        self.list_keys: tuple[str, ...] = ()
        self.map_atomic = False
        self.merge_key = ""
        self.retain_keys = False

    def child(self, name: str) -> Node | None:
        """Give the node of a field, or None if the schema knows none of that name."""
        found = self.properties.get(name)
        return found if found is not None else self.additional


class Compiler:
    """Compiles the schemas of one document; each definition once."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, Node] = {}

    def named(self, name: str) -> Node:
        """Give the node of a definition."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = Node()  # first, so that a schema may refer to itself
            if name == _QUANTITY:
                found.type = "quantity"
            else:
                self._fill(found, self._definitions[name])
                if found.type == "object" and not found.properties and found.additional is None:
                    found.keep_unknown = True  # such as FieldsV1: an object about which nothing is said
        return found

    def compile(self, schema: Mapping[str, Any]) -> Node:
        """Give the node of a schema."""
        reference = schema.get("$ref")
        whole = schema.get("allOf")
        if reference is None and isinstance(whole, list) and len(whole) == 1:
            reference = whole[0].get("$ref")
        if isinstance(reference, str):
            return self.named(reference.removeprefix(_PREFIX))
        node = Node()
        self._fill(node, schema)
        return node

    def _fill(self, node: Node, schema: Mapping[str, Any]) -> None:
        node.source = schema
        node.type = _type(schema)
        node.keep_unknown = schema.get("x-kubernetes-preserve-unknown-fields") is True
        node.embedded = schema.get("x-kubernetes-embedded-resource") is True
        node.nullable = schema.get("nullable") is True
        node.enum = schema.get("enum")
        node.required = tuple(schema.get("required") or ())
        node.rules = list(schema.get("x-kubernetes-validations") or ())
        node.default = schema.get("default", MISSING)
        node.limits = {key: schema[key] for key in _LIMITS if key in schema}
        if isinstance(schema.get("pattern"), str):
            node.pattern = bounded_patterns.compiled(schema["pattern"])
        node.list_type = schema.get("x-kubernetes-list-type", "atomic")
        node.list_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        node.map_atomic = schema.get("x-kubernetes-map-type") == "atomic"
        strategies = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
        node.retain_keys = "retainKeys" in strategies
        if "merge" in strategies:
            node.merge_key = schema.get("x-kubernetes-patch-merge-key", "") or "*"
        self._link(node, schema)

    def _link(self, node: Node, schema: Mapping[str, Any]) -> None:
        node.properties = {name: self.compile(each) for name, each in (schema.get("properties") or {}).items()}
        for name, each in (schema.get("properties") or {}).items():
            # What a field says beside a reference is about the field, not about what it refers to.
            if "allOf" in each and ("x-kubernetes-patch-strategy" in each or "x-kubernetes-map-type" in each):
                own = Node()
                for slot in Node.__slots__:
                    setattr(own, slot, getattr(node.properties[name], slot))
                own.retain_keys = "retainKeys" in str(each.get("x-kubernetes-patch-strategy", ""))
                own.map_atomic = each.get("x-kubernetes-map-type") == "atomic" or own.map_atomic
                node.properties[name] = own
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            node.additional = self.compile(additional)
        elif additional is True:
            node.additional = Node()
        if isinstance(schema.get("items"), dict):
            node.items = self.compile(schema["items"])
        for word in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(word), list):
                node.combined[word] = [self.compile(each) for each in schema[word]]
        if isinstance(schema.get("not"), dict):
            node.combined["not"] = [self.compile(schema["not"])]
        below = [*node.properties.values(), *(each for each in (node.additional, node.items) if each is not None)]
        node.ruled = bool(node.rules) or any(each.ruled for each in below)


def _type(schema: Mapping[str, Any]) -> NodeType:
    if schema.get("x-kubernetes-int-or-string") is True or schema.get("format") == "int-or-string":
        return "int-or-string"
    stated = schema.get("type")
    if stated == "object":
        return "map" if schema.get("additionalProperties") and not schema.get("properties") else "object"
    if stated in ("array", "string", "integer", "number", "boolean"):
        found: NodeType = stated
        return found
    return "object" if schema.get("properties") else "any"
