"""Who owns which fields of a new object: the same on the API server of `pumice up` and on a real one, whether it was posted or applied."""

from __future__ import annotations

import copy

import pytest

pytestmark = pytest.mark.kube

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
LIMITED = [{"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}]


def manifest(api_version, kind, spec, **metadata):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


OBJECTS = {
    "/api/v1/namespaces/NS/pods": manifest(
        "v1", "Pod", {"containers": LIMITED, "tolerations": [{"key": "a", "operator": "Exists"}]}, labels={"x": "y"}
    ),
    "/apis/apps/v1/namespaces/NS/deployments": manifest(
        "apps/v1", "Deployment", {"selector": SELECTOR, "template": TEMPLATE}
    ),
    "/apis/apps/v1/namespaces/NS/statefulsets": manifest(
        "apps/v1", "StatefulSet", {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}
    ),
    "/apis/batch/v1/namespaces/NS/jobs": manifest(
        "batch/v1",
        "Job",
        {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": LIMITED}}},
    ),
    "/api/v1/namespaces/NS/services": manifest("v1", "Service", {"ports": [{"port": 80}], "selector": {"a": "b"}}),
    "/api/v1/namespaces/NS/persistentvolumeclaims": manifest(
        "v1",
        "PersistentVolumeClaim",
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    "/apis/policy/v1/namespaces/NS/poddisruptionbudgets": manifest(
        "policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": SELECTOR}
    ),
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/NS/podgroups": manifest(
        "scheduling.volcano.sh/v1beta1", "PodGroup", {"minMember": 2}, annotations={"k": "v"}
    ),
}


def owned(server, path, body, how):
    path = path.replace("NS", server.new_namespace())
    if how == "apply":
        made = server.call("PATCH", f"{path}/x?fieldManager=me", body, content_type="application/apply-patch+yaml")
    else:
        made = server.call("POST", f"{path}?fieldManager=me", body)
    [entry] = made["metadata"]["managedFields"]
    return entry["manager"], entry["operation"], leaves(entry["fieldsV1"])


def leaves(fields, path=()):
    """Give the fields at the ends of a set; a `.` is no field."""
    below = {name: each for name, each in fields.items() if name != "."}
    if not below:
        return {path}
    return {leaf for name, each in below.items() for leaf in leaves(each, (*path, name))}


@pytest.mark.parametrize("how", ["post", "apply"])
@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.rpartition("/")[2])
def test_a_new_object_has_the_same_owners_on_both(definitions, up_server, path, how):
    ours, real = (owned(server, path, copy.deepcopy(OBJECTS[path]), how) for server in (up_server, definitions))
    assert ours[:2] == real[:2]
    assert (sorted(ours[2] - real[2]), sorted(real[2] - ours[2])) == ([], [])
