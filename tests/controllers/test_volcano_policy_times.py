"""When what a policy says is due: from when on its timeout counts, and what of that has to be written down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, SECOND, stamp
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.jobs import members, policies, reading

BEGAN = NOW - 100 * SECOND


def job(event, timeout):
    policy = {"event": event, "action": "RestartJob", **({"timeout": f"{timeout}s"} if timeout is not None else {})}
    role = {"name": "w", "replicas": 1, "maxRetry": 1, "template": {"spec": {}}, "policies": [policy]}
    metadata = {"name": "j", "namespace": "a", "uid": "u"}
    return reading.Job({"metadata": metadata, "spec": {"tasks": [role]}, "status": {"state": {"phase": "Running"}}})


def pod(event, ended, noted):
    annotations = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/job-version": "0"}
    if noted is not None:
        annotations["pumice.dev/happened-at"] = stamp(noted)
    status = {"phase": "Failed" if event == "PodFailed" else "Running"}
    if event == "PodFailed" and ended is not None:
        status["containerStatuses"] = [{"state": {"terminated": {"exitCode": 1, "finishedAt": stamp(ended)}}}]
    if event == "TaskFailed":
        status["containerStatuses"] = [{"restartCount": 1}]
    return {"metadata": {"name": "j-w-0", "namespace": "a", "uid": "p", "annotations": annotations}, "status": status}


SECONDS = st.none() | st.integers(0, 50)


def test_what_was_noted_by_a_clock_that_is_ahead_is_noted_anew():
    found = job("TaskFailed", 10)
    noted = pod("TaskFailed", None, 3600)
    (answer,) = policies.answers(found, members.Members(found, [noted]), None, Moment(NOW))
    assert (answer.due, answer.unstamped) == (NOW + 10 * SECOND, True)


def test_what_is_noted_at_this_very_moment_is_noted_once():
    found = job("TaskFailed", 10)
    (answer,) = policies.answers(
        found, members.Members(found, [pod("TaskFailed", None, 5)]), None, Moment(NOW + 5 * SECOND)
    )
    assert (answer.due, answer.unstamped) == (NOW + 15 * SECOND, False)


@given(st.sampled_from(["PodFailed", "TaskFailed"]), SECONDS, SECONDS, SECONDS, st.sampled_from([1.0, 10.0]))
def test_a_timeout_counts_from_what_the_pod_says_else_from_what_was_noted_on_it_else_from_now(
    event, timeout, ended, noted, speed
):
    found, moment = job(event, timeout), Moment(NOW + 60 * SECOND, speed)
    (answer,) = policies.answers(found, members.Members(found, [pod(event, ended, noted)]), None, moment)
    says = ended if event == "PodFailed" else None  # restarts are counted, not timed
    known = [NOW + each * SECOND for each in (says, noted) if each is not None]
    since = (known or [moment.now])[0]
    if timeout is None:
        assert answer.due == since
    else:
        assert 0 <= answer.due - (since + timeout * SECOND / speed) <= 1
    assert answer.delay == (None if timeout is None else timeout * SECOND)
    assert answer.unstamped == (not known and timeout is not None)
    assert (answer.action, answer.occurrence.member.name) == ("RestartJob", "j-w-0")
