"""The Deployments: not root, nothing to write but a temporary folder, servers on the pod's address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.manifests import page
from pumice.manifests.release import CONFIGURATION_FILE, CONTROLLERS_PORT, HEALTH_PORT, METRICS_PORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.manifests.component import Component
    from pumice.manifests.release import Release

Manifest = dict[str, Any]

USER: Final = 65532
# Twice what all state dumps may have together: a pod that has more in its folder is evicted.
TEMPORARY: Final = "2Gi"
_CONFIGURATION_FOLDER: Final = "/volcano.scheduler"
# In brackets, so that an IPv6 address is one too.
_POD_ADDRESS: Final = "[$(POD_IP)]"
_POD_IP: Final = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def scheduler(part: Component) -> Manifest:
    """Give the Deployment of the scheduler."""
    volume = {"name": "scheduler-config", "configMap": {"name": part.config_map}}
    mount = {"name": "scheduler-config", "mountPath": _CONFIGURATION_FOLDER, "readOnly": True}
    resources = {"requests": {"cpu": "500m", "memory": "512Mi"}}
    more = controllers_environment(part.release) if part.release.controllers == "single" else []
    container = {"args": arguments(part.release), "env": [_POD_IP, *more]}
    mounted = [(volume, mount), *page.mounted(part.release)]
    return _deployment(part, container, resources, mounted, page.ports(part.release))


def controllers(part: Component) -> Manifest:
    """Give the Deployment of the controllers."""
    resources = {"requests": {"cpu": "250m", "memory": "256Mi"}}
    container = {
        "command": ["pumice", "controllers"],
        "args": controller_arguments(part.release),
        "env": [_POD_IP, *controllers_environment(part.release)],
    }
    return _deployment(part, container, resources, [])


def arguments(release: Release) -> list[str]:
    """Give the flags of the scheduler."""
    flags = [("scheduler-conf", f"{_CONFIGURATION_FOLDER}/{CONFIGURATION_FILE}")]
    flags += _shared_flags(release, METRICS_PORT, release.lease_name)
    flags += page.flags(release, _POD_ADDRESS)
    if release.controllers == "single":
        flags += [("controllers", "*"), ("controllers-lease-name", release.controllers_lease)]
    return _written(release, flags)


def controller_arguments(release: Release) -> list[str]:
    """Give the flags of the controllers."""
    return _written(release, _shared_flags(release, CONTROLLERS_PORT, release.controllers_lease))


def _shared_flags(release: Release, port: int, lease: str) -> list[tuple[str, str]]:
    return [
        ("enable-healthz", "true"),
        ("healthz-address", f"{_POD_ADDRESS}:{HEALTH_PORT}"),
        ("enable-metrics", "true"),
        ("listen-address", f"{_POD_ADDRESS}:{port}"),
        ("leader-elect", "true"),
        ("leader-elect-resource-namespace", release.namespace),
        ("leader-elect-resource-name", lease),
    ]


def _written(release: Release, flags: list[tuple[str, str]]) -> list[str]:
    names = [f"--scheduler-name={name}" for name in release.scheduler_names]
    return [*names, *(f"--{flag}={value}" for flag, value in flags), f"-v={release.verbosity}"]


def controllers_environment(release: Release) -> list[Manifest]:
    """Say which ConfigMap tells where HyperNodes are discovered, as Volcano's controllers are told."""
    home = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    return [{"name": "KUBE_POD_NAMESPACE", "valueFrom": home}, {"name": "HELM_RELEASE_NAME", "value": release.name}]


def _deployment(
    part: Component,
    container: Manifest,
    resources: Manifest,
    mounted: list[tuple[Manifest, Manifest]],
    ports: Sequence[Manifest] = (),
) -> Manifest:
    """Give a Deployment; its replicas stand by for each other."""
    pod = {
        "serviceAccountName": part.name,
        "priorityClassName": "system-cluster-critical",
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{**_container(part, resources, [mount for _, mount in mounted], ports), **container}],
        "volumes": [*(volume for volume, _ in mounted), {"name": "tmp", "emptyDir": {"sizeLimit": TEMPORARY}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": part.name, "namespace": part.namespace, "labels": part.labels},
        "spec": {
            "replicas": part.release.replicas,
            "selector": {"matchLabels": part.selector},
            "template": {"metadata": {"labels": part.labels}, "spec": pod},
        },
    }


def _container(part: Component, resources: Manifest, mounts: list[Manifest], ports: Sequence[Manifest]) -> Manifest:
    return {
        "name": part.name,
        "image": part.release.image,
        "imagePullPolicy": part.release.pull_policy,
        "ports": [
            {"name": "metrics", "containerPort": part.port, "protocol": "TCP"},
            {"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            *ports,
        ],
        "livenessProbe": {**_probe("/livez"), "initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5},
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            *mounts,
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  a folder of the pod's own, where state dumps go
        ],
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "healthz", "scheme": "HTTP"}, "timeoutSeconds": 5}
