"""Volcano's controllers on the simulated cluster: when they begin, what they see of time, and what is done for them."""

from __future__ import annotations

import pytest
from sim_objects import SECOND, cluster, node, pod, queue, stored

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "a"},
    "spec": {"tasks": [{"name": "t", "partitionPolicy": {"networkTopology": {}}}]},
}


def command(called="c", /, **target):
    wanted = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", **target}
    metadata = {"name": called, "namespace": "a"}
    manifest = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata, "target": wanted}
    return {**manifest, "action": "AbortJob"}


class Stamping:
    """Stamps objects of a kind, the seconds of their first look and how many pods it saw end, every ten seconds again."""

    watched = (kinds.POD,)

    def __init__(self, kind):
        self.kind = kind

    def concerns(self, kind, manifest, observed):
        return [(each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in observed.all(self.kind)]

    def reconcile(self, namespace, name, observed, moment):
        found = observed.find(self.kind, namespace, name)
        if found is None:
            return requests.Reconciled()
        if name == "broken":
            raise ValueError("no such luck")
        ended = [each for each in observed.all(kinds.POD) if each["status"]["phase"] == "Succeeded"]
        looks = found["metadata"].get("annotations", {}).get("looks", "").split()
        stamp = f"{moment.now // duration.SECOND % 1000}:{len(ended)}"
        again = (moment.now // (10 * duration.SECOND) + 1) * 10 * duration.SECOND
        if looks[-1:] == [stamp]:
            return requests.Reconciled(again=again)
        body = {"metadata": {"annotations": {"looks": " ".join([*looks, stamp])}}}
        patch = effects.Patch(kind=self.kind, namespace=namespace, name=name, uid=found["metadata"]["uid"], body=body)
        return requests.Reconciled(steps=[requests.Step(request=patch, said=("Stamped", stamp))], again=again)


REGISTERED = {
    "job-controller": lambda: [Stamping(kinds.JOB)],
    "queue-controller": lambda: [Stamping(kinds.QUEUE)],
    "hyperNode-controller": lambda: [Stamping(kinds.NODE)],
}


def looks(simulated, reference):
    return stored(simulated, reference)["metadata"].get("annotations", {}).get("looks", "")


def test_controllers_act_after_a_settle_and_whenever_something_is_due_while_time_passes():
    annotations = {"pumice.dev/run-time": "14s"}
    simulated, _ = cluster(JOB, node(), pod(node="n1", annotations=annotations), registered=REGISTERED)
    assert looks(simulated, "job/a/j") == ""
    simulated.settle()
    assert looks(simulated, "job/a/j") == "600:0"
    simulated.advance(20 * SECOND)
    assert looks(simulated, "job/a/j") == "600:0 610:0 614:1 620:1"
    assert [event.note.reason for event in simulated.events] == ["Stamped"] * 4


def test_nothing_is_done_before_there_is_an_object_for_them():
    simulated, _ = cluster(queue(), node(), registered=REGISTERED)
    simulated.advance(20 * SECOND)
    simulated.apply([JOB])
    simulated.advance(SECOND)
    assert looks(simulated, "job/a/j") == "620:0"
    assert looks(simulated, "queue/q") == ""
    assert looks(simulated, "node/n1") == ""


def test_that_of_queues_begins_with_the_first_command_for_a_queue():
    simulated, _ = cluster(queue(), registered=REGISTERED)
    simulated.apply([command()])
    simulated.settle()
    assert looks(simulated, "queue/q") == ""
    simulated.apply([command("d", apiVersion="scheduling.volcano.sh/v1beta1", kind="Queue", name="q")])
    simulated.settle()
    assert looks(simulated, "queue/q") == "600:0"


def test_a_controller_that_breaks_down_is_not_passed_over():
    broken = {**JOB, "metadata": {"name": "broken", "namespace": "a"}}
    simulated, _ = cluster(broken, registered=REGISTERED)
    with pytest.raises(RuntimeError, match="a controller broke down: Job a/broken: ValueError: no such luck"):
        simulated.settle()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_command_without_a_uid_gets_that_of_the_object_it_names(reverse):
    wanted = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q"}
    given = [JOB, queue(), command("c"), command("d", **wanted), command("e", uid="own"), command("f", name="none")]
    simulated, _ = cluster(*(reversed(given) if reverse else given))
    uids = {name: stored(simulated, f"command/a/{name}")["target"].get("uid") for name in "cdef"}
    job, target = stored(simulated, "job/a/j")["metadata"]["uid"], stored(simulated, "queue/q")["metadata"]["uid"]
    assert uids == {"c": job, "d": target, "e": "own", "f": None}


def test_schema_defaults_of_volcanos_workloads_apply():
    template = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": "t", "namespace": "a"},
    }
    scheduled = {"schedule": "* * * * *", "jobTemplate": {"spec": {"tasks": []}}}
    timed = {**JOB, "kind": "CronJob", "spec": scheduled}
    simulated, _ = cluster(JOB, template, timed)
    job = stored(simulated, "job/a/j")["spec"]
    partition = {"minPartitions": 0, "networkTopology": {"mode": "hard"}}
    assert job == {"queue": "default", "maxRetry": 3, "tasks": [{"name": "t", "partitionPolicy": partition}]}
    assert stored(simulated, "jobtemplate/a/t")["spec"] == {"queue": "default", "maxRetry": 3}
    assert stored(simulated, "cronjob/a/j")["spec"] == {
        "schedule": "* * * * *",
        "jobTemplate": {"spec": {"tasks": [], "queue": "default", "maxRetry": 3}},
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }


MADE = ["Service", "ConfigMap", "Secret", "NetworkPolicy", "PersistentVolumeClaim", "Pod", "PodGroup", "Job"]


@pytest.mark.parametrize("name", MADE)
def test_whatever_a_deleted_object_owned_is_collected(name):
    simulated, _ = cluster({**JOB, "metadata": {"name": "owner", "namespace": "a"}})
    kind = kinds.by_singular(name.lower())
    uid = stored(simulated, "job/a/owner")["metadata"]["uid"]
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "owner", "uid": uid, "controller": True}
    metadata = {"name": "x", "namespace": "a", "ownerReferences": [owner]}
    child = {"apiVersion": kind.api_version, "kind": name, "metadata": metadata, "spec": {}}
    simulated.apply([child])
    simulated.merge([{"kind": name, "metadata": {"name": "x", "namespace": "a", "labels": {"y": "z"}}}])
    assert stored(simulated, f"{name.lower()}/a/x")["metadata"]["labels"] == {"y": "z"}
    simulated.delete(["job/a/owner"])
    assert stored(simulated, f"{name.lower()}/a/x") is None
    simulated.apply([child])
    assert stored(simulated, f"{name.lower()}/a/x") is None


