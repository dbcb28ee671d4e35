"""What a Deployment says of itself, case by case, and which sets it makes, numbers and forgets."""

from __future__ import annotations

import pytest
from workload_objects import START, at, stamp

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads.deployments import reporting, revisions, scaling
from pumice.controllers.workloads.deployments.controlling import Deployments

NOW = at(1000)
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}
OLD = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}


def made(name, size, *, new=False, notes=None, going=False, created=0, generation=1, pause=None, **status):
    template = TEMPLATE if new else OLD
    labels = {**template["metadata"]["labels"], scaling.HASH: name}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u-d", "controller": True}
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "labels": labels, "annotations": notes or {}}
    metadata |= {"creationTimestamp": stamp(created), "generation": generation, "resourceVersion": "3"}
    metadata |= {"ownerReferences": [owner]} | ({"deletionTimestamp": stamp(1)} if going else {})
    spec = {"replicas": size, "template": {**template, "metadata": {"labels": labels}}}
    spec |= {} if pause is None else {"minReadySeconds": pause}
    counts = {"replicas": size, "readyReplicas": size, "availableReplicas": size, "observedGeneration": 1}
    return {"metadata": metadata, "spec": spec, "status": {**counts, **status}}


def deployment(replicas=4, *, status=None, notes=None, going=False, **spec):
    metadata = {"name": "d", "namespace": "a", "uid": "u-d", "generation": 6, "annotations": notes or {}}
    metadata |= {"deletionTimestamp": stamp(1)} if going else {}
    selector = {"matchLabels": {"app": "a"}}
    return {
        "metadata": {**metadata, "resourceVersion": "2"},
        "spec": {"replicas": replicas, "selector": selector, "template": TEMPLATE, **spec},
        "status": status or {},
    }


def condition(kind, status="True", reason="", **more):
    return {"type": kind, "status": status, "reason": reason, **more}


def status_of(owner, *sets, changes=(), scaled=False):
    """Give the status as it is after what was written."""
    steps = reporting.status_steps(scaling.Sets(owner, sets), NOW, changes, scaled=scaled)
    merged = dict(owner["status"])
    for step in steps:
        merged |= step.request.body["status"]
    return {field: value for field, value in merged.items() if value is not None}


def said(status, kind):
    found = [each for each in status.get("conditions", []) if each["type"] == kind]
    return found[0] if found else None


def test_the_counts_are_those_of_all_sets_and_of_the_new_one():
    new = made("n", 3, new=True, replicas=2, readyReplicas=2, availableReplicas=1, terminatingReplicas=1)
    old = made("o", 2, terminatingReplicas=2)
    found = status_of(deployment(status={"kept": 1, "replicas": 9}), new, old)
    found.pop("conditions")
    assert found == {
        "kept": 1,
        "replicas": 4,
        "updatedReplicas": 2,
        "readyReplicas": 4,
        "availableReplicas": 3,
        "unavailableReplicas": 2,
        "terminatingReplicas": 3,
        "observedGeneration": 6,
    }
    bare = status_of(deployment(), made("o", 2, availableReplicas=5))
    assert "unavailableReplicas" not in bare
    assert "updatedReplicas" not in bare
    assert bare["terminatingReplicas"] == 0


@pytest.mark.parametrize(("ready", "status"), [(2, "False"), (3, "True"), (4, "True")])
def test_it_is_available_while_no_more_are_missing_than_may_be(ready, status):
    found = said(status_of(deployment(), made("n", 4, new=True, availableReplicas=ready)), "Available")
    reasons = {"True": "MinimumReplicasAvailable", "False": "MinimumReplicasUnavailable"}
    assert (found["status"], found["reason"]) == (status, reasons[status])


def test_why_a_set_cannot_have_its_pods_is_passed_on_and_taken_back():
    failure = condition("ReplicaFailure", reason="FailedCreate", message="quota", lastTransitionTime=stamp(5))
    failing, fine = made("n", 4, new=True, conditions=[failure]), made("n", 4, new=True)
    found = said(status_of(deployment(), failing), "ReplicaFailure")
    assert (found["message"], found["lastUpdateTime"]) == ("quota", stamp(5))
    told = deployment(status={"conditions": [found]})
    assert said(status_of(told, fine), "ReplicaFailure") is None
    old = made("o", 4, conditions=[failure])
    assert said(status_of(deployment(), fine, old), "ReplicaFailure") is None
    assert said(status_of(deployment(), old), "ReplicaFailure") is not None


def moving(since=990, reason="ReplicaSetUpdated", status="True", **counts):
    there = condition(
        "Progressing", status, reason, message="m", lastUpdateTime=stamp(since), lastTransitionTime=stamp(7)
    )
    return {"conditions": [there], **counts}


