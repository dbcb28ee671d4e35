"""Put objects into a Table: one row for each, with as much of the object as the client asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver.tables import ages, built_in, cells, json_paths
from pumice.apiserver.tables.columns import AGE, NAME, Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.apiserver.resources import Resource

Document = dict[str, Any]
_CUSTOM_TYPES: Final = {"date", "string", "integer", "number", "boolean"}


_SCALE: Final = (
    NAME,
    Column("Desired", cells.count("spec", "replicas"), "integer"),
    Column("Available", cells.count("status", "replicas"), "integer"),
    AGE,
)


def table(
    resource: Resource, items: Sequence[Mapping[str, Any]], now: int, include: str, metadata: Document
) -> Document:
    """Give a table of objects."""
    return _table(columns_of(resource), items, now, include, metadata)


def scale_table(scale: Mapping[str, Any], now: int, include: str, metadata: Document) -> Document:
    """Give a table of one scale."""
    return _table(_SCALE, [scale], now, include, metadata)


def _table(
    columns: Sequence[Column], items: Sequence[Mapping[str, Any]], now: int, include: str, metadata: Document
) -> Document:
    rows = [{"cells": [_cell(column, item, now) for column in columns], **_object(item, include)} for item in items]
    definitions = [
        {
            "name": each.name,
            "type": each.type,
            "format": each.format,
            "description": each.text,
            "priority": each.priority,
        }
        for each in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def columns_of(resource: Resource) -> Sequence[Column]:
    """Give the columns of a kind."""
    if not resource.custom:
        found: Sequence[Column] = built_in.COLUMNS.get((resource.group, resource.kind_name), built_in.PLAIN)
        return found
    if not resource.columns:
        return (NAME, AGE)
    return (NAME, *(_custom(each) for each in resource.columns))


def partial(manifest: Mapping[str, Any], kind: str = "PartialObjectMetadata") -> Document:
    """Give the metadata of an object alone."""
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": manifest["metadata"]}


def _object(item: Mapping[str, Any], include: str) -> Document:
    if include == "None":
        return {}
    return {"object": item if include == "Object" else partial(item)}


def _cell(column: Column, item: Mapping[str, Any], now: int) -> Any:
    try:
        return column.cell(item, now)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        return "<unknown>"  # an object that is not as its kind's columns expect has a line all the same


def _custom(stated: Document) -> Column:
    path, kind = stated.get("jsonPath", ""), stated.get("type", "string")
    kind = kind if kind in _CUSTOM_TYPES else "string"

    def cell(item: Mapping[str, Any], now: int) -> Any:
        found = json_paths.find(item, path)
        if not found or found[0] is None:
            return None
        if kind == "date":
            return ages.since(found[0], now)
        if kind == "string":
            return ",".join(map(_text, found)) if len(found) > 1 else _text(found[0])
        return found[0]

    return Column(
        stated["name"], cell, kind, stated.get("format", ""), stated.get("priority", 0), stated.get("description") or ""
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
