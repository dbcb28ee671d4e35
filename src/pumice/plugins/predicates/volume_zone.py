"""Volumes that are labelled with a zone or region: a pod goes only where its volumes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.framework.reasons import Code, ReasonVector

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pumice.framework.subject import Subject
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import Nodes
    from pumice.plugins.predicates.claims import StorageObjects

NO_ZONE = "node(s) had no available volume zone"

# Labels of places; an older one that a node lacks may be met by the present one.
PLACES = {
    names.OLDER_ZONE: names.ZONE,
    names.OLDER_REGION: names.REGION,
    names.ZONE: names.ZONE,
    names.REGION: names.REGION,
}
SEPARATOR = "__"


class VolumeZone:
    """The filter; it looks at plain claims only, those made for the pod follow it anyway."""

    def __init__(self, objects: StorageObjects, reason: Callable[[Code, str], int]) -> None:
        self._objects = objects
        self._no_zone = reason(Code.UNRESOLVABLE, NO_ZONE)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes outside the zones and regions of the pod's volumes; nodes that name no place at all pass."""
        wanted = self._wanted(subject)
        if not wanted:
            return None
        columns = nodes.table.attributes
        near = np.ones(columns.count, dtype=np.bool_)
        for key, values in wanted:
            near &= _has(key, values, columns)
        placed = np.zeros(columns.count, dtype=np.bool_)
        for key in PLACES:
            placed |= columns.codes(key)[0] >= 0
        refused = placed & ~near
        return np.where(refused[nodes.index], self._no_zone, 0).astype(np.int16)

    def _wanted(self, subject: Subject) -> list[tuple[str, tuple[str, ...]]]:
        """List the places of the volumes that the pod's claims name."""
        wanted: list[tuple[str, tuple[str, ...]]] = []
        for use in subject.constraints.claims:
            claim = self._objects.claim(use.key) if not use.owner else None
            volume = self._objects.volume(claim.spec.volume_name) if claim is not None else None
            if volume is not None:
                labels = volume.metadata.labels
                wanted += [(key, tuple(labels[key].split(SEPARATOR))) for key in PLACES if key in labels]
        return wanted


def _has(key: str, values: tuple[str, ...], columns: Attributes) -> npt.NDArray[np.bool_]:
    """Mark the nodes whose label, or the present form of an older one that is missing, has one of the values."""

    def one_of(value: str | None) -> bool:
        return value in values

    mask = columns.mask(key, one_of)
    if PLACES[key] != key:
        mask |= (columns.codes(key)[0] < 0) & columns.mask(PLACES[key], one_of)
    return mask
