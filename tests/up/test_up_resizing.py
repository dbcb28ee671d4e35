"""Pods that are resized in place on `pumice up`, with kubectl: kubelets grant what there is room for, and the scheduler counts what is asked for."""

from __future__ import annotations

import json

import pytest
from running_cluster import RunningCluster

from testbed.waiting import until

pytestmark = pytest.mark.kube

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  schedulerName: volcano
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: x, resources: {requests: {cpu: "SIZE"}}}
"""


def one_node(folder):
    pools = folder / "pools.yaml"
    pools.write_text("pools: [{name: node, count: 1, cpu: 8, memory: 16Gi}]")
    return RunningCluster(folder, "--nodes", str(pools))


def test_a_pod_grows_waits_for_room_and_shrinks(tmp_path):
    with one_node(tmp_path) as running:

        def made(name, size):
            running.kubectl("apply", "-f", "-", input=POD.replace("NAME", name).replace("SIZE", str(size)))

        def pod(name):
            return json.loads(running.kubectl("get", "pod", name, "-o", "json"))

        def resize(name, size):
            change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(size)}}}]}}
            return running.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(change), check=False)

        def granted(name):
            (status,) = pod(name)["status"]["containerStatuses"]
            return status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]

        def pending(name):
            listed = pod(name)["status"]["conditions"]
            return next((each["reason"] for each in listed if each["type"] == "PodResizePending"), None)

        def runs(name):
            return pod(name)["status"].get("phase") == "Running"

        made("a", 2)
        made("b", 3)
        until(lambda: runs("a") and runs("b"))
        assert granted("a") == ("2", "2")
        resize("a", 4)
        until(lambda: granted("a") == ("4", "4"))
        until(lambda: "ResizeCompleted" in running.kubectl("events", "--for", "pod/a"))

        resize("a", 6)
        until(lambda: pending("a") == "Deferred")
        assert granted("a") == ("4", "4")
        made("small", 1)  # a node that owes somebody room has none for others
        until(lambda: "FailedScheduling" in running.kubectl("events", "--for", "pod/small"))
        running.kubectl("delete", "pod", "b")
        until(lambda: granted("a") == ("6", "6"))
        until(lambda: pending("a") is None)
        until(lambda: runs("small"))

        made("large", 4)
        until(lambda: "FailedScheduling" in running.kubectl("events", "--for", "pod/large"))
        assert "enough allocatable" in resize("a", 9)
        resize("a", 3)
        until(lambda: runs("large"))
        assert granted("a") == ("3", "3")


def test_a_pod_that_waits_is_tried_with_the_size_it_has_now(tmp_path):
    with one_node(tmp_path) as running:
        running.kubectl("apply", "-f", "-", input=POD.replace("NAME", "p").replace("SIZE", "20"))
        until(lambda: "FailedScheduling" in running.kubectl("events", "--for", "pod/p"))
        change = '{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}'
        running.kubectl("patch", "pod", "p", "--subresource=resize", "-p", change)
        running.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/p", "--timeout=200s")
