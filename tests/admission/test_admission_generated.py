"""Random objects: valid ones pass, every single mistake is found at its field, and nothing that anybody writes breaks a rule down."""

from __future__ import annotations

import copy
from typing import Any

import admission_objects as objects
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.admission import patches, remarks, rules
from pumice.admission.requests import Request, RuleSettings
from pumice.api import kinds

Path = tuple[str | int, ...]


# ---- valid jobs


@st.composite
def containers(draw: st.DrawFn, name: str, volumes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "image": draw(st.sampled_from(["busybox", "ghcr.io/a/b:1.2", "x@sha256:00"]))}
    if draw(st.booleans()):
        cpu = draw(st.integers(1, 64))
        made["resources"] = {
            "requests": {"cpu": f"{cpu * 500}m", "memory": "1Gi"},
            "limits": {"cpu": draw(st.integers(cpu, 99)), "nvidia.com/gpu": draw(st.integers(0, 8))},
        }
    if draw(st.booleans()):
        numbers = draw(st.lists(st.integers(1, 65535), max_size=3, unique=True))
        made["ports"] = [{"containerPort": number, "name": f"port-{index}"} for index, number in enumerate(numbers)]
    if draw(st.booleans()):
        made["env"] = [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]
    if volumes and draw(st.booleans()):
        made["volumeMounts"] = [{"name": each, "mountPath": f"/mnt/{each}"} for each in volumes]
    if draw(st.booleans()):
        made["livenessProbe"] = {"httpGet": {"port": draw(st.sampled_from([80, "port-0"])), "path": "/"}}
    return made


@st.composite
def tasks(draw: st.DrawFn, index: int, earlier: list[str]) -> dict[str, Any]:
    volumes = draw(st.lists(st.sampled_from(["data", "cache", "tmp"]), unique=True, max_size=3))
    spec: dict[str, Any] = {
        "containers": [draw(containers(f"c{number}", volumes)) for number in range(draw(st.integers(1, 2)))],
        "volumes": [{"name": each, "emptyDir": {}} for each in volumes],
    }
    if draw(st.booleans()):
        spec["initContainers"] = [draw(containers("first", volumes)) | {"livenessProbe": None}]
    if draw(st.booleans()):
        spec |= {
            "restartPolicy": draw(st.sampled_from(["Never", "OnFailure", "Always"])),
            "nodeSelector": {"zone": "a"},
        }
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    replicas = draw(st.integers(1, 9))
    made: dict[str, Any] = {"name": f"task-{index}", "replicas": replicas, "template": {"spec": spec}}
    if draw(st.booleans()):
        made["minAvailable"] = draw(st.integers(0, replicas))
    if draw(st.booleans()):
        made["policies"] = [{"action": "RestartTask", "events": ["PodFailed", "PodEvicted"], "timeout": "30s"}]
    if earlier and draw(st.booleans()):
        made["dependsOn"] = {
            "name": draw(st.lists(st.sampled_from(earlier), min_size=1, unique=True)),
            "iteration": "any",
        }
    return made


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 3))):
        made.append(draw(tasks(index, [each["name"] for each in made])))
    total = sum(each["replicas"] for each in made)
    job = objects.job(tasks=made, minAvailable=draw(st.integers(0, total)))
    spec = job["spec"]
    if draw(st.booleans()):
        spec["policies"] = [{"action": "AbortJob", "exitCode": 7}, {"action": "RestartJob", "event": "Unknown"}]
    if draw(st.booleans()):
        spec["plugins"] = {draw(st.sampled_from(["svc", "pytorch", "env"])): []}
    if draw(st.booleans()):
        spec["volumes"] = [{"mountPath": "/shared", "volumeClaimName": "claim"}]
    if draw(st.booleans()):
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": draw(st.integers(0, 3))}
    return job


# ---- single mistakes: each gives where it is made, what is written there, and where it must be found


