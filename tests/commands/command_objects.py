"""Objects for tables: made by hand, and drawn at random with long names, strange letters and parts that are missing."""

from __future__ import annotations

from hypothesis import strategies as st

NOW = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
CREATED = "2025-12-31T23:00:00Z"


def job(name="train", namespace="default", *, phase="Running", replicas=(4,), labels=None, status=None, **spec):
    tasks = [
        {"name": f"task{i}", "replicas": count, "template": {"spec": {"containers": []}}}
        for i, count in enumerate(replicas)
    ]
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": CREATED, "uid": f"uid-{name}"}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"schedulerName": "volcano", "tasks": tasks, **spec},
        "status": {"state": {"phase": phase}, **(status or {})},
    }


def queue(name="research", *, state="Open", **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "creationTimestamp": CREATED, "uid": f"uid-{name}"},
        "spec": {"weight": 1, **spec},
        "status": {"state": state} if state else {},
    }


def group(name, queue_name="", phase="", minimum=1, namespace="default", **more):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": CREATED, **more},
        "spec": {"minMember": minimum, **({"queue": queue_name} if queue_name else {})},
        "status": {"phase": phase} if phase else {},
    }


def pod(name, namespace="default", *, labels=None, annotations=None, node="", phase="Running", cpu="1", **status):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": CREATED,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, **status},
    }


names = st.one_of(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=63),
    st.text("äöü日本語🦀\u202ea\n\t\x1b", min_size=1, max_size=30),
)
numbers = st.one_of(st.none(), st.integers(0, 10**6))
junk = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2))


@st.composite
def jobs(draw):
    """A job in which anything but the name may be missing or of a wrong type."""
    made = job(
        draw(names),
        draw(names),
        phase=draw(st.sampled_from(["", "Pending", "Running", "Aborting", "Terminating", "Completed"])),
        replicas=draw(st.lists(st.integers(0, 9999), max_size=3)),
        labels=draw(st.one_of(st.none(), st.just({"volcano.sh/job-type": "MPI"}))),
        status={
            key: draw(numbers)
            for key in ("minAvailable", "pending", "running", "succeeded", "failed", "unknown", "retryCount")
        },
    )
    for key in draw(st.lists(st.sampled_from(["spec", "status"]), unique=True)):
        made[key] = draw(junk)
    return made
