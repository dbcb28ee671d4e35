"""Inside a cycle only a statement changes the cluster: no action moves tasks, changes sums or counts by itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pumice.actions

ROOT = Path(pumice.actions.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# What changes a model: methods of the cluster, its sums and node table, and assignments to what tasks, tallies and nodes hold.
METHODS = frozenset({"apply", "add_vector", "carry", "give_back", "take"})
FIELDS = frozenset({"status", "node", "counts", "allocated", "pipelined", "used", "releasing", "nominated"})


def changes(tree):
    """Give the lines on which a model would be changed by hand."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in METHODS:
            yield each.lineno, each.func.attr
        if isinstance(each, ast.Attribute) and each.attr == "accounting":
            yield each.lineno, each.attr
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AugAssign) else []
        )
        for target in targets:
            inner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(inner, ast.Attribute) and inner.attr in FIELDS and not _is_own(inner):
                yield each.lineno, inner.attr


def _is_own(attribute):
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_action_changes_the_cluster_past_the_statement(path):
    assert list(changes(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "text",
    [
        "cluster.apply([task], [None], Status.PENDING)",
        "task.status = Status.RUNNING",
        "tally.counts[0] -= 1",
        "for tally in victim.tallies:\n    tally.counts[victim.status] += 1",
        "cluster.accounting.count(task, -1)",
    ],
)
def test_the_check_finds_changes_made_by_hand(text):
    assert list(changes(ast.parse(text)))
