"""What a schema may not say beside its types: references, values under all-of, extensions that contradict each other or their lists."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
Causes = list[tuple[str, str, str]]

_INSIDE: Final = {
    "type": "empty",
    "title": "empty",
    "description": "empty",
    "default": "undefined",
    "additionalProperties": "undefined",
    "nullable": "false",
}
"""What may not be said under all-of and its like, and what it must be instead."""

_LIST_TYPE: Final = "x-kubernetes-list-type"
_LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_PRESERVED: Final = "x-kubernetes-preserve-unknown-fields"


def problems(schema: Schema, path: str, *, is_metadata: bool) -> Causes:
    """Find what is refused in one schema; those inside it are asked about on their own."""
    return [
        *_forbidden(schema, path, is_metadata=is_metadata),
        *_list_problems(schema, path),
        *_embedded(schema, path),
        *_logic(schema, path),
    ]


def _forbidden(schema: Schema, path: str, *, is_metadata: bool) -> Causes:
    found: Causes = []
    if "$ref" in schema:
        found.append(("FieldValueForbidden", f"{path}.$ref", "Forbidden: $ref is not supported"))
    if schema.get("uniqueItems"):
        text = "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(("FieldValueForbidden", f"{path}.uniqueItems", text))
    if schema.get(_PRESERVED) is False:
        found.append(("FieldValueInvalid", f"{path}.{_PRESERVED}", "Invalid value: false: must be true or undefined"))
    if is_metadata and "default" in schema:
        text = "Forbidden: must not be set in top-level metadata"
        found.append(("FieldValueForbidden", f"{path}.default", text))
    return found


def _list_problems(schema: Schema, path: str) -> Causes:
    """Find lists whose items cannot be told apart as they ask for."""
    items = schema.get("items")
    if not isinstance(items, dict):
        return []
    keys = schema.get(_LIST_KEYS) or []
    if schema.get(_LIST_TYPE) == "map" and any(key not in (items.get("properties") or {}) for key in keys):
        listed = ", ".join(f'"{key}"' for key in keys)
        text = f"Invalid value: [{listed}]: entries must all be names of item properties"
        return [("FieldValueInvalid", f"{path}.{_LIST_KEYS}", text)]
    if schema.get(_LIST_TYPE) == "set" and items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        text = f"Invalid value: null: must be atomic as item of a list with {_LIST_TYPE}=set"
        return [("FieldValueInvalid", f"{path}.items.{_MAP_TYPE}", text)]
    return []


def _embedded(schema: Schema, path: str) -> Causes:
    if schema.get(_EMBEDDED) is not True:
        return []
    found: Causes = []
    if schema.get("type") != "object":
        text = f'Invalid value: "{schema.get("type") or ""}": must be object if {_EMBEDDED} is true'
        found.append(("FieldValueInvalid", f"{path}.type", text))
    if not schema.get("properties") and schema.get(_PRESERVED) is not True:
        text = f"Required value: must not be empty if {_EMBEDDED} is true without {_PRESERVED}"
        found.append(("FieldValueRequired", f"{path}.properties", text))
    return found


def _logic(schema: Schema, path: str) -> Causes:
    """Find what says more than a value may under all-of, any-of, one-of and not: those judge, and describe nothing."""
    parts = [
        (f"{path}.{name}[{index}]", each)
        for name in ("allOf", "anyOf", "oneOf")
        for index, each in enumerate(schema.get(name) or ())
    ]
    parts += [(f"{path}.not", schema["not"])] if isinstance(schema.get("not"), dict) else []
    free = schema.get("x-kubernetes-int-or-string") is True  # which is written as any-of two types
    return [
        ("FieldValueForbidden", f"{where}.{field}", f"Forbidden: must be {instead} to be structural")
        for where, part in parts
        if isinstance(part, dict)
        for field, instead in _INSIDE.items()
        if part.get(field) and not (free and field == "type")
    ]
