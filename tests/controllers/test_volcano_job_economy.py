"""A Job and its group are written when there is something to say: amounts that are equal are no change, and counts wait for a pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.api import duration, timestamp
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.jobs import members, pod_groups, reading, statuses


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
    job, found, pause = SimpleNamespace(written=1_000_000_000), SimpleNamespace(all=[]), statuses.PAUSE

    def due(later):
        return statuses.due_at(job, found, SimpleNamespace(now=job.written + later, busy=False), 0) - job.written

    assert due(0) == due(pause - 1) == pause
    assert due(pause) == pause
    assert due(pause + 5) == pause + 5


@pytest.mark.parametrize(("ahead", "waits"), [(-31, False), (-29, True), (0, True), (1, False), (3600, False)])
def test_where_much_is_to_be_done_the_first_word_about_a_job_waits_from_its_creation_but_for_no_clock_that_is_ahead(
    ahead, waits
):
    now = 1_700_000_000 * duration.SECOND
    created = timestamp.format_timestamp(now + ahead * duration.SECOND)
    job = reading.Job(
        {"metadata": {"name": "j", "namespace": "a", "uid": "u", "creationTimestamp": created}, "spec": {}}
    )
    said = statuses.unchanged(job, phase="Pending")
    steps, again = statuses.write(job, members.Members(job, []), said, Moment(now, busy=True), groups=0)
    assert (steps == [], again is not None) == (waits, waits)


@pytest.mark.parametrize("ahead", [1, 3600])
def test_counts_do_not_wait_for_whoever_wrote_last_with_a_clock_that_is_ahead(ahead):
    job = SimpleNamespace(written=1_000_000_000 + ahead * duration.SECOND)
    moment = SimpleNamespace(now=1_000_000_000, busy=False)
    assert statuses.due_at(job, SimpleNamespace(all=[]), moment, 0) == moment.now


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
    job, found = SimpleNamespace(written=now - duration.MINUTE), SimpleNamespace(all=[SimpleNamespace(pod=pod)])
    due = statuses.due_at(job, found, SimpleNamespace(now=now, busy=False), 0)
    assert (due > now) is waits
    assert due <= now + statuses.PAUSE


def due_after(written, now, *changes, groups=0, busy=False):
    """Say when counts are due, all in seconds, of a Job that was written then and has had these changes."""
    epoch = 1_700_000_000

    def told(second):
        return timestamp.format_timestamp((epoch + second) * duration.SECOND)

    def pod(second):
        return {"metadata": {"name": "p", "creationTimestamp": told(second)}, "status": {}}

    state = {"lastTransitionTime": told(written)} if written is not None else {}
    job = reading.Job({"metadata": {"name": "j"}, "spec": {}, "status": {"state": state}})
    found = SimpleNamespace(all=[SimpleNamespace(pod=pod(each)) for each in changes])
    moment = SimpleNamespace(now=int((epoch + now) * duration.SECOND), busy=busy)
    return statuses.due_at(job, found, moment, groups) / duration.SECOND - epoch


@pytest.mark.parametrize(
    ("written", "now", "changes", "due"),
    [
        (100, 100.5, [], 101),  # a second between two writes
        (None, 100.5, [], 100.5),
        (100, 101.5, [], 101.5),
        (100, 101, [100], 102),
        (100, 101.2, [99], 101.2),  # that was written
        (100, 101.2, [100], 102),  # a second from when it may have been at the latest
        (100, 103.5, [102], 104),
        (100, 103.5, [103], 104.5),
        (100, 104.5, [100, 101, 102, 103, 104], 104),  # three from the first of many
        (100, 102.5, [100, 101, 102], 103.5),
        (100, 130, [110, 115], 114),
    ],
)
def test_counts_wait_until_nothing_has_changed_for_a_pause_and_no_more_than_three(written, now, changes, due):
    assert due_after(written, now, *changes) == pytest.approx(due)


@pytest.mark.parametrize(
    ("groups", "busy", "pause"),
    [(0, False, 1), (20, False, 1), (40, False, 2), (10**4, False, 15), (0, True, 30), (10**4, True, 30)],
)
def test_the_pause_grows_with_the_groups_there_are_and_is_longest_while_there_is_much_to_do(groups, busy, pause):
    assert due_after(100, 100, groups=groups, busy=busy) == pytest.approx(100 + pause)


# ---- what is written


NOW = 1_700_000_000 * duration.SECOND


def seconds(after):
    return timestamp.format_timestamp(NOW + after * duration.SECOND)


def counted(phase="Running", reason="", message="", *, written=0, created=-60, **status):
    """Give a Job of one pod, of which its status says that it succeeded."""
    state = {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": seconds(written)}
    listed = {"w": {"phase": {"Succeeded": 1}}}
    stated = {"state": state, "succeeded": 1, "taskStatusCount": listed, "minAvailable": 1, **status}
    metadata = {
        "name": "j",
        "namespace": "a",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": seconds(created),
    }
    spec = {"tasks": [{"name": "w", "replicas": 1}], "minAvailable": 1}
    return reading.Job({"metadata": metadata, "spec": spec, "status": stated})


def one_pod(job, phase="Succeeded"):
    said = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/job-version": "0"}
    metadata = {"name": "j-w-0", "namespace": "a", "annotations": said, "creationTimestamp": seconds(-60)}
    return members.Members(job, [{"metadata": metadata, "status": {"phase": phase}}] if phase else [])


def written(job, found, *, after=60, **said):
    """Give what is written of a Job, None if nothing is for now."""
    moment = Moment(NOW + after * duration.SECOND)
    steps, _ = statuses.write(job, found, statuses.unchanged(job, **said), moment, groups=0)
    return steps[0].request.body if steps else None


@pytest.mark.parametrize(
    ("status", "differs"),
    [
        ({}, False),
        ({"succeeded": 0}, True),
        ({"failed": 1}, True),
        ({"terminating": 1}, True),
        ({"taskStatusCount": {}}, True),
        ({"minAvailable": 2}, True),
    ],
)
def test_a_status_is_written_if_any_of_it_is_another(status, differs):
    job = counted(**status)
    body = written(job, one_pod(job))
    assert (body is not None) is differs
    assert body is None or body["metadata"] == {
        "resourceVersion": "7"
    }  # by whom it was changed since was not reckoned with


@pytest.mark.parametrize(
    ("before", "now", "waits"),
    [
        ("", "Unschedulable", True),
        ("Unschedulable", "", True),
        ("Unschedulable", "Unschedulable", True),
        ("", "FailedCreate", False),
        ("FailedCreate", "", False),
        ("FailedCreate", "Unschedulable", False),
        ("Unschedulable", "FailedCreate", False),
        ("FailedCreate", "FailedCreate", False),
    ],
)
def test_that_a_job_waits_for_its_group_is_no_more_urgent_than_its_counts(before, now, waits):
    job = counted("Pending", before, "old")
    assert (written(job, one_pod(job), after=0, reason=now, message="new") is None) is waits


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ("Running", "Running", 60),
        ("Running", "Completed", 60),
        ("Completed", "Completed", 0),
        ("Aborting", "Aborting", 60),
    ],
)
def test_what_has_ended_ended_then_and_all_else_is_as_of_now(before, now, changed):
    job = counted(before, terminating=1)
    status = written(job, one_pod(job), phase=now)["status"]
    assert status.get("state", {}).get("lastTransitionTime", seconds(0)) == seconds(changed)
    (last,) = [each for each in status["conditions"] if each["status"] == now]
    assert last["lastTransitionTime"] == seconds(changed)


@pytest.mark.parametrize(
    ("phase", "created", "ran"),
    [
        ("Running", -60, None),
        ("Pending", -60, None),
        ("Completed", -60, "2m0s"),
        ("Failed", 0, "1m0s"),
        ("Aborted", 100, "0s"),
        ("Restarting", -60, "2m0s"),
    ],
)
def test_how_long_a_job_ran_is_told_when_it_neither_waits_nor_runs(phase, created, ran):
    job = counted("Terminating", created=created, runningDuration="9s")
    assert written(job, one_pod(job), phase=phase)["status"]["runningDuration"] == ran


@pytest.mark.parametrize(
    ("phase", "kept"),
    [("Completed", True), ("Failed", True), ("Terminated", True), ("Running", False), ("Aborted", False)],
)
def test_counts_of_the_end_are_kept_of_what_has_ended(phase, kept):
    job = counted(phase)
    body = written(job, one_pod(job, ""))
    assert (body is None) is kept
