"""Label and node selectors: the plain rule for one object, and the same rule for all nodes at once."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.api import core, meta
    from pumice.model.attributes import Attributes
    from pumice.model.constraints import Constraints

Mask = npt.NDArray[np.bool_]

_INT64 = 2**63


def matches(selector: meta.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Tell whether labels match a label selector; none matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(holds(r.operator, r.values, labels.get(r.key)) for r in selector.match_expressions)


def holds(operator: str, values: Sequence[str], found: str | None) -> bool:
    """Judge one requirement on the value found, None standing for a missing label."""
    match operator:
        case "In":
            return found is not None and found in values
        case "NotIn":
            return found is None or found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt":
            return _compares(operator, values, found)
        case _:
            return False


def _compares(operator: str, values: Sequence[str], found: str | None) -> bool:
    """Judge Gt and Lt, which need one whole number on each side."""
    if found is None or len(values) != 1:
        return False
    have, bound = whole_number(found), whole_number(values[0])
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def whole_number(text: str) -> int | None:
    """Read a base-10 64-bit integer, as strictly as Kubernetes does."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return None
    value = int(text, 10)
    return value if -_INT64 <= value < _INT64 else None


def term_is_valid(term: core.NodeSelectorTerm) -> bool:
    """Tell whether a node selector term can match at all."""
    if not term.match_expressions and not term.match_fields:
        return False
    for field in term.match_fields:
        if field.key != "metadata.name" or field.operator not in ("In", "NotIn") or len(field.values) != 1:
            return False
    return all(_requirement_is_valid(r) for r in term.match_expressions)


def _requirement_is_valid(requirement: core.NodeSelectorRequirement) -> bool:
    """Tell whether Kubernetes could parse a requirement."""
    match requirement.operator:
        case "In" | "NotIn":
            return bool(requirement.values)
        case "Exists" | "DoesNotExist":
            return not requirement.values
        case "Gt" | "Lt":
            return len(requirement.values) == 1 and whole_number(requirement.values[0]) is not None
        case _:
            return False


def term_matches(term: core.NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Judge one node selector term for one node."""
    if not term_is_valid(term):
        return False
    fields = all(holds(f.operator, f.values, name) for f in term.match_fields)
    return fields and all(holds(r.operator, r.values, labels.get(r.key)) for r in term.match_expressions)


def unmet(term: core.NodeSelectorTerm, labels: Mapping[str, str], name: str) -> str:
    """Write the requirements of a term that a node does not meet; of a term that can match nothing, that."""
    if not term_is_valid(term):
        return "a term that matches nothing"
    asked = [(r, labels.get(r.key)) for r in term.match_expressions] + [(f, name) for f in term.match_fields]
    return ", ".join(
        f"{r.key} {r.operator} {','.join(r.values)}".rstrip()
        for r, found in asked
        if not holds(r.operator, r.values, found)
    )


def term_mask(term: core.NodeSelectorTerm, columns: Attributes) -> Mask:
    """Judge one node selector term for all nodes."""
    if not term_is_valid(term):
        return np.zeros(columns.count, dtype=np.bool_)
    mask = np.ones(columns.count, dtype=np.bool_)
    for field in term.match_fields:
        named = columns.named(field.values[0])
        mask &= named if field.operator == "In" else ~named
    for requirement in term.match_expressions:
        mask &= columns.mask(requirement.key, functools.partial(holds, requirement.operator, requirement.values))
    return mask


def selector_mask(node_selector: Mapping[str, str], columns: Attributes) -> Mask:
    """Judge a plain node selector for all nodes."""
    mask = np.ones(columns.count, dtype=np.bool_)
    for key, value in node_selector.items():
        mask &= columns.mask(key, functools.partial(operator.eq, value))
    return mask


def node_mask(constraints: Constraints, columns: Attributes) -> Mask | None:
    """Judge a pod's node selector and required node affinity for all nodes; None if it has neither."""
    required = required_terms(constraints.affinity)
    if not constraints.node_selector and required is None:
        return None
    mask = selector_mask(constraints.node_selector, columns)
    if required is not None:
        matched = np.zeros(columns.count, dtype=np.bool_)
        for term in required:
            matched |= term_mask(term, columns)
        mask &= matched
    return mask


def required_terms(affinity: core.Affinity | None) -> Sequence[core.NodeSelectorTerm] | None:
    """Return the terms of which a node must match one, None if there is no such rule."""
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms
