"""What the group of a Job asks for and says, who goes for a restart, and when a Job that has ended may go."""

from __future__ import annotations

import copy
import itertools

import pytest

from builders import NOW, SECOND, stamp
from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.volcano.jobs import (
    expiring,
    killing,
    members,
    pod_groups,
    pod_making,
    reading,
    states,
    syncing,
)


def task(name, replicas, least=None, priority=""):
    spec = {"containers": [{"name": "c", "resources": {"requests": {f"example.com/{name}": "1"}}}]}
    spec |= {"priorityClassName": priority} if priority else {}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": spec},
        **({} if least is None else {"minAvailable": least}),
    }


def job(*tasks, status=None, annotations=None, **spec):
    metadata = {"name": "j", "namespace": "a", "uid": "u", "labels": {"l": "1"}, "annotations": annotations or {}}
    return reading.Job({"metadata": metadata, "spec": {"tasks": list(tasks), **spec}, "status": status or {}})


def group_of(made):
    known = Observed()
    for name, value in (("high", 10), ("low", 1)):
        known.feed(kinds.PRIORITY_CLASS, "ADDED", {"metadata": {"name": name}, "value": value})
    (step,) = pod_groups.keep(made, None, known)
    return step.request.manifest


def first_members(roles, minimum):
    """Say how many pods of each role the minimum is made of, as the rules have it: one after the other."""
    order = sorted(roles, key=lambda role: -{"high": 10, "low": 1}.get(role[3], 0))
    least = {name: replicas if stated is None else stated for name, replicas, stated, _ in roles}
    taken, left = dict.fromkeys(least, 0), minimum
    if minimum >= sum(least.values()):
        for name, *_ in order:
            while taken[name] < least[name] and left:
                taken[name], left = taken[name] + 1, left - 1
    for name, replicas, *_ in order:
        while taken[name] < replicas and left:
            taken[name], left = taken[name] + 1, left - 1
    return taken


@pytest.mark.parametrize("priorities", [("", ""), ("", "low"), ("low", "high"), ("high", "low")])
def test_a_group_asks_for_what_its_first_members_need(priorities):
    for first, second, minimum in itertools.product([None, 0, 1], [None, 1, 2], range(9)):
        roles = [("v", 2, first, priorities[0]), ("w", 5, second, priorities[1])]
        asked = group_of(job(*(task(*role) for role in roles), minAvailable=minimum))["spec"].get("minResources", {})
        found = {name: int(asked.get(f"requests.example.com/{name}", 0)) for name in ("v", "w")}
        assert found == first_members(roles, minimum), (first, second, minimum)


def test_a_group_bears_what_its_job_does_but_for_how_that_was_applied():
    said = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"}
    metadata = group_of(job(task("w", 1), annotations=said, status={"version": 3}))["metadata"]
    assert metadata["annotations"] == {"mine": "1", "volcano.sh/job-version": "3"}
    assert metadata["labels"] == {"l": "1"}
    assert [each["uid"] for each in metadata["ownerReferences"]] == ["u"]


@pytest.mark.parametrize(
    ("said", "found", "kept"),
    [
        (
            "no node has 4 cpu free: the freest of 2, n1, has 1 cpu",
            "no node has 4 cpu free: the freest of 2, n1, has 3 cpu",
            True,
        ),
        ("no node has 4 cpu free: the freest of 2, n1, has 1 cpu", "queue q is closed", False),
        ("queue q is closed", "", False),
        ("", "queue q is closed", False),
    ],
)
def test_the_cause_of_a_group_stays_as_it_was_told_but_for_another_one(said, found, kept):
    condition = {"type": "Unschedulable", "status": "True", "message": f"{found}; 1/1 tasks in gang unschedulable: x"}
    group = {"status": {"conditions": [condition] if found else []}}
    assert pod_groups.cause(group, said) == (said if kept else found)


