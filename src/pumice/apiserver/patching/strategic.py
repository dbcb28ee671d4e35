"""Strategic merge patches: lists are merged by the keys that the schema of a built-in kind names, and directives say what goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.sim import structure

if TYPE_CHECKING:
    from pumice.apiserver.schemas.nodes import Node

Document = dict[str, Any]
_DIRECTIVE: Final = "$patch"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAIN: Final = "$retainKeys"
_MOST_COMPARED: Final = 4_000_000


class PatchError(ValueError):
    """A patch that cannot be applied, and why."""


def apply(target: Document, patch: Document, node: Node) -> Document:
    """Give an object with a patch merged into it; the target stays as it is."""
    return _object(target, patch, node)


def _object(target: Any, patch: Document, node: Node) -> Document:
    directive = patch.get(_DIRECTIVE)
    fields = {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "replace":
        return structure.copied(fields)  # type: ignore[no-any-return]
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"$patch: {directive!r} is no directive; use merge, replace or delete")
    result: Document = dict(target) if isinstance(target, dict) else {}
    kept = fields.pop(_RETAIN, None)
    if isinstance(kept, list):
        result = {name: value for name, value in result.items() if name in kept}
    orders = {name.removeprefix(_ORDER): value for name, value in fields.items() if name.startswith(_ORDER)}
    for name, value in fields.items():
        if name.startswith(_DELETE):
            _delete_primitives(result, name.removeprefix(_DELETE), value)
        elif not name.startswith(_ORDER):
            _field(result, name, value, node.child(name), orders.get(name))
    for name, order in orders.items():
        if name not in fields and isinstance(result.get(name), list):
            result[name] = _ordered(result[name], order, node.child(name))
    return result


def _field(result: Document, name: str, value: Any, node: Node | None, order: Any) -> None:
    old = result.get(name)
    if value is None:
        result.pop(name, None)
    elif isinstance(value, dict):
        result[name] = _object(old, value, node) if node is not None else structure.merged(old, value)
    elif isinstance(value, list) and node is not None and node.merge_key:
        merged = _list(old if isinstance(old, list) else [], value, node)
        result[name] = _ordered(merged, order, node) if order is not None else merged
    else:
        result[name] = structure.copied(value)


def _list(old: list[Any], patch: list[Any], node: Node) -> list[Any]:
    if len(patch) * (len(old) + len(patch)) > _MOST_COMPARED:
        raise PatchError(f"{len(patch)} items cannot be merged with {len(old)}: those are more than anybody compares")
    if node.merge_key == "*":
        return old + [item for item in patch if item not in old]
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        rest = [item for item in patch if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "replace")]
        return structure.copied(rest)  # type: ignore[no-any-return]
    result = list(old)
    for item in patch:
        _item(result, item, node)
    return result


def _item(result: list[Any], item: Any, node: Node) -> None:
    key = node.merge_key
    if not isinstance(item, dict) or key not in item:
        raise PatchError(f"map: {item} does not contain declared merge key: {key}")
    places = [at for at, old in enumerate(result) if isinstance(old, dict) and old.get(key) == item[key]]
    if item.get(_DIRECTIVE) == "delete":
        for at in reversed(places):
            del result[at]
    elif places:
        result[places[0]] = _object(result[places[0]], item, node.items or node)
    else:
        result.append(_object({}, item, node.items or node))


def _delete_primitives(result: Document, name: str, values: Any) -> None:
    if isinstance(result.get(name), list) and isinstance(values, list):
        if len(result[name]) * len(values) > _MOST_COMPARED:
            raise PatchError(f"{len(values)} items cannot be taken out of {len(result[name])}")
        result[name] = [item for item in result[name] if item not in values]


def _ordered(items: list[Any], order: Any, node: Node | None) -> list[Any]:
    """Put the items that an order names into that order; the others keep their places after the one they followed."""
    if not isinstance(order, list) or node is None or not node.merge_key:
        return items
    if len(order) * len(items) > _MOST_COMPARED:
        raise PatchError(f"{len(items)} items cannot be put into an order of {len(order)}")

    def name(item: Any) -> Any:
        return item if node.merge_key == "*" or not isinstance(item, dict) else item.get(node.merge_key)

    wanted = [name(each) for each in order]
    listed = sorted((item for item in items if name(item) in wanted), key=lambda item: wanted.index(name(item)))
    return [listed.pop(0) if name(item) in wanted else item for item in items]
