"""What every action does on every event, whoever states the policy: the retries and versions that are counted, and whose pods are made anew."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.api import duration, kinds
from pumice.controllers.volcano import registry as controllers
from pumice.controllers.volcano.jobs import policies
from pumice.framework import configuration, registry
from pumice.scenario.stage import SimulatedStage
from pumice.scheduler import Options

KNOWN = registry.installed()
EVENTS = ("PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "exitCode")
ENDS = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}
RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
WORKERS = ("j-w-0", "j-w-1", "j-w-2", "j-w-3")
OTHERS = ("j-v-0", "j-p-0")
WAIT = 10 * duration.SECOND


def task(name, replicas, cpu, **more):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(event, action, level):
    """Make a Job of two partitions of workers, of somebody who runs on, and of somebody who finds no room and need not."""
    policy = {"action": action, **({"exitCode": 3} if event == "exitCode" else {"event": event})}
    policy |= {"timeout": "10s"} if event == "PodPending" else {}
    tasks = [
        task("w", 4, "1", partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
        task("v", 1, "1"),
        task("p", 1, "99", minAvailable=0),
    ]
    spec = {"schedulerName": "volcano", "minAvailable": 5, "maxRetry": 9, "tasks": tasks}
    where = spec if level == "job" else tasks[2 if event == "PodPending" else 0]
    where["policies"] = [policy]
    metadata = {"name": "j", "namespace": "a", "uid": "u"}
    return {"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": metadata, "spec": spec}


def happen(stage, event):
    """Let something happen, mostly to the third worker, who is the first of the second partition."""
    if event == "PodEvicted":
        stage.delete(["pod/a/j-w-2"], None)
    elif event == "TaskCompleted":
        stage.patch([pod(name, phase="Succeeded") for name in WORKERS])
    elif event == "TaskFailed":
        stage.patch([pod("j-w-2", containerStatuses=[{"name": "c", "ready": True, "restartCount": 3}])])
    elif event == "Unknown":
        group = {"apiVersion": kinds.POD_GROUP.api_version, "kind": "PodGroup"}
        stage.patch([{**group, "metadata": {"name": "j-u", "namespace": "a"}, "status": {"phase": "Unknown"}}])
    elif event != "PodPending":
        ended = {"name": "c", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 3}}}
        stage.patch([pod("j-w-2", phase="Failed", containerStatuses=[ended])])


def pod(name, **status):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "status": status}


def uids(stage):
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in stage.cluster.store.scan(kinds.POD)}


def targets(event, action):
    """Give the pods that a restart is for, None if a policy for nobody in particular names some."""
    role, one, partition = WORKERS, "j-w-2", WORKERS[2:]
    if event == "PodPending":
        role, one, partition = ("j-p-0",), "j-p-0", ("j-p-0",)
    if event == "TaskCompleted":
        one = "j-w-3"  # of those that ended together the last
    found = {
        "RestartJob": (*WORKERS, *OTHERS),
        "RestartTask": role,
        "RestartPod": (one,),
        "RestartPartition": partition,
    }
    return None if event == "Unknown" and action != "RestartJob" else found[action]


@pytest.mark.parametrize("level", ["job", "task"])
@pytest.mark.parametrize("action", [*RESTARTS, *ENDS, "ResumeJob"])
@pytest.mark.parametrize("event", EVENTS)
def test_an_action_on_an_event_does_what_its_name_says(event, action, level):
    made = configuration.default(KNOWN.catalog())
    stage = SimulatedStage(made, Options(), KNOWN, controllers=controllers.REGISTERED)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "32"}}}
    stage.apply([node, job(event, action, level)])
    stage.connect()
    for _ in range(5):
        stage.cycle(duration.SECOND)
    before = uids(stage)
    assert set(before) == {*WORKERS, *OTHERS}
    happen(stage, event)
    stage.advance(WAIT if event == "PodPending" else 2 * duration.SECOND)
    for _ in range(6):
        stage.cycle(duration.SECOND)
    (found,) = stage.cluster.store.scan(kinds.JOB)
    status, after = found["status"], uids(stage)
    counted = (status["state"]["phase"], status.get("retryCount", 0), status["version"])
    heard = action if level == "job" or event != "Unknown" else ""  # a group that is unknown is nobody's task
    if heard in ENDS:
        assert counted == (ENDS[action], 0, 1)
        kept = {"PodFailed": ("j-w-2",), "exitCode": ("j-w-2",), "TaskCompleted": WORKERS}.get(event, ())
        assert set(after) == set(kept)
        return
    again = targets(event, action) if heard in RESTARTS else None
    expected = again or (("j-w-2",) if event == "PodEvicted" else ())
    assert {name for name in before if after.get(name) != before[name]} == set(expected)
    assert set(after) == set(before)
    assert counted == ("Running", int(again is not None), int(again is not None and action == "RestartJob"))


@pytest.mark.parametrize(
    ("phase", "later", "held"),
    [
        ("Running", ["PodFailed"], True),
        ("Running", ["PodPending", "PodFailed"], True),
        ("Running", ["PodPending"], False),  # nobody waits any more for a pod that has ended
        ("Running", [], False),
        ("Pending", ["PodFailed"], False),
        ("Restarting", ["PodFailed"], False),
    ],
)
def test_a_running_job_whose_pods_have_all_ended_waits_for_an_answer_that_is_due_later(phase, later, held):
    waiting = [SimpleNamespace(occurrence=SimpleNamespace(event=each)) for each in later]
    assert policies.is_held_open(SimpleNamespace(phase=phase), waiting) is held
