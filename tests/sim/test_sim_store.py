import pytest
from sim_objects import SECOND, node, pod, pod_group, pod_key, priority_class, queue

from pumice.api import kinds
from pumice.sim import errors
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

GROUP = Key(kinds.POD_GROUP, "a", "g")
QUEUE = Key(kinds.QUEUE, "", "q")
NODE = Key(kinds.NODE, "", "n1")


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def store(clock):
    store = ObjectStore(clock.now)
    for manifest in (pod(), pod_group(), queue(), node(), priority_class("gold", 5)):
        store.create(manifest)
    return store


def events(store, kind, since="0"):
    return [event.type for event in store.watch(kind, since).poll()]


# ---- create


def test_create_gives_uid_version_time_and_generation(store):
    metadata = store.get(pod_key())["metadata"]
    assert metadata["uid"] == "00000000-0000-4000-8000-000000000001"
    assert metadata["resourceVersion"] == "1"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1


def test_create_keeps_a_uid_and_a_creation_time_that_are_given(store):
    given = pod("other")
    given["metadata"] |= {"uid": "u-1", "creationTimestamp": "2020-01-01T00:00:00Z"}
    store.create(given)
    metadata = store.get(pod_key("other"))["metadata"]
    assert (metadata["uid"], metadata["creationTimestamp"]) == ("u-1", "2020-01-01T00:00:00Z")


def test_create_of_what_exists_is_refused(store):
    with pytest.raises(errors.AlreadyExistsError, match="pod/a/p exists already"):
        store.create(pod())


def test_the_namespace_of_a_cluster_scoped_object_is_dropped(store):
    store.create({**node("n2"), "metadata": {"name": "n2", "namespace": "a"}})
    assert "namespace" not in store.get(Key(kinds.NODE, "", "n2"))["metadata"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, "has no kind"),
        ({"apiVersion": None}, "has no apiVersion"),
        ({"metadata": {}}, "metadata.name None"),
        ({"metadata": {"name": False}}, "metadata.name False; it must be a text"),
        ({"metadata": None}, "metadata.name None"),
        ({"metadata": {"name": "p", "namespace": 3}}, "metadata.namespace 3"),
        ({"kind": "Pdo"}, "did you mean 'v1 Pod'"),
        ({"apiVersion": "zzz/q9", "kind": "Qqq"}, "known are "),
    ],
)
def test_what_is_no_object_at_all_is_refused_by_name(store, change, message):
    with pytest.raises(errors.InvalidError, match=message):
        store.create({**pod("new"), **change})


# ---- reading


def test_reading_what_is_not_there_says_so(store):
    with pytest.raises(errors.NotFoundError, match="pod/a/nope not found"):
        store.get(pod_key("nope"))
    assert store.find(pod_key("nope")) is None


def test_what_is_handed_out_or_taken_in_is_not_the_stored_object(store):
    given = pod("mine")
    store.create(given)
    listed, _ = store.list(kinds.POD)
    seen = store.watch(kinds.POD, "0").poll()
    before = store.get(pod_key("mine"))
    body = {"metadata": {"labels": {"x": "1"}}}
    for manifest in (given, store.get(pod_key("mine")), listed[-1], seen[-1].object):
        manifest["spec"]["containers"][0]["name"] = "changed"
        manifest["metadata"]["annotations"]["a"] = "b"
    assert store.get(pod_key("mine")) == before
    store.patch(pod_key("mine"), body)
    body["metadata"]["labels"]["x"] = "2"
    assert store.get(pod_key("mine"))["metadata"]["labels"] == {"x": "1"}
    assert seen[0].object["metadata"]["name"] == "p"


def test_a_list_carries_the_version_of_the_latest_write(store):
    assert store.list(kinds.POD)[1] == store.resource_version == "5"


# ---- update and patch


def test_update_with_an_old_version_conflicts(store):
    mine = store.get(pod_key())
    store.patch(pod_key(), {"metadata": {"labels": {"x": "1"}}})
    with pytest.raises(errors.ConflictError, match=r"pod/a/p has resourceVersion 6, not 1"):
        store.update({**mine, "spec": {}})


def test_patch_with_an_old_version_or_another_uid_conflicts(store):
    with pytest.raises(errors.ConflictError, match="resourceVersion"):
        store.patch(pod_key(), {"metadata": {"resourceVersion": "77"}})
    with pytest.raises(errors.ConflictError, match="uid"):
        store.patch(pod_key(), {"metadata": {"labels": {"x": "1"}}}, uid="another")


def test_update_without_a_version_overwrites(store):
    store.update({**pod(), "spec": {"priority": 3}})
    assert store.get(pod_key())["spec"] == {"priority": 3}


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.update(store.get(pod_key())),
        lambda store: store.update(store.get(pod_key()), subresource="status"),
        lambda store: store.patch(pod_key(), {}),
        lambda store: store.patch(pod_key(), {"spec": {"schedulerName": "volcano"}, "metadata": {"labels": None}}),
        lambda store: store.patch(pod_key(), {"status": {"phase": "Failed"}}),
        lambda store: store.patch_status(pod_key(), {"spec": {"priority": 4}}),
        lambda store: store.overwrite(pod_key(), store.get(pod_key())),
    ],
)
def test_a_write_that_changes_nothing_has_no_version_and_no_event(store, write):
    before = store.get(pod_key())
    assert write(store) == "5"
    assert store.get(pod_key()) == before
    assert events(store, kinds.POD, "5") == []


