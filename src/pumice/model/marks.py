"""What annotations and labels mark pods and groups with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import core

# By which a pod says which shared cards it will have or not.
DEVICES: Final = (
    names.VGPU_MODE,
    names.VGPU_USE_UUID,
    names.VGPU_NO_USE_UUID,
    names.USE_GPU_TYPE,
    names.NO_USE_GPU_TYPE,
    names.VGPU_POD_GROUP_POLICY,
)
# By which the device plugin of a node is told which cards a pod has.
CARDS: Final = frozenset(
    {
        names.GPU_INDEX,
        names.PREDICATE_TIME,
        names.VGPU_NODE,
        names.VGPU_TIME,
        names.VGPU_IDS,
        names.DEVICES_TO_ALLOCATE,
        names.BIND_PHASE,
        names.BIND_TIME,
    }
)
_OF_NODES: Final = (
    names.NODE_VGPU_REGISTER,
    names.GPU_UNHEALTHY_IDS,
    names.CARD_UNHEALTHY_IDS,
    names.GPU_LOCK,
    names.VGPU_LOCK,
)
_SHARED: Final = (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES, names.VGPU_MEMORY_PERCENTAGE)

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def truth(text: str) -> bool | None:
    """Read a boolean the way Kubernetes tools write it; None if it is not one."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def is_preemptable(annotations: Mapping[str, str], labels: Mapping[str, str], *, default: bool) -> bool:
    """Read the preemptable mark: the annotation, else the label, else the default; unreadable means no."""
    text = annotations.get(names.PREEMPTABLE)
    if text is None:
        text = labels.get(names.PREEMPTABLE)
    return default if text is None else truth(text) is True


def is_revocable(annotations: Mapping[str, str]) -> bool:
    """Tell whether a pod may be on nodes that are taken back: by its own word, else because it says that it can be sent away."""
    zone = annotations.get(names.REVOCABLE_ZONE)
    return truth(annotations.get(names.PREEMPTABLE, "")) is True if zone is None else zone == "*"


def devices(pod: core.Pod) -> tuple[str, ...]:
    """Write down what the containers of a pod ask for of shared cards, and its wishes; empty if it asks for none."""
    asked = [
        ",".join(f"{name}={resources.limits.get(name, resources.requests.get(name))}" for name in _SHARED)
        for resources in (container.resources for container in pod.spec.containers)
    ]
    if not any(name in container.resources.limits for container in pod.spec.containers for name in _SHARED):
        return ()
    notes = pod.metadata.annotations
    return (*asked, *(f"{key}={notes[key]}" for key in DEVICES if key in notes))


def cards(annotations: Mapping[str, str]) -> list[str | None]:
    """Return what a node's annotations say that decisions read: of its cards, whether it is locked, and what pods without GPUs may hold there."""
    quotas = (text for pair in sorted(annotations.items()) if pair[0].startswith(names.CROSS_QUOTA) for text in pair)
    return [*map(annotations.get, _OF_NODES), *quotas]