WHOLE = made("n", 4, new=True)
HALF = made("n", 4, new=True, readyReplicas=2, availableReplicas=2)
HELD = {"replicas": 4, "updatedReplicas": 4, "readyReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("owner", "sets", "reason", "status", "updated"),
    [
        (deployment(), [], "ReplicaSetUpdated", "True", 1000),
        (deployment(), [HALF], "ReplicaSetUpdated", "True", 1000),
        (deployment(), [WHOLE], "NewReplicaSetAvailable", "True", 1000),
        (deployment(), [WHOLE, made("o", 1)], "ReplicaSetUpdated", "True", 1000),
        (deployment(status=moving(reason="NewReplicaSetAvailable")), [WHOLE], "NewReplicaSetAvailable", "True", 990),
        (deployment(status=moving(**HELD)), [HALF], "ReplicaSetUpdated", "True", 990),
        (deployment(status=moving(**{**HELD, "readyReplicas": 1})), [HALF], "ReplicaSetUpdated", "True", 1000),
        (deployment(status=moving(**{**HELD, "readyReplicas": 3})), [HALF], "ReplicaSetUpdated", "True", 990),
        (deployment(status=moving(**{**HELD, "replicas": 5})), [HALF], "ReplicaSetUpdated", "True", 1000),
        (deployment(status=moving(since=400, **HELD)), [HALF], "ProgressDeadlineExceeded", "False", 1000),
        (deployment(status=moving(since=401, **HELD)), [HALF], "ReplicaSetUpdated", "True", 401),
        (
            deployment(status=moving(since=400, reason="NewReplicaSetAvailable", **HELD)),
            [HALF],
            "NewReplicaSetAvailable",
            "True",
            400,
        ),
        (
            deployment(progressDeadlineSeconds=10, status=moving(**HELD)),
            [HALF],
            "ProgressDeadlineExceeded",
            "False",
            1000,
        ),
        (
            deployment(progressDeadlineSeconds=2**31 - 1, status=moving(since=1, **HELD)),
            [HALF],
            "ReplicaSetUpdated",
            "True",
            1,
        ),
    ],
)
def test_a_roll_out_moves_is_over_or_has_taken_too_long(owner, sets, reason, status, updated):
    found = said(status_of(owner, *sets), "Progressing")
    assert (found["reason"], found["status"], found["lastUpdateTime"]) == (reason, status, stamp(updated))
    if owner["status"] and status == "True":
        assert found["lastTransitionTime"] == stamp(7)


def test_a_set_that_was_made_is_named_and_one_that_is_scaled_or_paused_is_not_told_of():
    created = requests.Step(request=effects.Create(kind=kinds.REPLICA_SET, manifest=made("fresh", 1)))
    found = said(status_of(deployment(), changes=[created]), "Progressing")
    assert (found["reason"], found["message"]) == ("NewReplicaSetCreated", 'Created new replica set "fresh"')
    patched = requests.Step(request=requests.Delete(kind=kinds.POD, namespace="a", name="x", uid="u"))
    moved = status_of(deployment(status=moving(**HELD)), HALF, changes=[patched])
    assert said(moved, "Progressing")["lastUpdateTime"] == stamp(1000)
    assert 'ReplicaSet "n" is progressing' in said(moved, "Progressing")["message"]
    assert 'Deployment "d" is progressing' in said(status_of(deployment()), "Progressing")["message"]
    assert 'ReplicaSet "n" has successfully' in said(status_of(deployment(), WHOLE), "Progressing")["message"]
    assert said(status_of(deployment(), HALF, scaled=True), "Progressing") is None
    paused = said(status_of(deployment(paused=True), HALF), "Progressing")
    assert (paused["reason"], paused["status"]) == ("DeploymentPaused", "Unknown")
    again = status_of(deployment(paused=True, status=moving(**HELD)), HALF)
    assert said(again, "Progressing")["reason"] == "ReplicaSetUpdated"


@pytest.mark.parametrize(
    ("owner", "sets", "at"),
    [
        (deployment(status=moving(since=990, **HELD)), [HALF], 1590),
        (deployment(progressDeadlineSeconds=20, status=moving(since=990, **HELD)), [HALF], 1010),
        (deployment(progressDeadlineSeconds=10, status=moving(since=990, **HELD)), [HALF], None),
        (deployment(status=moving(since=990)), [WHOLE], None),
        (deployment(), [HALF], None),
        (deployment(progressDeadlineSeconds=2**31 - 1, status=moving(since=990, **HELD)), [HALF], None),
        (deployment(status=moving(since=990)), [made("o", 4)], 1590),
    ],
)
def test_it_looks_again_when_a_roll_out_that_does_not_move_will_have_taken_too_long(owner, sets, at):
    found = reporting.deadline(scaling.Sets(owner, sets), NOW)
    assert found == (None if at is None else START + at * duration.SECOND)


