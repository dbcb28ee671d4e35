"""Garbage collection and the emptying of namespaces against what Kubernetes promises, on random graphs of owners."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.apiserver import collecting, deleting, emptying, resources
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

COUNT = 7
GRAPHS = st.lists(
    st.tuples(st.integers(1, COUNT - 1), st.integers(0, COUNT - 2), st.booleans()).filter(
        lambda edge: edge[0] > edge[1]
    ),
    max_size=12,
)


def build(edges, held):
    """Make claims that own each other, each only by older ones; those held have a finalizer of somebody else's."""
    store = ObjectStore(VirtualClock().now)
    for number in range(COUNT):
        references = [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": f"c{owner}",
                "uid": f"u{owner}",
                "blockOwnerDeletion": blocks,
            }
            for owner, blocks in {owner: blocks for each, owner, blocks in edges if each == number}.items()
        ]
        metadata = {"name": f"c{number}", "namespace": "a", "uid": f"u{number}"}
        metadata |= {"ownerReferences": references} if references else {}
        metadata |= {"finalizers": ["x/held"]} if number in held else {}
        store.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}})
    return store


def key(number):
    return Key(kinds.PERSISTENT_VOLUME_CLAIM, "a", f"c{number}")


def delete(store, number, finalizer=""):
    manifest = store.find(key(number))
    if finalizer:
        metadata = {**manifest["metadata"], "finalizers": [*manifest["metadata"].get("finalizers", []), finalizer]}
        store.overwrite(key(number), {**manifest, "metadata": metadata})
    store.delete(key(number))


def settle(collector):
    for _ in range(200):
        if not collector.collect():
            return
    raise AssertionError("it does not settle")


def present(store):
    return {number for number in range(COUNT) if store.find(key(number)) is not None}


def owners_of(edges):
    return {number: {owner for each, owner, _ in edges if each == number} for number in range(COUNT)}


def reachable(edges, gone):
    """Give who goes: whoever was owned and has no owner left, again and again."""
    gone = set(gone)
    while more := {n for n, owners in owners_of(edges).items() if owners and owners <= gone} - gone:
        gone |= more
    return gone


@given(GRAPHS, st.integers(0, COUNT - 1), st.booleans())
def test_whoever_has_lost_all_owners_goes_and_nobody_else(edges, first, restarted):
    store = build(edges, ())
    collector = collecting.Collector(store)
    settle(collector)
    assert present(store) == set(range(COUNT))
    delete(store, first)
    if restarted:
        collector = collecting.Collector(store)
    settle(collector)
    assert set(range(COUNT)) - present(store) == reachable(edges, {first})
    for number in present(store):
        for reference in collecting.references(store.find(key(number))):
            assert store.owner(reference["uid"]) is not None


@given(GRAPHS, st.integers(0, COUNT - 1), st.sets(st.integers(0, COUNT - 1)))
def test_in_the_foreground_an_owner_stays_while_one_that_blocks_it_is_there(edges, first, held):
    store = build(edges, held - {first})
    collector = collecting.Collector(store)
    delete(store, first, deleting.FOREGROUND)
    settle(collector)
    blocking = [
        number
        for number in present(store) - {first}
        for reference in collecting.references(store.find(key(number)))
        if reference["uid"] == f"u{first}" and reference["blockOwnerDeletion"]
    ]
    assert (first in present(store)) == bool(blocking)
    for number in sorted(held & present(store)):
        manifest = store.find(key(number))
        left = [each for each in manifest["metadata"]["finalizers"] if each != "x/held"]
        metadata = {**manifest["metadata"], "finalizers": left}
        store.overwrite(key(number), {**manifest, "metadata": metadata})
        settle(collector)
    assert first not in present(store)
    assert set(range(COUNT)) - present(store) == reachable(edges, {first})


@given(GRAPHS, st.integers(0, COUNT - 1))
def test_orphans_stay_and_no_longer_name_their_owner(edges, first):
    store = build(edges, ())
    collector = collecting.Collector(store)
    delete(store, first, deleting.ORPHAN)
    settle(collector)
    assert present(store) == set(range(COUNT)) - {first}
    for number in present(store):
        named = {reference["uid"] for reference in collecting.references(store.find(key(number)))}
        assert named == {f"u{owner}" for owner in owners_of(edges)[number] - {first}}