def test_main_and_status_writes_do_not_touch_each_other(store):
    store.patch(QUEUE, {"spec": {"weight": 2}, "status": {"state": "Closed"}})
    store.patch_status(QUEUE, {"spec": {"weight": 9}, "status": {"state": "Open"}})
    found = store.get(QUEUE)
    assert (found["spec"], found["status"]) == ({"weight": 2}, {"state": "Open"})
    store.update({**queue(), "spec": {"weight": 3}})
    store.update({**queue(), "spec": {"weight": 9}, "status": {"state": "Closing"}}, subresource="status")
    found = store.get(QUEUE)
    assert (found["spec"], found["status"]) == ({"weight": 3}, {"state": "Closing"})
    store.update(queue(), subresource="status")
    assert "status" not in store.get(QUEUE)


@pytest.mark.parametrize("key", [GROUP, Key(kinds.PRIORITY_CLASS, "", "gold")])
def test_a_kind_without_status_subresource_answers_not_found(store, key):
    with pytest.raises(errors.NotFoundError, match="no status subresource"):
        store.patch_status(key, {"status": {"phase": "Running"}})
    with pytest.raises(errors.NotFoundError, match="no status subresource"):
        store.update(store.get(key), subresource="status")


def test_the_status_of_a_pod_group_is_part_of_the_object(store):
    store.patch(GROUP, {"status": {"phase": "Inqueue"}})
    assert store.get(GROUP)["status"] == {"phase": "Inqueue"}
    store.update(pod_group())
    assert "status" not in store.get(GROUP)


def test_a_custom_resource_takes_no_strategic_patch(store):
    with pytest.raises(errors.InvalidError, match="podgroup/a/g: a custom resource takes no strategic merge patch"):
        store.patch(GROUP, {"status": {"conditions": []}}, strategic=True)


def test_strategic_patch_merges_pod_conditions_and_plain_patch_replaces_them(store):
    for name in ("A", "B"):
        store.patch_status(pod_key(), {"status": {"conditions": [{"type": name, "status": "True"}]}}, strategic=True)
    assert [each["type"] for each in store.get(pod_key())["status"]["conditions"]] == ["A", "B"]
    store.patch_status(pod_key(), {"status": {"conditions": [{"type": "C"}]}})
    assert store.get(pod_key())["status"]["conditions"] == [{"type": "C"}]


def test_a_write_cannot_change_what_the_server_owns(store):
    owned = {"creationTimestamp": "1999-01-01T00:00:00Z", "deletionTimestamp": "1999-01-01T00:00:00Z", "generation": 99}
    store.patch(pod_key(), {"kind": "Node", "metadata": {"name": "x", "namespace": "y", "labels": {"l": "1"}, **owned}})
    found = store.get(pod_key())
    metadata = found["metadata"]
    assert found["kind"] == "Pod"
    assert (metadata["name"], metadata["namespace"], metadata["generation"]) == ("p", "a", 1)
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "deletionTimestamp" not in metadata


def test_generation_counts_changes_of_what_is_desired(store):
    store.patch(QUEUE, {"metadata": {"labels": {"x": "1"}}})
    store.patch_status(QUEUE, {"status": {"state": "Open"}})
    assert store.get(QUEUE)["metadata"]["generation"] == 1
    store.patch(QUEUE, {"spec": {"weight": 2}})
    assert store.get(QUEUE)["metadata"]["generation"] == 2


# ---- bind


