"""Which nodes many selectors reach, as one flat list of rows: volumes and storage capacities come by the thousand, mostly one per node.

A selector that names values of one label is looked up instead of being asked of every node. What is found is kept with the columns of the
nodes, and so ends with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import affinity
from pumice.model import selectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import meta
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import Rows

Ints = npt.NDArray[np.int64]

_ENCODER = msgspec.json.Encoder(order="deterministic")


def rows(selector: affinity.NodeSelector | None, columns: Attributes) -> Rows:
    """Return the nodes that match one of a selector's terms; no selector matches all."""
    if selector is None:
        return np.arange(columns.count)
    key = ("reach", _ENCODER.encode(selector))
    found: Rows | None = columns.derived.get(key)
    if found is None:
        parts = [_term(term, columns) for term in selector.node_selector_terms]
        found = parts[0] if len(parts) == 1 else np.unique(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]))
        columns.derived[key] = found
    return found


def of_labels(selector: meta.LabelSelector | None) -> affinity.NodeSelector:
    """Say a label selector as a node selector; an absent one matches nothing, an empty one every node."""
    if selector is None:
        return affinity.NodeSelector()
    wanted = [
        *(
            affinity.NodeSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in selector.match_labels.items()
        ),
        *(
            affinity.NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
            for each in selector.match_expressions
        ),
    ]
    # A term without requirements would match nothing; no label has an empty key.
    wanted = wanted or [affinity.NodeSelectorRequirement(key="", operator="DoesNotExist")]
    return affinity.NodeSelector(node_selector_terms=(affinity.NodeSelectorTerm(match_expressions=tuple(wanted)),))


def _term(term: affinity.NodeSelectorTerm, columns: Attributes) -> Rows:
    if len(term.match_expressions) == 1 and not term.match_fields and term.match_expressions[0].operator == "In":
        groups = _groups(term.match_expressions[0].key, columns)
        parts = [groups[value] for value in dict.fromkeys(term.match_expressions[0].values) if value in groups]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.zeros(0, dtype=np.int64)])
    return np.flatnonzero(selectors.term_mask(term, columns))


def _groups(label: str, columns: Attributes) -> dict[str, Rows]:
    """Return the nodes of each value of a label."""
    key = ("rows", label)
    groups: dict[str, Rows] | None = columns.derived.get(key)
    if groups is None:
        codes, values = columns.codes(label)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes[codes >= 0], minlength=len(values))) + np.count_nonzero(codes < 0)
        starts = np.concatenate([[np.count_nonzero(codes < 0)], ends[:-1]]) if len(values) else ends
        groups = {value: order[starts[code] : ends[code]] for code, value in enumerate(values)}
        columns.derived[key] = groups
    return groups


class SelectedRows:
    """The rows of many selectors, one after another: those of number `i` are `flat[starts[i]:starts[i] + lengths[i]]`."""

    __slots__ = ("flat", "lengths", "starts")

    def __init__(self, wanted: Sequence[affinity.NodeSelector | None], columns: Attributes) -> None:
        found = [rows(selector, columns) for selector in wanted]
        self.lengths: Ints = np.array([len(each) for each in found], dtype=np.int64)
        self.starts: Ints = np.cumsum(self.lengths) - self.lengths
        self.flat: Rows = np.concatenate([*found, np.zeros(0, dtype=np.int64)])

    def expand(self, numbers: Ints) -> tuple[Ints, Rows]:
        """Return the pairs of selector and row for some selectors: positions in `numbers`, and rows."""
        lengths = self.lengths[numbers]
        positions = np.repeat(np.arange(len(numbers)), lengths)
        before = np.cumsum(lengths) - lengths
        return positions, self.flat[np.arange(len(positions)) + np.repeat(self.starts[numbers] - before, lengths)]