# ---- revisions


def numbered(revision, past=""):
    return {revisions.REVISION: str(revision)} | ({revisions.HISTORY: past} if past else {})


def present(owner, *sets):
    return [(step.request.name, step.request.body) for step in revisions.present(scaling.Sets(owner, sets))]


def test_the_new_set_has_the_highest_number_and_remembers_those_it_had():
    shown = deployment(notes=numbered(3))
    old = made("o", 0, notes=numbered(2))
    assert present(shown, old, made("n", 4, new=True, notes=numbered(3))) == []
    back = made("n", 4, new=True, notes=numbered(1, "0"))
    assert present(shown, old, back) == [("n", {"metadata": {"annotations": numbered(3, "0,1")}})]
    first = made("n", 4, new=True)
    assert present(deployment(), first) == [
        ("n", {"metadata": {"annotations": numbered(1)}}),
        ("d", {"metadata": {"annotations": numbered(1)}}),
    ]
    for unreadable in ("x", "-5", "9" * 5000, 5):
        assert revisions.number({"metadata": {"annotations": {revisions.REVISION: unreadable}}}) == 0


def test_the_new_set_has_the_annotations_and_the_pause_of_its_deployment():
    notes = {**numbered(1), "why": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    new = made("n", 4, new=True, notes=numbered(1))
    assert present(deployment(notes=notes, minReadySeconds=5), new) == [
        ("n", {"metadata": {"annotations": {"why": "x"}}, "spec": {"minReadySeconds": 5}})
    ]
    same = made("n", 4, new=True, notes={**numbered(1), "why": "x"}, pause=5)
    assert present(deployment(notes=notes, minReadySeconds=5), same) == []


def test_a_set_is_made_with_the_hash_of_its_template_in_name_labels_and_selector():
    owner = deployment(notes={"why": "x", **numbered(7)}, minReadySeconds=5)
    (step,) = revisions.present(scaling.Sets(owner, [made("o", 4, notes=numbered(7))]))
    manifest = step.request.manifest
    code = manifest["metadata"]["labels"][scaling.HASH]
    assert manifest["metadata"]["name"] == f"d-{code}"
    assert manifest["metadata"]["annotations"] == {
        "why": "x",
        **numbered(8),
        scaling.DESIRED: "4",
        scaling.MOST: "5",
    }
    labels = {"app": "a", scaling.HASH: code}
    assert manifest["spec"] == {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {**TEMPLATE, "metadata": {"labels": labels}},
        "minReadySeconds": 5,
    }
    assert step.said == ("ScalingReplicaSet", f"Scaled up replica set d-{code} from 0 to 1")
    (again,) = revisions.present(scaling.Sets(owner, [made(f"d-{code}", 5)]))
    assert again.request.manifest["metadata"]["name"] not in (f"d-{code}", "d-None")
    assert again.said is None
    (plain,) = revisions.present(scaling.Sets(deployment(), []))
    assert "minReadySeconds" not in plain.request.manifest["spec"]


SATURATED = made("n", 4, new=True, notes={**numbered(9), scaling.DESIRED: "4"})


@pytest.mark.parametrize(
    ("limit", "old", "gone"),
    [
        (1, [made("a", 0, notes=numbered(1)), made("b", 0, notes=numbered(2))], ["a"]),
        (0, [made("a", 0, notes=numbered(2)), made("b", 0, notes=numbered(1))], ["b", "a"]),
        (2, [made("a", 0), made("b", 0)], []),
        (0, [made("a", 1)], []),
        (0, [made("a", 0, replicas=1)], []),
        (0, [made("a", 0, generation=2)], []),
        (0, [made("a", 0, going=True), made("b", 0)], ["b"]),
        (1, [made("a", 0, created=2), made("b", 0, created=1)], ["b"]),
    ],
)
def test_the_oldest_sets_beyond_the_history_are_forgotten_once_they_are_empty(limit, old, gone):
    def forgotten(new, **spec):
        found = scaling.Sets(deployment(**spec), [*([new] if new else []), *old])
        return [step.request.name for step in revisions.forgotten(found)]

    assert forgotten(SATURATED, revisionHistoryLimit=limit) == gone
    assert forgotten(SATURATED) == []
    assert forgotten(HALF, revisionHistoryLimit=limit) == []
    assert forgotten(None, revisionHistoryLimit=limit) == []


def test_of_a_long_history_ten_are_kept():
    old = [made(f"o{number:02}", 0, notes=numbered(number)) for number in range(12)]
    found = revisions.forgotten(scaling.Sets(deployment(), [SATURATED, *old]))
    assert [step.request.name for step in found] == ["o00", "o01"]


# ---- the whole


def looked_at(owner, *sets, pods=()):
    observed = Observed()
    observed.feed(Deployments.kind, "ADDED", owner)
    for kind, each in [*((kinds.REPLICA_SET, each) for each in sets), *((kinds.POD, each) for each in pods)]:
        observed.feed(kind, "ADDED", each)
    return Deployments().reconcile("a", "d", observed, NOW)


def sizes(found):
    return {
        getattr(step.request, "name", "new"): (getattr(step.request, "body", {}) or step.request.manifest)["spec"][
            "replicas"
        ]
        for step in found.steps
        if isinstance(step.request, effects.Patch | effects.Create)
        and step.request.kind == kinds.REPLICA_SET
        and "replicas" in (getattr(step.request, "body", {}) or step.request.manifest).get("spec", {})
    }


def pod_of(name, phase="Running"):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"u-{name}", "controller": True}
    metadata = {"name": f"p-{name}", "namespace": "a", "uid": f"p-{name}", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"phase": phase}}


