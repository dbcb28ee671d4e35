"""Lives of Volcano's Jobs that are cut at every request in turn: the controller is killed after it, its answer is lost, or it never arrives.

However often that happens, the Job ends as if it had not.
"""

import itertools
import random

import pytest
from test_volcano_job_lives import MADE, JobWorld

from pumice.api import kinds
from pumice.controllers.queueing import running
from pumice.sim.identity import Key


class KilledError(Exception):
    """The controller is no more."""


class CutWorld(JobWorld):
    """A world in which the requests of given numbers go wrong."""

    def __init__(self, faults):
        self.count = 0
        self.faults = dict(faults)
        super().__init__()

    def perform(self, request, fault=""):
        self.count += 1
        fault = self.faults.get(self.count, "")
        answer = super().perform(request, "" if fault == "killed" else fault)
        if fault == "killed":
            raise KilledError
        return answer

    def calm(self, ending=None):
        """Let everything settle; whoever is killed is replaced."""
        while True:
            try:
                self.settle(ending)
            except KilledError:
                self.restart()
            else:
                return

    def fate(self, name, phase, code=1):
        ended = [{"name": "c", "state": {"terminated": {"exitCode": code}}}]
        self.store.patch_status(Key(kinds.POD, "a", name), {"status": {"phase": phase, "containerStatuses": ended}})

    def told(self):
        """Give what a Job has come to: all of its state that is not a time."""
        job = self.get(kinds.JOB, "j")
        status = {key: value for key, value in job["status"].items() if key not in ("conditions", "runningDuration")}
        status["state"] = {key: text for key, text in status["state"].items() if key in ("phase", "reason")}
        stamped = ("volcano.sh/job-version", "volcano.sh/job-retry-count")
        pods = {
            pod["metadata"]["name"]: (
                pod["status"]["phase"],
                *(pod["metadata"]["annotations"][key] for key in stamped),
                "volcano.sh/controller-out-of-sync" in pod["metadata"]["annotations"],
            )
            for pod in self.pods()
        }
        made = [
            each["metadata"]["name"]
            for kind in (*MADE, kinds.POD_GROUP, kinds.COMMAND)
            for each in self.store.scan(kind)
        ]
        return status, pods, made


def job(tasks=(("a", 2), ("b", 2)), **spec):
    listed = [
        {"name": name, "replicas": count, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
        for name, count in tasks
    ]
    total = sum(count for _, count in tasks)
    metadata = {"name": "j", "namespace": "a", "uid": "u"}
    stated = {"tasks": listed, "minAvailable": total, "maxRetry": 3, "plugins": {"svc": []}, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": stated}


def on(event, action, **more):
    return {"policies": [{"event": event, "action": action, **more}]}


def ordered(world, name, action):
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}
    metadata = {"name": name, "namespace": "a"}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata}
    world.create({**command, "action": action, "target": target})


def fails(world):
    world.fate("j-a-0", "Failed")
    world.calm()


def fails_twice(world):
    fails(world)
    fails(world)


def two_fail(world):
    world.fate("j-a-0", "Failed")
    world.fate("j-b-1", "Failed")
    world.calm()


def goes(world):
    world.store.delete(Key(kinds.POD, "a", "j-a-0"))
    world.calm()


def vanishes(world):
    world.store.remove(Key(kinds.POD, "a", "j-a-0"))
    world.calm()


def succeeds(world):
    world.calm("Succeeded")


def one_role_succeeds(world):
    world.fate("j-a-0", "Succeeded", 0)
    world.fate("j-a-1", "Succeeded", 0)
    world.calm()


def suspended(world):
    world.fate("j-a-0", "Succeeded", 0)
    ordered(world, "stop", "AbortJob")
    world.calm()
    ordered(world, "go", "ResumeJob")
    world.calm()


def restarted_twice(world):
    ordered(world, "one", "RestartJob")
    ordered(world, "two", "RestartJob")
    world.calm()


def resized(world):
    for count in (3, 1):
        tasks = job((("a", count), ("b", 2)))["spec"]["tasks"]
        world.patch(kinds.JOB, "j", {"spec": {"tasks": tasks, "minAvailable": 1}})
        world.calm()


