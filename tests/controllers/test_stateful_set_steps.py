"""What a StatefulSet does next, case by case: in order or side by side, which pods are made, removed and updated, with which volumes, and what its status says."""

from __future__ import annotations

import pytest
from workload_objects import START, at, begun, owned, stamp

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads import history, manifests, stateful_sets

NOW = at(100)
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}
OLD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "old"}]}}


def subject(replicas=3, *, status=None, going=False, **spec):
    metadata = {"name": "s", "namespace": "a", "uid": "u-s", "generation": 4, "resourceVersion": "5"}
    if going:
        metadata["deletionTimestamp"] = stamp(1)
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, **spec}
    return {"metadata": metadata, "spec": spec, "status": {"currentRevision": "s-old", **(status or {})}}


def revision(name, number, template):
    return {
        "metadata": owned(name, "StatefulSet", labels={history.LABEL: name.removeprefix("s-")}),
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": number,
    }


def pod(number, state="ready", *, of="new", since=10):
    """A pod: `ready`, `starting`, `failed` or `going`."""
    metadata = owned(
        f"s-{number}", "StatefulSet", labels={"app": "x", history.LABEL: f"s-{of}"}, creationTimestamp=stamp(0)
    )
    if state == "going":
        metadata["deletionTimestamp"] = stamp(1)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(since)}
    status = {"phase": "Failed" if state == "failed" else "Running"}
    if state in ("ready", "going"):
        status["conditions"] = [ready]
    return {"metadata": metadata, "spec": {}, "status": status}


def looked_at(owner, *pods, others=()):
    observed = Observed()
    observed.feed(kinds.STATEFUL_SET, "ADDED", owner)
    for number, (name, template) in enumerate((("s-old", OLD), ("s-new", TEMPLATE)), 1):
        observed.feed(manifests.CONTROLLER_REVISION, "ADDED", revision(name, number, template))
    for kind, each in [*((kinds.POD, each) for each in pods), *others]:
        observed.feed(kind, "ADDED", each)
    return stateful_sets.StatefulSets().reconcile("a", "s", observed, NOW)


def told(found):
    """Give the pods that come, with a plus, and those that go, with a minus."""
    steps = [step.request for step in found.steps]
    made = [f"+{each.manifest['metadata']['name'][2:]}" for each in steps if _is_pod(each, effects.Create)]
    return [*made, *(f"-{each.name[2:]}" for each in steps if _is_pod(each, requests.Delete))]


def _is_pod(request, kind):
    return isinstance(request, kind) and request.kind == kinds.POD


PARALLEL = {"podManagementPolicy": "Parallel"}
ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
CASES = [
    # in order
    ({}, [], ["+0"]),
    ({}, [pod(0)], ["+1"]),
    ({}, [pod(0, "starting")], []),
    ({}, [pod(0, "going")], []),
    ({}, [pod(0, "failed")], ["-0"]),
    ({}, [pod(1), pod(2)], ["+0"]),
    ({}, [pod(0), pod(1), pod(2)], []),
    ({}, [pod(each) for each in range(5)], ["-4"]),
    ({}, [*(pod(each) for each in range(4)), pod(4, "going")], []),
    ({}, [pod(0), pod(1, "starting"), pod(2), pod(3)], []),
    ({"minReadySeconds": 90}, [pod(0)], ["+1"]),
    ({"minReadySeconds": 91}, [pod(0)], []),
    ({"ordinals": {"start": 5}}, [pod(5)], ["+6"]),
    ({"ordinals": {"start": 1}}, [pod(each) for each in range(4)], ["-0"]),
    # side by side
    (PARALLEL, [], ["+0", "+1", "+2"]),
    (PARALLEL, [pod(0, "starting"), pod(4), pod(3), pod(5, "going")], ["+1", "+2", "-4", "-3"]),
    (PARALLEL, [pod(0), pod(1, "failed"), pod(2)], ["-1"]),
    # another template: from the highest, one at a time
    ({}, [pod(each, of="old") for each in range(3)], ["-2"]),
    ({}, [pod(0, of="old"), pod(1, of="old"), pod(2)], ["-1"]),
    (PARALLEL, [pod(0, of="old"), pod(1, of="old"), pod(2, "starting")], []),
    (PARALLEL, [pod(0, of="old"), pod(1, "starting", of="old"), pod(2)], ["-1"]),
    (PARALLEL, [pod(0, of="old"), pod(1, of="old"), pod(2, "going", of="old")], []),
    (ROLLING, [pod(0, of="old"), pod(1), pod(2)], []),
    (ROLLING, [pod(0, of="old"), pod(1, of="old"), pod(2)], ["-1"]),
    ({"updateStrategy": {"type": "OnDelete"}}, [pod(each, of="old") for each in range(3)], []),
    (
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}},
        [pod(each, of="old") for each in range(3)],
        ["-2", "-1"],
    ),
    (
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        [pod(each, of="old") for each in range(3)],
        ["-2"],
    ),
]


