"""What a kubelet does next for a pod, in every manner: the acts of a whole life, told by a pod that the reports are merged into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import duration, timestamp
from pumice.sim import structure
from pumice.sim.kubelets import plans, pod_life

SECOND = duration.SECOND
START = timestamp.parse("2026-01-01T00:00:00Z")
SIMULATED = pod_life.Manner(brief=True, heeds_finalizers=False)
FLEET = pod_life.Manner()
LOCAL = pod_life.Manner(restarts=True, stopping=SECOND)
MANNERS = {"simulated": SIMULATED, "fleet": FLEET, "local": LOCAL}


def pod(*, run="", code="", policy="Always", node="n", finalizers=(), deleted=None, phase=None):
    annotations = {"pumice.dev/run-time": run} if run else {}
    annotations |= {"pumice.dev/exit-code": code} if code else {}
    metadata = {"name": "p", "namespace": "a", "uid": "u", "annotations": annotations, "finalizers": list(finalizers)}
    if deleted is not None:
        metadata["deletionTimestamp"] = timestamp.format_timestamp(START + deleted * SECOND)
    spec = {"nodeName": node, "restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase} if phase else {}}


def lived(manifest, manner, most=6):
    """Do what comes next until nothing does, and give each act with its second."""
    now, acts = START, []
    while len(acts) < most:
        wanted = pod_life.next_action(manifest, now, manner)
        if not wanted.act:
            return acts, manifest
        now = max(now, wanted.at)
        acts.append((wanted.act, (now - START) // SECOND))
        if wanted.act == "remove":
            return acts, None
        status = pod_life.report(wanted, manifest, timestamp.format_timestamp(now), "10.0.0.1", brief=manner.brief)
        manifest = structure.merged(manifest, structure.strategic(manifest, {"status": status}))
    return acts, manifest


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize(("code", "phase"), [("", "Succeeded"), ("3", "Failed")])
def test_a_pod_that_is_not_restarted_starts_runs_its_time_and_ends_in_every_manner(manner, code, phase):
    acts, left = lived(pod(run="60s", code=code, policy="Never"), manner)
    assert acts == [("start", 0), ("end", 60)]
    ended = left["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (left["status"]["phase"], ended["exitCode"]) == (phase, int(code or 0))


@pytest.mark.parametrize(("stamped", "given", "at"), [(20, 30, 20), (30, 30, 30), (3600, 30, 30), (3600, None, 3600)])
def test_a_pod_that_is_deleted_has_the_grace_that_it_was_given_though_the_stamp_is_of_a_clock_that_is_ahead(
    stamped, given, at
):
    manifest = pod(deleted=stamped, phase="Running")
    manifest["metadata"] |= {} if given is None else {"deletionGracePeriodSeconds": given}
    assert pod_life.next_action(manifest, START, FLEET)[:2] == ("remove", START + at * SECOND)


RESTARTS = {
    "always": ("Always", "", [("back off", 5), ("restart", 15), ("back off", 20), ("restart", 40), ("back off", 45)]),
    "on failure, failing": ("OnFailure", "1", [("back off", 5), ("restart", 15), ("back off", 20), ("restart", 40)]),
    "on failure, good": ("OnFailure", "", [("end", 5)]),
    "never": ("Never", "1", [("end", 5)]),
}


@pytest.mark.parametrize(("policy", "code", "expected"), RESTARTS.values(), ids=RESTARTS)
def test_containers_are_started_again_as_the_policy_says_after_pauses_that_double(policy, code, expected):
    acts, left = lived(pod(run="5s", code=code, policy=policy), LOCAL, most=1 + len(expected))
    assert acts == [("start", 0), *expected]
    count = sum(act == "restart" for act, _ in expected)
    assert left["status"]["containerStatuses"][0]["restartCount"] == count


@pytest.mark.parametrize("manner", [SIMULATED, FLEET], ids=["simulated", "fleet"])
def test_policies_of_restarting_mean_nothing_where_nobody_restarts(manner):
    assert lived(pod(run="5s", policy="Always"), manner)[0] == [("start", 0), ("end", 5)]


ENDINGS = {
    "all its grace": (SIMULATED, {}, [("remove", 30)]),
    "all its grace, on an API": (FLEET, {}, [("remove", 30)]),
    "containers that heed the signal": (LOCAL, {}, [("remove", 1)]),
    "ended before": (FLEET, {"phase": "Succeeded"}, [("remove", 0)]),
    "held by finalizers": (FLEET, {"finalizers": ["x"]}, [("stop", 30), ("remove", 30)]),
    "held by finalizers, and stopping soon": (LOCAL, {"finalizers": ["x"]}, [("stop", 1), ("remove", 1)]),
    "finalizers that nobody clears": (SIMULATED, {"finalizers": ["x"]}, [("remove", 30)]),
}


@pytest.mark.parametrize(("manner", "fields", "expected"), ENDINGS.values(), ids=ENDINGS)
def test_a_deleted_pod_goes_when_its_containers_have_stopped(manner, fields, expected):
    assert lived(pod(**{"phase": "Running", "deleted": 30, **fields}), manner)[0] == expected


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize("fields", [{"node": ""}, {"phase": "Succeeded"}, {"phase": "Failed"}, {"phase": "Unknown"}])
def test_nothing_is_done_for_a_pod_without_a_node_or_with_an_end(manner, fields):
    assert lived(pod(run="1s", **fields), manner)[0] == []


def test_a_container_that_another_kubelet_left_waiting_is_left_so():
    given_pod = pod(phase="Running")
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    given_pod["status"]["containerStatuses"] = [{"name": "c", "containerID": "containerd://1", "state": waiting}]
    assert lived(given_pod, LOCAL)[0] == []


@given(
    st.sampled_from(list(MANNERS.values())),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.sampled_from(["", "x", "Running", "60s", "2026-01-01T00:00:00Z"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["phase", "startTime", "containerStatuses", "state", "waiting", "restartCount", "name"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    ),
)
def test_no_status_that_somebody_wrote_keeps_a_kubelet_from_its_work(manner, status):
    manifest = {**pod(run="5s"), "status": status}
    wanted = pod_life.next_action(manifest, START, manner)
    pod_life.report(wanted, manifest, "2026-01-01T00:00:00Z", "10.0.0.1", brief=manner.brief)
    assert wanted.cause == pod_life.next_action(manifest, START + SECOND, manner, plans.annotated).cause
