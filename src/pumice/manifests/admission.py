"""The objects of the admission webhooks on a cluster, in files of their own: account, roles, resource groups, Deployment, Service, webhook configurations.

Whoever installs them makes the configurations last, and whoever removes them deletes these first: a webhook without a server behind it refuses everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.admission import rules
from pumice.api import names
from pumice.kube import admission_permissions
from pumice.manifests.release import HEALTH_PORT

if TYPE_CHECKING:
    from pumice.admission.rules import Rule
    from pumice.manifests.release import Release

Manifest = dict[str, Any]
CONFIGURATION_FILE: Final = "volcano-admission.conf"
CONFIGURATION: Final = """\
# Resource groups for /pods/mutate, which is off unless it is among the paths that are served.
resourceGroups: []
"""
PORT: Final = 8443
SERVICE_PORT: Final = 443
TIMEOUT: Final = 10
_RBAC: Final = "rbac.authorization.k8s.io"
_FOLDER: Final = "/admission.local.config/configmap"
_POD_ADDRESS: Final = "[$(POD_IP)]"
USER: Final = 65532
TEMPORARY: Final = "64Mi"


def objects(release: Release) -> list[Manifest]:
    """Give everything the webhooks need besides their namespace and the custom resources, in the order to apply it."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(release, release.admission)},
        *roles(release),
        config_map(release),
        deployment(release),
        service(release),
        *(configuration(release, rule) for rule in rules.named(release.admission_paths)),
    ]


def roles(release: Release) -> list[Manifest]:
    """Give what the webhooks may do everywhere, what they may do with their Secret, and the two bindings."""
    every = [configuration_name(release, rule) for rule in rules.RULES]
    namespaces = "/podgroups/mutate" in release.admission_paths
    everywhere = admission_permissions.cluster_rules(namespaces=namespaces) + admission_permissions.webhook_rules(every)
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(release, release.admission, namespaced=False),
            "rules": everywhere,
        },
        _binding(release, "ClusterRole"),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(release, release.admission),
            "rules": admission_permissions.certificate_rules(release.admission_secret),
        },
        _binding(release, "Role"),
    ]


def _binding(release: Release, kind: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(release, f"{release.admission}-role", namespaced=kind == "Role"),
        "subjects": [{"kind": "ServiceAccount", "name": release.admission, "namespace": release.namespace}],
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": release.admission},
    }


def config_map(release: Release) -> Manifest:
    """Give the resource groups; a change of them is followed without a restart."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(release, f"{release.admission}-configmap"),
        "data": {CONFIGURATION_FILE: CONFIGURATION},
    }


def service(release: Release) -> Manifest:
    """Give the address that the API server finds the webhooks at."""
    port = {"name": "admission", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(release, release.admission_service),
        "spec": {"type": "ClusterIP", "selector": {"app": release.admission}, "ports": [port]},
    }


def configuration_name(release: Release, rule: Rule) -> str:
    """Name the webhook configuration of a path, as Volcano does."""
    return f"{release.admission_service}{rule.path.replace('/', '-')}"


def configuration(release: Release, rule: Rule) -> Manifest:
    """Give the webhook configuration of a path; the process behind it fills in whose certificate to believe."""
    kind = rule.kind
    alone = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": [release.namespace, names.SYSTEM_NAMESPACE],
    }
    place = {
        "name": release.admission_service,
        "namespace": release.namespace,
        "path": rule.path,
        "port": SERVICE_PORT,
    }
    matched = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(rule.operations),
        "resources": [kind.plural],
    }
    webhook = {
        "name": rule.webhook,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": place},
        "failurePolicy": release.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [alone]},
        "rules": [matched],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": TIMEOUT,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration" if rule.mutates else "ValidatingWebhookConfiguration",
        "metadata": _metadata(release, configuration_name(release, rule), namespaced=False),
        "webhooks": [webhook],
    }


def arguments(release: Release) -> list[str]:
    """Give the flags of `pumice admission`."""
    flags = {
        "enabled-admission": ",".join(release.admission_paths),
        "admission-conf": f"{_FOLDER}/{CONFIGURATION_FILE}",
        "webhook-namespace": release.namespace,
        "webhook-service-name": release.admission_service,
        "webhook-secret-name": release.admission_secret,
        "listen-address": _POD_ADDRESS,
        "port": PORT,
        "enable-healthz": "true",
        "healthz-address": f"{_POD_ADDRESS}:{HEALTH_PORT}",
    }
    called = [f"--scheduler-name={name}" for name in release.scheduler_names]
    return [*called, *(f"--{flag}={value}" for flag, value in flags.items()), f"-v={release.admission_verbosity}"]


def deployment(release: Release) -> Manifest:
    """Give the Deployment; all its replicas answer, and share one certificate."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(release, release.admission),
        "spec": {
            "replicas": release.admission_replicas,
            "selector": {"matchLabels": {"app": release.admission}},
            "template": {"metadata": {"labels": release.labels_of(release.admission)}, "spec": _pod(release)},
        },
    }


def _pod(release: Release) -> Manifest:
    return {
        "serviceAccountName": release.admission,
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
            {"name": "admission-config", "configMap": {"name": f"{release.admission}-configmap"}},
            {"name": "tmp", "emptyDir": {"sizeLimit": TEMPORARY}},
        ],
    }


def _container(release: Release) -> Manifest:
    return {
        "name": release.admission,
        "image": release.image,
        "imagePullPolicy": release.pull_policy,
        "command": ["pumice", "admission"],
        "args": arguments(release),
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [
            {"name": "admission", "containerPort": PORT, "protocol": "TCP"},
            {"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": {**_probe("/livez"), "initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "admission-config", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  a folder of the pod's own, in which a key is for a moment
        ],
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "healthz", "scheme": "HTTP"}, "timeoutSeconds": 5}


def _metadata(release: Release, name: str, *, namespaced: bool = True) -> Manifest:
    home = {"namespace": release.namespace} if namespaced else {}
    return {"name": name, **home, "labels": release.labels_of(release.admission)}
