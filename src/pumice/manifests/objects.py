"""The objects of an installation on a cluster: accounts, roles, flow schemas, configurations, Deployments and Services.

The chart's templates say the same in helm's language; a test compares the two, object by object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.kube import permissions
from pumice.manifests import component, page, user_roles, workload
from pumice.manifests.release import CONFIGURATION_FILE, CONTROLLERS_FILE

if TYPE_CHECKING:
    from pumice.manifests.component import Component
    from pumice.manifests.release import Release

Manifest = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_FLOWS: Final = "flowcontrol.apiserver.k8s.io/v1"


def scheduler(release: Release) -> list[Manifest]:
    """Give everything the scheduler needs; with controllers in its process, what they need too."""
    part = component.scheduler(release)
    single = release.controllers == "single"
    return [
        service_account(part),
        *roles(part),
        *geometries_role(part),
        *flow_schemas(part),
        config_map(part, release.config_map, {CONFIGURATION_FILE: release.configuration}),
        *([*user_roles.of(part), _discovery(part)] if single else []),
        workload.scheduler(part),
        service(part),
        *(page.objects(part) if release.page is not None else []),
    ]


def controllers(release: Release) -> list[Manifest]:
    """Give everything that controllers apart from the scheduler need; nothing if they do not run apart."""
    if release.controllers != "apart":
        return []
    part = component.controllers(release)
    return [
        service_account(part),
        *roles(part),
        *flow_schemas(part),
        *user_roles.of(part),
        _discovery(part),
        workload.controllers(part),
        service(part),
    ]


def _discovery(part: Component) -> Manifest:
    """Give the ConfigMap that says where HyperNodes are discovered: nowhere, until somebody writes it."""
    return config_map(part, part.release.controllers_config_map, {CONTROLLERS_FILE: part.release.discovery})


def namespace(release: Release) -> Manifest:
    """Give the namespace of everything below."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}


def service_account(part: Component) -> Manifest:
    """Give the account that a part is known by."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(part, part.name)}


def roles(part: Component) -> list[Manifest]:
    """Give what a part may do everywhere, what it may do with its Lease, and the two bindings."""
    everywhere = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(part, part.name, namespaced=False),
        "rules": permissions.cluster_rules(part.permissions),
    }
    at_home = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": _metadata(part, part.name),
        "rules": [rule for name in part.leases for rule in permissions.lease_rules(name)],
    }
    return [everywhere, _binding(part, "ClusterRole"), at_home, _binding(part, "Role")]


def geometries_role(part: Component) -> list[Manifest]:
    """Give the right to read into what cards can be cut, which the vGPU device plugin keeps in a namespace of the cluster."""
    name = f"{part.name}-geometries"
    metadata = {**_metadata(part, name), "namespace": permissions.GEOMETRIES_NAMESPACE}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": permissions.geometries_rules()}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "subjects": [_subject(part)],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
    }
    return [role, binding]


def _binding(part: Component, kind: str) -> Manifest:
    namespaced = kind == "Role"
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(part, f"{part.name}-role", namespaced=namespaced),
        "subjects": [_subject(part)],
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": part.name},
    }


def _subject(part: Component) -> Manifest:
    return {"kind": "ServiceAccount", "name": part.name, "namespace": part.namespace}


def flow_schemas(part: Component) -> list[Manifest]:
    """Give a part the priority level of kube-scheduler and of Kubernetes' own controllers, and its Lease the one of other leases.

    Without the first it would share a queue with every other account of the cluster; without the second a burst of its own writes could
    delay the renewal of its Lease. Both levels exist on every API server.
    """
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": True}
    return [
        _flow_schema(part, f"{part.name}-lease", "leader-election", 150, {**lease, "namespaces": [part.namespace]}),
        _flow_schema(part, part.name, "workload-high", 850, everything),
    ]


def _flow_schema(part: Component, name: str, level: str, precedence: int, rule: Manifest) -> Manifest:
    account = {"name": part.name, "namespace": part.namespace}
    return {
        "apiVersion": _FLOWS,
        "kind": "FlowSchema",
        "metadata": _metadata(part, name, namespaced=False),
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {"subjects": [{"kind": "ServiceAccount", "serviceAccount": account}], "resourceRules": [rule]},
            ],
        },
    }


def config_map(part: Component, name: str, data: dict[str, str]) -> Manifest:
    """Give a configuration; a change of it is followed without a restart."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(part, name), "data": data}


def service(part: Component) -> Manifest:
    """Give the address that Prometheus finds the metrics at."""
    scraping = {"path": "/metrics", "port": str(part.port), "scrape": "true"}
    metadata = _metadata(part, part.service)
    metadata["annotations"] = {f"prometheus.io/{key}": value for key, value in scraping.items()}
    port = {"name": "metrics", "port": part.port, "protocol": "TCP", "targetPort": part.port}
    spec = {"type": "ClusterIP", "selector": part.selector, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _metadata(part: Component, name: str, *, namespaced: bool = True) -> Manifest:
    home = {"namespace": part.namespace} if namespaced else {}
    return {"name": name, **home, "labels": part.labels}
