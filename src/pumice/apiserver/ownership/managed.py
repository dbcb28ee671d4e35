"""Keep managedFields: whoever changes a field owns it from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver.ownership import fieldsets
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.ownership.fieldsets import FieldSet
    from pumice.apiserver.schemas.nodes import Node

Document = dict[str, Any]
Entry = dict[str, Any]
_MOST_SHARED = 4096
_shared: dict[bytes, FieldSet] = {}
_FILLED: Final[dict[str, frozenset[str]]] = {
    "Pod": frozenset({"serviceAccount", "serviceAccountName", "tolerations"}),
    "Service": frozenset({"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}),
}


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes, through which version and subresource, and when."""

    manager: str
    api_version: str
    subresource: str = ""
    time: str

    def entry(self, operation: str, fields: FieldSet, *, shared: bool = False) -> Entry:
        """Give the entry of managedFields for what it owns."""
        entry = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields if shared else share(fields),
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry

    def wrote(self, entry: Mapping[str, Any], operation: str) -> bool:
        """Tell whether an entry is its own."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == operation
            and entry.get("subresource", "") == self.subresource
            and (operation == "Apply" or entry.get("apiVersion") == self.api_version)
        )


def share(fields: FieldSet) -> FieldSet:
    """Give one set for all that are equal: a thousand pods of a job have the same fields."""
    key = msgspec.json.encode(fields)
    found = _shared.get(key)
    if found is None:
        if len(_shared) >= _MOST_SHARED:
            _shared.clear()
        found = _shared[key] = fields
    return found


def entries(manifest: Mapping[str, Any]) -> list[Entry]:
    """Give the readable entries of an object's managedFields."""
    found = manifest["metadata"].get("managedFields")
    return (
        [each for each in found if isinstance(each, dict) and isinstance(each.get("fieldsV1"), dict)]
        if isinstance(found, list)
        else []
    )


def filled_by_server(stated: Mapping[str, Any], kind: str) -> frozenset[str]:
    """Name the fields of a new object's spec that the server is going to fill in by itself, which nobody owns."""
    names = _FILLED.get(kind)
    if not names:
        return frozenset()
    spec = stated.get("spec")
    return names.difference(spec) if isinstance(spec, dict) else names


def after_create(new: Document, node: Node, writer: Writer, filled: frozenset[str] = frozenset()) -> None:
    """Write down who made an object: what was stated, with its defaults, and without what the server has filled in."""
    owned = {name: value for name, value in new.items() if name != "status"}
    if filled:
        owned["spec"] = {name: value for name, value in new["spec"].items() if name not in filled}
    new["metadata"]["managedFields"] = [writer.entry("Update", fieldsets.of_object(owned, node, whole=True))]


def after_update(old: Mapping[str, Any], new: Document, node: Node, writer: Writer) -> None:
    """Write down who changed what; what nobody has changed stays with its owners, and what is gone has none."""
    before = _stated(new["metadata"].get("managedFields"), old)
    changed, gone = compare(old, new, node)
    if not changed and not gone:
        _put(new, before)
        return
    result: list[Entry] = []
    own: FieldSet = {}
    for entry in before:
        fields = fieldsets.difference(entry["fieldsV1"], gone) if gone else entry["fieldsV1"]
        if writer.wrote(entry, "Update"):
            own = fields
        else:
            fields = fieldsets.difference(fields, changed) if changed else fields
            if fields:
                result.append(entry if fields is entry["fieldsV1"] else {**entry, "fieldsV1": share(fields)})
    own = fieldsets.union(own, changed) if own and changed else own or changed
    if own:
        result.append(writer.entry("Update", own))
    _put(new, result)


def _stated(asked: Any, old: Mapping[str, Any]) -> list[Entry]:
    """Give who owned what before a write: as the writer has it, if all of that can be read, which is how kubectl hands over fields to itself."""
    if asked == [{}]:
        return []
    if not isinstance(asked, list) or not asked or not all(_is_entry(each) for each in asked):
        return entries(old)
    return asked


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and entry.get("fieldsType", "FieldsV1") == "FieldsV1"
        and isinstance(entry.get("fieldsV1"), dict)
    )


def ordered(found: list[Entry]) -> list[Entry]:
    """Put entries in the order in which a real server gives them: what was applied first, then by time and name."""
    return sorted(
        found,
        key=lambda each: (
            str(each.get("operation")),
            str(each.get("time", "")),
            str(each.get("manager", "")),
            str(each.get("apiVersion", "")),
            str(each.get("subresource", "")),
        ),
    )


def _put(new: Document, result: list[Entry]) -> None:
    if result:
        new["metadata"]["managedFields"] = ordered(result) if len(result) > 1 else result
    else:
        new["metadata"].pop("managedFields", None)


def compare(old: Mapping[str, Any], new: Mapping[str, Any], node: Node) -> tuple[FieldSet, FieldSet]:
    """Give the fields that were added or changed, and those that are gone."""
    left = {name: value for name, value in old.items() if name not in ("apiVersion", "kind", "metadata")}
    right = {name: value for name, value in new.items() if name not in ("apiVersion", "kind", "metadata")}
    changed, gone = _compare(left, right, node)
    meta = node.properties.get("metadata")
    metas = [{n: v for n, v in each["metadata"].items() if n not in fieldsets.UNOWNED} for each in (old, new)]
    more, less = _compare(metas[0], metas[1], meta if meta is not None and meta.properties else fieldsets.METADATA)
    changed = {**changed, "f:metadata": more} if more else changed
    return changed, {**gone, "f:metadata": less} if less else gone


def _compare(old: Any, new: Any, node: Node | None) -> tuple[FieldSet, FieldSet]:
    """Compare two values that differ or may differ; the sets are those below them."""
    if type(old) is dict and type(new) is dict and node is not None and not node.map_atomic:
        pairs = [
            (f"f:{name}", name in old, old.get(name), name in new, new.get(name), node.child(name))
            for name in {**old, **new}
        ]
    elif type(old) is list and type(new) is list and node is not None and node.list_type != "atomic":
        left = {fieldsets.element_of(item, node): item for item in old}
        right = {fieldsets.element_of(item, node): item for item in new}
        pairs = [
            (key, key in left, left.get(key), key in right, right.get(key), node.items) for key in {**left, **right}
        ]
    else:
        return {}, {}
    changed: FieldSet = {}
    gone: FieldSet = {}
    for key, was, before, there, after, child in pairs:
        if was and there:
            if structure.same(before, after):
                continue
            more, less = _compare(before, after, child)
            if more or less:
                changed |= {key: more} if more else {}
                gone |= {key: less} if less else {}
            else:
                changed[key] = {}
        elif there:
            below = fieldsets.of_value(after, child, whole=True)
            changed[key] = {fieldsets.SELF: {}, **below} if key[0] == "k" else below
        else:
            gone[key] = {}
    return changed, gone
