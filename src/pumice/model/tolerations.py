"""Taints and tolerations: the rule of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.api import core


_DIGITS = 19


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
    if toleration.operator in ("Gt", "Lt"):
        bound, value = _number(toleration.value), _number(taint.value)
        if bound is None or value is None:
            return False
        return value > bound if toleration.operator == "Gt" else value < bound
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _number(text: str) -> int | None:
    """Read a whole number as Kubernetes compares tolerations by; None if it is none, or too large."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _DIGITS:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def tolerates_all(tolerations: Sequence[core.Toleration], taints: Iterable[core.Taint], effects: Iterable[str]) -> bool:
    """Tell whether every taint with one of the effects is tolerated."""
    return all(tolerates(tolerations, taint) for taint in taints if taint.effect in effects)
