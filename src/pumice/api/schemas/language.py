"""A small language for the structural schemas of custom resources.

A field that is not declared does not exist: the API server names it in a warning, `kubectl` refuses it, and nothing of it is stored, so that a
misspelt `minMembers` cannot lose a gang. Only what has a schema of its own elsewhere, a pod's template, is kept as it is.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_DNS: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"


def record(text: str = "", required: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    """Describe an object with these fields and no others."""
    schema: Schema = {**_said(text), "type": "object", "properties": fields}
    if required:
        schema["required"] = list(required)
    return schema


def foreign(text: str) -> Schema:
    """Describe an object whose schema is somebody else's; all of it is kept."""
    return {**_said(text), "type": "object", _KEEP: True}


def mapping(values: Schema, text: str = "") -> Schema:
    """Describe an object with free keys."""
    return {**_said(text), "type": "object", "additionalProperties": values}


def listing(items: Schema, text: str = "", *, least: int = 0, atomic: bool = False) -> Schema:
    """Describe a list."""
    schema = {**_said(text), "type": "array", "items": items}
    if least:
        schema["minItems"] = least
    if atomic:
        schema["x-kubernetes-list-type"] = "atomic"
    return schema


def string(
    text: str = "",
    *,
    default: str = "",
    longest: int = 0,
    shortest: int = 0,
    pattern: str = "",
    among: tuple[str, ...] = (),
) -> Schema:
    """Describe a text."""
    schema: Schema = {**_said(text), "type": "string"}
    options = {"default": default, "maxLength": longest, "minLength": shortest, "pattern": pattern, "enum": list(among)}
    return {**schema, **{key: value for key, value in options.items() if value}}


def name(text: str = "", *, default: str = "", shortest: int = 0) -> Schema:
    """Describe the name of an object; an empty one is no name."""
    pattern = _DNS if shortest else f"^$|{_DNS}"
    return string(text, default=default, longest=253, shortest=shortest, pattern=pattern)


def number(
    text: str = "", *, default: int | None = None, least: int | None = None, most: int | None = None, bits: int = 32
) -> Schema:
    """Describe a whole number."""
    schema: Schema = {**_said(text), "type": "integer", "format": f"int{bits}"}
    options = {"default": default, "minimum": least, "maximum": most}
    return {**schema, **{key: value for key, value in options.items() if value is not None}}


def boolean(text: str = "", *, default: bool | None = None) -> Schema:
    """Describe a switch."""
    schema = {**_said(text), "type": "boolean"}
    return schema if default is None else {**schema, "default": default}


def moment(text: str = "") -> Schema:
    """Describe a point in time."""
    return {**_said(text), "type": "string", "format": "date-time", "nullable": True}


def duration(text: str = "") -> Schema:
    """Describe a Go duration such as `1h30m`."""
    return string(text)


def resources(text: str = "") -> Schema:
    """Describe amounts by resource name."""
    amount = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": True,
    }
    return mapping(amount, text)


def selector(text: str = "") -> Schema:
    """Describe a label selector."""
    line = record(
        "",
        ("key", "operator"),
        key=string("The label."),
        operator=string("In, NotIn, Exists or DoesNotExist."),
        values=listing(string(), "For In and NotIn: the values.", atomic=True),
    )
    return record(
        text,
        matchExpressions=listing(line, "Requirements, all of which must hold.", atomic=True),
        matchLabels=mapping(string(), "Labels with their values, all of which must be there."),
    )


def ruled(schema: Schema, *rules: tuple[str, str]) -> Schema:
    """Add CEL rules, each with the message of its violation."""
    return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


def _said(text: str) -> Schema:
    return {"description": text} if text else {}
