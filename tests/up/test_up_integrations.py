"""Manifests of projects whose operators the tests do not run, on a cluster of `pumice up`: applied by kubectl as their users do, their pods start as gangs in their queues."""

from __future__ import annotations

import json
from pathlib import Path

import operators
import pytest
import running_operators
import yaml
from running_cluster import RunningCluster

from testbed import provide
from testbed.waiting import until

pytestmark = [pytest.mark.kube, pytest.mark.definitions]

FOLDER = Path(__file__).parent / "integrations"
EXAMPLES = Path(__file__).parents[2] / "docs/examples/integrations"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A cluster with accelerators, queues and what the operators themselves define."""
    arguments = ("--nodes", str(FOLDER / "nodes.yaml"), "--config", str(FOLDER / "policy.yaml"), "--speed", "10")
    with RunningCluster(tmp_path_factory.mktemp("fleet"), *arguments) as running:
        running.kubectl("apply", "-f", str(FOLDER / "supporting.yaml"))
        running_operators.define(running, provide.OPERATORS)
        yield running


def objects(fleet, kind, namespace):
    return json.loads(fleet.kubectl("get", kind, "-n", namespace, "-o", "json"))["items"]


def find(fleet, kind):
    def found(namespace, name):
        where = ("-n", namespace) if namespace else ()
        return json.loads(fleet.kubectl("get", kind, name, *where, "-o", "json"))

    return found


def play(fleet, steps):
    """Do what an operator does: apply, and wait for what it would wait for. Gives the pods and groups that it made."""
    pods, groups = [], []
    for step in steps:
        fleet.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in step))
        pods += [each["metadata"] for each in step if each["kind"] == "Pod"]
        groups += [each["metadata"]["name"] for each in step if each["kind"] == "PodGroup"]
        if not any(each["kind"] == "Pod" for each in step):
            for each in step:
                wait_until_let_in(fleet, each)
        for each in pods:
            started(fleet, each)
    return pods, groups


def wait_until_let_in(fleet, made):
    if made["kind"] == "PodGroup":
        found = find(fleet, "podgroup")
        place = made["metadata"]["namespace"], made["metadata"]["name"]
        until(lambda: found(*place).get("status", {}).get("phase") not in (None, "Pending"))


def started(fleet, metadata):
    path = "jsonpath={.status.phase}"
    where = ("-n", metadata["namespace"], "-o", path)
    until(lambda: fleet.kubectl("get", "pod", metadata["name"], *where) in ("Running", "Succeeded"))


CASES = [
    # file, kind and name of the object that the operator looks at, operator, pods, groups with minMember and queue
    ("pytorch", ("pytorchjob", "ml", "resnet"), operators.training_operator, 3, {"resnet": (3, "research")}),
    ("trainer", ("trainjob", "ml", "ft"), operators.trainer, 4, {"ft": (4, "research")}),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_the_pods_of_an_operator_start_as_gangs_and_go_with_their_owner(fleet, case):
    file, (kind, namespace, name), operator, count, groups = case
    fleet.kubectl("apply", "-f", str(FOLDER / f"{file}.yaml"))
    applied = find(fleet, kind)(namespace, name)
    lookup = find(fleet, "clustertrainingruntime" if file == "trainer" else kind)
    pods, made = play(fleet, operator(applied, lookup))
    assert len(pods) == count
    assert sorted(made) == sorted(groups)
    for group, (members, queue) in groups.items():
        spec = find(fleet, "podgroup")(namespace, group)["spec"]
        assert (spec["minMember"], spec["queue"]) == (members, queue)
        until(lambda group=group: find(fleet, "podgroup")(namespace, group)["status"]["phase"] == "Running")
    names = {each["name"] for each in pods}
    present = [each for each in objects(fleet, "pods", namespace) if each["metadata"]["name"] in names]
    companions = {each["metadata"]["name"] for each in objects(fleet, "podgroups", namespace)}
    assert not {f"podgroup-{each['metadata']['uid']}" for each in [applied, *present]} & companions
    if file == "trainer":
        nodes = {each["spec"]["nodeName"] for each in present}
        assert nodes <= {"gpu-0", "gpu-1"} or nodes <= {"gpu-2", "gpu-3"}
    fleet.kubectl("delete", kind, name, "-n", namespace)
    until(lambda: not names & {each["metadata"]["name"] for each in objects(fleet, "pods", namespace)})
    until(lambda: not set(groups) & {each["metadata"]["name"] for each in objects(fleet, "podgroups", namespace)})


def test_native_spark_starts_its_driver_and_then_its_executors(fleet):
    template = yaml.safe_load((FOLDER / "spark-native.yaml").read_text())
    pods, _ = play(fleet, operators.spark_submit(template, find(fleet, "pod")))
    assert len(pods) == 5
    group = find(fleet, "podgroup")("spark", "spark-4f2c-podgroup")
    assert group["metadata"]["ownerReferences"][0]["name"] == "spark-4f2c-driver"
    until(lambda: find(fleet, "podgroup")("spark", "spark-4f2c-podgroup")["status"].get("running") == 5)
    fleet.kubectl("delete", "pod", "spark-4f2c-driver", "-n", "spark")
    until(lambda: "spark-4f2c" not in fleet.kubectl("get", "pods,podgroups", "-n", "spark", "-o", "name"))


def test_the_steps_of_a_workflow_share_one_group(fleet):
    fleet.kubectl("apply", "-n", "ml", "-f", str(EXAMPLES / "argo.yaml"))
    workflow = find(fleet, "workflow")("ml", "steps")
    pods, _ = play(fleet, operators.argo(workflow, None))
    assert len(pods) == 3
    name = f"podgroup-{workflow['metadata']['uid']}"
    group = find(fleet, "podgroup")("ml", name)
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "research")

    def members():
        found = [each["metadata"].get("annotations", {}) for each in objects(fleet, "pods", "ml")]
        return [each.get(operators.GROUP_NAME) for each in found].count(name)

    until(lambda: members() == 3, members)
    fleet.kubectl("delete", "workflow", "steps", "-n", "ml")


def test_a_gang_that_a_step_creates_completes_as_the_step_reads_it(fleet):
    [template] = yaml.safe_load((EXAMPLES / "argo-gang.yaml").read_text())["spec"]["templates"]
    text = template["resource"]["manifest"]
    name = fleet.kubectl("create", "-n", "ml", "-f", "-", "-o", "name", input=text).strip()
    field = "jsonpath={." + template["resource"]["successCondition"].split(" = ")[0] + "}"
    until(lambda: fleet.kubectl("get", name, "-n", "ml", "-o", field) == "Running")
    chosen = ("-l", f"volcano.sh/job-name={name.partition('/')[2]}")
    fleet.kubectl("annotate", "pods", "-n", "ml", *chosen, "pumice.dev/run-time=1s")
    until(lambda: fleet.kubectl("get", name, "-n", "ml", "-o", field) == "Completed")
    fleet.kubectl("delete", name, "-n", "ml")


def test_flink_with_a_group_of_its_user_gets_no_other(fleet):
    fleet.kubectl("apply", "-f", str(FOLDER / "flink.yaml"))
    play(fleet, operators.flink_operator(find(fleet, "flinkdeployment")("stream", "etl"), None))
    for role in ("jobmanager", "taskmanager"):
        fleet.kubectl("rollout", "status", f"deployment/etl-{role}", "-n", "stream", "--timeout=240s")
    until(lambda: objects(fleet, "podgroups", "stream")[0]["status"].get("running") == 3)
    assert [each["metadata"]["name"] for each in objects(fleet, "podgroups", "stream")] == ["flink-etl"]
    fleet.kubectl("delete", "flinkdeployment", "etl", "-n", "stream")
    until(lambda: objects(fleet, "pods", "stream") == [])


def test_a_plain_job_is_a_gang_if_it_says_so(fleet):
    fleet.kubectl("apply", "-f", str(FOLDER / "batch-job.yaml"))
    job = find(fleet, "job")("ml", "allreduce")
    name = f"podgroup-{job['metadata']['uid']}"
    until(lambda: name in fleet.kubectl("get", "podgroups", "-n", "ml", "-o", "name"))
    spec = until(lambda: find(fleet, "podgroup")("ml", name)["spec"])
    assert (spec["minMember"], spec["queue"], spec["minResources"]["cpu"]) == (4, "research", "4")
    fleet.kubectl("wait", "--for=condition=Complete", "job/allreduce", "-n", "ml", "--timeout=240s")
    until(lambda: find(fleet, "podgroup")("ml", name)["status"]["phase"] == "Completed")
    fleet.kubectl("delete", "job", "allreduce", "-n", "ml")
    until(lambda: name not in fleet.kubectl("get", "podgroups", "-n", "ml", "-o", "name"))


def test_bare_pods_wait_for_each_other(fleet):
    group, first, second = (FOLDER / "bare-pods.yaml").read_text().split("---\n")
    fleet.kubectl("apply", "-f", "-", input=f"{group}---\n{first}")
    waiting = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].reason}"
    until(lambda: fleet.kubectl("get", "pod", "pair-0", "-n", "ml", "-o", waiting) == "Unschedulable")
    fleet.kubectl("apply", "-f", "-", input=second)
    for name in ("pair-0", "pair-1"):
        started(fleet, {"namespace": "ml", "name": name})
    fleet.kubectl("delete", "-f", str(FOLDER / "bare-pods.yaml"))
