"""Priority classes, as admission looks them up when a pod is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Manifest = dict[str, Any]


class PriorityClasses:
    """The classes that exist; of several global defaults the one of the lowest value counts."""

    def __init__(self, classes: Iterable[Mapping[str, Any]] = ()) -> None:
        self._classes: dict[str, Mapping[str, Any]] = {}
        self._default: tuple[int, str] | None = None
        for manifest in classes:
            self._add(manifest)

    def admit(self, spec: Mapping[str, Any]) -> Manifest:
        """Give the fields of a pod's spec that its class, or the global default, sets."""
        name = spec.get("priorityClassName")
        if not name:
            if self._default is None or spec.get("priority") is not None:
                return {}
            name = self._default[1]
        found = self._classes.get(name) if isinstance(name, str) else None
        if found is None:
            return {}
        fields: Manifest = {"priorityClassName": name, "priority": found.get("value", 0)}
        if spec.get("preemptionPolicy") is None and found.get("preemptionPolicy") is not None:
            fields["preemptionPolicy"] = found["preemptionPolicy"]
        return fields

    def _add(self, manifest: Mapping[str, Any]) -> None:
        name, value = structure.mapping(manifest, "metadata").get("name"), manifest.get("value", 0)
        if not isinstance(name, str):
            return
        self._classes[name] = manifest
        if manifest.get("globalDefault") is True and isinstance(value, int):
            self._default = min(self._default or (value, name), (value, name))
