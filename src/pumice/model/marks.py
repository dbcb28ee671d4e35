"""What annotations and labels mark pods and groups with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Mapping

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
