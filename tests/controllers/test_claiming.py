"""Who belongs to a workload: what its selector matches is taken in, what it matches no longer is let go, and what others own is left alone; and how what it makes is called."""

from __future__ import annotations

import pytest
from workload_objects import stamp

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads import claims, history, manifests, naming

OURS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "u-s", "controller": True}
BESIDE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-c"}


def replica_set(name="s", app="x", **more):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", **more}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": app}}}}


def pod(name, app="x", *, references=(), finalizers=(), **more):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "7", "labels": {"app": app}}
    metadata |= {"ownerReferences": list(references)} if references else {}
    metadata |= {"finalizers": list(finalizers)} if finalizers else {}
    return {"metadata": {**metadata, **more}}


def seen(*pods):
    observed = Observed()
    for each in pods:
        observed.feed(kinds.POD, "ADDED", each)
    return observed


def claimed(owner, *pods, finalizer=""):
    """Give the names of those that an owner has, and what is written about them, by name."""
    found, steps = claims.claim(
        owner,
        kinds.REPLICA_SET,
        kinds.POD,
        seen(*pods),
        lambda each: manifests.labels(each).get("app") == "x",
        finalizer=finalizer,
    )
    writes = {step.request.name: step.request.body["metadata"] for step in steps if hasattr(step.request, "body")}
    assert all(each.pop("resourceVersion") == "7" for each in writes.values())  # what is written is what was seen
    sure = [step.request for step in steps if isinstance(step.request, requests.Confirm)]
    return [manifests.name(each) for each in found], writes, [(each.name, each.uid) for each in sure]


@pytest.mark.parametrize(
    ("references", "left"), [([OURS], None), ([BESIDE, OURS], [BESIDE]), ([OURS, BESIDE], [BESIDE])]
)
def test_what_a_selector_matches_no_longer_is_let_go_and_keeps_its_other_owners(references, left):
    found, writes, sure = claimed(replica_set(), pod("p", "y", references=references))
    assert (found, writes, sure) == ([], {"p": {"ownerReferences": left}}, [])


@pytest.mark.parametrize("going", [False, True])
def test_nobody_is_let_go_or_taken_in_that_is_being_deleted(going):
    deleted = {"deletionTimestamp": stamp(1)} if going else {}
    theirs = pod("theirs", "y", references=[OURS], **deleted), pod("nobodys", **deleted)
    found, writes, _ = claimed(replica_set(), *theirs)
    assert (found, sorted(writes)) == (([], []) if going else (["nobodys"], ["nobodys", "theirs"]))


def test_who_is_being_deleted_itself_keeps_what_it_has_and_takes_in_nobody():
    owner = replica_set(deletionTimestamp=stamp(1))
    pods = [pod("a", "y", references=[OURS]), pod("b", references=[OURS]), pod("c")]
    assert claimed(owner, *pods) == (["a", "b"], {}, [])


@pytest.mark.parametrize(
    ("finalizer", "present", "written"),
    [("", ["other"], None), ("f", [], ["f"]), ("f", ["other"], ["other", "f"]), ("f", ["f", "other"], None)],
)
def test_what_is_taken_in_gets_a_finalizer_if_it_needs_one_once_its_owner_is_known_to_be_there(
    finalizer, present, written
):
    found, writes, sure = claimed(replica_set(), pod("p", references=[BESIDE], finalizers=present), finalizer=finalizer)
    assert (found, sure) == (["p"], [("s", "u-s")])
    assert [each["uid"] for each in writes["p"]["ownerReferences"]] == ["u-c", "u-s"]
    assert writes["p"].get("finalizers") == written


@pytest.mark.parametrize(
    ("reference", "concerned"),
    [
        (OURS, [("a", "s")]),
        ({**OURS, "apiVersion": "extensions/v1beta1"}, []),
        ({**OURS, "kind": "Deployment"}, []),
        (None, [("a", "s"), ("a", "t")]),
    ],
)
def test_an_object_concerns_its_controller_and_one_without_those_that_might_adopt_it(reference, concerned):
    observed = Observed()
    for each in (replica_set(), replica_set("t"), replica_set("v", "y")):
        observed.feed(kinds.REPLICA_SET, "ADDED", each)
    manifest = pod("p", references=[reference] if reference else [])
    assert list(claims.owner_of(manifest, observed, of=kinds.REPLICA_SET)) == concerned


def test_the_first_revision_of_a_template_has_the_name_that_its_hash_gives():
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {}}
    subject = {**replica_set(), "spec": {"template": template}}
    found = history.read(subject, kinds.STATEFUL_SET, Observed())
    assert found.update == f"s-{naming.template_hash(template)}"
    other = naming.template_hash(template, 1)
    taken = {
        **replica_set(),
        "metadata": {**pod(found.update, references=[{**OURS, "kind": "StatefulSet"}])["metadata"]},
    }
    observed = Observed()
    observed.feed(manifests.CONTROLLER_REVISION, "ADDED", taken)
    assert history.read(subject, kinds.STATEFUL_SET, observed).update == f"s-{other}"


def test_names_and_hashes_stay_the_same_from_version_to_version():
    """Who makes a pod must find it again after an update."""
    assert naming.suffix("a", "b") == "p99n6"
    assert naming.template_hash({"a": 1, "b": 2}) == naming.template_hash({"b": 2, "a": 1})


def first_name(observed):
    return next(naming.free_names("s-", "a", "u-s", observed))


def test_a_name_that_a_pod_had_is_given_to_no_other():
    observed = Observed()
    name = first_name(observed)
    assert first_name(observed) == name
    made = pod(name, references=[OURS])
    observed.feed(kinds.POD, "ADDED", made)
    observed.feed(kinds.POD, "DELETED", made)
    assert first_name(observed) != name


def test_a_name_that_a_stranger_has_is_given_to_nobody_though_he_is_gone():
    observed = Observed()
    stranger = pod(first_name(observed))
    observed.feed(kinds.POD, "ADDED", stranger)
    other = first_name(observed)
    assert other != manifests.name(stranger)
    observed.feed(kinds.POD, "DELETED", stranger)
    assert first_name(observed) == other
