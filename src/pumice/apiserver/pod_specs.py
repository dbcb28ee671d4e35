"""Specs of pods that were read before: the pods of one template are decoded, checked and defaulted once, and share what they have in common.

A spec is known by its bytes and by how strictly its fields were checked. What is kept is the spec as it is stored, and so never changed in place; whoever changes one pod's makes new maps for the levels
that change.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.apiserver.ownership import fieldsets, managed

if TYPE_CHECKING:
    from pumice.apiserver.ownership.fieldsets import FieldSet
    from pumice.apiserver.schemas.nodes import Node

Document = dict[str, Any]
MOST: Final = 512
LONGEST: Final = 64 * 1024


class KnownSpec:
    """A spec that was found good: as it is stored, the class of service of its pods, and whose fields they are."""

    def __init__(self, spec: Document, quality: str, node: Node, filled: frozenset[str]) -> None:
        self.spec = spec
        self.quality = quality
        owned = {name: value for name, value in spec.items() if name not in filled}
        self._fields = fieldsets.of_value(owned, node.child("spec"), whole=True)
        self._owned: dict[tuple[tuple[str, Any], ...], FieldSet] = {}

    def fields(self, metadata: Document, node: Node) -> FieldSet:
        """Give the fields of a pod with such metadata; one set for all that have the same."""
        key = tuple((name, tuple(value) if type(value) is dict else repr(value) if type(value) is list else "") for name, value in metadata.items())  # fmt: skip
        found = self._owned.get(key)
        if found is None:
            if len(self._owned) >= 64:
                self._owned.clear()
            owned = fieldsets.of_metadata(metadata, node)
            whole = {"f:metadata": owned} if owned else {}
            found = self._owned[key] = managed.share({**whole, "f:spec": self._fields})
        return found


class PodSpecs:
    """The specs that were seen lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, bytes], KnownSpec] = OrderedDict()

    def find(self, stated: tuple[str, bytes]) -> KnownSpec | None:
        """Give what is known about a spec that came with such a wish for validation."""
        found = self._known.get(stated)
        if found is not None:
            self._known.move_to_end(stated)
        return found

    def keep(self, stated: tuple[str, bytes], spec: Document, quality: str, node: Node, filled: frozenset[str]) -> None:
        """Remember a spec that was found good, of which nobody owns what the server has filled in."""
        if len(stated[1]) <= LONGEST:
            self._known[stated] = KnownSpec(spec, quality, node, filled)
            if len(self._known) > MOST:
                self._known.popitem(last=False)


class _PlainMetadata(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _PlainPod(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    metadata: _PlainMetadata
    api_version: Literal["v1"] = "v1"
    kind: Literal["Pod"] = "Pod"


def is_plain(body: Document) -> bool:
    """Tell whether a pod but for its spec states a name, labels and annotations and nothing else, each as it should be: most do, and need no closer look."""
    try:
        msgspec.convert(body, _PlainPod)
    except msgspec.ValidationError:
        return False
    return True


def split(data: bytes) -> tuple[Document, bytes]:
    """Decode a pod but for its spec, which is given as it came."""
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    raw = bytes(parts.pop("spec", b""))
    return {name: msgspec.json.decode(each) for name, each in parts.items()}, raw
