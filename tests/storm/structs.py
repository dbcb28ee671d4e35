"""The records of a release, kept as data, so that whatever is written later can be read by it; `python -m tests.storm.structs` writes down those of today when there is a release."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import msgspec

from pumice import __version__
from pumice.api import kinds

KINDS = (kinds.POD, kinds.POD_GROUP, kinds.QUEUE, kinds.JOB, kinds.LEASE)
KEPT = Path(__file__).with_name("structs-0.1.0.json.gz")
_TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "array": list}


def today():
    """Describe what today's records read, without words."""
    structs = [kind.struct for kind in KINDS if kind.struct is not None]
    _, components = msgspec.json.schema_components(structs, ref_template="{name}")
    return _bare(components)


def _bare(schema):
    """Leave out what says nothing of types."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _bare(value) for key, value in schema.items() if key not in ("title", "description", "default")}


def kept():
    """Give the records of the last release."""
    return json.loads(gzip.decompress(KEPT.read_bytes()))


class Reader:
    """Reads objects as the last release did."""

    def __init__(self, schemas=None):
        self._schemas = kept() if schemas is None else schemas

    def problem(self, kind, manifest):
        """Say what could not be read of an object, or nothing."""
        schema = self._schemas.get(kind.struct.__name__) if kind.struct is not None else None
        return "" if schema is None else self._problem(schema, manifest, kind.name)

    def _problem(self, schema, value, where):
        if "$ref" in schema:
            return self._problem(self._schemas[schema["$ref"]], value, where)
        if "anyOf" in schema:
            found = [self._problem(each, value, where) for each in schema["anyOf"]]
            return "" if "" in found else found[0]
        if "enum" in schema:
            return "" if value in schema["enum"] else f"{where} is {value!r}"
        wanted = schema.get("type")
        if wanted == "null":
            return "" if value is None else f"{where} is {value!r}, not null"
        if wanted in _TYPES and (
            not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted not in ("boolean", "object"))
        ):
            return f"{where} is {value!r}, not {wanted}"
        return self._of_parts(schema, value, where)

    def _of_parts(self, schema, value, where):
        parts = []
        if isinstance(value, dict):
            missing = [name for name in schema.get("required", ()) if name not in value]
            if missing:
                return f"{where}.{missing[0]} is missing"
            fields, more = schema.get("properties", {}), schema.get("additionalProperties")
            parts = [(fields.get(name, more), each, f"{where}.{name}") for name, each in value.items()]
        elif isinstance(value, list):
            parts = [(schema.get("items"), each, f"{where}[{number}]") for number, each in enumerate(value)]
        found = (self._problem(*part) for part in parts if isinstance(part[0], dict))
        return next((each for each in found if each), "")


if __name__ == "__main__":
    KEPT.with_name(f"structs-{__version__}.json.gz").write_bytes(
        gzip.compress(json.dumps(today(), sort_keys=True).encode(), mtime=0)
    )
    sys.stdout.write(f"{__version__}\n")