@pytest.mark.parametrize(("spec", "pods", "expected"), CASES)
def test_gaps_are_filled_from_the_lowest_then_others_removed_and_updated_from_the_highest(spec, pods, expected):
    assert told(looked_at(subject(**spec), *pods)) == expected


def test_a_set_that_is_going_or_whose_name_another_has_changes_nothing():
    assert told(looked_at(subject(going=True))) == []
    stranger = pod(0)
    stranger["metadata"]["ownerReferences"][0] |= {"uid": "u-other", "name": "other"}
    assert told(looked_at(subject(), stranger)) == []
    assert told(looked_at(subject(**PARALLEL), stranger)) == ["+1", "+2"]


def test_pods_are_taken_in_and_a_revision_made_before_anything_else():
    orphan, other = pod(0), pod(1)
    del orphan["metadata"]["ownerReferences"]
    del other["metadata"]["ownerReferences"]
    other["metadata"]["name"] = "other"
    confirmed, adopted = (step.request for step in looked_at(subject(), orphan, other).steps)
    assert (type(confirmed), type(adopted), adopted.name) == (requests.Confirm, effects.Patch, "s-0")
    controller = stateful_sets.StatefulSets()
    observed = begun(controller, kinds.STATEFUL_SET, subject(), orphan)
    assert list(controller.concerns(kinds.POD, pod(0), observed)) == [("a", "s")]
    assert list(controller.concerns(kinds.PERSISTENT_VOLUME_CLAIM, pod(0), observed)) == []


def test_old_revisions_are_forgotten_when_nothing_else_is_to_be_done_and_one_pod_is_wanted_where_nobody_says_how_many():
    for replicas, gone in ((2, []), (1, ["s-older"])):
        older = manifests.CONTROLLER_REVISION, revision("s-older", 0, {"spec": {}})
        found = looked_at(subject(replicas, revisionHistoryLimit=0), pod(0), others=[older])
        assert [each.request.name for each in found.steps if isinstance(each.request, requests.Delete)] == gone
    silent = subject()
    del silent["spec"]["replicas"]
    assert told(looked_at(silent, pod(0))) == []


def made(found, kind=kinds.POD):
    return [
        step.request.manifest
        for step in found.steps
        if isinstance(step.request, effects.Create) and step.request.kind == kind
    ]


@pytest.mark.parametrize(
    ("strategy", "revisions"),
    [
        ({}, ["new", "new", "new"]),
        ({"rollingUpdate": {"partition": 2}}, ["old", "old", "new"]),
        ({"type": "OnDelete", "rollingUpdate": {"partition": 2}}, ["new", "new", "new"]),
    ],
)
def test_a_pod_below_the_partition_is_made_of_the_current_revision(strategy, revisions):
    found = made(looked_at(subject(updateStrategy=strategy, ordinals={"start": 4}, **PARALLEL)))
    assert [each["metadata"]["labels"][history.LABEL] for each in found] == [f"s-{each}" for each in revisions]
    containers = {"old": OLD["spec"]["containers"], "new": TEMPLATE["spec"]["containers"]}
    assert [each["spec"]["containers"] for each in found] == [containers[each] for each in revisions]
    gone = subject(1, updateStrategy=strategy, status={"currentRevision": "s-gone"})
    assert [each["metadata"]["labels"][history.LABEL] for each in made(looked_at(gone))] == ["s-new"]


