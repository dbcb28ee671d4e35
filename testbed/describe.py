"""Write the description of the Kubernetes API that `pumice up` serves: `python -m testbed.describe` asks a real API server for it.

What is kept is data that Kubernetes publishes about its own interface, for the kinds in `SERVED` and for no others: how they are called, which verbs they
know, and their schemas, with the keys that patches merge lists by, and the roles and bindings that a new cluster has; no sentence of theirs. It is written to one compressed file, the same bytes for the same answers.
"""

from __future__ import annotations

import gzip
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

from testbed import server, wire

TARGET = Path(__file__).parents[1] / "src" / "pumice" / "apiserver" / "description.json.gz"
SERVED = {
    "v1": "bindings configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods podtemplates "
    "replicationcontrollers resourcequotas secrets serviceaccounts services",
    "admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
    "apps/v1": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "authentication.k8s.io/v1": "selfsubjectreviews tokenreviews",
    "authorization.k8s.io/v1": "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
    "batch/v1": "cronjobs jobs",
    "coordination.k8s.io/v1": "leases",
    "discovery.k8s.io/v1": "endpointslices",
    "events.k8s.io/v1": "events",
    "flowcontrol.apiserver.k8s.io/v1": "flowschemas prioritylevelconfigurations",
    "networking.k8s.io/v1": "ingressclasses ingresses networkpolicies",
    "node.k8s.io/v1": "runtimeclasses",
    "policy/v1": "poddisruptionbudgets",
    "rbac.authorization.k8s.io/v1": "clusterrolebindings clusterroles rolebindings roles",
    "resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    "resource.k8s.io/v1beta2": "devicetaintrules",
    "scheduling.k8s.io/v1": "priorityclasses",
    "scheduling.k8s.io/v1alpha2": "podgroups workloads",
    "storage.k8s.io/v1": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses",
}
GATED = (
    "--runtime-config=scheduling.k8s.io/v1alpha2=true,resource.k8s.io/v1beta2=true",
    "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true,DRADeviceTaintRules=true",
)
"""What switches on Kubernetes' own gangs and rules about devices, which no server of 1.36 serves by itself."""
_SUBRESOURCES = frozenset({"binding", "eviction", "finalize", "log", "resize", "scale", "status", "token"})
_ACCESS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")  # in the order in which they are made
_BOOTSTRAPPED = "kubernetes.io/bootstrapping=rbac-defaults"
_EXTRA = (
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
)
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_REFERENCE = "#/components/schemas/"

Document = dict[str, Any]


def main() -> int:
    """Ask new API servers and write the file; return the exit status.

    What is served only where gates are open comes from a second server, and nothing else does: the roles of every cluster are those of the first.
    """
    with server.ApiServer() as running:
        resources, schemas = _described(running)
        version = running.call("GET", "/version")
        access = [manifest for plural in _ACCESS for manifest in _access(running, plural)]
    with server.ApiServer(arguments=GATED) as running:
        gated, others = _described(running)
    known = {(each["group"], each["version"], each["resource"]) for each in resources}
    resources += [each for each in gated if (each["group"], each["version"], each["resource"]) not in known]
    schemas = others | schemas
    needed = _reachable(schemas, resources)
    document = {
        "version": version["gitVersion"],
        "resources": resources,
        "schemas": needed,
        "messages": wire.messages(needed),
        "access": access,
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(text, mtime=0))
    print(f"{TARGET.name}: {len(resources)} resources, {len(needed)} schemas, {TARGET.stat().st_size:,} bytes")
    return 0


def _described(running: server.ApiServer) -> tuple[list[Document], Document]:
    """Give the resources that a server serves, and their schemas."""
    resources = [found for path in ("/api", "/apis") for found in _resources(_aggregated(running, path))]
    schemas: Document = {}
    for path, entry in running.call("GET", "/openapi/v3")["paths"].items():
        if path.removeprefix("apis/").removeprefix("api/") in SERVED:
            schemas |= running.call("GET", entry["serverRelativeURL"])["components"]["schemas"]
    return resources, schemas


def _access(running: server.ApiServer, plural: str) -> list[Document]:
    """Give the roles or bindings that every new cluster has, without what the server writes on them."""
    path = f"/apis/rbac.authorization.k8s.io/v1/{plural}?labelSelector={_BOOTSTRAPPED}"
    listed = running.call("GET", path)
    kind = listed["kind"].removesuffix("List")
    return [{"apiVersion": listed["apiVersion"], "kind": kind, **_own(each)} for each in listed["items"]]


def _own(manifest: Document) -> Document:
    metadata = {
        key: value
        for key, value in manifest["metadata"].items()
        if key in ("annotations", "labels", "name", "namespace")
    }
    return {**manifest, "metadata": metadata}


def _aggregated(running: server.ApiServer, path: str) -> Document:
    headers = {"Authorization": f"Bearer {running.token}", "Accept": _AGGREGATED}
    request = urllib.request.Request(running.url + path, headers=headers)  # noqa: S310  our own server
    trusted = ssl.create_default_context(cafile=str(running.ca_file))
    with urllib.request.urlopen(request, context=trusted) as answer:  # noqa: S310  our own server
        found: Document = json.load(answer)
    return found


def _resources(discovered: Document) -> list[Document]:
    """Give the resources that are served, each with its group and version."""
    found = []
    for group in discovered["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            served = SERVED.get(f"{name}/{version['version']}" if name else version["version"], "").split()
            found += [
                {"group": name, "version": version["version"], **_trimmed(each)}
                for each in version["resources"]
                if each["resource"] in served
            ]
    return found


def _trimmed(resource: Document) -> Document:
    doors = [door for door in resource.get("subresources", []) if door["subresource"] in _SUBRESOURCES]
    kept = {key: value for key, value in resource.items() if key != "subresources"}
    return {**kept, "subresources": doors} if doors else kept


def _reachable(schemas: Document, resources: list[Document]) -> Document:
    """Give the schemas of the served kinds, of their lists, and all that these refer to."""
    wanted = {
        (each["group"], each["version"], kind)
        for each in resources
        for kind in (each["responseKind"]["kind"], each["responseKind"]["kind"] + "List")
    }
    waiting = [name for name in _EXTRA if name in schemas] + [
        name
        for name, schema in schemas.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", [])
        if (gvk["group"], gvk["version"], gvk["kind"]) in wanted
    ]
    found: Document = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = without_prose(_served_only(schemas[name]))
            waiting += _references(found[name])
    return found


def without_prose(schema: Any) -> Any:
    """Leave the descriptions of fields out: facts about the interface are kept, sentences are not."""
    if isinstance(schema, list):
        return [without_prose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # A field may itself be called description; then it has a schema, and is no text.
    return {
        key: without_prose(value) for key, value in schema.items() if key != "description" or not isinstance(value, str)
    }


def _served_only(schema: Document) -> Document:
    """Leave out of a schema the groups that are not served: those of options that every group shares."""
    gvks = schema.get("x-kubernetes-group-version-kind")
    if not gvks:
        return schema
    versions = [(f"{each['group']}/{each['version']}" if each["group"] else each["version"], each) for each in gvks]
    return {**schema, "x-kubernetes-group-version-kind": [each for version, each in versions if version in SERVED]}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        here = [value["$ref"].removeprefix(_REFERENCE)] if isinstance(value.get("$ref"), str) else []
        return here + [name for each in value.values() for name in _references(each)]
    if isinstance(value, list):
        return [name for each in value for name in _references(each)]
    return []


if __name__ == "__main__":
    raise SystemExit(main())
