"""Server-side apply: merge what a manager wants into what is there, unless somebody else wants otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver import statuses
from pumice.apiserver.ownership import fieldsets, managed, places
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.ownership.fieldsets import FieldSet
    from pumice.apiserver.ownership.managed import Entry, Writer
    from pumice.apiserver.schemas.nodes import Node

Document = dict[str, Any]
BEFORE_FIRST_APPLY = "before-first-apply"


def apply(live: Mapping[str, Any], wanted: Document, node: Node, writer: Writer, *, force: bool) -> Document:
    """Give the object that results, with its managedFields; a conflict is a problem that names manager and field."""
    fields = fieldsets.of_object(wanted, node, whole=False)
    others, before = _owners(live, node, writer)
    taken = _conflicts(live, wanted, fields, others)
    if taken and not force:
        raise _refusal(taken)
    merged = _merged_object(live, wanted, node)
    kept = [_without(entry, taken_here) for entry, taken_here in _paired(others, taken)]
    owned_elsewhere: FieldSet = {}
    for entry in kept:
        owned_elsewhere = fieldsets.union(owned_elsewhere, entry["fieldsV1"]) if owned_elsewhere else entry["fieldsV1"]
    if before is not None:
        dropped = fieldsets.exact_difference(fieldsets.exact_difference(before["fieldsV1"], fields), owned_elsewhere)
        merged = fieldsets.without(merged, _without_parents(dropped))
    same = before is not None and before["fieldsV1"] == fields and before["apiVersion"] == writer.api_version
    own = before if same and before is not None else writer.entry("Apply", fields)
    result = [own] + [entry for entry in kept if entry["fieldsV1"]]
    merged["metadata"] = {**merged["metadata"], "managedFields": managed.ordered(result)}
    return merged


def created(wanted: Document, node: Node, writer: Writer) -> None:
    """Write down who applied an object that was not there."""
    fields = fieldsets.of_object(wanted, node, whole=False)
    wanted["metadata"]["managedFields"] = [writer.entry("Apply", fields)]


def _owners(live: Mapping[str, Any], node: Node, writer: Writer) -> tuple[list[Entry], Entry | None]:
    """Tell the entries of others from the manager's own; an object nobody has applied or tracked belongs to whoever was there before."""
    found = managed.entries(live)
    if not found:
        first = managed.Writer(manager=BEFORE_FIRST_APPLY, api_version=writer.api_version, time=writer.time)
        found = [first.entry("Update", fieldsets.of_object(dict(live), node, whole=True))]
    own = next((entry for entry in found if writer.wrote(entry, "Apply")), None)
    return [entry for entry in found if entry is not own], own


def _conflicts(
    live: Mapping[str, Any], wanted: Document, fields: FieldSet, others: list[Entry]
) -> list[tuple[Entry, list[tuple[str, ...]]]]:
    """Find the fields that others own and that are to become something else."""
    found = []
    known = places.Places()
    for entry in others:
        both = fieldsets.intersection(fields, entry["fieldsV1"])
        paths = []
        for path in fieldsets.leaves(both):
            there, value = fieldsets.value_at(live, path, known)
            _, other = fieldsets.value_at(wanted, path, known)
            if there and not structure.same(value, other) and not (_is_member(path, value) and _is_member(path, other)):
                paths.append(path)
        if paths:
            found.append((entry, paths))
    return found


def _is_member(path: tuple[str, ...], value: Any) -> bool:
    """Tell whether a path names an item of a list or a map that others may share, and no value."""
    return path[-1][0] == "k" or isinstance(value, dict)


def _refusal(taken: list[tuple[Entry, list[tuple[str, ...]]]]) -> statuses.Problem:
    causes = []
    for entry, paths in taken:
        through = f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
        operation = f" using {entry['apiVersion']}"
        message = f'conflict with "{entry["manager"]}"{through}{operation}'
        causes += [
            {"reason": "FieldManagerConflict", "message": message, "field": fieldsets.shown(path)} for path in paths
        ]
    count = len(causes)
    lines = [f"{cause['message']}: {cause['field']}" for cause in causes]
    text = lines[0] if count == 1 else "\n" + "\n".join(f"- {line}" for line in lines)
    message = f"Apply failed with {count} conflict{'s' * (count > 1)}: {text}"
    return statuses.Problem(409, message, details={"causes": causes})


def _paired(
    others: list[Entry], taken: list[tuple[Entry, list[tuple[str, ...]]]]
) -> list[tuple[Entry, list[tuple[str, ...]]]]:
    by_entry = {id(entry): paths for entry, paths in taken}
    return [(entry, by_entry.get(id(entry), [])) for entry in others]


def _without(entry: Entry, paths: list[tuple[str, ...]]) -> Entry:
    if not paths:
        return entry
    lost = fieldsets.of_paths(paths)
    return {**entry, "fieldsV1": managed.share(fieldsets.exact_difference(entry["fieldsV1"], lost))}


def _without_parents(fields: FieldSet) -> FieldSet:
    """Leave a map in place where only entries of it are given up; an item of a list goes with its keys."""
    return {
        key: _without_parents({inner: below for inner, below in value.items() if inner != "." or key[0] == "k"})
        for key, value in fields.items()
        if key != "."
    } | ({".": {}} if "." in fields else {})


def _merged_object(live: Mapping[str, Any], wanted: Document, node: Node) -> Document:
    result = dict(live)
    for name, value in wanted.items():
        if name == "metadata":
            meta = node.properties.get("metadata")
            schema = meta if meta is not None and meta.properties else fieldsets.METADATA
            stated = {
                key: each
                for key, each in value.items()
                if key not in ("managedFields", "resourceVersion", "uid", "creationTimestamp")
            }
            result["metadata"] = _merged(live["metadata"], stated, schema)
        else:
            result[name] = _merged(live.get(name), value, node.child(name))
    return result


def _merged(live: Any, wanted: Any, node: Node | None) -> Any:
    if isinstance(live, dict) and isinstance(wanted, dict) and node is not None and not node.map_atomic:
        result = dict(live)
        for name, value in wanted.items():
            result[name] = _merged(live.get(name), value, node.child(name))
        return result
    if isinstance(live, list) and isinstance(wanted, list) and node is not None and node.list_type != "atomic":
        elements = {fieldsets.element_of(item, node): place for place, item in enumerate(live)}
        items = list(live)
        for item in wanted:
            place = elements.get(fieldsets.element_of(item, node))
            if place is None:
                items.append(item)
            elif node.list_type == "map":
                items[place] = _merged(live[place], item, node.items)
        return items
    return wanted
