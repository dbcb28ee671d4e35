"""What rules may ask about the cluster around an object, and a table that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.api import kinds, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Document = dict[str, Any]
FOLLOWED: Final = (kinds.QUEUE, kinds.NAMESPACE, kinds.PRIORITY_CLASS)


class Surroundings(Protocol):
    """The cluster, as far as rules look at it; where it is not `complete`, what is not found may exist all the same."""

    complete: bool

    def queue(self, name: str) -> Mapping[str, Any] | None:
        """Find a queue."""

    def queues(self) -> Iterable[Mapping[str, Any]]:
        """Give all queues."""

    def children(self, name: str) -> list[str]:
        """Name the queues whose parent is this one."""

    def namespace(self, name: str) -> Mapping[str, Any] | None:
        """Find a namespace."""

    def priority_class(self, name: str) -> Mapping[str, Any] | None:
        """Find a priority class."""


class KnownObjects:
    """Objects by kind and name, fed by whoever watches a cluster or reads files."""

    def __init__(self, *, complete: bool = True) -> None:
        self.complete = complete
        self._objects: dict[kinds.Kind, dict[str, Mapping[str, Any]]] = {kind: {} for kind in FOLLOWED}
        self._children: dict[str, dict[str, None]] = {}

    def put(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> None:
        """Take an object as it is now."""
        table = self._objects.get(kind)
        name = _name(manifest)
        if table is None or not name:
            return
        self.drop(kind, name)
        table[name] = manifest
        if kind is kinds.QUEUE and name != names.ROOT_QUEUE:
            self._children.setdefault(parent_of(manifest), {})[name] = None

    def drop(self, kind: kinds.Kind, name: str) -> None:
        """Forget an object that is gone."""
        old = self._objects.get(kind, {}).pop(name, None)
        if old is not None and kind is kinds.QUEUE:
            self._children.get(parent_of(old), {}).pop(name, None)

    def queue(self, name: str) -> Mapping[str, Any] | None:
        """Find a queue."""
        return self._objects[kinds.QUEUE].get(name)

    def queues(self) -> Iterable[Mapping[str, Any]]:
        """Give all queues."""
        return list(self._objects[kinds.QUEUE].values())  # a copy: somebody may ask beside the thread that feeds

    def children(self, name: str) -> list[str]:
        """Name the queues whose parent is this one."""
        return sorted(list(self._children.get(name, ())))  # noqa: C414  copied at once, as above

    def namespace(self, name: str) -> Mapping[str, Any] | None:
        """Find a namespace."""
        return self._objects[kinds.NAMESPACE].get(name)

    def priority_class(self, name: str) -> Mapping[str, Any] | None:
        """Find a priority class."""
        return self._objects[kinds.PRIORITY_CLASS].get(name)


def below(value: Any, *steps: str) -> Any:
    """Look up a value in nested objects; None where there is none."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def parent_of(queue: Mapping[str, Any]) -> str:
    """Name the parent of a queue; one that states none hangs under the root."""
    stated = below(dict(queue), "spec", "parent")
    return stated if isinstance(stated, str) and stated else names.ROOT_QUEUE


def state_of(queue: Mapping[str, Any]) -> str:
    """Give the state of a queue; one that states none is open."""
    stated = below(dict(queue), "status", "state")
    return stated if isinstance(stated, str) and stated else names.QUEUE_OPEN


def _name(manifest: Mapping[str, Any]) -> str:
    name = below(dict(manifest), "metadata", "name")
    return name if isinstance(name, str) else ""
