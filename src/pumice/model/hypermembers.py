"""Which nodes are members of a hyper-node: by name, by a pattern that is found in the name, by label."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pumice.model import pattern_parsing, patterns, selectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import meta, topology
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.selectors import Mask

NODE, HYPER_NODE = "Node", "HyperNode"
NAMED = 3


class Members:
    """Finds nodes; each name is held against a pattern once."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        # By pattern, the names of nodes that were asked about and those that matched.
        self._patterns: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        self._known_patterns = self._patterns

    def begin(self) -> None:
        """Start on a new tree: patterns that it does not use are forgotten."""
        self._known_patterns, self._patterns = self._patterns, {}

    def rows(self, members: Sequence[topology.Member], problems: list[str]) -> Rows:
        """Return the rows of the nodes among the members, adding what is wrong with them."""
        table = self._table
        rows: list[int] = []
        masks: list[Mask] = []
        missing: list[str] = []
        for position, member in enumerate(members):
            chosen = member.selector
            if member.type != NODE:
                continue
            if chosen.exact_match is not None:
                record = table.by_name.get(chosen.exact_match.name)
                if record is None or record.object is None:
                    missing.append(chosen.exact_match.name)
                else:
                    rows.append(record.row)
            elif chosen.regex_match is not None:
                try:
                    rows += self._matching(chosen.regex_match.pattern)
                except pattern_parsing.PatternError as error:
                    text = f"{chosen.regex_match.pattern:.60} is no regular expression that can be used: {error}"
                    problems.append(f"spec.members[{position}]: {text}")
            elif chosen.label_match is not None:
                masks.append(_labelled(chosen.label_match, table))
        if missing:
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            text = f"its member nodes {', '.join(missing[:NAMED])}{more} do not exist"
            problems.append(text)
        found = [np.array(rows, dtype=np.int64), *(np.flatnonzero(mask) for mask in masks)]
        return np.concatenate(found)

    def _matching(self, pattern: str) -> list[int]:
        """Return the rows of nodes whose names a pattern is found in; each name is asked about once."""
        table = self._table
        is_found = patterns.searcher(pattern)
        asked, matched = self._patterns[pattern] = self._known_patterns.get(pattern, ({}, {}))
        if len(asked) > 2 * table.count + 64:
            asked.clear()
            matched.clear()
        for record in table.records[: table.count]:
            if record.name not in asked:
                asked[record.name] = None
                if is_found(record.name):
                    matched[record.name] = None
        known = table.by_name
        return [known[name].row for name in matched if name in known and known[name].row < table.count]


def _labelled(selector: meta.LabelSelector, table: NodeTable) -> Mask:
    """Mark the nodes that a label selector chooses; an empty one chooses none."""
    columns = table.attributes
    mask = np.full(columns.count, bool(selector.match_labels or selector.match_expressions))
    mask &= selectors.selector_mask(selector.match_labels, columns)
    for each in selector.match_expressions:
        mask &= columns.mask(each.key, functools.partial(selectors.holds, each.operator, each.values))
    return mask
