"""Equal parts of different objects, kept once: pods of a job, and nodes of a pool, say mostly the same.

Decoded objects are frozen, so that whoever gets one cannot tell which of its parts are others' too. What nobody reads is left out on the way: volumes of kinds that
no filter asks about, and the copy of the whole object that `kubectl apply` leaves in an annotation. Tables are emptied when they are full; then less is shared for a
while, and nothing else changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import structs

from pumice.api import core, decoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api.meta import KubeObject, ObjectMeta

MOST: Final = 1 << 16
"""Entries of a table; more would cost more than they save."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_WRITTEN: Final = msgspec.msgpack.Encoder()
_SHELL: Final = core.Volume()

V = TypeVar("V")


class Sharing:
    """The parts that were seen; used by one thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._texts: dict[str, str] = {}
        self._parts: dict[tuple[str, bytes], Any] = {}
        self._maps: dict[bytes, dict[str, Any]] = {}

    def share(self, found: KubeObject | decoding.Malformed) -> KubeObject | decoding.Malformed:
        """Return an equal object that shares its parts with others; only pods and nodes are many enough."""
        try:
            if isinstance(found, core.Pod):
                return core.Pod(
                    metadata=self._metadata(found.metadata),
                    spec=self._spec(found.spec),
                    status=self._status(found.status),
                )
            if isinstance(found, core.Node):
                return core.Node(
                    metadata=self._metadata(found.metadata), spec=found.spec, status=self._node_status(found.status)
                )
        except OverflowError:  # a number that is too large to be written down: somebody else judges it
            return found
        return found

    # -- parts of objects --------------------------------------------------------------------------------------

    def _metadata(self, found: ObjectMeta) -> ObjectMeta:
        annotations = found.annotations
        if LAST_APPLIED in annotations:
            annotations = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        created = found.creation_timestamp
        return structs.replace(
            found,
            namespace=self._text(found.namespace),
            creation_timestamp=None if created is None else self._text(created),
            labels=self._map(found.labels),
            annotations=self._map(annotations),
            owner_references=self._part("owners", found.owner_references) if found.owner_references else (),
        )

    def _spec(self, found: core.PodSpec) -> core.PodSpec:
        """Share everything but the node."""
        node, volumes = found.node_name, found.volumes
        if volumes:
            volumes = tuple(each for each in volumes if structs.replace(each, name="") != _SHELL)
        template = self._part("spec", structs.replace(found, node_name="", volumes=volumes))
        return structs.replace(template, node_name=self._text(node)) if node else template

    def _status(self, found: core.PodStatus) -> core.PodStatus:
        """Share the whole status, and where its times differ from others' the parts of it."""
        key = ("status", _WRITTEN.encode(found))
        known = self._parts.get(key)
        if known is None:
            started = found.start_time
            known = structs.replace(
                found,
                phase=self._text(found.phase),
                start_time=None if started is None else self._text(started),
                conditions=tuple(self._condition(each) for each in found.conditions),
                container_statuses=self._part("containers", found.container_statuses),
                nominated_node_name=self._text(found.nominated_node_name),
            )
            self._keep(self._parts, key, known)
        shared: core.PodStatus = known
        return shared

    def _condition(self, found: core.Condition) -> core.Condition:
        return self._part("condition", found)

    def _node_status(self, found: core.NodeStatus) -> core.NodeStatus:
        return structs.replace(
            found,
            allocatable=self._map(found.allocatable),
            capacity=self._map(found.capacity),
            conditions=tuple(self._condition(each) for each in found.conditions),
            images=tuple(self._part("image", each) for each in found.images),
        )

    # -- tables ------------------------------------------------------------------------------------------------

    def _text(self, text: str) -> str:
        if not text:
            return ""
        known = self._texts.get(text)
        if known is None:
            known = self._keep(self._texts, text, text)
        return known

    def _part(self, kind: str, found: V) -> V:
        """Return the part that was first written like this one."""
        key = (kind, _WRITTEN.encode(found))
        known: V | None = self._parts.get(key)
        return self._keep(self._parts, key, found) if known is None else known

    def _map(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the map that was first like this one, in the same order; its texts are shared with other maps."""
        if not found:
            return {}
        key = _WRITTEN.encode(found)
        known = self._maps.get(key)
        if known is None:
            text = self._text
            made = {text(name): text(value) if isinstance(value, str) else value for name, value in found.items()}
            known = self._keep(self._maps, key, made)
        return known

    def _keep(self, table: dict[Any, Any], key: object, value: V) -> V:
        if len(table) >= self._most:
            table.clear()
        table[key] = value
        return value
