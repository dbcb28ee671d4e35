"""What nodes could ever do for a pod, as it is put into words."""

from __future__ import annotations

import pytest

from pumice.framework import outlooks

REFUSALS = [
    (1, [("node(s) were not ready", 1)], "the only node was not ready"),
    (2, [("node(s) were not ready", 2)], "all 2 nodes were not ready"),
    (2, [("node(s) had untolerated taint(s)", 2)], "all 2 nodes had untolerated taint(s)"),
    (1, [("Insufficient cpu", 1)], "the only node refuses it: have too little cpu free"),
    (3, [("Insufficient cpu", 3)], "all 3 nodes refuse it: have too little cpu free"),
    (
        6,
        [("node(s) were not ready", 1), ("b", 2), ("Insufficient cpu", 1), ("a", 2)],
        "all 6 nodes refuse it: 2 a, 2 b, 1 have too little cpu free, 1 were not ready",
    ),
]


@pytest.mark.parametrize(("nodes", "reasons", "told"), REFUSALS, ids=[row[2] for row in REFUSALS])
def test_of_several_reasons_that_of_most_nodes_comes_first_and_equals_by_their_words(nodes, reasons, told):
    assert outlooks.counted(nodes, reasons) == told
