"""The page of a scheduler, where it is asked for: a Service, the rights to review who looks, flags, and what they need mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.kube import permissions, web_permissions
from pumice.manifests.release import PAGE_PORT

if TYPE_CHECKING:
    from pumice.manifests.component import Component
    from pumice.manifests.release import Release

Manifest = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_CERTIFICATE_FOLDER: Final = "/volcano.web"
_CLIENTS_FOLDER: Final = "/volcano.web-clients"


def objects(part: Component) -> list[Manifest]:
    """Give the Service, and what the account of the scheduler may do for the page beside all else."""
    name = part.release.page_service
    everywhere = {"name": name, "labels": part.labels}
    spec = {
        "type": "ClusterIP",
        "sessionAffinity": "ClientIP",  # who has signed in is known to one replica
        "selector": part.selector,
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": PAGE_PORT}],
    }
    metadata = {"name": name, "namespace": part.namespace, "labels": part.labels}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": everywhere,
            "rules": permissions.cluster_rules(web_permissions.PERMISSIONS),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": everywhere,
            "subjects": [{"kind": "ServiceAccount", "name": part.name, "namespace": part.namespace}],
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        },
    ]


def flags(release: Release, host: str) -> list[tuple[str, str]]:
    """Give the flags that serve it on an address of the pod."""
    page = release.page
    if page is None:
        return []
    called = f"{release.page_service}.{release.namespace}"
    found = [("web-address", f"{host}:{PAGE_PORT}")]
    found += [("web-hosts", name) for name in (called, f"{called}.svc", *page.hosts)]
    if page.tls_secret:
        found += [("web-cert-file", f"{_CERTIFICATE_FOLDER}/tls.crt")]
        found += [("web-private-key-file", f"{_CERTIFICATE_FOLDER}/tls.key")]
    if page.client_ca:
        found += [("web-client-ca", f"{_CLIENTS_FOLDER}/ca.crt")]
    return found


def ports(release: Release) -> list[Manifest]:
    """Give the port of the container."""
    return [] if release.page is None else [{"name": "web", "containerPort": PAGE_PORT, "protocol": "TCP"}]


def mounted(release: Release) -> list[tuple[Manifest, Manifest]]:
    """Give the volumes that its certificate and its authority come from, and where they are."""
    page, found = release.page, []
    if page is not None and page.tls_secret:
        volume = {"name": "web", "secret": {"secretName": page.tls_secret}}
        found.append((volume, {"name": "web", "mountPath": _CERTIFICATE_FOLDER, "readOnly": True}))
    if page is not None and page.client_ca:
        volume = {"name": "web-clients", "configMap": {"name": page.client_ca}}
        found.append((volume, {"name": "web-clients", "mountPath": _CLIENTS_FOLDER, "readOnly": True}))
    return found
