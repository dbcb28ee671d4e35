"""The Deployment of the scheduler: not root, nothing to write but a temporary folder, servers on the pod's address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.manifests.release import CONFIGURATION_FILE, HEALTH_PORT, METRICS_PORT

if TYPE_CHECKING:
    from pumice.manifests.release import Release

Manifest = dict[str, Any]

USER: Final = 65532
# Twice what all state dumps may have together: a pod that has more in its folder is evicted.
TEMPORARY: Final = "2Gi"
_CONFIGURATION_FOLDER: Final = "/volcano.scheduler"
# In brackets, so that an IPv6 address is one too.
_POD_ADDRESS: Final = "[$(POD_IP)]"


def deployment(release: Release) -> Manifest:
    """Give the Deployment; its replicas stand by for each other."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": release.scheduler, "namespace": release.namespace, "labels": release.labels},
        "spec": {
            "replicas": release.replicas,
            "selector": {"matchLabels": release.selector},
            "template": {"metadata": {"labels": release.labels}, "spec": _pod(release)},
        },
    }


def arguments(release: Release) -> list[str]:
    """Give the flags of the scheduler."""
    flags = {
        "scheduler-conf": f"{_CONFIGURATION_FOLDER}/{CONFIGURATION_FILE}",
        "enable-healthz": "true",
        "healthz-address": f"{_POD_ADDRESS}:{HEALTH_PORT}",
        "enable-metrics": "true",
        "listen-address": f"{_POD_ADDRESS}:{METRICS_PORT}",
        "leader-elect": "true",
        "leader-elect-resource-namespace": release.namespace,
        "leader-elect-resource-name": release.lease_name,
    }
    names = [f"--scheduler-name={name}" for name in release.scheduler_names]
    return [*names, *(f"--{flag}={value}" for flag, value in flags.items()), f"-v={release.verbosity}"]


def _pod(release: Release) -> Manifest:
    return {
        "serviceAccountName": release.scheduler,
        "priorityClassName": "system-cluster-critical",
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(release)],
        "volumes": [
            {"name": "scheduler-config", "configMap": {"name": release.config_map}},
            {"name": "tmp", "emptyDir": {"sizeLimit": TEMPORARY}},
        ],
    }


def _container(release: Release) -> Manifest:
    return {
        "name": release.scheduler,
        "image": release.image,
        "imagePullPolicy": release.pull_policy,
        "args": arguments(release),
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": {**_probe("/livez"), "initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5},
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "scheduler-config", "mountPath": _CONFIGURATION_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  a folder of the pod's own, where state dumps go
        ],
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "healthz", "scheme": "HTTP"}, "timeoutSeconds": 5}
