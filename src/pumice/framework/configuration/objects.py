"""Settings of queues that no listed plugin reads: nothing is wrong with the file, yet the user waits in vain for an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pumice.framework.configuration.model import Configuration, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Metadata(Protocol):
    @property
    def name(self) -> str: ...


class _QueueSpec(Protocol):
    @property
    def weight(self) -> int | None: ...
    @property
    def deserved(self) -> Any: ...
    @property
    def capability(self) -> Any: ...
    @property
    def guarantee(self) -> Any: ...


class QueueLike(Protocol):
    """As much of a Queue as is looked at here."""

    @property
    def metadata(self) -> _Metadata:
        """Say which queue it is."""

    @property
    def spec(self) -> _QueueSpec:
        """Hold what its owner asked for."""


def object_warnings(configuration: Configuration, queues: Iterable[QueueLike]) -> tuple[Problem, ...]:
    """Name every queue setting that has no effect under a configuration."""
    proportion, capacity = configuration.plugin("proportion"), configuration.plugin("capacity")
    found: list[Problem] = []
    for queue in queues:
        name, spec = queue.metadata.name, queue.spec
        if spec.deserved and proportion is not None and capacity is None:
            why = f'plugin "proportion" (line {proportion.line}) shares by weight and ignores deserved; list "capacity" instead'
            found.append(Problem(proportion.line, f"queue/{name}.spec.deserved", why))
        if spec.weight not in (None, 0, 1) and capacity is not None and proportion is None:
            why = f'plugin "capacity" (line {capacity.line}) ignores weight {spec.weight}; set deserved instead'
            found.append(Problem(capacity.line, f"queue/{name}.spec.weight", why))
        if proportion is None and capacity is None:
            limits = (("capability", spec.capability), ("guarantee", spec.guarantee))
            found += [_unread(name, field) for field, value in limits if _is_set(value)]
    return tuple(found)


def _unread(queue: str, field: str) -> Problem:
    why = f'no plugin that reads {field} is listed; list "capacity" or "proportion"'
    return Problem(0, f"queue/{queue}.spec.{field}", why)


def _is_set(value: Any) -> bool:
    """Tell whether amounts are given; a guarantee wraps them in `resource`, which may be empty."""
    return bool(getattr(value, "resource", value))
