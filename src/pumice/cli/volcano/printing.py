"""Objects in the forms that `-o` offers beside tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api.kinds import Kind

Manifest = dict[str, Any]


def document(found: Sequence[Manifest] | Manifest, form: str) -> str:
    """Write an object, or a list of them as kubectl does, in JSON or YAML."""
    plain: Manifest
    if isinstance(found, dict):
        plain = trimmed(found)
    else:
        plain = {"apiVersion": "v1", "kind": "List", "items": [trimmed(each) for each in found]}
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    import yaml  # noqa: PLC0415  only this form needs it

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip("\n")


def named(kind: Kind, item: Manifest) -> str:
    """Write the name of an object as kubectl takes it, as in `job.batch.volcano.sh/train`."""
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.singular}{group}/{item['metadata']['name']}"


def trimmed(item: Manifest) -> Manifest:
    """Leave out who wrote which field: nobody reads that here."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return item
    return {**item, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
