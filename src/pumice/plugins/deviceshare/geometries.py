"""MIG geometries: into which instances the cards of a model can be cut, and which instance a pod gets.

A card that nobody uses can be cut in any of its ways; as long as somebody does, it stays cut as it is.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import documents

_LARGEST: Final = 1 << 20
_MOST: Final = 64


class GeometryError(ValueError):
    """What a text about geometries says and cannot be, with the field."""


class Profile(msgspec.Struct, frozen=True):
    """Instances of one size: their memory in MiB, how many there are, and the position of the first among all of the group."""

    name: str
    memory: int
    count: int
    first: int = 0


class Group(msgspec.Struct, frozen=True):
    """One way to cut a card."""

    name: str
    profiles: tuple[Profile, ...]


class Geometries(msgspec.Struct, frozen=True):
    """The ways to cut the cards of each model, and by how much what pods ask for is multiplied."""

    models: tuple[tuple[str, tuple[Group, ...]], ...] = ()
    factor: int = 1

    def of(self, kind: str) -> tuple[Group, ...]:
        """Return the ways to cut cards of a type, which holds the name of the model."""
        return next((groups for model, groups in self.models if model and model in kind), ())


NONE: Final = Geometries()


def parse(text: str) -> Geometries:
    """Read what the vGPU device plugin keeps in its ConfigMap, or raise a `GeometryError`."""
    if len(text) > _LARGEST:
        raise GeometryError(f"{len(text)} characters; at most {_LARGEST} are read")
    try:
        data = documents.load_one(text.encode(), "device-config.yaml")
    except documents.DocumentError as error:
        raise GeometryError(str(error)) from None
    told = data.get("nvidia", data) if isinstance(data, dict) else None
    if not isinstance(told, dict):
        raise GeometryError("nvidia: expected a map")
    models: list[tuple[str, tuple[Group, ...]]] = []
    for index, entry in enumerate(_list(told.get("knownMigGeometries"), "nvidia.knownMigGeometries")):
        where = f"nvidia.knownMigGeometries[{index}]"
        groups = _groups(_map(entry, where).get("allowedGeometries"), f"{where}.allowedGeometries")
        names = _list(entry.get("models"), f"{where}.models")
        models += [(str(name), groups) for name in names]
    factor = told.get("gpuMemoryFactor", 1)
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 0:
        raise GeometryError(f"nvidia.gpuMemoryFactor: expected a whole number, found {documents.described(factor)}")
    return Geometries(tuple(models), max(1, factor))


def _groups(written: Any, where: str) -> tuple[Group, ...]:
    found: list[Group] = []
    for index, entry in enumerate(_list(written, where)):
        at = f"{where}[{index}]"
        name = _map(entry, at).get("group")
        if not isinstance(name, str) or not name or any(sign in name for sign in "[],:;"):
            raise GeometryError(f"{at}.group: expected a name, found {documents.described(name)}")
        found.append(Group(name, _profiles(entry.get("geometries"), f"{at}.geometries")))
    return tuple(found)


def _profiles(written: Any, where: str) -> tuple[Profile, ...]:
    found: list[Profile] = []
    position = 0
    for index, entry in enumerate(_list(written, where)):
        at = f"{where}[{index}]"
        memory, count = (_whole(_map(entry, at).get(key), f"{at}.{key}") for key in ("memory", "count"))
        if position + count > _MOST:
            raise GeometryError(f"{at}: more than {_MOST} instances of one card")
        found.append(Profile(str(entry.get("name", "")), memory, count, position))
        position += count
    return tuple(found)


def _whole(written: Any, where: str) -> int:
    if isinstance(written, bool) or not isinstance(written, int) or written < 1:
        raise GeometryError(f"{where}: expected a whole number from 1 on, found {documents.described(written)}")
    return written


def _list(written: Any, where: str) -> list[Any]:
    if written is None:
        return []
    if not isinstance(written, list):
        raise GeometryError(f"{where}: expected a list, found {documents.described(written)}")
    return written


def _map(written: Any, where: str) -> dict[str, Any]:
    if not isinstance(written, dict):
        raise GeometryError(f"{where}: expected a map, found {documents.described(written)}")
    return written


def choose(groups: tuple[Group, ...], used: tuple[str, ...], need: int) -> tuple[str, int] | None:
    """Return the instance of a card for so much memory, named by group and position, and its memory; None if there is none.

    Sizes that are in use come first, smaller before larger, then the others of the group: a card whose instances of one size are all taken still has those of another.
    """
    ways = [group for group in groups if not used or used[0].rpartition("-")[0] == group.name]
    for group in ways:
        for profile in sorted(group.profiles, key=lambda each: (not _is_used(group, each, used), each.memory)):
            if profile.memory >= need:
                for position in range(profile.first, profile.first + profile.count):
                    if (name := f"{group.name}-{position}") not in used:
                        return name, profile.memory
    return None


def _is_used(group: Group, profile: Profile, used: tuple[str, ...]) -> bool:
    return any(f"{group.name}-{position}" in used for position in range(profile.first, profile.first + profile.count))
