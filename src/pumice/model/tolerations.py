"""Taints and tolerations: the rule of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.api import core


def tolerates(tolerations: Iterable[core.Toleration], taint: core.Taint) -> bool:
    """Tell whether some toleration matches a taint."""
    return any(matches(toleration, taint) for toleration in tolerations)


def matches(toleration: core.Toleration, taint: core.Taint) -> bool:
    """Judge one toleration: effect and key empty or equal, and the value as the operator says."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def tolerates_all(tolerations: Sequence[core.Toleration], taints: Iterable[core.Taint], effects: Iterable[str]) -> bool:
    """Tell whether every taint with one of the effects is tolerated."""
    return all(tolerates(tolerations, taint) for taint in taints if taint.effect in effects)
