"""A Job and its group are written when there is something to say: amounts that are equal are no change, and counts wait for a pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.controllers.volcano.jobs import pod_groups, statuses


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ({"cpu": "1000m"}, {"cpu": "1"}, False),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1.0", "memory": "1024Mi"}, False),
        ({"cpu": "1"}, {"cpu": "2"}, True),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}, True),
        ({"cpu": "much"}, {"cpu": "more"}, True),
        ({}, None, False),
        ({"cpu": "1"}, None, True),
    ],
)
def test_amounts_of_a_group_that_are_equal_are_no_change(old, new, differs):
    assert pod_groups._differs({"minResources": old}, {"minResources": new}, "minResources") is differs


def test_counts_wait_for_a_pause_from_the_last_write():
    job, members, pause = SimpleNamespace(written=1_000_000_000), SimpleNamespace(all=[]), statuses._PAUSE

    def due(later):
        return statuses._due(job, members, SimpleNamespace(now=job.written + later, busy=False), 0) - job.written

    assert due(0) == due(pause - 1) == pause
    assert due(pause) == pause
    assert due(pause + 5) == pause + 5
