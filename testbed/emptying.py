"""Remove what tests leave behind in a cluster that has no controllers to do it."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING

from testbed import definitions

if TYPE_CHECKING:
    from testbed.calling import Caller

_COLLECTIONS = (
    # the first of all: who does not answer any more would refuse the rest
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/replicationcontrollers",
    "/api/v1/resourcequotas",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
)
_KEPT = "kubernetes", "system-cluster-critical", "system-node-critical"
"""The Service and the PriorityClasses that the API server makes for itself."""
_SELECTOR = urllib.parse.quote(",".join(f"metadata.name!={name}" for name in _KEPT))
_AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
_NO_FINALIZERS = {"metadata": {"finalizers": None}}


def empty(caller: Caller) -> None:
    """Remove webhooks, pods, nodes, volumes, leases, custom objects and the like everywhere, at once; namespaces stay, and so does `kube-system`."""
    for collection in (*_COLLECTIONS, *_custom(caller)):
        namespaces: dict[str, None] = {}
        for item in (
            caller.call("GET", f"{collection}?fieldSelector={_SELECTOR}", accept=definitions.METADATA)["items"] or ()
        ):
            metadata = item["metadata"]
            namespace = metadata.get("namespace", "")
            if namespace == "kube-system":
                continue
            namespaces[namespace] = None
            if metadata.get("finalizers"):
                place = f"{_within(collection, namespace)}/{metadata['name']}"
                caller.call("PATCH", place, _NO_FINALIZERS, content_type="application/merge-patch+json")
        for namespace in namespaces:
            caller.call("DELETE", f"{_within(collection, namespace)}?fieldSelector={_SELECTOR}", _AT_ONCE)


def _custom(caller: Caller) -> list[str]:
    """Return the collection of every custom resource, in the version that is stored."""
    found = []
    for definition in caller.call("GET", definitions.COLLECTION)["items"]:
        spec = definition["spec"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        found.append(f"/apis/{spec['group']}/{stored}/{spec['names']['plural']}")
    return found


def _within(collection: str, namespace: str) -> str:
    if not namespace:
        return collection
    group_version, _, plural = collection.rpartition("/")
    return f"{group_version}/namespaces/{namespace}/{plural}"
