"""What counts as having happened to a Job, in which order it is answered, how it is told, and which pods are known to replace one that was evicted."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, stamp
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Delete, Moment
from pumice.controllers.volcano.jobs import members, pod_making, policies, reading, syncing

REPLACES = "pumice.dev/replaces-evicted"
MARK = "volcano.sh/controller-out-of-sync"
MOMENT = Moment(NOW)


def policy(*events, **more):
    return {"events": list(events), "action": "RestartJob", **more}


def job(*listed, version=0, of_job=(), roles=("w", "v")):
    tasks = [
        {"name": name, "replicas": 2, "maxRetry": 1, "template": {"spec": {}}, "policies": list(listed)}
        for name in roles
    ]
    status = {"version": version, "state": {"phase": "Running"}}
    spec = {"tasks": tasks, "policies": list(of_job)}
    return reading.Job({"metadata": {"name": "j", "namespace": "a", "uid": "u"}, "spec": spec, "status": status})


def pod(name, phase="Failed", *, version=0, going=False, ended=None, code=0, **annotations):
    _, role, _ = name.split("-")
    said = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": role, "volcano.sh/job-version": str(version)}
    metadata = {"name": name, "namespace": "a", "uid": name, "annotations": {**said, **annotations}}
    metadata |= {"deletionTimestamp": stamp(1)} if going else {}
    terminated = {"exitCode": code, **({"finishedAt": stamp(ended)} if ended is not None else {})}
    container = {"restartCount": 1, "state": {"terminated": terminated} if phase != "Running" else {}}
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": [container]}}


def found_of(made, *pods, vanished=()):
    return members.Members(made, pods, vanished)


def answers(made, *pods, vanished=(), group=None):
    return policies.answers(made, found_of(made, *pods, vanished=vanished), group, MOMENT)


@pytest.mark.parametrize(
    ("phase", "version", "heard"),
    [("Unknown", 0, True), ("Running", 0, False), (None, 0, False), ("Unknown", 1, False)],
)
def test_that_a_group_is_unknown_is_heard_by_a_job_that_was_never_restarted(phase, version, heard):
    times = ({"lastTransitionTime": stamp(5)}, {"lastTransitionTime": stamp(9)}, {})
    group = None if phase is None else {"status": {"phase": phase, "conditions": list(times)}}
    told = answers(job(of_job=[policy("Unknown")], version=version), group=group)
    assert [(str(each), each.due) for each in told] == [("Unknown", NOW + 9 * SECOND)] * heard


def test_what_happened_at_once_is_answered_in_the_order_of_the_tasks_and_their_pods_and_of_the_group_first():
    made = job(of_job=[policy("*")])
    group = {"status": {"phase": "Unknown", "conditions": [{"lastTransitionTime": stamp(7)}]}}
    pods = [pod(name, ended=7) for name in ("j-v-0", "j-w-1", "j-w-0")] + [pod("j-v-1", ended=3)]
    told = [each.occurrence for each in answers(made, *pods, group=group)]
    names = [each.member.name if each.member is not None else each.event for each in told]
    assert names == ["j-v-1", "Unknown", "j-w-0", "j-w-1", "j-v-0"]


@pytest.mark.parametrize(
    ("event", "pods", "text"),
    [
        ("PodFailed", [pod("j-w-0", ended=1)], "PodFailed of j-w-0"),
        ("PodFailed", [pod("j-w-0", ended=1, code=3)], "PodFailed of j-w-0, exit code 3"),
        ("PodEvicted", [pod("j-w-1", "Running", going=True)], "PodEvicted of j-w-1"),
        ("TaskCompleted", [pod("j-v-0", "Succeeded"), pod("j-v-1", "Succeeded")], "TaskCompleted of task v"),
        ("TaskFailed", [pod("j-w-0", "Running")], "TaskFailed of task w"),
    ],
)
def test_what_has_happened_is_told_with_whom_it_happened_to_to_whoever_hears_of_it(event, pods, text):
    events = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "PodPending", "Unknown")
    for heard in ([event], ["*"], list(events)):
        assert [str(each) for each in answers(job(policy(*heard)), *pods)] == [text]
    assert answers(job(policy(*(each for each in events if each != event))), *pods) == []


FATES = {
    "of this version": ({}, True),
    "older": ({"version": 0}, False),
    "newer": ({"version": 2}, True),
    "deleted by us": ({MARK: "true"}, False),
}


@pytest.mark.parametrize(("more", "heard"), FATES.values(), ids=FATES.keys())
@pytest.mark.parametrize("is_gone", [False, True])
def test_nobody_minds_what_becomes_of_pods_of_an_older_version_or_that_we_delete(more, heard, is_gone):
    made = job(policy("PodFailed"), version=1)
    listed = [pod("j-w-0", **{"version": 1, **more}), pod("j-w-2", version=1), pod("j-x-0", version=1)]
    told = answers(made, vanished=listed) if is_gone else answers(made, *listed)
    assert [each.occurrence.member.name for each in told] == ["j-w-0"] * heard


@pytest.mark.parametrize(("more", "heard"), FATES.values(), ids=FATES.keys())
@pytest.mark.parametrize(
    "listed", [[policy("PodEvicted", timeout="9s")], [policy("PodEvicted")], []], ids=["waits", "at once", "none"]
)
def test_a_pod_says_that_it_replaces_an_evicted_one_where_a_policy_waits_whether_it_runs(more, heard, listed):
    made = job(*listed, version=1)
    gone = pod("j-w-0", "Running", **{"version": 1, **more})
    maker = pod_making.PodMaker(made, "g", (), forwarded=False)
    staffing = syncing.staff(made, found_of(made, vanished=[gone]), maker, Observed())
    created = [each.request.manifest["metadata"] for each in staffing.creations]
    assert [each["name"] for each in created] == ["j-w-0", "j-w-1", "j-v-0", "j-v-1"]
    waits = bool(listed) and "timeout" in listed[0]
    flagged = [each["name"] for each in created if REPLACES in each["annotations"]]
    assert flagged == ["j-w-0"] * (heard and waits)


@pytest.mark.parametrize("timeout", [None, "9s"])
@pytest.mark.parametrize(
    ("phase", "going", "replaces"), [("Running", True, False), ("Pending", False, True), ("Pending", False, False)]
)
def test_an_eviction_that_may_wait_is_answered_by_how_long_the_pod_in_its_place_waits(timeout, phase, going, replaces):
    made = job(policy("PodEvicted", **({} if timeout is None else {"timeout": timeout})))
    manifest = pod("j-w-0", phase, going=going, **({REPLACES: "true"} if replaces else {}))
    manifest["metadata"]["creationTimestamp"] = stamp(0)
    due = [each.due for each in answers(made, manifest)]
    if timeout is None:
        assert due == [NOW] * going
    else:
        assert due == [NOW + 9 * SECOND] * replaces


@pytest.mark.parametrize(
    ("name", "phase", "version", "goes"),
    [
        ("j-w-0", "Running", 1, False),
        ("j-w-0", "Running", 0, True),  # made before the last restart
        ("j-w-0", "Succeeded", 0, False),
        ("j-w-2", "Running", 1, True),  # one too many
        ("j-x-0", "Running", 1, True),  # of a task that is gone
    ],
)
@pytest.mark.parametrize("going", [False, True])
def test_a_pod_goes_that_was_made_before_the_last_restart_and_has_not_ended_or_is_too_many(
    name, phase, version, goes, going
):
    made = job(version=1)
    maker = pod_making.PodMaker(made, "g", (), forwarded=False)
    found = found_of(made, pod(name, phase, version=version, going=going))
    deletions = syncing.staff(made, found, maker, Observed()).deletions
    assert [each.request.name for each in deletions if isinstance(each.request, Delete)] == [name] * (
        goes and not going
    )


def by_code(code, *events, **more):
    return {"exitCode": code, "action": "RestartJob", **({"events": list(events)} if events else {}), **more}


@pytest.mark.parametrize(
    ("stated", "code", "heard"),
    [
        (by_code(3), 3, True),
        (by_code(3), 4, False),
        (by_code(3), 0, False),
        (by_code(0), 0, False),  # nobody has failed with it
        (by_code(3, "PodFailed"), 4, True),
        (policy("PodFailed"), 0, True),
        (policy("PodEvicted"), 3, False),
        (policy("PodEvicted"), 0, False),
    ],
)
def test_a_policy_speaks_of_its_events_and_of_its_exit_code(stated, code, heard):
    told = answers(job(stated), pod("j-w-0", ended=1, code=code))
    assert len(told) == heard


@pytest.mark.parametrize(("timeout", "heard"), [(None, False), ("5s", True)])
@pytest.mark.parametrize("event", ["PodPending", "*"])
def test_that_a_pod_is_pending_is_heard_only_after_a_while(timeout, heard, event):
    more = {} if timeout is None else {"timeout": timeout}
    told = [each.occurrence.event for each in answers(job(policy(event, **more)), pod("j-w-0", "Pending"))]
    assert ("PodPending" in told) is heard


def test_of_a_task_that_is_completed_the_pod_that_ended_last_is_told_of():
    pods = [pod("j-w-0", "Succeeded", ended=9), pod("j-w-1", "Succeeded", ended=5)]
    (told,) = answers(job(policy("TaskCompleted"), roles=("w",)), *pods)
    assert (told.occurrence.member.name, told.due) == ("j-w-0", NOW + 9 * SECOND)
    unknown = [pod("j-w-0", "Succeeded", ended=9), pod("j-w-1", "Succeeded")]
    (told,) = answers(job(policy("TaskCompleted"), roles=("w",)), *unknown)
    assert told.occurrence.member.name == "j-w-0"
