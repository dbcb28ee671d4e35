"""The same Jobs under our controllers and under Kubernetes' own, each on a cluster of `pumice up`: their statuses say the same."""

from __future__ import annotations

import json
import re

import pytest
from go_clients import GoClients

from testbed.waiting import until

COUNTS = ("succeeded", "failed", "completedIndexes", "failedIndexes", "active")


@pytest.fixture(scope="module")
def go_clients(tmp_path_factory):
    with GoClients(tmp_path_factory.mktemp("go")) as running:
        yield running


def rules(*stated):
    return {"podFailurePolicy": {"rules": list(stated)}}


def on_exit(action, operator, *values, **more):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
CASES = {
    "completes": ("true", {"completions": 3, "parallelism": 2}),
    "indexes": ("true", {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}),
    "keeps-failing": ("exit 3", {"backoffLimit": 0}),
    "fails-at-once": ("exit 42", {"backoffLimit": 6, **rules(on_exit("FailJob", "In", 42))}),
    "fails-otherwise": ("exit 7", {"backoffLimit": 6, **rules(on_exit("FailJob", "NotIn", 42, containerName="c"))}),
    "of-another-container": ("exit 7", {"backoffLimit": 0, **rules(on_exit("FailJob", "In", 7, containerName="d"))}),
    "counts-first": ("exit 7", {"backoffLimit": 0, **rules(on_exit("Count", "In", 7), on_exit("FailJob", "In", 7))}),
    "runs-too-long": ("sleep 1000", {"activeDeadlineSeconds": 1}),
}


def job(name, command, spec):
    containers = [{"name": "c", "image": "busybox", "command": ["sh", "-c", command]}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def told(running, name):
    """Give the counts and conditions of a Job, without names that were made up."""
    status = json.loads(running.kubectl("get", "job", name, "-o", "json")).get("status", {})
    conditions = [(each["type"], each["status"], each.get("reason", ""), re.sub(r"-[a-z0-9]{5}\b", "-?", each.get("message", ""))) for each in status.get("conditions", ())]  # fmt: skip
    return {field: status[field] for field in COUNTS if status.get(field)}, sorted(conditions)


def ended(running, name):
    return until(lambda: (found := told(running, name)) and any(each[0] in ("Complete", "Failed") for each in found[1]) and found)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_job_ends_in_the_same_way(cluster, go_clients, name):
    text = json.dumps(job(name, *CASES[name]))
    for running in (cluster, go_clients):
        running.kubectl("apply", "-f", "-", input=text)
    assert ended(cluster, name) == ended(go_clients, name)
    for running in (cluster, go_clients):
        running.kubectl("delete", "job", name)


def test_a_pod_that_is_evicted_is_passed_over_if_the_policy_says_so(cluster, go_clients):
    text = json.dumps(
        job("evicted", "sleep 1000", {"backoffLimit": 0, **rules(DISRUPTED, on_exit("FailJob", "NotIn", 0))})
    )

    def running_pods(running):
        selected = ("-l", "job-name=evicted", "--field-selector=status.phase=Running", "-o", "json")
        return {
            (each["metadata"]["name"], each["metadata"]["uid"])
            for each in json.loads(running.kubectl("get", "pods", *selected))["items"]
        }

    for running in (cluster, go_clients):
        running.kubectl("apply", "-f", "-", input=text)
        [first] = until(lambda running=running: running_pods(running))
        name = first[0]
        caller = running.caller if running is cluster else running.cluster.caller
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        caller.call("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)
        until(lambda running=running, first=first: running_pods(running) - {first})
        until(lambda running=running: told(running, "evicted") == ({"active": 1}, []), lambda: told(running, "evicted"))  # noqa: B023  it is asked before the next
        running.kubectl("delete", "job", "evicted")
