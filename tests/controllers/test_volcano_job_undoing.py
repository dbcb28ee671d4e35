"""What a Job does away with that was made for pods of the past, and what its status says of it then."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, stamp
from pumice.api import kinds
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Delete, Moment
from pumice.controllers.volcano.jobs.controlling import Jobs

VERSION = 2
OWNER = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": "u", "controller": True}
GOING = {"deletionTimestamp": stamp(1)}
CONTROLLED = {"plugin-svc": "svc", "volume-pvc-c": "c"}


def owned(name, **more):
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "ownerReferences": [OWNER], **more}}


def pod(index, phase="Running", version=VERSION, **more):
    said = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/job-version": str(version)}
    said |= more.pop("annotations", {})
    return {**owned(f"j-w-{index}", annotations=said, **more), "status": {"phase": phase}}


def group(version=None, **more):
    return owned("j-u", annotations={} if version is None else {"volcano.sh/job-version": str(version)}, **more)


def job(phase, reason="", **status):
    state = {"phase": phase, "reason": reason, "message": "why", "lastTransitionTime": stamp(0)}
    stated = {"state": state, "version": VERSION, "minAvailable": 1, "controlledResources": CONTROLLED, **status}
    spec = {"tasks": [{"name": "w", "replicas": 2, "template": {"spec": {}}}], "minAvailable": 1, "maxRetry": 3}
    return {"metadata": {"name": "j", "namespace": "a", "uid": "u"}, "spec": spec, "status": stated}


def looked(made, *pods, groups=(), beside=()):
    """Give what a look at a Job deletes, and the status that it writes."""
    known = Observed([(kinds.JOB, kinds.POD)])
    known.feed(kinds.JOB, "ADDED", made)
    for kind, listed in ((kinds.POD, pods), (kinds.POD_GROUP, groups), (kinds.CONFIG_MAP, beside)):
        for each in listed:
            known.feed(kind, "ADDED", each)
    plan = Jobs().reconcile("a", "j", known, Moment(NOW + 100 * SECOND))
    asked = [each.request for each in plan.steps]
    deleted = [each.name for each in asked if isinstance(each, Delete)]
    written = [each.body["status"] for each in asked if getattr(each, "subresource", "") == "status"]
    return deleted, written


ENDINGS = [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")]
GROUPS = {
    "none": ([], False),
    "unstamped": ([group()], True),
    "of this version": ([group(VERSION)], True),
    "older": ([group(VERSION - 1)], True),
    "going": ([group(**GOING)], False),
}


@pytest.mark.parametrize(("groups", "goes"), GROUPS.values(), ids=GROUPS.keys())
@pytest.mark.parametrize(("phase", "end"), [*ENDINGS, ("Aborted", "Aborted"), ("Failed", "Failed")])
def test_who_ends_does_away_with_its_pods_its_group_and_what_plugins_have_made(phase, end, groups, goes):
    beside = [owned("j-svc"), owned("going", **GOING)]
    pods = [pod(0), pod(1, "Succeeded"), pod(2, **GOING), pod(3, "Failed"), pod(4, "Pending")]
    deleted, written = looked(job(phase), *pods, groups=groups, beside=beside)
    assert deleted == ["j-w-0", "j-w-4", "j-svc", *["j-u"] * goes]
    assert written == []


@pytest.mark.parametrize(("phase", "end"), ENDINGS)
@pytest.mark.parametrize("left", [[], [pod(0, "Succeeded")]])
def test_who_has_nobody_left_has_ended_and_says_of_plugins_nothing_more(phase, end, left):
    deleted, (status,) = looked(job(phase), *left, beside=[owned("j-svc")])
    assert deleted == ["j-svc"]
    assert (status["state"]["phase"], status["controlledResources"]) == (end, {"plugin-svc": None})


@pytest.mark.parametrize(
    ("reason", "stamped", "goes"),
    [
        ("RestartJob", None, True),
        ("ResumeJob", None, True),
        ("", None, False),  # nobody says whether it is of the past
        ("RestartJob", VERSION, False),
        ("ResumeJob", VERSION, False),
        ("", VERSION - 1, True),
        ("RestartJob", VERSION - 1, True),
        ("RestartPod", None, False),
        ("RestartPod", VERSION - 1, False),
        ("RestartTask", VERSION - 1, False),
    ],
)
@pytest.mark.parametrize("going", [False, True])
def test_a_restart_of_the_whole_does_away_with_a_group_that_is_of_the_past_or_does_not_say(
    reason, stamped, goes, going
):
    made = job("Restarting", reason, retryCount=1)
    deleted, written = looked(
        made, groups=[group(stamped, **(GOING if going else {}))], beside=[owned("j-svc"), owned("going", **GOING)]
    )
    some = reason in ("RestartPod", "RestartTask")
    assert deleted == ([] if some else ["j-svc", *["j-u"] * (goes and not going)])
    assert len(written) == some  # who has nothing to do away with goes on


@pytest.mark.parametrize(("reason", "version"), [("RestartJob", VERSION), ("RestartPod", VERSION + 1)])
def test_a_restart_too_many_ends_a_job_which_says_so_and_nothing_of_plugins(reason, version):
    deleted, (status,) = looked(job("Restarting", reason, retryCount=3))
    assert deleted == []
    assert status["state"]["phase"] == "Failed"
    assert status["state"]["message"] == "why; all 3 retries are used up"
    assert status.get("version", VERSION) == version
    assert status["controlledResources"] == {"plugin-svc": None}


@pytest.mark.parametrize(
    ("event", "left"), [("AbortJob", {"plugin-svc": None}), ("RestartJob", {"plugin-svc": None}), ("RestartPod", None)]
)
def test_an_action_about_the_whole_says_of_plugins_nothing_more(event, left):
    made = job("Running")
    made["spec"]["policies"] = [{"event": "PodFailed", "action": event}]
    _, (status,) = looked(made, pod(0, "Failed"), pod(1))
    assert status.get("controlledResources") == left
    assert status.get("version") == (None if event == "RestartPod" else VERSION + 1)
