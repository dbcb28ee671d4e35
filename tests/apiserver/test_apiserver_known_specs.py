"""A pod whose spec was seen before is not read again: what is stored, refused and warned of is the same as if it had been."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds
from pumice.apiserver import cluster, pod_specs, requests, resources, statuses
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

SPEC = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}], "restartPolicy": "Never"}
texts = st.sampled_from(["", "a", "b-c", "example.com/key", "UPPER", "bad value", "é", "x" * 70])
maps = st.dictionaries(texts, texts, max_size=3)
owners = st.lists(
    st.fixed_dictionaries({"apiVersion": st.just("v1"), "kind": st.just("Node"), "name": texts, "uid": texts}),
    max_size=2,
)
odd = st.one_of(st.none(), st.integers(), st.lists(texts, max_size=2), maps)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(st.sampled_from(["p", "q-1", "Not Good", ""]), odd),
        "generateName": st.sampled_from(["p-", ""]),
        "namespace": st.sampled_from(["default", "other"]),
        "labels": st.one_of(maps, odd),
        "annotations": st.one_of(maps, odd),
        "finalizers": st.one_of(st.lists(st.sampled_from(["example.com/f", "bad"]), max_size=2), odd),
        "ownerReferences": st.one_of(owners, odd),
        "uid": texts,
        "resourceVersion": st.sampled_from(["", "5"]),
        "unknown": odd,
    },
)
bodies = st.fixed_dictionaries(
    {"metadata": st.one_of(metadata, metadata, metadata, odd)},
    optional={"kind": st.sampled_from(["Pod", "Pod", "Node"]), "apiVersion": st.sampled_from(["v1", "v1", "v2"]), "status": odd, "x": odd},
)  # fmt: skip


def server():
    store = ObjectStore(lambda: 1_000_000, iter(f"uid-{number}" for number in range(10_000)).__next__, resources.has_generation)  # fmt: skip
    made = cluster.Cluster(store, lambda: 1_000_000)
    made.start()
    return made


def answer(made, body, *, known, validation):
    """Create a pod, with its spec known or not; gives what was stored or refused, without what differs from pod to pod."""
    resource = made.registry.of_kind("v1", "Pod")
    target = requests.Target(resource=resource, namespace="default")
    options = requests.Options(manager="test", validation=validation)
    if known:
        made.writing.create_pod(target, json.dumps({"metadata": {"name": "first"}, "spec": SPEC}).encode(), options, [])
    warnings = []
    try:
        stored = made.writing.create_pod(target, json.dumps({**body, "spec": SPEC}).encode(), options, warnings)
    except statuses.Problem as problem:
        status = problem.status()
        words = re.sub(r'"p-[a-z0-9]{5}"', '"p-"', status["message"])  # a name that was made up
        return "refused", status["code"], status["reason"], words, warnings
    shown = json.loads(json.dumps(stored))
    for field in ("uid", "resourceVersion"):
        del shown["metadata"][field]
    if shown["metadata"].get("generateName"):
        shown["metadata"]["name"] = shown["metadata"]["name"][:-5]
    return "stored", shown, warnings


@settings(max_examples=drawn(50))  # each with two servers of its own
@given(body=bodies, validation=st.sampled_from(["Ignore", "Warn", "Strict"]))
def test_a_known_spec_changes_nothing_but_the_work(body, validation):
    plain = answer(server(), body, known=False, validation=validation)
    quick = answer(server(), body, known=True, validation=validation)
    assert quick == plain


# ---- lives: whatever else happens in a cluster, a spec that is known changes no answer


def spec(*resources, **fields):
    containers = [
        {"name": f"c{place}", "image": "x", **({"resources": each} if each else {})}
        for place, each in enumerate(resources or ({},))
    ]
    return {"containers": containers, **fields}


SPECS = [
    spec(),
    spec({"requests": {"cpu": "1"}}),
    spec({"limits": {"cpu": "2", "memory": "1Gi"}}),
    spec({"requests": {"cpu": "1"}}, {"requests": {"memory": "1Gi"}}),
    spec(priorityClassName="urgent"),
    spec(priorityClassName="urgent", priority=5),
    spec(serviceAccountName="nobody"),
    spec(restartPolicy="Never", unknown={"a": 1}),
    spec(restartPolicy="Sometimes"),
    spec({"requests": {"cpu": "many"}}),
    spec(nodeName="n", tolerations=[{"key": "k", "operator": "Exists"}]),
]
plain_metadata = st.fixed_dictionaries(
    {"name": st.sampled_from([f"p{number}" for number in range(20)])},
    optional={"labels": maps, "annotations": maps, "ownerReferences": owners},
)


def stories():
    """Lives in which two specs come again and again."""
    numbers = st.lists(st.sampled_from(range(len(SPECS))), min_size=1, max_size=2)
    return numbers.flatmap(lambda few: st.lists(st.one_of(creation(few), creation(few), changes), max_size=14))


def creation(numbers):
    return st.tuples(
        st.just("create"),
        plain_metadata,
        st.sampled_from(numbers),
        st.sampled_from(["default", "default", "team", "nowhere"]),
        st.sampled_from(["Ignore", "Warn", "Strict"]),
        st.booleans(),
    )


changes = st.sampled_from(["range", "no range", "quota", "no quota", "class", "no class", "going", "rules"])
RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "r", "namespace": "team"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "3"}, "max": {"cpu": "3"}}]},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "team"},
    "spec": {"hard": {"pods": "2", "requests.cpu": "2"}},
}
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 5,
}
OBJECTS = {"range": RANGE, "quota": QUOTA, "class": URGENT}


def changed(made, change):
    """Change what pods are admitted by."""
    if change == "rules":
        made.writing.rules.judges["", "Pod"] = no_secrets
    elif change == "going":
        made.store.delete(Key(kinds.NAMESPACE, "", "team"), held=True)
    elif change.startswith("no "):
        resource = made.registry.of_kind(*(OBJECTS[change[3:]][field] for field in ("apiVersion", "kind")))
        for each in list(made.store.scan(resource.kind)):
            if each["metadata"]["name"] in ("r", "q", "urgent"):
                place = each["metadata"].get("namespace", "")
                made.store.remove(Key(resource.kind, place, each["metadata"]["name"]))
    else:
        try:
            made.ensure(OBJECTS[change])
        except statuses.Problem:
            assert change != "class"  # nothing is made in a namespace that goes


def no_secrets(new, _):
    if new["spec"].get("serviceAccountName") == "nobody":
        raise statuses.forbidden("pods", "", new["metadata"]["name"], "nobody is nobody")


def created(made, step):
    """Create a pod; gives the answer and what is stored."""
    _, meta, number, namespace, validation, dry_run = step
    target = requests.Target(resource=made.registry.of_kind("v1", "Pod"), namespace=namespace)
    options = requests.Options(manager="test", validation=validation, dry_run=dry_run)
    warnings = []
    try:
        data = json.dumps({"metadata": meta, "spec": SPECS[number]}).encode()
        given = json.loads(json.dumps(made.writing.create_pod(target, data, options, warnings)))
    except statuses.Problem as problem:
        given = problem.status()
    found = made.store.find(Key(kinds.POD, namespace, meta["name"]))
    return given, json.loads(json.dumps(found)), warnings


@settings(max_examples=drawn(150))
@given(story=stories())
def test_in_any_life_a_known_spec_is_answered_as_an_unknown_one(story):
    warm, cold = server(), server()
    for made in (warm, cold):
        made.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for step in story:
        if isinstance(step, str):
            changed(warm, step)
            changed(cold, step)
            continue
        cold.writing.specs = pod_specs.PodSpecs()
        assert created(warm, step) == created(cold, step)


def test_a_field_that_is_unknown_is_refused_though_somebody_less_strict_was_let_in_with_it():
    made = server()
    number = next(place for place, each in enumerate(SPECS) if "unknown" in each)
    for validation, answer in (("Ignore", "Pending"), ("Strict", "Failure"), ("Ignore", "Pending")):
        given, _, _ = created(
            made, ("create", {"name": f"p-{validation.lower()}"}, number, "default", validation, True)
        )
        status = given["status"]
        assert (status if isinstance(status, str) else status["phase"]) == answer
