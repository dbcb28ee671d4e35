"""What the definitions refuse, explain and keep, on a real API server."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from pumice.manifests import resources, text
from testbed import waiting
from testbed.server import KubectlError

ROOT = Path(__file__).parents[2]
POD_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TASKS = [{"name": "w", "replicas": 1, "template": POD_TEMPLATE}]
SOUND = {
    "podgroups": {"spec": {"minMember": 3}},
    "queues": {"spec": {"weight": 2, "guarantee": {"resource": {"cpu": "1"}}}},
    "hypernodes": {"spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}},
    "numatopologies": {"spec": {"cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}}}},
    "nodeshards": {"spec": {"nodesDesired": ["n"]}},
    "jobs": {"spec": {"tasks": TASKS}},
    "cronjobs": {"spec": {"schedule": "@hourly", "jobTemplate": {"spec": {"tasks": TASKS}}}},
    "commands": {"target": {"apiVersion": "v1", "kind": "Queue", "name": "q", "uid": "u"}},
    "jobflows": {"spec": {"flows": [{"name": "a", "patch": {"jobSpec": {"minAvailable": 1}}}]}},
    "jobtemplates": {"spec": {"tasks": TASKS}},
}
MISSPELT = [
    ("podgroups", "spec.minMembers"),
    ("podgroups", "status.phases"),
    ("podgroups", "spec.networkTopology.highestTier"),
    ("queues", "spec.wieght"),
    ("queues", "spec.guarantee.resources"),
    ("hypernodes", "spec.members[0].selector.exactMatch.names"),
    ("numatopologies", "spec.cpuDetail.0.numaNode"),
    ("nodeshards", "spec.nodes"),
    ("jobs", "spec.minAvailabel"),
    ("jobs", "spec.tasks[0].replica"),
    ("cronjobs", "spec.jobTemplate.spec.tasks[0].minAvailble"),
    ("commands", "target.names"),
    ("jobflows", "spec.flows[0].patch.jobSpec.minAvail"),
    ("jobtemplates", "spec.tasks[0].policy"),
]


@pytest.fixture(scope="module")
def cluster(api_server):
    api_server.crds(ROOT / "deploy" / "crds")
    return api_server


def resource_of(plural):
    (found,) = [each for each in resources.CURRENT if each.kind.plural == plural]
    return found


def manifest(plural, namespace, name):
    kind = resource_of(plural).kind
    metadata = {"name": name, **({"namespace": namespace} if kind.namespaced else {})}
    whole = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **SOUND[plural]}
    return copy.deepcopy(whole)


def put(value, path):
    """Set a field that does not exist to something."""
    *parents, last = path.replace("[0]", ".0").split(".")
    for part in parents:
        value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
    value[last] = "x"


def strictly(cluster, given, *flags):
    return cluster.kubectl("create", "--validate=strict", *flags, "-f", "-", input=text.dump(given))


def test_every_kind_is_tried():
    assert set(SOUND) == {each.kind.plural for each in resources.CURRENT} == {plural for plural, _ in MISSPELT}


@pytest.mark.parametrize("plural", SOUND)
def test_an_object_without_a_mistake_is_accepted(cluster, namespace, plural):
    strictly(cluster, manifest(plural, namespace, "sound"), "--dry-run=server")


@pytest.mark.parametrize(("plural", "path"), MISSPELT)
def test_a_misspelt_field_is_refused_by_its_name(cluster, namespace, plural, path):
    given = manifest(plural, namespace, "misspelt")
    put(given, path)
    with pytest.raises(KubectlError) as refusal:
        strictly(cluster, given, "--dry-run=server")
    assert f'unknown field "{path}"' in str(refusal.value)


def test_fields_of_a_pods_template_are_left_to_kubernetes(cluster, namespace):
    given = manifest("jobs", namespace, "newer")
    given["spec"]["tasks"][0]["template"]["spec"]["fieldOfTomorrow"] = {"deep": [1]}
    strictly(cluster, given)
    found = json.loads(cluster.kubectl("get", "vcjob", "newer", "-n", namespace, "-o", "json"))
    assert found["spec"]["tasks"] == given["spec"]["tasks"]


@pytest.mark.parametrize(
    ("path", "version", "told"),
    [
        (
            "podgroup.spec.minMember",
            "scheduling.volcano.sh/v1beta1",
            "Members that are started together or not at all; 0 is no gang.",
        ),
        (
            "queue.spec.dequeueStrategy",
            "scheduling.volcano.sh/v1beta1",
            "a job that cannot be placed blocks those behind it",
        ),
        (
            "job.spec.tasks.minAvailable",
            "batch.volcano.sh/v1alpha1",
            "Pods of this role that are started together or not at all.",
        ),
    ],
)
def test_kubectl_explains_each_field(cluster, path, version, told):
    shown = cluster.kubectl("explain", path, f"--api-version={version}")
    assert told in " ".join(shown.split())


# ---- from Volcano's definitions


def volcanos(resource):
    """Return a definition that stores every field, as Volcano's stores all of its own, with one that is none of ours."""
    definition = resources.definition(resource)
    (version,) = definition["spec"]["versions"]
    keep = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": keep, "status": keep}}
    version.pop("additionalPrinterColumns", None)
    return definition


GROUP = {
    "spec": {
        "minMember": 2,
        "minTaskMember": {"ps": 1, "worker": 1},
        "minResources": {"cpu": "2", "nvidia.com/gpu": 1},
        "queue": "research",
        "priorityClassName": "high",
        "networkTopology": {"mode": "soft", "highestTierName": "rack"},
        "subGroupPolicy": [
            {"name": "p", "subGroupSize": 2, "minSubGroups": 0, "labelSelector": {"matchLabels": {"a": "b"}}}
        ],
    },
    "status": {
        "phase": "Running",
        "running": 2,
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True",
                "transitionID": "7",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "tasks in gang are ready to be scheduled",
            },
            {"type": "Unschedulable", "status": "True", "lastTransitionTime": None},
        ],
    },
}


def test_objects_stored_under_volcanos_definitions_are_read_and_patched_under_ours(cluster, namespace):
    resource = resource_of("podgroups")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text.dump(volcanos(resource)))
    older = manifest("podgroups", namespace, "older")
    older.update(copy.deepcopy(GROUP))
    older["spec"]["fieldOfAnOlderRelease"] = 1
    wait_for(cluster, namespace, older, kept=True)
    cluster.crds(ROOT / "deploy" / "crds")
    found = wait_for(cluster, namespace, None, kept=False)
    assert found["spec"] == GROUP["spec"]
    assert found["status"]["conditions"][0] == GROUP["status"]["conditions"][0]
    patch = '{"status": {"phase": "Unknown"}, "spec": {"minMember": 1}}'
    cluster.kubectl("patch", "pg", "older", "-n", namespace, "--type=merge", "-p", patch)
    found = wait_for(cluster, namespace, None, kept=False)
    assert (found["status"]["phase"], found["spec"]) == ("Unknown", {**GROUP["spec"], "minMember": 1})


def wait_for(cluster, namespace, write, *, kept):
    """Write and read the group until the server has taken the definition up, which it does a moment after it has accepted it."""

    def group():
        if write is not None:
            cluster.kubectl("replace", "--force", "--validate=false", "-f", "-", input=text.dump(write))
        found = json.loads(cluster.kubectl("get", "pg", "older", "-n", namespace, "-o", "json"))
        return found if ("fieldOfAnOlderRelease" in found["spec"]) == kept else None

    return waiting.until(group, lambda: "the definition is not in force")
