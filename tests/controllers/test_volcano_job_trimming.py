"""What is kept of a pod is all that the controller of Jobs reads of it."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.jobs import members, policies, reading, trimming
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.sim import structure

TIMES = st.sampled_from((None, "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "never"))
STATE = st.fixed_dictionaries(
    {},
    optional={
        "terminated": st.fixed_dictionaries({"exitCode": st.integers(0, 3), "finishedAt": TIMES}),
        "running": st.just({}),
    },
)
CONTAINER = st.fixed_dictionaries(
    {"name": st.just("c"), "ready": st.booleans(), "restartCount": st.integers(0, 3)}, optional={"state": STATE}
)
STATUS = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(("Pending", "Running", "Succeeded", "Failed", "Unknown")),
        "containerStatuses": st.lists(CONTAINER, max_size=2),
        "initContainerStatuses": st.lists(CONTAINER, max_size=2),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(("Ready", "PodScheduled")), "status": st.sampled_from(("True", "False"))},
                optional={"lastTransitionTime": TIMES},
            ),
            max_size=2,
        ),
        "podIP": st.just("10.0.0.1"),
    },
)
EXTRA = st.sets(st.sampled_from((policies.REPLACES_EVICTED, "volcano.sh/controller-out-of-sync", "other")))
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
JOB = reading.Job(
    {
        "metadata": {"name": "j", "namespace": "a", "uid": "u"},
        "spec": {
            "tasks": [{"name": "w", "replicas": 2, "maxRetry": 2, "template": {}}],
            "policies": [{"event": "*", "action": "RestartPod", "timeout": "1m"}],
        },
        "status": {"state": {"phase": "Running"}},
    }
)


def full(index, status, extra, going, partition):
    annotations = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/job-version": "0"}
    metadata = {
        "name": f"j-w-{index}",
        "namespace": "a",
        "uid": str(index),
        "resourceVersion": "1",
        "managedFields": [],
    }
    metadata |= {"annotations": {**annotations, **dict.fromkeys(extra, "true")}, "ownerReferences": [OWNER]}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"} | (
        {"deletionTimestamp": "2026-01-01T00:09:00Z"} if going else {}
    )
    labels = {"app": "x"} | ({"volcano.sh/partition-id": partition} if partition else {})
    return {"metadata": {**metadata, "labels": labels}, "spec": {"containers": []}, "status": status}


def facts(pods):
    found = members.Members(JOB, pods)
    moment = requests.Moment(1_767_225_900_000_000)
    said = [(str(each), each.action, each.due, each.unstamped) for each in policies.answers(JOB, found, None, moment)]
    each = [(member.partition, members.changed_at(member), members.exit_code(member.pod)) for member in found.all]
    return said, each, found.role_counts(), found.terminating, found.ready(JOB.roles[0])


PODS = st.tuples(STATUS, EXTRA, st.booleans(), st.sampled_from(("", "3")))


@given(st.lists(PODS, min_size=1, max_size=2))
def test_a_job_reads_the_same_off_what_is_kept_of_its_pods(drawn):
    whole = [full(index, *each) for index, each in enumerate(drawn)]
    assert facts([trimming.pod(structure.copied(pod)) for pod in whole]) == facts(whole)


@given(PODS, PODS)
def test_changes_that_matter_are_seen_in_what_is_kept(before, after):
    old, new = full(0, *before), full(0, *after)
    jobs, same = Jobs(), facts([old]) == facts([new])
    if jobs.is_same(kinds.POD, trimming.pod(structure.copied(old)), trimming.pod(structure.copied(new))):
        without_times = [(answer[:2], answer[3]) for answer in facts([old])[0]]
        assert same or without_times == [(answer[:2], answer[3]) for answer in facts([new])[0]]
        assert facts([old])[2:] == facts([new])[2:]


def test_of_an_object_is_kept_who_it_is_and_whose_wherever_it_is():
    found = {"metadata": {"name": "x", "labels": {"l": "1"}}, "spec": {}}
    assert trimming.metadata_alone(found) == {"metadata": {"name": "x"}}
    home = {"metadata": {"name": "x", "namespace": "a", "ownerReferences": [OWNER, "odd"]}}
    assert trimming.metadata_alone(home) == {"metadata": {**home["metadata"], "ownerReferences": [OWNER]}}


def test_of_a_container_is_kept_how_it_ended_and_not_how_it_runs():
    ended = {"exitCode": 3, "finishedAt": "2026-01-01T00:00:00Z", "reason": "Error", "startedAt": "x"}
    statuses = [
        {"name": "c", "ready": True, "state": {"running": {"startedAt": "x"}}},
        {"state": {"terminated": ended}},
    ]
    kept = trimming.pod({"metadata": {"name": "p"}, "status": {"containerStatuses": statuses}})["status"]
    assert kept["containerStatuses"] == [
        {"ready": True},
        {"state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:00:00Z"}}},
    ]
