"""What people put into a cluster of the storm."""

from __future__ import annotations

from pumice.api import kinds

NAMESPACE = "a"
HOME = "kube-system"
CONFIGURATION = "pumice"
PRIORITIES = {"low": 1, "high": 100}
_TIERS = """
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: {sharing}
  - name: nodeorder
"""
GOOD = tuple(
    f'actions: "enqueue, allocate{more}, backfill"' + _TIERS.format(sharing=sharing)
    for more in ("", ", preempt", ", preempt, reclaim", ", gangpreempt, gangreclaim")
    for sharing in ("proportion", "capacity")
)
BAD = ("actions: [", 'actions: "enqueue, alocate"\ntiers: []', "tiers: 3", "", "\0", "x" * 2000)


def node(name, cpu):
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod_spec(cpu):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }


def job(name, tasks, least, *, queue="default", priority=""):
    """A Job; `tasks` are (replicas, cpu, seconds) each."""
    made = []
    for number, (replicas, cpu, seconds) in enumerate(tasks):
        metadata = {"annotations": {"pumice.dev/run-time": f"{seconds}s", "volcano.sh/preemptable": "true"}}
        made.append(
            {"name": f"t{number}", "replicas": replicas, "template": {"metadata": metadata, "spec": pod_spec(cpu)}}
        )
    spec = {"minAvailable": least, "schedulerName": "volcano", "queue": queue, "maxRetry": 3, "tasks": made}
    spec["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    if priority:
        spec["priorityClassName"] = priority
    return {
        "apiVersion": kinds.JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def queue(name, weight):
    return {
        "apiVersion": kinds.QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, "reclaimable": True},
    }


def configuration(text):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIGURATION, "namespace": HOME},
        "data": {"volcano-scheduler.conf": text},
    }


def everything():
    """What is there before anybody comes."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield configuration(GOOD[0])
    yield queue("other", 2)
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
