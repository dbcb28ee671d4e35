"""The states of a queue, and what opening, closing and looking make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pumice.api import kinds, names
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.observed import Observed

Action = Literal["OpenQueue", "CloseQueue"]
OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
_KNOWN: Final = (names.QUEUE_OPEN, names.QUEUE_CLOSED, names.QUEUE_CLOSING)
_SHUT: Final = (names.QUEUE_CLOSED, names.QUEUE_CLOSING)
_TRUE: Final = "true"


def state_of(queue: Mapping[str, Any]) -> str:
    """Give the state of a queue; none is Open, and one that nobody knows is Unknown."""
    found = manifests.mapping(queue, "status").get("state") or names.QUEUE_OPEN
    return found if found in _KNOWN else names.QUEUE_UNKNOWN


def is_shut(queue: Mapping[str, Any]) -> bool:
    """Tell whether a queue is closed, or will be when its groups are gone."""
    return state_of(queue) in _SHUT


def is_marked(queue: Mapping[str, Any]) -> bool:
    """Tell whether a queue was closed because its parent was."""
    return manifests.mapping(queue, "metadata", "annotations").get(names.CLOSED_BY_PARENT) == _TRUE


def parent_of(queue: Mapping[str, Any]) -> str:
    """Give the name of a queue's parent; root has none."""
    if manifests.name(queue) == names.ROOT_QUEUE:
        return ""
    found = manifests.mapping(queue, "spec").get("parent")
    return found if isinstance(found, str) and found else names.ROOT_QUEUE


def has_groups(name: str, observed: Observed) -> bool:
    """Tell whether any PodGroup, in any phase, names a queue."""
    return any(queue_of(group) == name for group in observed.all(kinds.POD_GROUP))


def queue_of(group: Mapping[str, Any]) -> str:
    """Give the queue that a PodGroup names."""
    found = manifests.mapping(group, "spec").get("queue")
    return found if isinstance(found, str) and found else names.DEFAULT_QUEUE


def after(state: str, action: Action | None, name: str, observed: Observed) -> str:
    """Give the state that an action, or a mere look, leads to."""
    if action == OPEN:
        return names.QUEUE_OPEN
    if state == names.QUEUE_CLOSED:
        return state
    if action == CLOSE or state == names.QUEUE_CLOSING:
        return names.QUEUE_CLOSING if has_groups(name, observed) else names.QUEUE_CLOSED
    return state


def wish_of_parent(queue: Mapping[str, Any], parent: Mapping[str, Any] | None) -> Action | None:
    """Say what a parent's state asks of its child: to close with it, and to open again if it was closed with it."""
    if parent is None or manifests.name(parent) == names.ROOT_QUEUE:
        return None
    if is_shut(parent):
        return None if is_shut(queue) else "CloseQueue"
    opens = state_of(parent) == names.QUEUE_OPEN and is_shut(queue) and is_marked(queue)
    return "OpenQueue" if opens else None
