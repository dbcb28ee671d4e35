"""Which pods of a Job are its own, which are missing beside those that have to go, and what is written of it once it has ended."""

from __future__ import annotations

import copy

import pytest
from test_volcano_job_cuts import CutWorld, job

from pumice.api import duration, kinds, names, timestamp
from pumice.cache import effects
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.jobs import pod_groups, pod_making, reading, statuses
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.controllers.volcano.jobs.members import Members
from pumice.sim.identity import Key

ENDED = "2026-01-01T01:00:00Z"


def running(*tasks, **spec):
    world = CutWorld({})
    world.create(job(tasks, **spec))
    world.calm()
    world.let_in(1)
    world.calm()
    return world


@pytest.mark.parametrize("missing", [names.TASK_SPEC, names.JOB_VERSION, "number"])
def test_a_pod_that_does_not_say_which_one_it_is_is_none_of_the_jobs_making(missing):
    world = running(("a", 1))
    (pod,) = world.pods()
    assert [each.name for each in Members(reading.Job(job()), [pod]).all] == [pod["metadata"]["name"]]
    other = copy.deepcopy(pod)
    if missing == "number":
        other["metadata"]["name"] = "j-a-x"
    else:
        del other["metadata"]["annotations"][missing]
    found = Members(reading.Job(job()), [other])
    assert (found.all, found.strangers) == ([], [other])


def test_a_pod_that_is_gone_is_made_anew_beside_one_that_has_to_go():
    world = running(("a", 3), minAvailable=1)
    world.store.patch(Key(kinds.POD, "a", "j-a-2"), {"metadata": {"finalizers": ["a.b/c"]}})
    world.store.patch(Key(kinds.JOB, "a", "j"), {"spec": {"tasks": job((("a", 2),))["spec"]["tasks"]}})
    world.store.remove(Key(kinds.POD, "a", "j-a-0"))
    world.calm()
    assert {each["metadata"]["name"] for each in world.pods()} == {"j-a-0", "j-a-1", "j-a-2"}


@pytest.mark.parametrize(
    ("stamped", "is_past"),
    [("1", True), ("2", False), ("3", False), ("x", False), ("9" * 5000, False), (1, False), (None, False)],
)
def test_a_group_is_of_the_past_that_was_made_for_pods_before_the_last_restart(stamped, is_past):
    made = reading.Job({**job(), "status": {"version": 2}})
    annotations = {} if stamped is None else {names.JOB_VERSION: stamped}
    assert pod_groups.is_of_the_past(made, {"metadata": {"annotations": annotations}}) is is_past


def test_how_long_a_job_ran_stays_once_it_has_ended():
    ended = timestamp.parse(ENDED)
    manifest = job(minAvailable=1)
    manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:59:00Z"
    manifest["status"] = {"state": {"phase": "Completed", "lastTransitionTime": ENDED}, "running": 4}
    found = reading.Job(manifest)
    moment = Moment(ended + duration.HOUR)
    (step,), _ = statuses.write(found, Members(found, []), statuses.unchanged(found), moment, groups=1)
    assert step.request.body["status"]["runningDuration"] == "1m0s"


def test_a_claim_that_a_job_names_otherwise_than_we_do_is_never_made():
    world = CutWorld({})
    world.create(job(volumes=[{"mountPath": "/d", "volumeClaimName": "mine", "volumeClaim": {"resources": {}}}]))
    world.calm()
    assert list(world.store.scan(kinds.PERSISTENT_VOLUME_CLAIM)) == []
    assert [(note.type, note.reason) for note in world.notes] == [("Warning", "PVCError")]


def test_names_stay_the_same_from_version_to_version():
    """Who makes a claim, a name in a Job, must find it again after an update."""
    assert pod_making.suffix("a", "b") == "wb2gjuow4064"


def test_a_claim_concerns_the_jobs_of_its_namespace_that_wait_for_one_and_other_things_nobody():
    known = Observed()
    for namespace, name, reason in (("a", "i", "PVCError"), ("a", "j", ""), ("b", "k", "PVCError")):
        made = job()
        made["metadata"] |= {"name": name, "namespace": namespace, "uid": name}
        known.feed(kinds.JOB, "ADDED", {**made, "status": {"state": {"phase": "Pending", "reason": reason}}})
    claim = {"metadata": {"name": "c", "namespace": "a"}}
    watched = {kind: list(Jobs().concerns(kind, claim, known)) for kind in Jobs().watched}
    assert watched.pop(kinds.PERSISTENT_VOLUME_CLAIM) == [("a", "i")]
    assert set(map(str, watched.values())) == {"[]"}


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
def test_counts_of_a_job_whose_pods_are_being_made_are_not_written_yet(phase):
    known = Observed()
    made = {**job(), "status": {"state": {"phase": phase}, "minAvailable": 0}}
    made["metadata"] |= {"uid": "j"}
    owners = [{"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": "j", "controller": True}]
    group = {"metadata": {"name": "j-j", "namespace": "a", "uid": "g", "ownerReferences": owners}}
    known.feed(kinds.QUEUE, "ADDED", {"metadata": {"name": "default"}})
    known.feed(kinds.JOB, "ADDED", made)
    known.feed(kinds.POD_GROUP, "ADDED", {**group, "spec": {}, "status": {"phase": "Inqueue"}})
    steps = [each.request for each in Jobs().reconcile("a", "j", known, Moment(0)).steps]
    assert any(isinstance(each, effects.Create) for each in steps)
    assert not any(isinstance(each, effects.Patch) and each.kind is kinds.JOB for each in steps)


@pytest.mark.parametrize(("phase", "told"), [("", True), ("Pending", True), ("Running", False)])
def test_what_plugins_cannot_read_is_told_until_a_job_runs(phase, told):
    known = Observed()
    made = {**job(plugins={"env": ["--none=such"]}), "status": {"state": {"phase": phase}}}
    made["metadata"] |= {"uid": "j"}
    known.feed(kinds.QUEUE, "ADDED", {"metadata": {"name": "default"}})
    known.feed(kinds.JOB, "ADDED", made)
    notes = Jobs().reconcile("a", "j", known, Moment(0)).notes
    assert [reason for _, reason, _ in notes] == ["PluginError"] * told
