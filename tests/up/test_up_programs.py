"""Programs of Kubernetes and Volcano do their work on a cluster of `pumice up`, round after round, without an error in their logs."""

from __future__ import annotations

import json
import os
import time

import pytest
from programs import Programs

from drawing import drawn
from testbed.waiting import until

SECONDS = float(os.environ.get("PUMICE_PROGRAMS_SECONDS", drawn(120, 20)))
"""How long they are to work; an hour shows more than CI has time for, and needs `-o faulthandler_timeout=0`, since a test that takes so long is taken for one that hangs."""
RUNNING = ("kube-scheduler", "kube-controller-manager", "vc-scheduler", "vc-controller-manager")


@pytest.fixture(scope="module")
def volcano_programs(tmp_path_factory):
    """Five programs that share a cluster."""
    with Programs(tmp_path_factory.mktemp("programs")) as running:
        running.start("vc-webhook-manager")
        # no queue is open yet, and it is the webhook that says so
        until(lambda: "denied the request" in tried(running, gang("first")), lambda: tried(running, gang("first")))
        for program in RUNNING:
            running.start(program)
        yield running


def containers(*command):
    requests = {"cpu": "100m", "memory": "16Mi"}
    return {
        "containers": [{"name": "c", "image": "busybox", "command": [*command], "resources": {"requests": requests}}]
    }


def deployment(name):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": containers("sleep", "infinity")},
        },
    }


def job(name):
    template = {"spec": {**containers("sleep", "1"), "restartPolicy": "Never"}}
    spec = {"completions": 3, "parallelism": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def gang(name, **spec):
    template = {"spec": {**containers("sleep", "2"), "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": 3,
            "schedulerName": "volcano",
            "queue": "default",
            "plugins": {"env": [], "svc": []},
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 3,
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": template,
                }
            ],
            **spec,
        },
    }


def tried(programs, manifest):
    """Try to create something; gives what kubectl says."""
    return programs.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(manifest), check=False)


def complete_round(programs, number):
    """Let each program do its work once, and take away what was made."""
    web, work, group = f"web-{number}", f"work-{number}", f"gang-{number}"
    programs.apply(deployment(web), job(work), gang(group))
    programs.kubectl("rollout", "status", f"deployment/{web}", "--timeout=240s")
    programs.kubectl("wait", "--for=condition=Complete", f"job/{work}", "--timeout=240s")
    until(lambda: programs.find("vcjob", group).get("status", {}).get("state", {}).get("phase") == "Completed")
    assert programs.find("job.batch", work)["status"]["succeeded"] == 3
    assert programs.find("vcjob", group)["spec"]["maxRetry"] == 3  # the webhook has said so
    assert "denied the request: job 'minAvailable' should not be greater than" in tried(programs, gang(f"bad-{number}", minAvailable=4))  # fmt: skip
    replicas = programs.pods(f"app={web}")
    assert {pod["spec"]["schedulerName"] for pod in replicas} == {"default-scheduler"}
    assert all(pod["spec"]["nodeName"] for pod in replicas)
    members = programs.pods(f"volcano.sh/job-name={group}")
    assert [pod["status"]["phase"] for pod in members] == ["Succeeded"] * 3
    programs.kubectl("delete", f"deployment/{web}", f"job.batch/{work}", f"vcjob/{group}", "--timeout=240s")
    until(lambda: not programs.pods(f"app in ({web})") and not programs.pods(f"volcano.sh/job-name={group}"))


@pytest.mark.long
def test_they_work_round_after_round_without_an_error(volcano_programs):
    until(lambda: volcano_programs.find("queue", "default").get("status", {}).get("state") == "Open")
    began, number = time.monotonic(), 0
    while number < 2 or time.monotonic() - began < SECONDS:
        complete_round(volcano_programs, number)
        assert (volcano_programs.ended(), volcano_programs.errors()) == ([], [])
        number += 1
    print(f"{number} rounds in {time.monotonic() - began:.0f} s")  # noqa: T201  whoever lets them work for an hour wants to know
