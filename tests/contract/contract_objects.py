"""Manifests that both clusters accept."""

from __future__ import annotations

from pumice.api import kinds, names


def pod(harness, name="p", *, node="", status=None, grace=None, **metadata):
    """Give a pod of a group, so that no controller gives it one."""
    metadata["annotations"] = {names.GROUP_NAME: "g", **metadata.get("annotations", {})}
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "x"}]}
    if node:
        spec["nodeName"] = node
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": harness.namespace, **metadata},
        "spec": spec,
    }
    if status:
        manifest["status"] = status
    return manifest


def pod_group(harness, name="g", *, status=None, **metadata):
    manifest = {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": harness.namespace, **metadata},
        "spec": {"minMember": 3, "queue": "default", "minTaskMember": {"a": 1}},
    }
    if status:
        manifest["status"] = status
    return manifest


def queue(harness, name=None, **fields):
    return {
        "apiVersion": kinds.QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name or f"q-{harness.namespace}"},
        "spec": {"weight": 4},
        **fields,
    }


def claim(harness, name="c", storage_class="manual"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": harness.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name, storage_class="manual"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": storage_class,
            "hostPath": {"path": f"/data/{name}"},
        },
    }


def storage_class(name, provisioner="example.com/disk"):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def uid(harness, kind, name):
    return harness.find(kind, name)["metadata"]["uid"]


def condition(manifest, type_):
    return next((c for c in manifest["status"].get("conditions", []) if c["type"] == type_), None)


def code(outcome):
    return outcome.failure and outcome.failure.code