@pytest.mark.parametrize(
    ("annotations", "phase", "code"),
    [
        ({"pumice.dev/exit-code": "3"}, "Failed", 3),
        ({"pumice.dev/exit-code": "0"}, "Succeeded", 0),
        ({"pumice.dev/exit": "failed"}, "Failed", 1),
        ({"pumice.dev/exit": "failed", "pumice.dev/exit-code": "7"}, "Failed", 7),
        ({"pumice.dev/exit-code": "256"}, "Succeeded", 0),
        ({"pumice.dev/exit-code": "x"}, "Succeeded", 0),
        ({}, "Succeeded", 0),
    ],
)
def test_containers_end_with_the_code_that_is_asked_for(annotations, phase, code):
    running = pod(node="n1", annotations={"pumice.dev/run-time": "5s", **annotations})
    simulated, _ = cluster(running)
    restarted = [{"name": "c", "restartCount": 2}]
    simulated.merge(
        [{"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "status": {"containerStatuses": restarted}}]
    )
    simulated.advance(5 * SECOND)
    status = stored(simulated, "pod/a/p")["status"]
    assert status["phase"] == phase
    (container,) = status["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == code
    assert container["restartCount"] == 2
    bad = annotations.get("pumice.dev/exit-code") in ("256", "x")
    assert [event.note.reason for event in simulated.events] == (["BadAnnotation"] if bad else [])
