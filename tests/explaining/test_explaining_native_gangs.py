"""Gangs of Kubernetes' own are found by name, explained, and shown in `pumice top` like others."""

from __future__ import annotations

import pytest

import builders
from pumice.api import decoding, kinds
from pumice.study import naming
from pumice.study.following.tracking import Tracker
from pumice.study.state import State, StudyError

MARK = "@scheduling.k8s.io"


def native(name, **more):
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    metadata = {"name": name, "namespace": "a", "uid": f"native-{name}", **more.pop("metadata", {})}
    api_version = kinds.NATIVE_POD_GROUP.api_version
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec, **more}


def member(name, group):
    made = builders.pod(name, namespace="a")
    return {**made, "spec": {**made["spec"], "schedulingGroup": {"podGroupName": group}}}


def state(*listed):
    found = [(kinds.find(each["apiVersion"], each["kind"]), decoding.decode(each)) for each in listed]
    return State(source="a test", now=0, objects=found)


def test_a_gang_is_found_by_its_name_and_one_of_two_apis_by_the_whole_of_it():
    one = state(native("g"), member("p", "g"))
    assert naming.find(one, "job", "g") == naming.find(one, "job", f"a/g{MARK}") == f"a/g{MARK}"
    two = state(native("g"), builders.group("g", namespace="a"), member("p", "g"))
    with pytest.raises(StudyError, match="2 have this name"):
        naming.find(two, "job", "a/g")
    assert naming.find(two, "job", f"a/g{MARK}") == f"a/g{MARK}"


def test_a_group_that_only_pods_name_is_found_too():
    assert naming.find(state(member("p", "h")), "job", "h") == f"a/h{MARK}"


def test_top_shows_a_gang_with_its_queue_minimum_and_reason():
    tracker = Tracker()
    condition = {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "waiting for 1 more pods of the gang; 1/1 tasks in gang unschedulable: pod group is not ready",
    }
    listed = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}}
    group = native("g", status={"conditions": [condition]}, **listed)
    for each in (group, member("p", "g")):
        tracker.feed(kinds.find(each["apiVersion"], each["kind"]), "ADDED", decoding.decode(each))
    (row,) = tracker.look(0).jobs
    assert (row.name, row.queue, row.minimum, row.members, row.phase) == (f"g{MARK}", "q", 2, 1, "Pending")
    assert row.reason == "waiting for 1 more pods of the gang"
    done = {**condition, "status": "True", "reason": "Scheduled", "message": ""}
    group = native("g", status={"conditions": [done]}, **listed)
    tracker.feed(kinds.NATIVE_POD_GROUP, "MODIFIED", decoding.decode(group))
    assert [each.phase for each in tracker.look(0).jobs] == ["Running"]
    tracker.feed(kinds.NATIVE_POD_GROUP, "DELETED", decoding.decode(group))
    assert tracker.look(0).jobs == ()