def pod(name, retry, version=0, phase="Running"):
    said = {
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": name.split("-")[1],
        "volcano.sh/job-version": str(version),
    }
    metadata = {"name": name, "namespace": "a", "annotations": {**said, "volcano.sh/job-retry-count": str(retry)}}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("reason", "message", "gone"),
    [
        ("RestartTask", "task w: PodFailed of j-w-0", ["j-w-0"]),
        ("RestartPod", "pod j-w-0: PodFailed", ["j-w-0"]),
        ("RestartPod", "pod j-w-1: PodFailed", []),
        ("RestartTask", "nobody knows", []),
        ("RestartJob", "PodFailed of j-w-0", ["j-w-2"]),
    ],
)
def test_a_restart_does_away_with_those_it_is_for_that_were_made_before_it(reason, message, gone):
    status = {"version": 1, "retryCount": 2, "state": {"phase": "Restarting", "reason": reason, "message": message}}
    made = job(task("w", 3), task("v", 1), status=status, maxRetry=9)
    pods = [pod("j-w-0", 1, 1), pod("j-w-1", 2, 1), pod("j-w-2", 2, 0), pod("j-v-0", 1, 1)]
    doomed = killing.restarted(made, members.Members(made, pods), ())
    assert [each.name for each in doomed] == gone


@pytest.mark.parametrize(
    ("ttl", "now", "due"), [(0, 5, True), (10, 14, False), (10, 15, True), (None, 99, None), (-1, 99, None)]
)
@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Running", "Aborted"])
def test_a_job_that_has_ended_goes_after_as_long_as_it_said_once_it_is_certain_that_it_is_that_one(
    ttl, now, due, phase
):
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    status = {"state": {"phase": phase, "lastTransitionTime": stamp(5)}}
    known = Observed()
    metadata = {"name": "j", "namespace": "a", "uid": "u"}
    known.feed(kinds.JOB, "ADDED", {"metadata": metadata, "spec": spec, "status": status})
    plan = expiring.ExpiredJobs().reconcile("a", "j", known, requests.Moment(NOW + now * SECOND))
    ended = phase in ("Completed", "Failed", "Terminated")
    assert plan.again == (NOW + 15 * SECOND if ended and due is False else None)
    if not (ended and due):
        assert plan.steps == []
        return
    sure, deletion = (each.request for each in plan.steps)
    assert isinstance(sure, requests.Confirm)
    assert (sure.uid, deletion.uid, deletion.policy) == ("u", "u", "Foreground")


@pytest.mark.parametrize(
    ("stated", "asked"),
    [
        ({"mode": "soft", "highestTierAllowed": 2}, {"mode": "soft", "highestTierAllowed": 2}),
        ({"highestTierAllowed": 0, "highestTierName": "rack"}, {"mode": "hard", "highestTierAllowed": 0}),
        ({"highestTierName": "rack"}, {"mode": "hard", "highestTierName": "rack"}),
        ({}, None),
    ],
)
def test_a_group_has_the_network_topology_of_its_job(stated, asked):
    assert group_of(job(task("w", 1), networkTopology=stated))["spec"].get("networkTopology") == asked


@pytest.mark.parametrize("field", ["schedulerName", "priorityClassName"])
@pytest.mark.parametrize("of_job", [None, "", "of the job"])
@pytest.mark.parametrize("own", [None, "", "own"])
def test_pods_have_what_their_template_says_else_what_their_job_says(field, of_job, own):
    role = task("w", 1)
    role["template"]["spec"] |= {} if own is None else {field: own}
    made = job(role, **({} if of_job is None else {field: of_job}))
    pod = pod_making.PodMaker(made, "g", (), forwarded=False).make(made.roles[0], 0, replaces_evicted=False)
    assert pod["spec"].get(field) == (own or of_job or own)


def test_no_more_than_a_thousand_pods_are_made_in_one_look_whichever_tasks_they_are_of():
    made = job(task("v", 700), task("w", 700))
    maker = pod_making.PodMaker(made, "g", (), forwarded=False)
    staffing = syncing.staff(made, members.Members(made, []), maker, Observed())
    roles = [each.request.manifest["metadata"]["name"].split("-")[1] for each in staffing.creations]
    assert (roles.count("v"), roles.count("w"), staffing.is_partial) == (700, 300, True)


@pytest.mark.parametrize(
    ("least", "partition", "minimum"),
    [
        (None, None, 4),
        (None, {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}, 2),
        (None, {"totalPartitions": 2, "partitionSize": 2}, 4),
        (3, {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}, 3),
        (3, None, 3),
    ],
)
def test_a_group_wants_of_a_task_what_it_says_else_its_fewest_partitions_else_all(least, partition, minimum):
    asked = task("w", 4, least) | ({} if partition is None else {"partitionPolicy": partition})
    assert group_of(job(asked, minAvailable=1))["spec"]["minTaskMember"] == {"w": minimum}


