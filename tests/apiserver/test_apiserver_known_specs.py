"""A pod whose spec was seen before is not read again: what is stored, refused and warned of is the same as if it had been."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.apiserver import cluster, requests, resources, statuses
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


@settings(max_examples=50)  # each with two servers of its own
@given(body=bodies, validation=st.sampled_from(["Ignore", "Warn", "Strict"]))
def test_a_known_spec_changes_nothing_but_the_work(body, validation):
    plain = answer(server(), body, known=False, validation=validation)
    quick = answer(server(), body, known=True, validation=validation)
    assert quick == plain
