import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_objects import node, pod, pod_key

from drawing import drawn
from pumice.api import kinds
from pumice.sim import errors, history
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.informer import Informer
from pumice.sim.store import ObjectStore


def new_store(**options):
    return ObjectStore(VirtualClock().now, **options)


def test_a_watch_delivers_its_kind_only_in_order_and_once():
    store = new_store()
    watch = store.watch(kinds.POD, "0")
    store.create(pod())
    store.create(node())
    store.patch(pod_key(), {"spec": {"priority": 1}})
    store.delete(pod_key())
    assert [(event.version, event.type) for event in watch.poll()] == [(1, "ADDED"), (3, "MODIFIED"), (4, "DELETED")]
    assert watch.poll() == []


def test_a_watch_starts_after_its_version():
    store = new_store()
    store.create(pod())
    store.create(pod("q"))
    assert [event.object["metadata"]["name"] for event in store.watch(kinds.POD, "1").poll()] == ["q"]


def test_an_event_shows_the_object_as_it_was_then():
    store = new_store()
    watch = store.watch(kinds.POD, "0")
    store.create(pod())
    store.patch(pod_key(), {"spec": {"priority": 1}})
    assert [event.object["spec"].get("priority") for event in watch.poll()] == [None, 1]


def test_a_watch_from_a_compacted_version_is_gone():
    store = new_store()
    for index in range(5):
        store.create(pod(f"p{index}"))
    store.compact("4")
    with pytest.raises(errors.GoneError, match="pods: cannot watch from version 2, the history kept is 3 to 5"):
        store.watch(kinds.POD, "2")
    assert len(store.watch(kinds.POD, "3").poll()) == 2


def test_an_open_watch_is_gone_only_if_it_lost_events():
    store = new_store()
    behind, ahead = store.watch(kinds.POD, "0"), store.watch(kinds.NODE, "0")
    store.create(pod())
    store.create(pod("q"))
    store.compact("3")
    assert ahead.poll() == []
    with pytest.raises(errors.GoneError, match="2 events after version 0 were compacted"):
        behind.poll()


@pytest.mark.parametrize("version", ["9", "-1", "", "x"])
def test_a_version_that_never_was_cannot_be_watched(version):
    with pytest.raises((errors.GoneError, errors.InvalidError)):
        new_store().watch(kinds.POD, version)


def test_history_is_bounded():
    store = new_store(limit=10)
    watch = store.watch(kinds.POD, "0")
    for index in range(11):
        store.create(pod(f"p{index}"))
    with pytest.raises(errors.GoneError):
        watch.poll()
    assert len(store.watch(kinds.POD, "6").poll()) == 5


def test_bookmarks_come_on_request_and_after_many_events_of_others(monkeypatch):
    monkeypatch.setattr(history, "BOOKMARK_EVERY", 3)
    store = new_store()
    quiet, plain = store.watch(kinds.NODE, "0", bookmarks=True), store.watch(kinds.NODE, "0")
    for index in range(3):
        store.create(pod(f"p{index}"))
    assert [(event.type, event.object["metadata"]) for event in quiet.poll()] == [
        ("BOOKMARK", {"resourceVersion": "3"})
    ]
    assert quiet.poll() == plain.poll() == []
    assert plain.bookmark().version == 3
    store.create(node())
    assert plain.bookmark().version == 3  # the node is still to be delivered


VERBS = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "status", "bind", "delete", "remove", "update", "compact", "poll"]),
        st.sampled_from("pqr"),
        st.integers(0, 2),
    ),
    max_size=40,
)


def act(store, clock, verb, name, number):
    key = pod_key(name)
    clock.advance(number)
    if verb == "create":
        store.create(pod(name))
    elif verb == "patch":
        store.patch(key, {"spec": {"priority": number or None}, "status": {"phase": "ignored"}})
    elif verb == "status":
        store.patch_status(key, {"status": {"conditions": [{"type": str(number)}]}}, strategic=True)
    elif verb == "bind":
        store.bind(key, uid="", node=f"n{number}")
    elif verb == "delete":
        store.delete(key, grace=number * 1_000_000)
    elif verb == "remove":
        store.remove(key)
    elif verb == "update":
        store.update({**pod(name), "spec": {"priority": number}})
    elif verb == "compact":
        store.compact(store.resource_version)


@settings(max_examples=drawn(150), deadline=None)
@given(VERBS)
def test_who_applies_events_always_equals_a_list_even_over_compactions(verbs):
    clock = VirtualClock()
    store = ObjectStore(clock.now, limit=15)
    informer, known, versions = Informer(store, kinds.POD), {}, [0]
    store.observe(lambda key, event_type, manifest: versions.append(int(manifest["metadata"]["resourceVersion"])))

    def follow():
        for _, _, event_type, manifest in informer.poll():
            key = manifest["metadata"]["name"]
            assert (event_type == "ADDED") == (key not in known)
            if event_type == "DELETED":
                assert known.pop(key)["metadata"]["uid"] == manifest["metadata"]["uid"]
            else:
                known[key] = manifest
        assert known == {manifest["metadata"]["name"]: manifest for manifest in store.list(kinds.POD)[0]}

    for verb, name, number in verbs:
        if verb == "poll":
            follow()
            continue
        try:
            act(store, clock, verb, name, number)
        except errors.ApiError as error:
            assert name in str(error)  # noqa: PT017  most random verbs are refused; what matters is that they say for whom
    follow()
    assert versions == list(range(len(versions)))


@settings(max_examples=drawn(50), deadline=None)
@given(VERBS)
def test_the_same_verbs_give_the_same_store(verbs):
    def run():
        clock = VirtualClock()
        store = ObjectStore(clock.now)
        refusals = []
        for verb, name, number in verbs:
            try:
                act(store, clock, verb, name, number)
            except errors.ApiError as error:
                refusals.append(str(error))
        return store.list(kinds.POD), refusals

    assert run() == run()


def test_a_uid_leads_to_its_object_while_it_lives():
    store = new_store()
    store.create(pod())
    uid = store.get(pod_key())["metadata"]["uid"]
    assert store.owner(uid) == Key(kinds.POD, "a", "p")
    store.remove(pod_key())
    assert store.owner(uid) is None
