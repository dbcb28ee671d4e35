"""What people put into a cluster of the storm."""

from __future__ import annotations

from pumice.api import kinds
from tests.storm import device_objects, extended

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


def node(name, cpu, memory=64, places=110, gpus=0):
    amounts = {
        "cpu": str(cpu),
        "memory": f"{memory}Gi",
        "pods": str(places),
        **({extended.GPU: str(gpus)} if gpus else {}),
    }
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def small_or_not(rng):
    """Draw the memory of a node, how many pods it takes and how many GPUs it has: now and then so few that one of them is what keeps pods away."""
    return rng.choice((64, 64, 4)), rng.choice((110, 110, 4)), rng.choice(extended.REPORTED)


def pod_spec(cpu, memory=0, claims=(), gpus=0, devices=0):
    """What a pod asks for; `claims` name claims or templates as its spec does."""
    counts = {extended.GPU: gpus, extended.DEVICE: devices}
    named = {name: str(count) for name, count in counts.items() if count}
    requests = {"cpu": str(cpu), **({"memory": f"{memory}Gi"} if memory else {}), **named}
    made = {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests, "limits": named}}],
    }
    if claims:
        made["resourceClaims"] = [{"name": f"d{number}", **each} for number, each in enumerate(claims)]
    return made


def _template(seconds, spec):
    metadata = {"annotations": {"pumice.dev/run-time": f"{seconds}s", "volcano.sh/preemptable": "true"}}
    return {"metadata": metadata, "spec": spec}


def pod(name, seconds, spec):
    """A pod that nobody made but a person."""
    made = _template(seconds, spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **made,
        "metadata": {**made["metadata"], "name": name, "namespace": NAMESPACE},
    }


def native_group(name, least):
    """A gang of Kubernetes' own."""
    return {
        "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def batch_job(name, count, at_once, seconds, spec, *, indexed=False):
    """A Job of Kubernetes."""
    mode = {"completionMode": "Indexed"} if indexed else {}
    return {
        "apiVersion": kinds.BATCH_JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"completions": count, "parallelism": at_once, **mode, "template": _template(seconds, spec)},
    }


def job(name, tasks, least, *, queue="default", priority="", kept=None):
    """A Job, `kept` for so many seconds after its end; `tasks` are (replicas, spec, seconds) each, or cpu instead of a spec."""
    made = []
    for number, (replicas, spec, seconds) in enumerate(tasks):
        spec = spec if isinstance(spec, dict) else pod_spec(spec)  # noqa: PLW2901
        made.append({"name": f"t{number}", "replicas": replicas, "template": _template(seconds, spec)})
    spec = {"minAvailable": least, "schedulerName": "volcano", "queue": queue, "maxRetry": 3, "tasks": made}
    spec["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    if priority:
        spec["priorityClassName"] = priority
    if kept is not None:
        spec["ttlSecondsAfterFinished"] = kept
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
    yield from device_objects.standing(NAMESPACE)
