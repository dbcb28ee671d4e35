"""What is used of a quota, against a plain recount; it holds after a restart, and a new pod does not look at all others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.apiserver import cluster, quota_scopes, quota_usage, requests, resources, statuses
from pumice.sim import deletion
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

OPTIONS = requests.Options(manager="test")
HARD = {"pods": "3", "count/pods": "4", "requests.cpu": "2", "cpu": "2", "configmaps": "9", "count/configmaps": "9"}
CLAIMS = {"requests.storage": "1Ti", "persistentvolumeclaims": "9"}


def pod(name, namespace="a", cpu="100m"):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}} if cpu else {}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def claim(name, namespace="a", storage="1Gi"):
    spec = {"resources": {"requests": {"storage": storage}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def config_map(name, namespace="a", _=None):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def quota(hard, name="q", **spec):
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


QUOTAS = [quota(HARD), quota({**HARD, **CLAIMS}), quota(HARD, scopes=["BestEffort"]), quota({})]
MAKERS = {"Pod": (pod, ["", "100m", "2"]), "PersistentVolumeClaim": (claim, ["1Gi", "5M"]), "ConfigMap": (config_map, [""])}  # fmt: skip
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(sorted(MAKERS)),
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.sampled_from(["create", "delete", "end", "requota"]),
        st.integers(0, 2),
    ),
    max_size=25,
)


def recount(store, given):
    """Add everything up anew, the slow way."""
    used = dict.fromkeys(given["spec"]["hard"], 0)
    scoped = quota_scopes.is_scoped(given)
    for key, manifest in store.everything():
        if key.namespace != "a" or (scoped and (key.kind is not kinds.POD or not quota_scopes.counts(given, manifest))):
            continue
        for name, amount in quota_usage.charges(key.kind, manifest).items():
            ended = key.kind is kinds.POD and deletion.is_finished(manifest)
            if name in used and (name == "count/pods" or not ended):
                used[name] += amount
    return used


def change(store, what, key, place):
    maker, amounts = MAKERS[key.kind.name]
    found = store.find(key)
    if what == "requota":
        stated = store.find(Key(kinds.RESOURCE_QUOTA, "a", "q"))
        store.overwrite(Key(kinds.RESOURCE_QUOTA, "a", "q"), {**stated, "spec": QUOTAS[place]["spec"]})
    elif what == "create" and found is None:
        store.create(maker(key.name, key.namespace, amounts[place % len(amounts)]))
    elif what == "delete" and found is not None:
        store.delete(key)
    elif what == "end" and found is not None:
        store.overwrite(key, {**found, "status": {"phase": "Succeeded"}})


@given(CHANGES, st.sampled_from(QUOTAS))
def test_what_is_used_of_a_quota_is_what_a_recount_finds(changes, first):
    store = ObjectStore(VirtualClock().now)
    usage = quota_usage.QuotaUsage(store)
    store.create(first)
    kind_of = {"Pod": kinds.POD, "PersistentVolumeClaim": kinds.PERSISTENT_VOLUME_CLAIM}
    for kind, namespace, name, what, place in changes:
        known = next((each for each in store.known_kinds() if each.name == kind), kind_of.get(kind))
        if known is None:
            known = kinds.Kind(name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True)
        change(store, what, Key(known, namespace, name), place)
        [present] = usage.quotas("a")
        assert usage.used(present) == recount(store, present)
    store.delete(Key(kinds.RESOURCE_QUOTA, "a", "q"))
    assert not list(usage.quotas("a"))


def serve(store):
    made = cluster.Cluster(store, VirtualClock().now)
    made.start()
    made.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    return made


def create(server, manifest):
    resource = server.registry.of_kind(manifest["apiVersion"], manifest["kind"])
    target = requests.Target(resource=resource, namespace=manifest["metadata"]["namespace"])
    return server.writing.create(target, manifest, OPTIONS, [])


def test_a_quota_holds_after_a_restart():
    first = serve(ObjectStore(VirtualClock().now, has_generation=resources.has_generation))
    create(first, quota({"pods": "1"}))
    create(first, pod("one"))
    store = ObjectStore(VirtualClock().now, has_generation=resources.has_generation)
    second = cluster.Cluster(store, VirtualClock().now)
    store.restore(list(first.store.everything()), 1000)
    with pytest.raises(statuses.Problem, match="exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"):
        create(second, pod("two"))


def test_a_pod_beside_a_quota_is_admitted_without_a_look_at_the_others(monkeypatch):
    server = serve(ObjectStore(VirtualClock().now, has_generation=resources.has_generation))
    create(server, quota({"pods": "1000", "requests.cpu": "1000"}))
    create(server, pod("first"))
    walks = []
    inside = server.store.inside
    monkeypatch.setattr(server.store, "inside", lambda *given: walks.append(given) or inside(*given))
    for number in range(50):
        create(server, pod(f"p-{number}"))
    assert walks == []
    [present] = server.admission.quotas.quotas("a")
    assert server.admission.quotas.used(present)["pods"] == 51_000


def test_a_pod_that_has_ended_leaves_its_place_in_a_quota():
    server = serve(ObjectStore(VirtualClock().now, has_generation=resources.has_generation))
    create(server, quota({"pods": "1"}))
    create(server, pod("one"))
    key = Key(kinds.POD, "a", "one")
    server.store.overwrite(key, {**server.store.find(key), "status": {"phase": "Failed"}})
    create(server, pod("two"))
    with pytest.raises(statuses.Problem, match="used: pods=1"):
        create(server, pod("three"))


def test_a_pod_from_before_a_rule_can_still_be_let_go():
    server = serve(ObjectStore(VirtualClock().now, has_generation=resources.has_generation))
    create(server, pod("old"))
    key = Key(kinds.POD, "a", "old")
    stored = server.store.get(key)
    stored["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    stored["metadata"]["finalizers"] = ["x/held"]
    server.store.overwrite(key, stored)
    target = requests.Target(resource=server.registry.of_kind("v1", "Pod"), namespace="a", name="old")
    server.writing.patch(target, ("merge", {"metadata": {"finalizers": None}}), OPTIONS, [])
    assert "finalizers" not in server.store.find(key)["metadata"]
    with pytest.raises(statuses.Problem, match="must be less than or equal to cpu limit of 1"):
        server.writing.patch(target, ("merge", {"spec": {"activeDeadlineSeconds": 5}}), OPTIONS, [])
