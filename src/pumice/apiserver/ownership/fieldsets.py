"""Sets of fields in the form that managedFields has them: nested maps with keys such as `f:spec`, `k:{"name":"c"}` and `v:"x"`.

An empty map is a field; `.` beside others says that the thing itself is a member of the set too. Sets are never changed in place, so objects may share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver.ownership.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.apiserver.schemas.nodes import Node

FieldSet = dict[str, Any]
SELF: Final = "."
_LEAF: Final[FieldSet] = {}
UNOWNED: Final = frozenset(
    {
        "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "name", "namespace",
        "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip


def of_object(manifest: dict[str, Any], node: Node, *, whole: bool) -> FieldSet:
    """Give the fields that an object states; `whole` names maps beside their entries, as updates are written down."""
    found = {
        f"f:{name}": of_value(value, node.child(name), whole=whole)
        for name, value in manifest.items()
        if name not in ("apiVersion", "kind", "metadata")
    }
    owned = of_metadata(manifest.get("metadata", {}), node, whole=whole)
    return {"f:metadata": owned, **found} if owned else found


def of_metadata(metadata: dict[str, Any], node: Node, *, whole: bool = True) -> FieldSet:
    """Give the fields of an object's metadata that somebody can own."""
    owned = {name: value for name, value in metadata.items() if name not in UNOWNED}
    return of_value(owned, node.properties.get("metadata") or _METADATA, whole=whole) if owned else {}


def of_value(value: Any, node: Node | None, *, whole: bool) -> FieldSet:
    """Give the fields of a value."""
    if type(value) is dict and value and node is not None and not node.map_atomic:
        if node.type != "any" or node.properties or node.additional:
            found = {f"f:{name}": of_value(item, node.child(name), whole=whole) for name, item in value.items()}
            return {SELF: _LEAF, **found} if whole and node.type == "map" else found
        if node.keep_unknown:
            return {f"f:{name}": of_value(item, node, whole=whole) for name, item in value.items()}
    if type(value) is list and value and node is not None and node.list_type != "atomic":
        found = {}
        for item in value:
            element = element_of(item, node)
            below = of_value(item, node.items, whole=whole) if node.list_type == "map" else _LEAF
            found[element] = {SELF: _LEAF, **below} if node.list_type == "map" else _LEAF
        return found
    return _LEAF


def element_of(item: Any, node: Node) -> str:
    """Give the key of a list's item."""
    if node.list_type == "map" and isinstance(item, dict):
        return "k:" + _json({key: item.get(key, _key_default(node, key)) for key in sorted(node.list_keys)})
    return "v:" + _json(item)


def _key_default(node: Node, key: str) -> Any:
    child = node.items.properties.get(key) if node.items is not None else None
    default = child.default if child is not None else None
    return default if isinstance(default, (str, int)) else None


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the fields of either."""
    if not left or left is right:
        return right
    result = dict(left)
    for key, below in right.items():
        other = left.get(key)
        if other is None or key == SELF:
            result[key] = below
        else:
            result[key] = _nested(union(_members(other), _members(below)))
    return result


def exact_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the members of the first that are not members of the second, whatever is above or below them."""
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None:
            result[key] = below
        elif key != SELF and (rest := exact_difference(_members(below), _members(other))):
            result[key] = _nested(rest)
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the fields of the first that are not in the second; whoever is in the second takes along all that is below."""
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None:
            result[key] = below
        elif other and SELF not in other and (rest := difference(_members(below), other)):
            result[key] = _nested(rest)
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the fields of both."""
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None:
            continue
        if key == SELF:
            result[key] = _LEAF
        elif both := intersection(_members(below), _members(other)):
            result[key] = _nested(both)
    return result


def _members(below: FieldSet) -> FieldSet:
    """Give what a key holds as a set: an empty map is the thing itself."""
    return below or {SELF: _LEAF}


def _nested(members: FieldSet) -> FieldSet:
    """Give a set as a key holds it."""
    return _LEAF if len(members) == 1 and SELF in members else members


def of_paths(paths: Iterable[tuple[str, ...]]) -> FieldSet:
    """Give the set whose members are these paths."""
    found: FieldSet = {}
    for path in paths:
        here = found
        for element in path:
            here = here.setdefault(element, {})
        here[SELF] = {}
    return _settled(found)


def _settled(members: FieldSet) -> FieldSet:
    return {key: _nested(_settled(below)) if key != SELF else _LEAF for key, below in members.items()}


def leaves(fields: FieldSet, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Go through the members of a set as paths."""
    for key, below in fields.items():
        if key == SELF:
            yield path
        elif below:
            yield from leaves(below, (*path, key))
        else:
            yield (*path, key)


def shown(path: tuple[str, ...]) -> str:
    """Say a path as messages do: `.spec.template.spec.containers[name="c"].image`."""
    parts = []
    for element in path:
        kind, text = element[0], element[2:]
        if kind == "f":
            parts.append(f".{text}")
        elif kind == "k":
            keys = msgspec.json.decode(text)
            parts.append("[" + ",".join(f"{key}={_json(value)}" for key, value in keys.items()) + "]")
        else:
            parts.append(f"[={text}]")
    return "".join(parts)


def value_at(value: Any, path: tuple[str, ...], known: Places) -> tuple[bool, Any]:
    """Find what stands at a path; the first answer tells whether anything does."""
    for element in path:
        found, value = _step(value, element, known)
        if not found:
            return False, None
    return True, value


def _step(value: Any, element: str, known: Places) -> tuple[bool, Any]:
    kind, text = element[0], element[2:]
    if kind == "f":
        return (True, value[text]) if isinstance(value, dict) and text in value else (False, None)
    place = known.find(value, element)
    return (True, value[place]) if place is not None else (False, None)


def without(value: Any, fields: FieldSet) -> Any:
    """Give a copy of a value without the members of a set; what then is empty stays, unless it was a member itself."""
    if isinstance(value, dict):
        result = dict(value)
        for key, below in fields.items():
            name = key[2:]
            if key[0] != "f" or name not in result:
                continue
            if not below:
                del result[name]
            else:
                left = without(result[name], below)
                if left in ({}, []) and left != result[name]:
                    del result[name]
                else:
                    result[name] = left
        return result
    if isinstance(value, list):
        return _list_without(value, fields)
    return value


def _list_without(value: list[Any], fields: FieldSet) -> list[Any]:
    changed: dict[int, Any] = {}
    gone: set[int] = set()
    known = Places()
    for key, below in fields.items():
        place = known.find(value, key) if key != SELF else None
        if place is None:
            continue
        if not below or SELF in below:
            gone.add(place)
        else:
            changed[place] = without(value[place], below)
    return [changed.get(place, item) for place, item in enumerate(value) if place not in gone]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _metadata_node() -> Node:
    from pumice.apiserver.schemas import nodes  # noqa: PLC0415

    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    owner = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("uid", "name", "kind", "apiVersion")},
    }
    return nodes.Compiler({}).compile(
        {
            "type": "object",
            "properties": {
                "labels": texts,
                "annotations": texts,
                "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "ownerReferences": {
                    "type": "array",
                    "items": owner,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["uid"],
                },
                "generateName": {"type": "string"},
            },
        }
    )


_METADATA: Final = _metadata_node()
METADATA: Final = _METADATA