@st.composite
def mistakes(draw: st.DrawFn, job: dict[str, Any]) -> tuple[Path, Any, Path]:
    at = draw(st.integers(0, len(job["spec"]["tasks"]) - 1))
    task: Path = ("spec", "tasks", at)
    inside = job["spec"]["tasks"][at]
    pod: Path = (*task, "template", "spec")
    place: Path = (*pod, "containers", draw(st.integers(0, len(inside["template"]["spec"]["containers"]) - 1)))
    negative = draw(st.integers(-9, -1))
    many = inside["replicas"] + draw(st.integers(1, 9))
    total = sum(each["replicas"] for each in job["spec"]["tasks"]) + draw(st.integers(1, 9))
    table: list[tuple[Path, Any]] = [
        ((*task, "replicas"), "three"),
        ((*task, "name"), "Not_A_Name"),
        ((*task, "minAvailable"), many),
        ((*task, "topologyPolicy"), "close"),
        (("spec", "minAvailable"), total),
        (("spec", "maxRetry"), negative),
        (("spec", "ttlSecondsAfterFinished"), negative),
        (("spec", "minSuccess"), negative),
        (("spec", "queue"), "nobody"),
        ((*place, "image"), ""),
        ((*place, "name"), "Upper"),
        ((*place, "imagePullPolicy"), "Perhaps"),
        ((*place, "terminationMessagePolicy"), "Loud"),
        ((*pod, "restartPolicy"), "Perhaps"),
        ((*pod, "dnsPolicy"), "Perhaps"),
        ((*pod, "hostname"), "a_b"),
        ((*pod, "terminationGracePeriodSeconds"), negative),
    ]
    found = [(path, value, path) for path, value in table]
    found += [
        ((*place, "resources"), {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}, (*place, "resources", "requests", "cpu")),
        ((*place, "resources"), {"limits": {"memory": "much"}}, (*place, "resources", "limits", "memory")),
        ((*place, "ports"), [{"containerPort": 0}], (*place, "ports", 0, "containerPort")),
        ((*place, "env"), [{"name": ""}], (*place, "env", 0, "name")),
        ((*place, "volumeMounts"), [{"name": "absent", "mountPath": "/x"}], (*place, "volumeMounts", 0, "name")),
        ((*pod, "tolerations"), [{"operator": "Equal"}], (*pod, "tolerations", 0, "operator")),
        ((*pod, "nodeSelector"), {"a": 1}, (*pod, "nodeSelector", "a")),
        ((*task, "policies"), [{"action": "AbortJob", "exitCode": 0}], (*task, "policies", 0, "exitCode")),
        ((*task, "dependsOn"), {"name": ["absent"]}, (*task, "dependsOn", "name", 0)),
        ((*task, "partitionPolicy"), {"totalPartitions": 97, "partitionSize": 1}, (*task, "replicas")),
        (("spec", "plugins"), {"unheard-of": []}, ("spec", "plugins", "unheard-of")),
        (("spec", "volumes"), [{"mountPath": "/a"}], ("spec", "volumes", 0)),
        (("spec", "networkTopology"), {"highestTierAllowed": 1, "highestTierName": "r"}, ("spec", "networkTopology", "highestTierName")),
    ]  # fmt: skip
    return draw(st.sampled_from(found))


@settings(max_examples=drawn(60), deadline=None)
@given(jobs())
def test_a_valid_job_passes_and_stays_as_it_is_when_completed_twice(job):
    request = Request(operation="CREATE", object=copy.deepcopy(job), namespace="default", name="train")
    around = objects.known()

    once = rules.completed(objects.EVERYTHING, kinds.JOB, request, around, RuleSettings())
    again = Request(operation="CREATE", object=once, namespace="default", name="train")

    assert request.object == job
    assert rules.completed(objects.EVERYTHING, kinds.JOB, again, around, RuleSettings()) == once
    assert objects.refusals(job) == []
    assert objects.refusals(once, old=once) == []


@settings(max_examples=drawn(150), deadline=None)
@given(st.data())
def test_a_single_mistake_is_found_at_its_field(data):
    job = data.draw(jobs())
    path, value, where = data.draw(mistakes(job))

    found = objects.refusals(objects.edited(job, path, value))

    assert remarks.field(where) in [field for field, _ in found], (path, value, found)


# ---- anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: Path = ()) -> list[Path]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, item in below for each in places(item, (*path, key)))]


MANIFESTS = (
    objects.job(policies=[{"action": "AbortJob", "event": "PodFailed"}], plugins={"mpi": ["--master=worker"]}),
    objects.queue(parent="p", deserved={"cpu": 1}, guarantee={"resource": {"cpu": 1}}, capability={"cpu": 2}),
    objects.pod_group(minTaskMember={"a": 1}, subGroupPolicy=[{"subGroupSize": 2}]),
    objects.hyper_node(),
    objects.job_flow(a=[], b=["a"]),
    objects.cron_job(),
)


