"""Existing volumes as columns, by storage class, smallest first; finding the one that a claim gets on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.model import selectors
from pumice.model.volumes import VOLUME
from pumice.plugins.predicates import claims, selected_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.api import affinity, volumes
    from pumice.model.attributes import Attributes
    from pumice.model.volume_usage import Volumes

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NONE = -1
FILESYSTEM = "Filesystem"

_ENCODER = msgspec.json.Encoder(order="deterministic")


class Entry(msgspec.Struct, frozen=True):
    """One volume, with what is compared of it worked out."""

    volume: volumes.PersistentVolume
    storage_class: str
    size: int
    domain: bytes

    @property
    def name(self) -> str:
        """The volume's name."""
        return self.volume.metadata.name


class ClassVolumes:
    """The volumes of one storage class, smallest first, equals by name."""

    def __init__(self, storage_class: str, entries: Iterable[Entry] = ()) -> None:
        self._storage_class = storage_class
        self.entries = sorted(entries, key=lambda entry: (entry.size, entry.name))
        self.position = {entry.name: place for place, entry in enumerate(self.entries)}
        found = [entry.volume for entry in self.entries]
        self._sizes: Ints = np.array([entry.size for entry in self.entries], dtype=np.int64)
        self._free: Mask = np.array([_is_free(volume) for volume in found], dtype=np.bool_)
        kinds: dict[tuple[str, str, tuple[str, ...]], int] = {}
        # Volumes differ in few ways; each way is asked once per claim.
        self._kinds: Ints = np.array([kinds.setdefault(_kind(v), len(kinds)) for v in found], dtype=np.int64)
        self._distinct = list(kinds)
        domains: dict[bytes, int] = {}
        self._domains: Ints = np.array(
            [domains.setdefault(e.domain, len(domains)) for e in self.entries], dtype=np.int64
        )
        first = {entry.domain: entry.volume for entry in reversed(self.entries)}
        self._selectors = [_required(first[domain]) for domain in domains]
        self._claimed: dict[str, list[int]] = {}
        for place, volume in enumerate(found):
            if (reference := volume.spec.claim_ref) is not None:
                self._claimed.setdefault(f"{reference.namespace}/{reference.name}", []).append(place)

    def match(
        self,
        claim: volumes.PersistentVolumeClaim,
        size: int,
        earlier: Sequence[Ints],
        decided: Volumes,
        columns: Attributes,
    ) -> Ints:
        """Return for each node the place of the volume that the claim gets there, `NONE` where there is none.

        `earlier` are the places that other claims of the pod got, node by node; what was decided for other pods is taken.
        """
        best: Ints = np.full(columns.count, NONE, dtype=np.int64)
        if not self.entries:
            return best
        named = self._selected(columns)
        own = self._own(claim, size, decided)
        if own is not None:
            # A volume that is claimed for this claim is the only one that it takes.
            best[named.expand(self._domains[[own]])[1]] = own
            return best
        best[:] = len(self.entries)
        left = np.flatnonzero(self._eligible(claim, size, decided))
        # On each node at most one volume per earlier claim is gone, so of each domain no more than that many are looked at in vain.
        for _ in range(len(earlier) + 1):
            domains, firsts = np.unique(self._domains[left], return_index=True)
            places = left[firsts]
            pairs, rows = named.expand(domains)
            usable = np.ones(len(rows), dtype=np.bool_)
            for chosen in earlier:
                usable &= chosen[rows] != places[pairs]
            np.minimum.at(best, rows[usable], places[pairs[usable]])
            left = np.delete(left, firsts)
        best[best == len(self.entries)] = NONE
        return best

    def _selected(self, columns: Attributes) -> selected_rows.SelectedRows:
        """Return which nodes each domain's volumes can be reached from; worked out anew when nodes or volumes changed."""
        key = ("class volumes", self._storage_class)
        kept: tuple[ClassVolumes, selected_rows.SelectedRows] | None = columns.derived.get(key)
        if kept is None or kept[0] is not self:
            kept = columns.derived[key] = (self, selected_rows.SelectedRows(self._selectors, columns))
        return kept[1]

    def _own(self, claim: volumes.PersistentVolumeClaim, size: int, decided: Volumes) -> int | None:
        """Return the smallest volume that is claimed for this very claim, by the cluster or by a decision that is on its way."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        places = [place for place in self._claimed.get(key, ()) if claims.is_for(self.entries[place].volume, claim)]
        chosen = self.position.get(decided.chosen.get(key, ("", ""))[0])
        if chosen is not None:
            places = sorted({*places, chosen})
        for place in places:
            volume = self.entries[place].volume
            if self.entries[place].size >= size and _mode(volume) == _mode(claim):
                return place
        return None

    def _eligible(self, claim: volumes.PersistentVolumeClaim, size: int, decided: Volumes) -> Mask:
        """Mark the volumes that the claim could take wherever they can be reached."""
        mode, wanted = _mode(claim), frozenset(claim.spec.access_modes)
        suits = [(kind[0], kind[1]) == mode and wanted.issubset(kind[2]) for kind in self._distinct]
        mask: Mask = self._free & (self._sizes >= size) & np.array(suits, dtype=np.bool_)[self._kinds]
        for volume in decided.taken:
            place = self.position.get(volume)
            if place is not None:
                mask[place] = False
        if claim.spec.selector is not None:
            for place in np.flatnonzero(mask).tolist():
                mask[place] = selectors.matches(claim.spec.selector, self.entries[place].volume.metadata.labels)
        return mask


class Catalogue:
    """All volumes by class; brought up to date when a volume has changed."""

    def __init__(self, objects: claims.StorageObjects, decided: Volumes) -> None:
        self._objects = objects
        self._decided = decided
        self._version = -1
        self._entries: dict[str, Entry] = {}
        self._by_class: dict[str, ClassVolumes] = {}

    def of_class(self, storage_class: str) -> ClassVolumes:
        """Return the volumes of a class."""
        if self._version != self._decided.versions[VOLUME]:
            self._version = self._decided.versions[VOLUME]
            self._sort()
        return self._by_class.get(storage_class) or ClassVolumes(storage_class)

    def _sort(self) -> None:
        known, self._entries = self._entries, {}
        by_class: dict[str, list[Entry]] = {}
        for volume in self._objects.all_volumes():
            entry = known.get(volume.metadata.name)
            if entry is None or entry.volume is not volume:
                entry = _entry(volume)
            if entry is not None:
                self._entries[entry.name] = entry
                by_class.setdefault(entry.storage_class, []).append(entry)
        self._by_class = {name: ClassVolumes(name, entries) for name, entries in by_class.items()}


def _entry(volume: volumes.PersistentVolume) -> Entry | None:
    """Work out what is compared of a volume; one that is being deleted, or whose size cannot be read, is no candidate."""
    size = claims.size(volume.spec.capacity)
    if size is None or volume.metadata.deletion_timestamp:
        return None
    return Entry(volume, claims.class_of_volume(volume), size, _ENCODER.encode(_required(volume)))


def _required(volume: volumes.PersistentVolume) -> affinity.NodeSelector | None:
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def _is_free(volume: volumes.PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase == claims.AVAILABLE


def _mode(item: volumes.PersistentVolume | volumes.PersistentVolumeClaim) -> tuple[str, str]:
    """Return what must be the same on both sides: volume mode and attributes class."""
    return (item.spec.volume_mode or FILESYSTEM, item.spec.volume_attributes_class_name or "")


def _kind(volume: volumes.PersistentVolume) -> tuple[str, str, tuple[str, ...]]:
    return (*_mode(volume), tuple(sorted(volume.spec.access_modes)))
