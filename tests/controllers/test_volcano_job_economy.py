"""A Job and its group are written when there is something to say: amounts that are equal are no change, and counts wait for a pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.api import duration, timestamp
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
    assert pod_groups.differs({"minResources": old}, {"minResources": new}, "minResources") is differs


def test_counts_wait_for_a_pause_from_the_last_write():
    job, members, pause = SimpleNamespace(written=1_000_000_000), SimpleNamespace(all=[]), statuses.PAUSE

    def due(later):
        return statuses.due_at(job, members, SimpleNamespace(now=job.written + later, busy=False), 0) - job.written

    assert due(0) == due(pause - 1) == pause
    assert due(pause) == pause
    assert due(pause + 5) == pause + 5


@pytest.mark.parametrize(
    ("ahead", "waits"),
    [(-30, False), (0, True), (1, False), (5, False), (3600, False)],
)
def test_counts_do_not_wait_for_a_clock_that_is_ahead(ahead, waits):
    """A pod ends now, by a clock that is so many seconds ahead of the controller's."""
    now = 1_700_000_000 * duration.SECOND
    told = timestamp.format_timestamp(now + ahead * duration.SECOND)
    status = {"containerStatuses": [{"state": {"terminated": {"finishedAt": told}}}]}
    pod = {"metadata": {"name": "p", "creationTimestamp": timestamp.format_timestamp(now - duration.HOUR)}, "status": status}  # fmt: skip
    job, members = SimpleNamespace(written=now - duration.MINUTE), SimpleNamespace(all=[SimpleNamespace(pod=pod)])
    due = statuses.due_at(job, members, SimpleNamespace(now=now, busy=False), 0)
    assert (due > now) is waits
    assert due <= now + statuses.PAUSE