@settings(max_examples=drawn(300), deadline=None)
@given(st.data())
def test_whatever_is_written_anywhere_gets_a_verdict(data):
    manifest = data.draw(st.sampled_from(MANIFESTS))
    where = data.draw(
        st.sampled_from([path for path in places(manifest) if path and path[0] in ("spec", "status", "metadata")])
    )
    broken = objects.edited(manifest, where, data.draw(JSON))
    if not isinstance(broken["metadata"], dict) or not isinstance(broken["metadata"].get("name", ""), str):
        return  # no API server lets this through to anybody
    around = objects.known(objects.queue("p", deserved={"cpu": 4}, capability={"cpu": 4}), broken)

    for old in (None, manifest, broken):
        for each in objects.judged(broken, old=old, around=around).all:
            assert each.message
    objects.judged(manifest, old=broken, around=around)
    objects.judged(broken, old=broken, around=around, operation="DELETE")


@settings(max_examples=drawn(200), deadline=None)
@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_a_difference_applied_gives_the_other_document(old, new):
    from pumice.apiserver.patching import json_patch

    assert json_patch.apply(old, patches.difference(old, new)) == new


# ---- trees of queues


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Make a tree in which everybody is promised a part of what the parent is promised, below root as much as they like."""
    made: list[dict[str, Any]] = []

    def grow(parent: str, depth: int, deserved: int, guaranteed: int, ceiling: int) -> None:
        for _ in range(draw(st.integers(1 if depth == 1 else 0, 2))):
            own = draw(st.integers(0, deserved))
            promised = draw(st.integers(0, min(own, guaranteed)))
            limit = draw(st.integers(own, max(own, ceiling)))
            spec: dict[str, Any] = {
                "parent": parent,
                "deserved": {"cpu": own},
                "guarantee": {"resource": {"cpu": promised}},
            }
            stated = draw(st.booleans())
            if stated:
                spec["capability"] = {"cpu": limit}
            name = f"q{len(made)}"
            made.append(objects.queue(name, **spec))
            deserved, guaranteed = deserved - own, guaranteed - promised
            if depth < 5:
                grow(name, depth + 1, own, promised, limit if stated else ceiling)

    grow("root", 1, 1000, 1000, 2000)
    return made


def amount(queue: dict[str, Any] | None, *path: str) -> int:
    value: Any = (queue or {}).get("spec", {})
    for step in path:
        value = value.get(step, {})
    return value if isinstance(value, int) else 0


@settings(max_examples=drawn(60), deadline=None)
@given(trees())
def test_every_queue_of_a_tree_that_keeps_its_promises_passes(tree):
    around = objects.known(*tree)

    for each in tree:
        assert objects.refusals(each, around=around) == []
        assert objects.refusals(objects.edited(each, ("spec", "weight"), 7), old=each, around=around) == []


@settings(max_examples=drawn(100), deadline=None)
@given(st.data())
def test_a_promise_that_is_broken_is_found_at_its_field(data):
    tree = data.draw(trees())
    around = objects.known(*tree)
    queue = data.draw(st.sampled_from(tree))
    name, above = queue["metadata"]["name"], queue["spec"]["parent"]
    parent = around.queue(above) if above != "root" else None
    children = [dict(around.queue(each) or {}) for each in around.children(name)]
    below = sum(amount(each, "deserved", "cpu") for each in children)
    field, value = data.draw(
        st.sampled_from(
            [
                (("guarantee", "resource", "cpu"), amount(queue, "deserved", "cpu") + 1),
                (("deserved", "cpu"), 5000 if parent or "capability" in queue["spec"] else -1),
                (("deserved", "cpu"), below - 1 if below else -1),
                (("capability", "cpu"), amount(queue, "deserved", "cpu") - 1),
                (("parent",), name),
                (("parent",), "nobody"),
                (("parent",), around.children(name)[0] if children else name),
            ]
        )
    )
    changed = objects.edited(queue, ("spec", *field), value)

    found = [where for where, _ in objects.refusals(changed, old=queue, around=around)]

    # A ceiling or a due that is too small is told where it is exceeded.
    near = {"spec." + ".".join(field), "spec.deserved.cpu", "spec.guarantee.resource.cpu"}
    assert near & set(found), (field, value, found)
