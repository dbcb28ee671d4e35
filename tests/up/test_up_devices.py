"""Claims for devices on `pumice up`, with kubectl: a slice is written, a pod with a template gets a device, and gives it back when it is gone."""

from __future__ import annotations

import json

from running_cluster import RunningCluster

from testbed.waiting import until

OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: NODE
  pool: {name: NODE, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu0
    attributes: {model: {string: a100}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu}}]}}
"""
RULE = """
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: repair}
spec:
  deviceSelector: {driver: gpu.example.com, device: gpu0}
  taint: {key: example.com/repair, effect: NoSchedule}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: x, resources: {claims: [{name: gpu}]}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""


def test_a_pod_gets_a_device_and_the_next_one_gets_it_when_the_first_is_gone(tmp_path):
    with RunningCluster(tmp_path, "--nodes", "2") as running:

        def found(*what):
            return json.loads(running.kubectl("get", *what, "-o", "json"))

        node = found("nodes")["items"][-1]["metadata"]["name"]
        running.kubectl("apply", "-f", "-", input=OBJECTS.replace("NODE", node))
        running.kubectl("apply", "-f", "-", input=POD.replace("NAME", "first"))
        until(lambda: found("pod", "first")["status"].get("phase") == "Running")
        assert found("pod", "first")["spec"]["nodeName"] == node
        (claim,) = found("resourceclaims")["items"]
        assert claim["metadata"]["name"].startswith("first-gpu-")
        assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu0"
        assert claim["status"]["reservedFor"][0]["name"] == "first"
        table = running.kubectl("get", "resourceclaims").splitlines()
        assert table[0].split() == ["NAME", "STATE", "AGE"]
        assert table[1].split()[1] == "allocated,reserved"
        running.kubectl("apply", "-f", "-", input=POD.replace("NAME", "second"))
        until(lambda: len(found("resourceclaims")["items"]) == 2)
        assert "nodeName" not in found("pod", "second")["spec"]
        running.kubectl("apply", "-f", "-", input=RULE)
        running.kubectl("delete", "pod", "first")
        until(lambda: len(found("resourceclaims")["items"]) == 1)
        assert "nodeName" not in found("pod", "second")["spec"]
        running.kubectl("delete", "devicetaintrule", "repair")
        until(lambda: found("pod", "second")["status"].get("phase") == "Running")
        (claim,) = found("resourceclaims")["items"]
        assert claim["status"]["reservedFor"][0]["name"] == "second"