def test_a_namespace_that_somebody_else_holds_is_emptied_and_stays_until_it_is_let_go():
    store = ObjectStore(VirtualClock().now)
    emptier = emptying.Emptier(store, resources.Registry(resources.describe()), lambda: "2026-01-01T00:00:00Z")
    home = Key(kinds.NAMESPACE, "", "a")
    finalizers = ["kubernetes", "x/other"]
    store.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": finalizers}}
    )
    emptier.empty()
    store.create(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "a"}, "spec": {}}
    )
    store.delete(home, held=True)
    while emptier.empty():
        pass
    assert store.find(Key(kinds.PERSISTENT_VOLUME_CLAIM, "a", "c")) is None
    left = store.find(home)
    assert left["spec"]["finalizers"] == ["x/other"]
    store.overwrite(home, {**left, "spec": {"finalizers": []}})
    while emptier.empty():
        pass
    assert store.find(home) is None


def test_a_namespace_has_its_account_and_the_certificate_to_trust_whatever_is_done_to_them():
    store = ObjectStore(VirtualClock().now)
    registry = resources.Registry(resources.describe())
    emptier = emptying.Emptier(store, registry, lambda: "2026-01-01T00:00:00Z", b"trusted")
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    trusted = Key(kinds.CONFIG_MAP, "a", "kube-root-ca.crt")

    def settled():
        while emptier.empty():
            pass
        return store.find(trusted)["data"], sorted(each["metadata"]["name"] for each in store.scan(kinds.CONFIG_MAP))

    wanted = ({"ca.crt": "trusted"}, ["kube-root-ca.crt"])
    assert settled() == wanted
    store.patch(trusted, {"data": {"ca.crt": "forged", "more": "x"}})
    assert settled() == wanted
    store.delete(trusted)
    assert settled() == wanted
    store.delete(Key(kinds.NAMESPACE, "", "a"), held=True)
    while emptier.empty():
        pass
    assert not list(store.scan(kinds.CONFIG_MAP))


@pytest.mark.parametrize("policy", [deleting.FOREGROUND, deleting.ORPHAN])
@pytest.mark.parametrize("collected_first", [False, True])
def test_whatever_becomes_of_dependents_a_namespace_goes_after_what_is_in_it(policy, collected_first):
    store = build([(1, 0, True)], held={0})
    store.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}
    )
    collector = collecting.Collector(store)
    emptier = emptying.Emptier(store, resources.Registry(resources.describe()), lambda: "2026-01-01T00:00:00Z")
    home = Key(kinds.NAMESPACE, "", "a")
    found = store.find(home)
    store.overwrite(home, {**found, "metadata": {**found["metadata"], "finalizers": [policy]}})
    store.delete(home, held=True)
    turns = (collector.collect, emptier.empty) if collected_first else (emptier.empty, collector.collect)
    while any(turn() for turn in turns):
        pass
    assert store.find(home) is not None, "it went before c0, which somebody holds"
    assert present(store) == {0}
    store.patch(key(0), {"metadata": {"finalizers": None}})
    while any(turn() for turn in turns):
        pass
    assert store.find(home) is None
    assert not present(store)


def test_a_namespace_that_cannot_go_says_what_is_left_and_who_holds_it():
    store = ObjectStore(VirtualClock().now)
    emptier = emptying.Emptier(store, resources.Registry(resources.describe()), lambda: "2026-01-01T00:00:00Z")
    home = Key(kinds.NAMESPACE, "", "a")
    store.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}
    )
    for name, finalizers in (("c", ["x/held"]), ("d", ["x/held", "y/too"]), ("e", [])):
        metadata = {"name": name, "namespace": "a", "finalizers": finalizers}
        store.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}})
    store.delete(home, held=True)

    def told():
        while emptier.empty():
            pass
        conditions = store.find(home)["status"]["conditions"]
        assert all(each["lastTransitionTime"] for each in conditions)
        return {each["type"]: each["message"] for each in conditions if each["status"] == "True"}

    assert told() == {
        "NamespaceContentRemaining": "Some resources are remaining: persistentvolumeclaims. has 2 resource instances",
        "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: x/held in 2 resource instances, y/too in 1 resource instances",
    }
    claim = Key(kinds.PERSISTENT_VOLUME_CLAIM, "a", "d")
    store.patch(claim, {"metadata": {"finalizers": None}})
    assert told()["NamespaceContentRemaining"].endswith("persistentvolumeclaims. has 1 resource instances")
    store.patch(claim._replace(name="c"), {"metadata": {"finalizers": None}})
    while emptier.empty():
        pass
    assert store.find(home) is None