LIVES = {
    "the Job restarts": (on("PodFailed", "RestartJob"), fails),
    "the Job restarts twice": (on("PodFailed", "RestartJob"), fails_twice),
    "the Job restarts for the last time": ({**on("PodFailed", "RestartJob"), "maxRetry": 1}, fails),
    "two fail at once": (on("PodFailed", "RestartJob"), two_fail),
    "a pod restarts": (on("PodFailed", "RestartPod"), fails_twice),
    "a pod restarts for the last time": ({**on("PodFailed", "RestartPod"), "maxRetry": 1}, fails),
    "a role restarts": (on("PodFailed", "RestartTask"), fails),
    "a role restarts, and minAvailable is small": ({**on("PodFailed", "RestartTask"), "minAvailable": 1}, fails),
    "a pod that is evicted restarts the Job": (on("PodEvicted", "RestartJob"), goes),
    "a pod that is evicted restarts": ({**on("PodEvicted", "RestartPod"), "minAvailable": 1}, goes),
    "a pod that is evicted at once restarts the Job": (on("PodEvicted", "RestartJob"), vanishes),
    "a pod that is evicted at once restarts": (on("PodEvicted", "RestartPod"), vanishes),
    "the Job completes": ({}, succeeds),
    "a role completes the Job": (on("TaskCompleted", "CompleteJob"), one_role_succeeds),
    "the Job is aborted by its policy": (on("PodFailed", "AbortJob"), fails),
    "the Job is suspended and resumed": ({}, suspended),
    "the Job is told twice to restart": ({}, restarted_twice),
    "the Job is resized": (on("PodEvicted", "AbortJob"), resized),
}
FAULTS = ("killed", "lost", "away")


def lived(life, faults=(), busy=False):
    spec, story = LIVES[life]
    world = CutWorld(faults)
    world.busy = busy
    world.create(job(**spec))
    world.calm()
    story(world)
    assert not world.complaints
    return world


@pytest.mark.parametrize("life", LIVES)
def test_a_job_ends_the_same_whichever_of_its_requests_goes_wrong(life):
    plain = lived(life)
    for fault, number in itertools.product(FAULTS, range(1, plain.count + 1)):
        # Evicted pods may vanish before anybody looks: that is the one thing of which a new controller may not know.
        if "evicted" in life and fault == "killed":
            continue
        assert lived(life, {number: fault}).told() == plain.told(), (fault, number)


@pytest.mark.parametrize("life", LIVES)
def test_a_job_ends_the_same_if_several_requests_in_a_row_go_wrong(life):
    plain, rng = lived(life), random.Random(life)  # noqa: S311  the same each time
    for _ in range(25):
        begun = rng.randrange(1, plain.count + 1)
        choices = FAULTS[1:] if "evicted" in life else FAULTS
        faults = {begun + place: rng.choice((*choices, "")) for place in range(rng.randrange(2, 6))}
        assert lived(life, faults).told() == plain.told(), faults


@pytest.mark.parametrize("life", LIVES)
def test_a_job_ends_the_same_whichever_request_goes_wrong_of_a_controller_that_has_much_to_do(life):
    plain, busy = lived(life), lived(life, busy=True)
    assert busy.told() == plain.told()
    for fault, number in itertools.product(FAULTS, range(1, busy.count + 1)):
        if "evicted" in life and fault == "killed":
            continue
        assert lived(life, {number: fault}, busy=True).told() == plain.told(), (fault, number)


def test_the_lives_are_what_they_say():
    ends = {life: lived(life).told()[0] for life in LIVES}
    counted = {life: (each["state"]["phase"], each["retryCount"], each["version"]) for life, each in ends.items()}
    assert counted == {
        "the Job restarts": ("Running", 1, 1),
        "the Job restarts twice": ("Running", 2, 2),
        "the Job restarts for the last time": ("Failed", 1, 1),
        "two fail at once": ("Running", 1, 1),
        "a pod restarts": ("Running", 2, 0),
        "a pod restarts for the last time": ("Failed", 1, 1),
        "a role restarts": ("Running", 1, 0),
        "a role restarts, and minAvailable is small": ("Running", 1, 0),
        "a pod that is evicted restarts the Job": ("Running", 1, 1),
        "a pod that is evicted restarts": ("Running", 1, 0),
        "a pod that is evicted at once restarts the Job": ("Running", 1, 1),
        "a pod that is evicted at once restarts": ("Running", 1, 0),
        "the Job completes": ("Completed", 0, 1),
        "a role completes the Job": ("Completed", 0, 1),
        "the Job is aborted by its policy": ("Aborted", 0, 1),
        "the Job is suspended and resumed": ("Running", 1, 2),
        "the Job is told twice to restart": ("Running", 1, 1),
        "the Job is resized": ("Running", 0, 0),
    }


@pytest.mark.parametrize("life", ["the Job restarts", "a pod restarts", "a role restarts", "two fail at once"])
def test_a_deposed_controller_that_hears_of_failures_late_counts_nothing_twice(life):
    plain, (spec, story) = lived(life), LIVES[life]
    world = CutWorld({})
    world.create(job(**spec))
    world.calm()
    deposed, failures = world.engine, []

    def heard(key, event_type, manifest):
        if key.kind is kinds.POD and manifest.get("status", {}).get("phase") == "Failed":
            failures.append(manifest)

    world.store.observe(heard)
    world.restart()
    story(world)
    for pod in failures:
        deposed.feed(kinds.POD, "MODIFIED", pod)
    before = world.store.resource_version
    assert running.run_due(deposed, world.world, world.moment, most=1)  # it asks, and is told that the Job has moved on
    assert world.store.resource_version == before
    world.calm()
    assert world.told() == plain.told()
