"""The scheduler's own objects on a cluster: account, roles, flow schemas, configuration, Deployment and Service.

The chart's templates say the same in helm's language; a test compares the two, object by object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.kube import permissions
from pumice.manifests import workload
from pumice.manifests.release import CONFIGURATION_FILE, METRICS_PORT

if TYPE_CHECKING:
    from pumice.manifests.release import Release

Manifest = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_FLOWS: Final = "flowcontrol.apiserver.k8s.io/v1"


def scheduler(release: Release) -> list[Manifest]:
    """Give everything the scheduler needs besides its namespace and the custom resources, in the order to apply it."""
    return [
        service_account(release),
        *roles(release),
        *flow_schemas(release),
        config_map(release),
        workload.deployment(release),
        service(release),
    ]


def namespace(release: Release) -> Manifest:
    """Give the namespace of everything below."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}


def service_account(release: Release) -> Manifest:
    """Give the account that the scheduler is known by."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(release, release.scheduler)}


def roles(release: Release) -> list[Manifest]:
    """Give what the scheduler may do everywhere, what it may do with its Lease, and the two bindings."""
    everywhere = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(release, release.scheduler, namespaced=False),
        "rules": permissions.cluster_rules(),
    }
    at_home = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": _metadata(release, release.scheduler),
        "rules": permissions.lease_rules(release.lease_name),
    }
    return [everywhere, _binding(release, "ClusterRole"), at_home, _binding(release, "Role")]


def _binding(release: Release, kind: str) -> Manifest:
    namespaced = kind == "Role"
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(release, f"{release.scheduler}-role", namespaced=namespaced),
        "subjects": [_subject(release)],
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": release.scheduler},
    }


def _subject(release: Release) -> Manifest:
    return {"kind": "ServiceAccount", "name": release.scheduler, "namespace": release.namespace}


def flow_schemas(release: Release) -> list[Manifest]:
    """Give the scheduler the priority level of kube-scheduler, and its Lease the one of other leases.

    Without the first it would share a queue with every other account of the cluster; without the second a burst of its own writes could
    delay the renewal of its Lease. Both levels exist on every API server.
    """
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": True}
    return [
        _flow_schema(
            release, f"{release.scheduler}-lease", "leader-election", 150, {**lease, "namespaces": [release.namespace]}
        ),
        _flow_schema(release, release.scheduler, "workload-high", 850, everything),
    ]


def _flow_schema(release: Release, name: str, level: str, precedence: int, rule: Manifest) -> Manifest:
    account = {"name": release.scheduler, "namespace": release.namespace}
    return {
        "apiVersion": _FLOWS,
        "kind": "FlowSchema",
        "metadata": _metadata(release, name, namespaced=False),
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {"subjects": [{"kind": "ServiceAccount", "serviceAccount": account}], "resourceRules": [rule]},
            ],
        },
    }


def config_map(release: Release) -> Manifest:
    """Give the configuration; a change of it is followed without a restart."""
    metadata = _metadata(release, release.config_map)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {CONFIGURATION_FILE: release.configuration},
    }


def service(release: Release) -> Manifest:
    """Give the address that Prometheus finds the metrics at."""
    scraping = {"path": "/metrics", "port": str(METRICS_PORT), "scrape": "true"}
    metadata = _metadata(release, release.service)
    metadata["annotations"] = {f"prometheus.io/{key}": value for key, value in scraping.items()}
    port = {"name": "metrics", "port": METRICS_PORT, "protocol": "TCP", "targetPort": METRICS_PORT}
    spec = {"type": "ClusterIP", "selector": release.selector, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _metadata(release: Release, name: str, *, namespaced: bool = True) -> Manifest:
    home = {"namespace": release.namespace} if namespaced else {}
    return {"name": name, **home, "labels": release.labels}
