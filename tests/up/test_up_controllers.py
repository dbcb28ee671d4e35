"""Ordinary manifests on a cluster of `pumice up`, driven with the actual kubectl: controllers, garbage collection, namespaces, volumes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running_cluster import RunningCluster

from testbed.waiting import until

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parents[2]


def manifest(kind, name, spec, api_version="apps/v1", app=None):
    app = app or name
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    spec = {"selector": {"matchLabels": {"app": app}}, "template": template, **spec}
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})


def job(name, command, **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": command}]}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    return json.dumps({**body, "spec": {**spec, "template": {"spec": pod}}})


@pytest.fixture
def home(cluster, request):
    """A namespace of its own, gone afterwards with everything in it."""
    name = request.node.name.replace("_", "-")[:50].strip("-")
    cluster.kubectl("create", "namespace", name)

    def kubectl(*arguments, **more):
        return cluster.kubectl("-n", name, *arguments, **more)

    yield kubectl
    cluster.kubectl("delete", "namespace", name, "--wait=true", "--timeout=240s")


def objects(home, *what):
    return json.loads(home("get", *what, "-o", "json"))["items"]


def test_a_deployment_rolls_out_scales_and_is_undone(home):
    home("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 3}))
    assert "successfully rolled out" in home("rollout", "status", "deployment/web", "--timeout=240s")
    home("set", "image", "deployment/web", "c=nginx:2")
    assert "successfully rolled out" in home("rollout", "status", "deployment/web", "--timeout=240s")
    history = home("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    home("scale", "deployment/web", "--replicas=5")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    home("rollout", "undo", "deployment/web")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    pods = [pod for pod in objects(home, "pods") if "deletionTimestamp" not in pod["metadata"]]
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["nginx:1"] * 5
    line = home("get", "deployment", "web", "--no-headers").split()
    assert line[:4] == ["web", "5/5", "5", "5"]
    told = home("describe", "deployment", "web")
    assert "NewReplicaSetAvailable" in told
    assert "Scaled up replica set web-" in told
    assert [each.split()[0] for each in home("rollout", "history", "deployment/web").splitlines()[2:] if each] == [
        "2",
        "3",
    ]


def test_a_paused_deployment_waits_and_a_restarted_one_gets_new_pods(home):
    home("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 2}))
    home("rollout", "status", "deployment/web", "--timeout=240s")
    before = {pod["metadata"]["uid"] for pod in objects(home, "pods")}
    home("rollout", "pause", "deployment/web")
    home("set", "image", "deployment/web", "c=nginx:2")
    assert len(objects(home, "replicasets")) == 1
    home("rollout", "resume", "deployment/web")
    home("rollout", "restart", "deployment/web")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    after = {pod["metadata"]["uid"] for pod in objects(home, "pods") if "deletionTimestamp" not in pod["metadata"]}
    assert len(after) == 2
    assert not before & after


def test_a_job_runs_to_its_completions_and_says_so(home):
    home("apply", "-f", "-", input=job("work", ["sleep", "1"], completions=4, parallelism=2, completionMode="Indexed"))
    home("wait", "--for=condition=complete", "job/work", "--timeout=240s")
    found = json.loads(home("get", "job", "work", "-o", "json"))["status"]
    assert (found["succeeded"], found["completedIndexes"], found.get("active")) == (4, "0-3", None)
    assert home("get", "job", "work", "--no-headers").split()[:3] == ["work", "Complete", "4/4"]
    until(lambda: "Created pod: work-0-" in home("describe", "job", "work"))
    variable = {"name": "JOB_COMPLETION_INDEX"}
    pods = objects(home, "pods")
    assert len(pods) == 4
    assert all(pod["spec"]["containers"][0]["env"][0]["name"] == variable["name"] for pod in pods)
    assert not any(pod["metadata"].get("finalizers") for pod in pods)


def test_a_job_that_fails_too_often_ends_and_one_with_a_time_to_live_goes(home):
    home("apply", "-f", "-", input=job("bad", ["false"], backoffLimit=1))
    home("wait", "--for=condition=failed", "job/bad", "--timeout=240s")
    assert json.loads(home("get", "job", "bad", "-o", "json"))["status"]["failed"] == 2
    assert "BackoffLimitExceeded" in home("describe", "job", "bad")
    home("apply", "-f", "-", input=job("short", ["true"], ttlSecondsAfterFinished=5))
    home("wait", "--for=delete", "job/short", "--timeout=240s")
    until(lambda: not objects(home, "pods", "-l", "job-name=short"))


def test_a_suspended_job_runs_no_pod_until_it_is_resumed(home):
    home("apply", "-f", "-", input=job("later", ["true"], suspend=True))
    home("wait", "--for=condition=suspended", "job/later", "--timeout=240s")
    assert not objects(home, "pods")
    home("patch", "job", "later", "-p", '{"spec": {"suspend": false}}')
    home("wait", "--for=condition=complete", "job/later", "--timeout=240s")


def test_a_job_that_runs_too_long_fails(home):
    home("apply", "-f", "-", input=job("long", ["sleep", "1000"], activeDeadlineSeconds=10))
    home("wait", "--for=condition=failed", "job/long", "--timeout=240s")
    assert "DeadlineExceeded" in home("get", "job", "long", "-o", "yaml")


def test_what_becomes_of_dependents_is_said_when_their_owner_is_deleted(home):
    home("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 2}))
    home("rollout", "status", "deployment/web", "--timeout=240s")
    uids = {pod["metadata"]["uid"] for pod in objects(home, "pods")}
    home("delete", "deployment", "web", "--cascade=orphan")
    [orphan] = objects(home, "replicasets")
    assert "ownerReferences" not in orphan["metadata"]
    home("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 2}))
    home("rollout", "status", "deployment/web", "--timeout=240s")
    assert {pod["metadata"]["uid"] for pod in objects(home, "pods")} == uids
    home("delete", "deployment", "web", "--cascade=foreground")
    assert not objects(home, "replicasets", "-l", "app=web")
    assert not objects(home, "pods", "-l", "app=web")
    home("apply", "-f", "-", input=job("work", ["sleep", "1000"], parallelism=2))
    until(lambda: len(objects(home, "pods", "-l", "job-name=work")) == 2)
    home("delete", "job", "work")
    until(lambda: not objects(home, "pods", "-l", "job-name=work"))


def test_a_stateful_set_has_ordered_pods_with_volumes_that_outlive_them(home):
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec = {"replicas": 3, "serviceName": "db", "volumeClaimTemplates": [claim]}
    home("apply", "-f", "-", input=manifest("StatefulSet", "db", spec))
    home("rollout", "status", "statefulset/db", "--timeout=240s")
    assert [pod["metadata"]["name"] for pod in objects(home, "pods")] == ["db-0", "db-1", "db-2"]
    assert {each["status"]["phase"] for each in objects(home, "pvc")} == {"Bound"}
    home("set", "image", "statefulset/db", "c=nginx:2")
    home("rollout", "status", "statefulset/db", "--timeout=240s")
    until(lambda: {pod["spec"]["containers"][0]["image"] for pod in objects(home, "pods")} == {"nginx:2"})
    home("rollout", "undo", "statefulset/db")
    until(lambda: [pod["spec"]["containers"][0]["image"] for pod in objects(home, "pods")] == ["nginx:1"] * 3)
    home("scale", "statefulset/db", "--replicas=1")
    until(lambda: [pod["metadata"]["name"] for pod in objects(home, "pods")] == ["db-0"])
    assert len(objects(home, "pvc")) == 3
    home("delete", "pvc", "data-db-2")
    until(lambda: len([each for each in objects(home, "pv") if each["spec"]["claimRef"]["name"] == "data-db-2"]) == 0)


def test_a_daemon_set_has_a_pod_on_every_node_that_is_not_cordoned_away_by_a_taint(home, cluster):
    home("apply", "-f", "-", input=manifest("DaemonSet", "agent", {}))
    home("rollout", "status", "daemonset/agent", "--timeout=240s")
    assert sorted(pod["spec"]["nodeName"] for pod in objects(home, "pods")) == [f"node-{n}" for n in range(4)]
    cluster.kubectl("taint", "node", "node-3", "keep=out:NoExecute")
    until(lambda: {pod["spec"].get("nodeName") for pod in objects(home, "pods")} == {"node-0", "node-1", "node-2"})
    cluster.kubectl("taint", "node", "node-3", "keep-")
    home("rollout", "status", "daemonset/agent", "--timeout=240s")
    until(lambda: len({pod["spec"].get("nodeName") for pod in objects(home, "pods")}) == 4)
    home("set", "image", "daemonset/agent", "c=nginx:2")
    home("rollout", "status", "daemonset/agent", "--timeout=240s")
    home("rollout", "undo", "daemonset/agent")
    home("rollout", "status", "daemonset/agent", "--timeout=240s")
    until(lambda: {pod["spec"]["containers"][0]["image"] for pod in objects(home, "pods")} == {"nginx:1"})


def test_a_quota_that_refuses_pods_is_told_and_pods_come_once_it_is_gone(home):
    home("create", "quota", "few", "--hard=pods=1")
    home("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 3}))
    until(lambda: "exceeded quota: few" in home("get", "events", "--field-selector=reason=FailedCreate"))
    path = "jsonpath={.items[0].status.conditions[?(@.type=='ReplicaFailure')].reason}"
    until(lambda: home("get", "replicasets", "-o", path) == "FailedCreate")
    assert len(objects(home, "pods")) == 1
    home("delete", "quota", "few")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    assert not home("get", "replicasets", "-o", path)


def test_a_namespace_goes_with_everything_in_it_and_a_new_one_has_its_account(cluster):
    cluster.kubectl("create", "namespace", "short-lived")
    until(lambda: "default" in cluster.kubectl("-n", "short-lived", "get", "serviceaccounts"))
    cluster.kubectl("-n", "short-lived", "apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 2}))
    cluster.kubectl("-n", "short-lived", "create", "configmap", "c", "--from-literal=a=b")
    cluster.kubectl("delete", "namespace", "short-lived", "--timeout=240s")
    assert "NotFound" in cluster.kubectl("get", "namespace", "short-lived", check=False)
    assert "short-lived" not in cluster.kubectl("get", "all,configmaps", "-A")


def test_without_controllers_a_deployment_stays_what_it_is(tmp_path):
    with RunningCluster(tmp_path, "--nodes", "1", "--scheduler", "none", "--controllers", "none") as bare:
        bare.kubectl("apply", "-f", "-", input=manifest("Deployment", "web", {"replicas": 2}))
        assert "No resources found" in bare.kubectl("get", "replicasets,pods", check=False)


def test_a_job_of_volcano_runs_with_its_policies_and_plugins(home):
    home("apply", "-f", str(ROOT / "docs" / "examples" / "volcano-job.yaml"))
    until(lambda: home("get", "vcjob", "train", "--no-headers").split()[1] == "Completed")
    (job,) = objects(home, "jobs.batch.volcano.sh")
    pods = {pod["metadata"]["name"]: pod for pod in objects(home, "pods")}
    assert sorted(pods) == ["train-worker-0", "train-worker-1"]
    group = pods["train-worker-0"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    assert group == f"train-{job['metadata']['uid']}"
    (container,) = pods["train-worker-1"]["spec"]["containers"]
    variables = {each["name"]: each for each in container["env"]}
    assert variables["VC_TASK_INDEX"]["value"] == "1"
    assert variables["VC_WORKER_HOSTS"]["valueFrom"]["configMapKeyRef"]["name"] == "train-svc"
    action = "Start to execute action CompleteJob: TaskCompleted of task worker"
    until(lambda: action in home("describe", "vcjob", "train"))
    until(lambda: not objects(home, "podgroups.scheduling.volcano.sh"))


def test_a_cron_job_starts_its_jobs_and_goes_with_them(home):
    home("create", "cronjob", "tick", "--image=busybox", "--schedule=@every 1s", "--", "sh", "-c", "echo $HOSTNAME")
    until(lambda: "Complete" in home("get", "jobs", "--no-headers"))
    until(lambda: "Created job tick-" in home("get", "events", "--field-selector", "involvedObject.kind=CronJob"))
    home("patch", "cronjob", "tick", "-p", '{"spec": {"suspend": true}}')
    until(lambda: "LAST SCHEDULE" in home("get", "cronjob", "tick") and "True" in home("get", "cronjob", "tick"))
    home("delete", "cronjob", "tick")
    until(lambda: home("get", "jobs,pods", "--no-headers") == "")


def test_a_log_is_followed_to_the_end_of_its_container(home):
    home(
        "run", "talks", "--image=busybox", "--restart=Never", "--", "sh", "-c", "echo one; sleep 20; echo two $HOSTNAME"
    )
    # it may have ended before anybody looks: being ready passes
    until(lambda: home("get", "pod", "talks", "-o", "jsonpath={.status.phase}") in ("Running", "Succeeded"))
    assert home("logs", "talks", "-f") == "one\ntwo talks\n"
    told = home("logs", "talks", "--previous", check=False)
    assert 'previous terminated container "talks" in pod "talks" not found' in told