@pytest.mark.parametrize(
    ("present", "patch"),
    [
        ({}, None),
        ({"minMember": 2}, {"minMember": 1}),
        ({"minTaskMember": {"w": 2, "old": 1}}, {"minTaskMember": {"w": 1, "old": None}}),
        ({"minTaskMember": None}, {"minTaskMember": {"w": 1}}),
        ({"subGroupPolicy": [{"name": "w"}]}, {"subGroupPolicy": []}),
        ({"minResources": {"cpu": "1"}}, {"minResources": {"cpu": None, "count/pods": "1", "pods": "1"}}),
        ({"queue": "other", "networkTopology": {"mode": "soft"}}, None),  # these are not changed once it is there
    ],
)
def test_a_group_is_brought_up_to_date_in_what_its_job_may_change(present, patch):
    plain = {"name": "w", "replicas": 1, "template": {"spec": {}}}
    made = job(plain, minAvailable=1)
    spec = group_of(made)["spec"] | present
    group = {"metadata": {"name": "j-u", "namespace": "a", "uid": "g"}, "spec": spec}
    steps = pod_groups.keep(made, group, Observed())
    assert [each.request.body for each in steps] == ([] if patch is None else [{"spec": patch}])


VOLUMES = [{"volumeClaimName": "c", "mountPath": "/first"}, {"volumeClaimName": "c", "mountPath": "/second"}]


class Adding:
    """Adds a variable to every container."""

    def complete(self, made, place):
        made["spec"]["containers"][0]["env"] = [{"name": "X", "value": str(place.index)}]


@pytest.mark.parametrize("plugins", [(), (Adding(),)])
@pytest.mark.parametrize("volumes", [[], VOLUMES])
def test_a_pod_is_completed_by_volumes_and_plugins_and_its_template_stays_as_it_is(volumes, plugins):
    role = task("w", 2)
    before = copy.deepcopy(role["template"])
    made = job(role, volumes=volumes)
    found = pod_making.PodMaker(made, "g", plugins, forwarded=False).make(made.roles[0], 1, replaces_evicted=False)
    (container,) = found["spec"]["containers"]
    assert [each["mountPath"] for each in container.get("volumeMounts", [])] == (["/first"] if volumes else [])
    claims = [each["persistentVolumeClaim"]["claimName"] for each in found["spec"].get("volumes", [])]
    assert claims == (["c"] if volumes else [])
    assert container.get("env", []) == ([{"name": "X", "value": "1"}] if plugins else [])
    assert role["template"] == before


@pytest.mark.parametrize(("length", "labelled"), [(1, True), (63, True), (64, False)])
def test_a_pod_is_labelled_with_a_queue_whose_name_a_label_can_hold(length, labelled):
    made = job(task("w", 1), queue="q" * length)
    metadata = pod_making.PodMaker(made, "g", (), forwarded=False).make(made.roles[0], 0, replaces_evicted=False)[
        "metadata"
    ]
    assert ("volcano.sh/queue-name" in metadata["labels"]) is labelled
    assert metadata["annotations"]["volcano.sh/queue-name"] == "q" * length


BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


@pytest.mark.parametrize(
    ("stated", "copied"), [((), ()), (BUDGETS[:1], BUDGETS[:1]), (BUDGETS[1:], BUDGETS[1:]), (BUDGETS, BUDGETS[:1])]
)
def test_a_pod_has_one_of_the_budgets_of_its_job(stated, copied):
    made = job(task("w", 1), annotations=dict.fromkeys(stated, "1"))
    metadata = pod_making.PodMaker(made, "g", (), forwarded=False).make(made.roles[0], 0, replaces_evicted=False)[
        "metadata"
    ]
    assert {key for key in BUDGETS if key in metadata["annotations"]} == set(copied)


# ---- who may begin


def depending(*names, least=(None, None), iteration=None):
    first, second = least
    depends = {"name": list(names)} | ({} if iteration is None else {"iteration": iteration})
    return job(task("w", 2, first), task("x", 2, second), {**task("v", 1), "dependsOn": depends})