def test_a_pod_knows_its_name_and_number_and_has_claims_of_its_own_that_outlive_it():
    data = {
        "metadata": {"name": "data", "labels": {"l": "1", "app": "y"}, "annotations": {"n": "1"}},
        "spec": {"storageClassName": "fast"},
    }
    template = {**TEMPLATE, "spec": {"containers": [], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp"}]}}
    owner = subject(
        1, volumeClaimTemplates=[data, {"metadata": {"name": "logs"}}], serviceName="svc", template=template
    )
    there = kinds.PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "logs-s-0", "namespace": "a", "uid": "u"}}
    owner["status"] = {"currentRevision": "s-x"}
    observed = Observed()
    observed.feed(kinds.STATEFUL_SET, "ADDED", owner)
    observed.feed(manifests.CONTROLLER_REVISION, "ADDED", revision("s-x", 1, template))
    observed.feed(*there[:1], "ADDED", there[1])
    found = stateful_sets.StatefulSets().reconcile("a", "s", observed, NOW)
    (claim,), (member,) = made(found, kinds.PERSISTENT_VOLUME_CLAIM), made(found)
    assert claim["metadata"] == {
        "name": "data-s-0",
        "namespace": "a",
        "labels": {"l": "1", "app": "x"},
        "annotations": {"n": "1"},
    }
    assert claim["spec"] == {"storageClassName": "fast"}
    assert member["spec"] == {
        "containers": [],
        "hostname": "s-0",
        "subdomain": "svc",
        "volumes": [
            {"name": "tmp"},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-s-0"}},
            {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-s-0"}},
        ],
    }
    assert member["metadata"]["labels"] == {
        "app": "x",
        history.LABEL: "s-x",
        "statefulset.kubernetes.io/pod-name": "s-0",
        "apps.kubernetes.io/pod-index": "0",
    }
    (bare,) = made(looked_at(subject(1)))
    assert "volumes" not in bare["spec"]
    assert "subdomain" not in bare["spec"]


@pytest.mark.parametrize(
    ("pods", "spec", "expected"),
    [
        ([], {}, (0, 0, 0, 0, 0, "s-old")),
        ([pod(0), pod(1, of="old"), pod(2, "starting", of="old")], {}, (3, 2, 2, 2, 1, "s-old")),
        ([pod(0), pod(1), pod(2)], {}, (3, 3, 3, 3, 3, "s-new")),
        ([pod(0), pod(1), pod(2), pod(3)], {}, (4, 4, 4, 0, 4, "s-old")),
        ([pod(0), pod(1), pod(2, "going")], {}, (3, 2, 2, 0, 2, "s-old")),
        ([pod(0), pod(1), pod(2, "starting")], {}, (3, 2, 2, 0, 3, "s-old")),
        ([pod(0), pod(1, since=20), pod(2)], {"minReadySeconds": 90}, (3, 3, 2, 3, 3, "s-new")),
    ],
)
def test_the_status_counts_pods_and_the_update_is_current_once_all_are_of_it_and_ready(pods, spec, expected):
    observed = looked_at(subject(status={"collisionCount": 2, "kept": 1}, **spec), *pods)
    (patch,) = [
        step.request.body["status"]
        for step in observed.steps
        if isinstance(step.request, effects.Patch) and step.request.subresource == "status"
    ]
    fields = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert (*(patch.get(field, 0) for field in fields), patch.get("currentRevision", "s-old")) == expected
    assert {"replicas", "availableReplicas"} <= set(patch)
    assert (patch["updateRevision"], patch["observedGeneration"]) == ("s-new", 4)
    assert "kept" not in patch
    assert "collisionCount" not in patch
    (fresh, *_) = looked_at(subject()).steps
    assert fresh.request.body["status"]["collisionCount"] == 0


def test_a_set_looks_again_when_a_pod_will_have_been_ready_for_long_enough():
    found = looked_at(subject(minReadySeconds=95), pod(0), pod(1, since=20))
    assert found.again == START + 105 * duration.SECOND


@pytest.mark.parametrize(("name", "number"), [("s-0", 0), ("s-12", 12), ("s-01", None), ("t-1", None), ("s-x", None)])
def test_a_member_has_the_name_of_its_set_and_a_plain_number(name, number):
    assert stateful_sets.ordinal(subject(), {"metadata": {"name": name}}) == number


def test_a_new_template_becomes_the_newest_revision_and_one_that_comes_back_too():
    owner = subject()
    owner["metadata"]["annotations"] = {"why": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    observed = Observed()
    first = history.read(owner, kinds.STATEFUL_SET, observed)
    (step,) = first.steps
    told = step.request.manifest
    assert (told["revision"], told["metadata"]["annotations"], told["metadata"]["labels"]["app"]) == (
        1,
        {"why": "x"},
        "x",
    )
    assert told["metadata"]["name"] == first.update == f"s-{first.code}"
    assert len(first.code) >= 5
    taken = Observed()
    taken.feed(manifests.CONTROLLER_REVISION, "ADDED", revision(first.update, 1, OLD))
    assert history.read(owner, kinds.STATEFUL_SET, taken).update not in ("", "s-None", first.update)
    observed.feed(manifests.CONTROLLER_REVISION, "ADDED", revision("s-b", 7, TEMPLATE))
    present = history.read(owner, kinds.STATEFUL_SET, observed)
    assert (present.update, present.code, present.steps) == ("s-b", "b", [])
    assert (present.template("s-b"), present.template("s-c")) == (TEMPLATE, None)
    observed.feed(manifests.CONTROLLER_REVISION, "ADDED", revision("s-a", 9, OLD))
    (patch,) = history.read(owner, kinds.STATEFUL_SET, observed).steps
    assert (patch.request.name, patch.request.body) == ("s-b", {"revision": 10})
    (new,) = history.read({**owner, "spec": {"template": {"spec": {}}}}, kinds.STATEFUL_SET, observed).steps
    assert new.request.manifest["revision"] == 10


@pytest.mark.parametrize(("limit", "left"), [(0, ["s-r1", "s-r2"]), (1, ["s-r1"]), (2, []), (9, [])])
def test_the_oldest_revisions_beyond_the_limit_are_forgotten_but_none_that_is_live(limit, left):
    revisions = [revision(f"s-r{number}", number, OLD) for number in range(4)]
    past = history.History(revisions, "s-r3", "r3", [])
    gone = history.forgotten(subject(revisionHistoryLimit=limit), past, {"s-r3", "s-r0"})
    assert [step.request.name for step in gone] == left
    many = history.History([revision(f"s-{number}", number, OLD) for number in range(12)], "", "", [])
    assert [step.request.name for step in history.forgotten(subject(), many, ())] == ["s-0", "s-1"]


@pytest.mark.parametrize(
    ("states", "most", "gone"),
    [
        (("ready", "ready", "ready"), 1, ["-2"]),
        (("ready", "ready", "ready"), 2, ["-2", "-1"]),
        (("ready", "ready", "ready"), "100%", ["-2", "-1", "-0"]),
        (("ready", "ready", "starting"), 1, ["-2"]),
        (("ready", "ready", "starting"), 2, ["-2", "-1"]),
        (("ready", "starting", "ready"), 2, ["-2", "-1"]),
        (("ready", "starting", "starting"), 3, ["-2", "-1", "-0"]),
        (("ready", "ready", "going"), 2, ["-1"]),
        (("ready", "ready", "going"), 1, []),
    ],
)
def test_as_many_pods_may_be_missing_at_once_as_an_update_allows_from_the_highest_number(states, most, gone):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
    pods = [pod(number, state, of="old") for number, state in enumerate(states)]
    assert told(looked_at(subject(**PARALLEL, updateStrategy=strategy), *pods)) == gone
