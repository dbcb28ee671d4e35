"""How `given`, `apply` and `patch` are read: manifests with any content, but with an identity that can be used.

Names must be text, because a bare `n` is a boolean and a bare `1` a number for kubectl too. Any other wrong value is stored as it is: what the
scheduler makes of it is what is tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import documents, kinds
from pumice.scenario import manifests
from pumice.scenario.manifests import Entry

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor

_NAMES = ("apiVersion", "kind", "name", "namespace", "uid", "nodeName", "schedulerName", "queue", "priorityClassName")
_TEXT_MAPS = ("labels", "annotations", "nodeSelector", "matchLabels")


def read(cursor: Cursor, *, partial: bool = False) -> tuple[Entry, ...]:
    """Read a list of manifests, some of them repeated; partial ones need no apiVersion."""
    items = cursor.items("a list of manifests")
    return tuple(entry for item in items if (entry := _read_entry(item, partial=partial)) is not None)


def read_one(cursor: Cursor) -> tuple[Entry, ...]:
    """Read one manifest of a list, possibly repeated; none if it is wrong."""
    entry = _read_entry(cursor, partial=False)
    return () if entry is None else (entry,)


def _read_entry(cursor: Cursor, *, partial: bool) -> Entry | None:
    value = cursor.value
    if not isinstance(value, dict):
        cursor.expected("a manifest (a map)")
        return None
    if "kind" not in value and ("repeat" in value or "object" in value):
        return _read_repeated(cursor, partial=partial)
    _check(cursor, partial=partial)
    return Entry(line=cursor.line, body=value)


def _read_repeated(cursor: Cursor, *, partial: bool) -> Entry | None:
    fields = cursor.fields(("repeat", "object"), "a repeated manifest")
    for key in ("repeat", "object"):
        if key not in cursor.value:
            cursor.refuse(f"a repeated manifest needs the key {key!r}: {{repeat: 3, object: …}}")
    if len(fields) < 2:
        return None
    count = fields["repeat"].integer()
    body = fields["object"]
    if not isinstance(body.value, dict):
        body.expected("a manifest (a map)")
        return None
    _check(body, partial=partial)
    return Entry(line=cursor.line, body=body.value, repeat=count)


def _check(cursor: Cursor, *, partial: bool) -> None:
    """Check what gives a manifest its identity, and that names are text."""
    if cursor.value.get("kind") == "List" and isinstance(cursor.value.get("items"), list):
        for item in cursor.at("items").items():
            if isinstance(item.value, dict):
                _check(item, partial=partial)
            else:
                item.expected("a manifest (a map)")
        return
    _check_names(cursor)
    for path in (("kind",), ("metadata", "name")) if partial else (("apiVersion",), ("kind",), ("metadata", "name")):
        value = manifests.dig(cursor.value, *path)
        if value is None or value == "" or isinstance(value, dict | list):
            cursor.refuse(f"the manifest has no {'.'.join(path)}")
    _check_kind(cursor)


def _check_names(cursor: Cursor) -> None:
    if isinstance(cursor.value, list):
        for item in cursor.items():
            _check_names(item)
    elif isinstance(cursor.value, dict):
        for key, entry in cursor.entries():
            if key in _NAMES and isinstance(entry.value, bool | int | float):
                entry.expected("text")
            elif key in _TEXT_MAPS and isinstance(entry.value, dict):
                for _, label in entry.entries():
                    if isinstance(label.value, bool | int | float):
                        label.expected("text")
            else:
                _check_names(entry)


def _check_kind(cursor: Cursor) -> None:
    version, name = cursor.value.get("apiVersion"), cursor.value.get("kind")
    if (
        not (isinstance(version, str) and isinstance(name, str) and version and name)
        or kinds.find(version, name) is not None
    ):
        return
    versions = [kind.api_version for kind in kinds.KINDS if kind.name == name]
    if versions:
        cursor.at("apiVersion").refuse(f"{name} is not served as {version!r} but as {' or '.join(versions)}")
        return
    near = documents.nearest(name, [kind.name for kind in kinds.KINDS])
    hint = f"; did you mean {near!r}?" if near else "; the scheduler reads no such objects, leave it out"
    cursor.at("kind").refuse(f"unknown kind {name!r}{hint}")