@pytest.mark.parametrize(
    ("made", "running", "begins"),
    [
        (depending(), (), True),
        (depending("w"), (), True),  # one that says no least is ready at once
        (depending("w", least=(2, None)), ("j-w-0",), False),
        (depending("w", least=(2, None)), ("j-w-0", "j-w-1"), True),
        (depending("w", least=(1, None)), ("j-w-0", "j-w-1"), True),
        (depending("w", least=(0, None)), (), True),
        (depending("nobody"), (), False),
        (depending("w", "x", least=(1, 1)), ("j-w-0",), False),
        (depending("w", "x", least=(1, 1)), ("j-w-0", "j-x-0"), True),
        (depending("w", "x", least=(1, 1), iteration="all"), ("j-w-0",), False),
        (depending("w", "x", least=(1, 1), iteration="any"), ("j-w-0",), True),
        (depending("w", "x", least=(1, 1), iteration="any"), ("j-x-0",), True),
        (depending("w", "x", least=(1, 1), iteration="any"), (), False),
        (depending("w", "nobody", least=(1, 1), iteration="any"), ("j-w-0",), True),
        (depending("w", least=(1, None), iteration="any"), (), False),
    ],
)
def test_a_task_begins_when_all_it_depends_on_are_ready_or_any_if_it_says_so(made, running, begins):
    there = [pod(name, 0) for name in running]
    for each in there:
        each["status"]["containerStatuses"] = [{"ready": True}]
    maker = pod_making.PodMaker(made, "g", (), forwarded=False)
    staffing = syncing.staff(made, members.Members(made, there), maker, Observed())
    created = [each.request.manifest["metadata"]["name"] for each in staffing.creations]
    assert ("j-v-0" in created) is begins


def test_what_is_made_in_one_look_ends_with_a_thousand_pods():
    made = job(task("v", 1000), task("w", 5), task("x", 5))
    maker = pod_making.PodMaker(made, "g", (), forwarded=False)
    assert len(syncing.staff(made, members.Members(made, []), maker, Observed()).creations) == 1000


@pytest.mark.parametrize(
    ("least", "going", "phase"),
    [(3, 0, "Pending"), (3, 1, "Pending"), (3, 2, "Restarting"), (1, 3, "Pending"), (1, 4, "Restarting")],
)
def test_a_restart_is_over_when_enough_of_its_pods_do_not_go_any_more(least, going, phase):
    made = job(task("w", 4), minAvailable=least, maxRetry=9, status={"state": {"phase": "Restarting"}})
    there = [pod(f"j-w-{index}", 0) for index in range(4)]
    for each in there[:going]:
        each["metadata"]["deletionTimestamp"] = stamp(1)
    assert states.moved(made, members.Members(made, there)) == phase


# ---- reading


def manifest_of(uid="u", generation=1, replicas=1):
    metadata = {"name": "j", "namespace": "a"}
    metadata |= {"uid": uid} if uid else {}
    metadata |= {"generation": generation} if generation else {}
    return {"metadata": metadata, "spec": {"tasks": [{"name": "w", "replicas": replicas}]}}


@pytest.mark.parametrize(
    ("second", "same"),
    [
        (manifest_of(), True),
        (manifest_of(generation=2), False),
        (manifest_of("v"), False),
        (manifest_of(generation=None), False),
        (manifest_of(None), False),
    ],
)
def test_what_a_job_asks_for_is_read_once_for_each_of_its_generations(second, same):
    reader = reading.Reader()
    first = reader.read(manifest_of())
    assert (reader.read(second).asked is first.asked) is same
    for uid, generation in ((None, 1), ("u", None), (None, None)):
        sizes = [reader.read(manifest_of(uid, generation, replicas)).replicas for replicas in (1, 2)]
        assert sizes == [1, 2]  # nobody knows whether they are the same


@pytest.mark.parametrize("named", ["", "high"])
def test_a_group_has_the_priority_class_of_its_job(named):
    spec = group_of(job(task("w", 1), **({"priorityClassName": named} if named else {})))["spec"]
    assert spec.get("priorityClassName", "") == named


@pytest.mark.parametrize(("iteration", "is_any"), [("any", True), ("all", False), ("Any", False), (None, False)])
def test_a_task_says_whether_any_of_those_it_depends_on_is_enough(iteration, is_any):
    assert depending("w", "x", iteration=iteration).roles[2].any_dependency is is_any
