"""Jobs of batch/v1 that are gangs on `pumice up --gang-jobs`, with kubectl: all of their pods start, or none."""

from __future__ import annotations

import json

import pytest
from running_cluster import RunningCluster

from testbed.waiting import until

pytestmark = pytest.mark.kube

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  completionMode: MODE
  completions: COUNT
  parallelism: COUNT
  template:
    spec:
      schedulerName: volcano
      restartPolicy: Never
      containers: [{name: c, image: x, command: [COMMAND], resources: {requests: {cpu: "3"}}}]
"""


def test_an_indexed_job_starts_whole_or_not_at_all_and_leaves_nothing_behind(tmp_path):
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: node, count: 1, cpu: 8, memory: 16Gi}]")
    with RunningCluster(tmp_path, "--nodes", str(pools), "--gang-jobs", "--speed", "10") as running:

        def made(name, count, mode="Indexed", command="sleep, '600'"):
            text = JOB.replace("NAME", name).replace("COUNT", str(count)).replace("MODE", mode)
            running.kubectl("apply", "-f", "-", input=text.replace("COMMAND", command))

        def items(what):
            return json.loads(running.kubectl("get", what, "-o", "json"))["items"]

        def placed(job):
            return sum("nodeName" in each["spec"] for each in items("pods") if each["metadata"]["name"].startswith(f"{job}-"))  # fmt: skip

        made("large", 3)
        until(lambda: len(items("pods")) == 3)
        (group,), (workload,) = items("podgroups.scheduling.k8s.io"), items("workloads.scheduling.k8s.io")
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        reference = group["spec"]["podGroupTemplateRef"]["workload"]
        assert reference == {"workloadName": workload["metadata"]["name"], "podGroupTemplateName": "large-pgt-0"}
        assert [each["kind"] for each in group["metadata"]["ownerReferences"]] == ["Job", "Workload"]
        for pod in items("pods"):
            assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        until(lambda: "Unschedulable" in running.kubectl("get", "podgroups.scheduling.k8s.io"))
        assert placed("large") == 0
        assert "cannot change parallelism" in running.kubectl("patch", "job", "large", "-p", '{"spec": {"parallelism": 2, "completions": 2}}', check=False)  # fmt: skip
        running.kubectl("delete", "job", "large")
        until(lambda: not items("podgroups.scheduling.k8s.io") and not items("workloads.scheduling.k8s.io"))

        made("fits", 2, command="sleep, '5'")
        running.kubectl("wait", "--for=condition=Complete", "job/fits", "--timeout=200s")
        assert [each["metadata"]["ownerReferences"][0]["name"] for each in items("podgroups.scheduling.k8s.io")] == ["fits"]  # fmt: skip
        made("plain", 2, "NonIndexed")
        until(lambda: placed("plain") == 2)
        assert len(items("workloads.scheduling.k8s.io")) == 1