def test_bind_sets_node_annotations_and_condition(store, clock):
    store.patch_status(
        pod_key(), {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
    )
    clock.advance(5 * SECOND)
    store.bind(pod_key(), uid="", node="n1", annotations={"x": "1"})
    found = store.get(pod_key())
    assert found["spec"]["nodeName"] == "n1"
    assert found["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "g", "x": "1"}
    assert found["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    ]


@pytest.mark.parametrize(
    ("prepare", "uid", "message"),
    [
        (lambda store: store.bind(pod_key(), uid="", node="n1"), "", "already assigned to node n1"),
        (lambda store: None, "other", "has uid .*, not other"),
        (
            lambda store: store.patch(pod_key(), {"spec": {"schedulingGates": [{"name": "g"}]}}),
            "",
            "1 scheduling gates",
        ),
        (
            lambda store: (store.patch(pod_key(), {"metadata": {"finalizers": ["f"]}}), store.delete(pod_key())),
            "",
            "is being deleted",
        ),
    ],
)
def test_bind_conflicts(store, prepare, uid, message):
    prepare(store)
    with pytest.raises(errors.ConflictError, match=message):
        store.bind(pod_key(), uid=uid, node="n2")


def test_bind_of_a_missing_pod_is_not_found(store):
    with pytest.raises(errors.NotFoundError):
        store.bind(pod_key("nope"), uid="", node="n1")


# ---- delete


def marks(store):
    metadata = store.get(pod_key())["metadata"]
    return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")


def test_a_bound_pod_is_marked_with_its_own_grace_or_the_one_given(store, clock):
    store.bind(pod_key(), uid="", node="n1")
    store.delete(pod_key())
    assert marks(store) == ("2026-01-01T00:00:30Z", 30)
    store.create(pod("q", node="n1", terminationGracePeriodSeconds=5))
    store.delete(pod_key("q"))
    assert store.get(pod_key("q"))["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:05Z"
    store.create(pod("r", node="n1"))
    store.delete(pod_key("r"), grace=1_500_000)
    assert store.get(pod_key("r"))["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:01.500000Z"
    assert store.get(pod_key("r"))["metadata"]["deletionGracePeriodSeconds"] == 2


@pytest.mark.parametrize(("seconds", "end"), [(-5, "01"), ("x", "30"), (True, "30"), (None, "30")])
def test_a_grace_period_that_makes_no_sense_does_no_harm(store, seconds, end):
    store.create(pod("q", node="n1", terminationGracePeriodSeconds=seconds))
    store.delete(pod_key("q"))
    assert store.get(pod_key("q"))["metadata"]["deletionTimestamp"] == f"2026-01-01T00:00:{end}Z"


@pytest.mark.parametrize(
    "manifest",
    [pod("q"), pod("q", node="n1", phase="Succeeded"), pod("q", node="n1", phase="Failed")],
    ids=["unbound", "succeeded", "failed"],
)
def test_an_unbound_or_finished_pod_is_gone_at_once_whatever_the_grace(store, manifest):
    store.create(manifest)
    store.delete(pod_key("q"), grace=60 * SECOND)
    assert store.find(pod_key("q")) is None


def test_a_grace_of_zero_is_gone_at_once(store):
    store.bind(pod_key(), uid="", node="n1")
    store.delete(pod_key(), grace=0)
    assert store.find(pod_key()) is None
    assert events(store, kinds.POD)[-1] == "DELETED"


@pytest.mark.parametrize(
    ("again", "end"),
    [
        (None, "00:00:30"),
        (60 * SECOND, "00:00:30"),
        (30 * SECOND, "00:00:30"),
        (20 * SECOND, "00:00:20"),
        (5 * SECOND, "00:00:10"),
    ],
)
def test_a_repeated_delete_can_shorten_and_never_lengthen(store, clock, again, end):
    store.bind(pod_key(), uid="", node="n1")
    store.delete(pod_key())
    clock.advance(10 * SECOND)
    store.delete(pod_key(), grace=again)
    assert marks(store)[0] == f"2026-01-01T{end}Z"


def test_a_repeated_delete_of_what_has_finished_meanwhile_takes_it_away(store):
    store.bind(pod_key(), uid="", node="n1")
    store.delete(pod_key())
    store.patch_status(pod_key(), {"status": {"phase": "Succeeded"}})
    store.delete(pod_key())
    assert store.find(pod_key()) is None


def test_delete_checks_the_uid(store):
    with pytest.raises(errors.ConflictError, match="uid"):
        store.delete(pod_key(), uid="other")
    with pytest.raises(errors.NotFoundError):
        store.delete(pod_key("nope"))


def test_finalizers_hold_an_object_until_they_are_gone(store):
    store.patch(QUEUE, {"metadata": {"finalizers": ["x", "y"]}})
    store.delete(QUEUE)
    store.delete(QUEUE)
    assert store.get(QUEUE)["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    store.patch(QUEUE, {"metadata": {"finalizers": ["y"]}})
    assert store.find(QUEUE) is not None
    store.patch(QUEUE, {"metadata": {"finalizers": None}})
    assert store.find(QUEUE) is None
    assert events(store, kinds.QUEUE) == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def test_a_terminating_pod_outlives_its_finalizers_until_its_grace_has_passed(store):
    store.patch(pod_key(), {"metadata": {"finalizers": ["x"]}})
    store.bind(pod_key(), uid="", node="n1")
    store.delete(pod_key())
    store.patch(pod_key(), {"metadata": {"finalizers": []}})
    assert store.find(pod_key()) is not None


def test_remove_heeds_no_finalizer(store):
    store.patch(QUEUE, {"metadata": {"finalizers": ["x"]}})
    store.remove(QUEUE)
    assert store.find(QUEUE) is None


def test_the_last_event_of_an_object_carries_its_last_state_and_a_new_version(store):
    store.delete(pod_key())
    event = store.watch(kinds.POD, "0").poll()[-1]
    assert event.type == "DELETED"
    assert event.object["metadata"]["resourceVersion"] == "6"
    assert event.object["spec"]["schedulerName"] == "volcano"
