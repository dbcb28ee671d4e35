"""Manifests as they stand in a scenario: raw maps, possibly repeated, possibly wrong in any place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

Manifest = dict[str, Any]
Stored = Mapping[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `given`, `apply` or `patch`: a manifest, or N numbered copies of one."""

    line: int
    body: Manifest
    repeat: int | None = None

    def manifests(self) -> list[Manifest]:
        """Give the manifests this entry stands for, each one a copy of its own."""
        copies: list[Manifest]
        if self.repeat is None:
            copies = [substitute(self.body, None)]
        else:
            copies = [substitute(self.body, str(index)) for index in range(self.repeat)]
        return [manifest for copy in copies for manifest in unlist(copy)]


def expand(entries: Iterable[Entry]) -> list[Manifest]:
    """Give the manifests of all entries, in their order."""
    return [manifest for entry in entries for manifest in entry.manifests()]


def substitute(value: Any, index: str | None) -> Any:
    """Copy a value, `{i}` in its strings and keys replaced by the index if there is one."""
    if isinstance(value, str):
        return value if index is None else value.replace("{i}", index)
    if isinstance(value, dict):
        return {substitute(key, index): substitute(item, index) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, index) for item in value]
    return value


def unlist(manifest: Manifest) -> list[Manifest]:
    """Take a `kind: List`, as `kubectl get -o yaml` prints several objects, apart."""
    if manifest.get("kind") == "List" and isinstance(manifest.get("items"), list):
        return [item for item in manifest["items"] if isinstance(item, dict)]
    return [manifest]


def dig(value: Any, *path: str) -> Any:
    """Follow keys into nested maps; anything missing on the way, or not a map, gives None."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """Give a map as it is and anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """Give a list as it is and anything else as an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Give a text as it is and anything else as an empty one."""
    return value if isinstance(value, str) else ""