NEW = made("n", 0, new=True, notes=numbered(1))
AGED = made("o", 4, notes={scaling.DESIRED: "4", scaling.MOST: "5"})
RECREATE = {"strategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    ("owner", "sets", "pods", "expected"),
    [
        (deployment(notes=numbered(1)), [NEW, AGED], [], {"n": 1}),
        (deployment(), [AGED], [], {"new": 1}),
        (deployment(paused=True), [NEW, AGED], [], {}),
        (deployment(paused=True, notes=numbered(1)), [NEW, AGED], [], {}),
        (deployment(6, paused=True), [NEW, AGED], [], {"o": 6}),
        (deployment(6), [NEW, AGED], [], {"o": 6}),
        (deployment(6, going=True), [NEW, AGED], [], {}),
        (deployment(notes=numbered(1), **RECREATE), [NEW, AGED], [], {"o": 0}),
        (deployment(notes=numbered(1), **RECREATE), [NEW, made("o", 0)], [pod_of("o")], {}),
        (deployment(notes=numbered(1), **RECREATE), [NEW, made("o", 0)], [pod_of("o", "Failed")], {"n": 4}),
        (deployment(notes=numbered(1), **RECREATE), [NEW], [], {"n": 4}),
    ],
)
def test_a_deployment_rolls_recreates_or_follows_its_number_of_replicas(owner, sets, pods, expected):
    assert sizes(looked_at(owner, *sets, pods=pods)) == expected
    assert Deployments().reconcile("a", "gone", Observed(), NOW) == requests.Reconciled()


def test_a_set_and_its_pods_concern_its_deployment():
    observed = Observed()
    observed.feed(Deployments.kind, "ADDED", deployment())
    alone = made("alone", 1)
    del alone["metadata"]["ownerReferences"]
    alone["metadata"]["labels"] = {}
    for each in (NEW, alone):
        observed.feed(kinds.REPLICA_SET, "ADDED", each)
    concerns = Deployments().concerns
    assert list(concerns(kinds.REPLICA_SET, NEW, observed)) == [("a", "d")]
    assert list(concerns(kinds.POD, pod_of("n"), observed)) == [("a", "d")]
    stranger = pod_of("n")
    stranger["metadata"]["ownerReferences"][0]["kind"] = "Job"
    for each in (pod_of("gone"), pod_of("alone"), stranger, {"metadata": {"name": "x", "namespace": "a"}}):
        assert list(concerns(kinds.POD, each, observed)) == []


def test_a_set_that_is_nobodys_is_adopted_before_anything_else_is_done():
    orphan = made("o", 4)
    del orphan["metadata"]["ownerReferences"]
    sure, adopted = (step.request for step in looked_at(deployment(), orphan).steps)
    assert isinstance(sure, requests.Confirm)
    assert [each["uid"] for each in adopted.body["metadata"]["ownerReferences"]] == ["u-d"]


@pytest.mark.parametrize(("shown", "gone"), [(9, ["a"]), (8, [])])
def test_old_sets_are_forgotten_at_a_look_that_has_nothing_else_to_do(shown, gone):
    found = looked_at(deployment(revisionHistoryLimit=0, notes=numbered(shown)), SATURATED, made("a", 0))
    assert [step.request.name for step in found.steps if isinstance(step.request, requests.Delete)] == gone
