import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_objects import SECOND, Mirror, cluster, node, pod, pod_group, pod_key, queue, stored

from drawing import drawn
from pumice.api import kinds
from pumice.cache import effects
from pumice.sim import cluster as cluster_module
from pumice.sim import errors, history
from pumice.sim.cluster import SimulatedCluster


def uid_of(simulated, reference="pod/a/p"):
    return stored(simulated, reference)["metadata"]["uid"]


def evict(simulated, name="p", **options):
    effect = effects.Evict(
        namespace="a", name=name, uid=uid_of(simulated, f"pod/a/{name}"), reason="preempt", **options
    )
    simulated.send(effect)
    return effect


def bind(simulated, name="p", to="n1", uid=None, **options):
    uid = uid_of(simulated, f"pod/a/{name}") if uid is None else uid
    simulated.send(effects.Bind(namespace="a", name=name, uid=uid, node=to, **options))


def partial(kind, name, namespace=None, **fields):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata, **fields}


# ---- watching


def test_a_cache_that_connects_gets_everything_kind_by_kind():
    simulated, mirror = cluster(pod(), node(), queue())
    assert mirror.events == [
        ("ADDED", "pod/a/p"),
        ("ADDED", "node/n1"),
        ("ADDED", "namespace/a"),
        ("ADDED", "queue/root"),
        ("ADDED", "queue/default"),
        ("ADDED", "queue/q"),
        ("ADDED", "priorityclass/system-cluster-critical"),
        ("ADDED", "priorityclass/system-node-critical"),
    ]
    assert simulated.pump() == 0


def test_changes_are_delivered_in_the_order_of_the_writes():
    simulated, mirror = cluster()
    del mirror.events[:]
    simulated.apply([queue(), pod(), node(), pod("q")])
    expected = ["queue/q", "namespace/a", "pod/a/p", "node/n1", "pod/a/q"]
    assert mirror.events == [("ADDED", reference) for reference in expected]


def test_a_restarted_scheduler_lists_again_and_loses_what_was_not_performed():
    simulated, _ = cluster(pod(), node())
    bind(simulated)
    fresh = Mirror()
    simulated.restart(fresh)
    simulated.settle()
    assert fresh.objects[pod_key()]["status"] == {"phase": "Pending"}
    assert simulated.counts.binds == 0
    assert fresh.outcomes == []


def test_a_cache_that_fell_behind_the_history_gets_the_difference(monkeypatch):
    monkeypatch.setattr(history.History.__init__, "__defaults__", (10,))
    monkeypatch.setattr(cluster_module.ObjectStore.__init__, "__kwdefaults__", {"limit": 10})
    simulated, mirror = cluster(pod("old"), node())
    simulated.delete(["pod/a/old"])
    simulated.apply([pod(f"p{index}") for index in range(30)])
    for index in range(30):
        bind(simulated, f"p{index}")
    simulated.settle()
    pods = {key.name: manifest for key, manifest in mirror.objects.items() if key.kind is kinds.POD}
    assert sorted(pods) == sorted(f"p{index}" for index in range(30))
    assert {manifest["status"]["phase"] for manifest in pods.values()} == {"Running"}


# ---- effects


def test_effects_wait_for_the_settle_and_are_performed_in_order():
    simulated, mirror = cluster(pod(), pod("q"), node())
    bind(simulated, annotations={"x": "1"})
    bind(simulated, "q")
    assert "nodeName" not in stored(simulated, "pod/a/p")["spec"]
    simulated.settle()
    assert [outcome.effect.name for outcome in mirror.outcomes] == ["p", "q"]
    assert not mirror.failures()
    assert mirror.objects[pod_key()]["metadata"]["annotations"]["x"] == "1"
    assert mirror.objects[pod_key()]["status"]["phase"] == "Running"
    assert (simulated.counts.binds, simulated.counts.evictions, simulated.counts.status_writes) == (2, 0, 0)


@pytest.mark.parametrize(
    ("effect", "code"),
    [
        (effects.Bind(namespace="a", name="nope", uid="", node="n1"), "notfound"),
        (effects.Bind(namespace="a", name="p", uid="other", node="n1"), "conflict"),
        (effects.Bind(namespace="a", name="r", uid="", node="n2"), "conflict"),
        (effects.Evict(namespace="a", name="nope", uid="", reason="x"), "notfound"),
        (effects.Evict(namespace="a", name="p", uid="other", reason="x"), "notfound"),
        (effects.Patch(kind=kinds.POD, namespace="a", name="nope", uid="", body={}), "notfound"),
        (effects.Patch(kind=kinds.POD, namespace="a", name="p", uid="other", body={}), "conflict"),
        (
            effects.Patch(kind=kinds.POD_GROUP, namespace="a", name="g", uid="", body={}, subresource="status"),
            "notfound",
        ),
        (effects.Patch(kind=kinds.POD_GROUP, namespace="a", name="g", uid="", body={}, strategic=True), "refused"),
        (effects.Read(kind=kinds.POD, namespace="a", name="nope"), "notfound"),
    ],
)
def test_a_write_that_cannot_be_done_fails_by_name_and_counts_for_nothing(effect, code):
    simulated, mirror = cluster(pod(), pod("r", node="n1"), pod_group())
    simulated.send(effect)
    simulated.settle()
    assert mirror.failures() == [code]
    assert effect.name in mirror.outcomes[0].failure.message
    assert (simulated.counts.binds, simulated.counts.evictions, simulated.counts.status_writes) == (0, 0, 0)


def test_an_evicted_pod_is_marked_and_goes_its_grace_after_the_cycle():
    simulated, mirror = cluster(pod(node="n1"))
    simulated.advance(3 * SECOND)
    evict(simulated)
    simulated.step()
    found = stored(simulated, "pod/a/p")
    marks = {each["type"]: each for each in found["status"]["conditions"]}
    at = {"lastTransitionTime": "2026-01-01T00:00:03Z", "message": "preempt"}
    assert marks["Ready"] == {"type": "Ready", "status": "False", "reason": "Evict", **at}
    assert marks["DisruptionTarget"] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        **at,
    }
    assert found["status"]["phase"] == "Running"
    assert found["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:33Z"
    simulated.advance(29 * SECOND - 1)
    assert stored(simulated, "pod/a/p") is not None
    simulated.advance(1)
    assert stored(simulated, "pod/a/p") is None
    assert mirror.events[-1] == ("DELETED", "pod/a/p")
    assert simulated.counts.evictions == 1
    assert not simulated.events


@pytest.mark.parametrize(
    ("own", "asked", "seconds"), [(None, None, 30), (7, None, 7), (7, 3, 3), (0, None, 0), (None, 0, 0)]
)
def test_an_eviction_takes_the_pods_own_grace_unless_told_otherwise(own, asked, seconds):
    simulated, _ = cluster(pod(node="n1", **({} if own is None else {"terminationGracePeriodSeconds": own})))
    evict(simulated, grace_seconds=asked)
    simulated.settle()
    if seconds:
        simulated.advance(seconds * SECOND - 1)
        assert stored(simulated, "pod/a/p") is not None
        simulated.advance(1)
    assert stored(simulated, "pod/a/p") is None


def test_evicting_a_terminating_pod_again_is_a_success_that_changes_and_counts_nothing():
    simulated, mirror = cluster(pod(node="n1"))
    effect = evict(simulated)
    simulated.settle()
    before = stored(simulated, "pod/a/p")
    simulated.advance(SECOND)
    simulated.send(effect)
    simulated.settle()
    assert stored(simulated, "pod/a/p") == before
    assert not mirror.failures()
    assert simulated.counts.evictions == 1


def test_who_was_evicted_is_remembered_with_its_last_manifest():
    simulated, _ = cluster(pod(node="n1"), pod("q", node="n1"))
    uid = uid_of(simulated)
    evict(simulated)
    simulated.settle()
    simulated.merge([partial("Pod", "p", "a", metadata={"name": "p", "namespace": "a", "labels": {"x": "1"}})])
    simulated.delete(["pod/a/q"])
    simulated.advance(30 * SECOND)
    assert list(simulated.evicted) == [uid]
    assert simulated.evicted[uid]["metadata"]["labels"] == {"x": "1"}
    assert simulated.evicted[uid]["spec"]["nodeName"] == "n1"


def test_a_patch_answers_with_the_object_and_a_bind_as_the_server_does_without():
    simulated, mirror = cluster(pod(), pod_group())
    body = {"status": {"phase": "Inqueue"}}
    simulated.send(effects.Patch(kind=kinds.POD_GROUP, namespace="a", name="g", uid="", body=body))
    bind(simulated)
    simulated.settle()
    assert [outcome.object and outcome.object["status"] for outcome in mirror.outcomes] == [{"phase": "Inqueue"}, None]


def test_creating_what_exists_is_a_success_and_reading_gives_the_object():
    simulated, mirror = cluster(pod())
    for name in ("default", "fresh"):
        simulated.send(effects.Create(kind=kinds.QUEUE, manifest=queue(name)))
    simulated.send(effects.Read(kind=kinds.POD, namespace="a", name="p"))
    simulated.settle()
    assert not mirror.failures()
    assert stored(simulated, "queue/default")["spec"]["reclaimable"] is True
    assert stored(simulated, "queue/fresh")["status"] == {"state": "Open"}
    assert mirror.outcomes[2].object == stored(simulated, "pod/a/p")


def test_events_are_recorded_with_their_time_and_have_no_outcome():
    simulated, mirror = cluster(node())
    note = effects.Note(kind=kinds.NODE, namespace="", name="n1", uid="", type="Normal", reason="R", message="m")
    simulated.advance(SECOND)
    simulated.send(note)
    simulated.settle()
    assert [(event.reference, event.note, event.at) for event in simulated.events] == [
        ("node/n1", note, simulated.clock.now())
    ]
    assert mirror.outcomes == []


def test_effects_that_answers_give_rise_to_are_performed_in_the_same_settle():
    simulated, mirror = cluster(pod(node="n9"))

    def settled(outcome):
        Mirror.settled(mirror, outcome)
        if outcome.failure:
            simulated.send(effects.Read(kind=kinds.POD, namespace="a", name="p"))

    mirror.settled = settled
    bind(simulated)
    simulated.settle()
    assert [type(outcome.effect).__name__ for outcome in mirror.outcomes] == ["Bind", "Read"]


def test_a_client_that_never_rests_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster_module, "ROUNDS", 5)
    simulated, mirror = cluster(pod(node="n9"))
    bind(simulated)
    mirror.settled = lambda _: bind(simulated)
    with pytest.raises(RuntimeError, match="does not settle: after 5 rounds 1 effects are queued"):
        simulated.settle()


# ---- what a scenario does


def test_apply_replaces_by_identity_and_keeps_what_a_server_keeps():
    simulated, mirror = cluster(pod(), node(), pod_group(), queue())
    before = stored(simulated, "pod/a/p")["metadata"]
    bind(simulated)
    simulated.send(
        effects.Patch(
            kind=kinds.QUEUE,
            namespace="",
            name="q",
            uid="",
            body={"status": {"allocated": {"cpu": "1"}}},
            subresource="status",
        )
    )
    simulated.settle()
    simulated.apply([pod(priority=4), node(status={"allocatable": {"cpu": "9"}}), queue(spec={"weight": 3})])
    found = stored(simulated, "pod/a/p")
    assert (found["spec"]["nodeName"], found["spec"]["priority"]) == ("n1", 4)
    assert found["status"]["phase"] == "Running"
    assert (found["metadata"]["uid"], found["metadata"]["creationTimestamp"]) == (
        before["uid"],
        before["creationTimestamp"],
    )
    assert stored(simulated, "node/n1")["status"]["allocatable"] == {"cpu": "9", "pods": "110"}
    assert stored(simulated, "queue/q")["spec"]["weight"] == 3
    assert stored(simulated, "queue/q")["status"] == {"state": "Open", "allocated": {"cpu": "1"}}
    assert mirror.objects[pod_key()] == found


def test_a_pod_applied_with_a_node_and_no_phase_is_running():
    simulated, _ = cluster(pod())
    simulated.apply([pod(node="n1")])
    assert stored(simulated, "pod/a/p")["status"]["phase"] == "Running"


def test_applying_the_same_again_changes_nothing():
    simulated, mirror = cluster(pod(), node(), pod_group(), queue())
    del mirror.events[:]
    simulated.apply([pod(), node(), pod_group(), queue()])
    assert mirror.events == []


def test_merge_reaches_spec_status_and_metadata_and_null_removes():
    simulated, mirror = cluster(pod(node="n1"), node())
    simulated.merge(
        [
            partial("Pod", "p", "a", spec={"schedulerName": None, "priority": 2}, status={"phase": "Failed"}),
            partial("Node", "n1", spec={"unschedulable": True}, apiVersion="v1"),
        ]
    )
    found = mirror.objects[pod_key()]
    assert "schedulerName" not in found["spec"]
    assert (found["spec"]["priority"], found["status"]["phase"]) == (2, "Failed")
    assert stored(simulated, "node/n1")["spec"] == {"unschedulable": True}


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda simulated: simulated.delete(["pod/a/nope"]), errors.NotFoundError, "pod/a/nope not found"),
        (lambda simulated: simulated.delete(["pod/nope"]), errors.InvalidError, "pod/NAMESPACE/NAME"),
        (lambda simulated: simulated.delete(["node/a/n1"]), errors.InvalidError, "write it as node/NAME"),
        (lambda simulated: simulated.delete(["nod/n1"]), errors.InvalidError, "did you mean 'node'"),
        (
            lambda simulated: simulated.merge([partial("Pod", "nope", "a")]),
            errors.NotFoundError,
            "pod/a/nope not found",
        ),
        (lambda simulated: simulated.merge([partial("Pdo", "p")]), errors.InvalidError, "no kind"),
    ],
)
def test_what_does_not_exist_cannot_be_changed(act, error, message):
    simulated, _ = cluster(pod(), node())
    with pytest.raises(error, match=message):
        act(simulated)


def test_delete_finds_the_older_group_of_a_kind():
    older = {**pod_group("old"), "apiVersion": "scheduling.sigs.dev/v1alpha2"}
    simulated, mirror = cluster(older, pod_group())
    simulated.delete(["podgroup/a/old", "podgroup/a/g", "queue/default"])
    assert [event for event in mirror.events if event[0] == "DELETED"] == [
        ("DELETED", "podgroup/a/old"),
        ("DELETED", "podgroup/a/g"),
        ("DELETED", "queue/default"),
    ]


# ---- garbage


def owned_by(*uids):
    return [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": uid} for uid in uids]


def test_a_group_goes_with_its_last_owner():
    simulated, _ = cluster(pod(), pod("q"))
    first, second = uid_of(simulated), uid_of(simulated, "pod/a/q")
    simulated.apply(
        [
            pod_group("both", ownerReferences=owned_by(first, second)),
            pod_group("one", ownerReferences=owned_by(first)),
            pod_group("free"),
            pod_group("stranger", ownerReferences=owned_by("unknown")),
        ]
    )
    groups = lambda: sorted(group["metadata"]["name"] for group in simulated.store.scan(kinds.POD_GROUP))  # noqa: E731
    simulated.delete(["pod/a/p"])
    assert groups() == ["both", "free", "stranger"]
    simulated.delete(["pod/a/q"])
    assert groups() == ["free", "stranger"]


def test_a_group_that_was_given_away_is_not_collected():
    simulated, _ = cluster(pod())
    simulated.apply([pod_group(ownerReferences=owned_by(uid_of(simulated)))])
    simulated.merge([partial("PodGroup", "g", "a", metadata={"name": "g", "namespace": "a", "ownerReferences": []})])
    simulated.delete(["pod/a/p"])
    assert stored(simulated, "podgroup/a/g") is not None


def test_a_companion_group_goes_when_its_pods_grace_has_passed():
    simulated, mirror = cluster(pod(group=None, node="n1"))
    simulated.settle()
    group = stored(simulated, "pod/a/p")["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    assert stored(simulated, f"podgroup/a/{group}")["spec"]["queue"] == "default"
    evict(simulated)
    simulated.advance(30 * SECOND)
    assert mirror.events[-2:] == [("DELETED", "pod/a/p"), ("DELETED", f"podgroup/a/{group}")]


# ---- always


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["apply", "bind", "evict", "delete", "grace", "advance", "bare", "settle"]), st.integers(0, 3)
    ),
    max_size=25,
)


def play(actions):
    simulated, mirror = cluster(node(), pod_group())
    for action, number in actions:
        name = f"p{number}"
        present = simulated.store.find(pod_key(name))
        uid = present["metadata"]["uid"] if present else ""
        if action == "apply":
            simulated.apply(
                [pod(name, terminationGracePeriodSeconds=number, annotations={"pumice.dev/run-time": "2s"})]
            )
        elif action == "bare":
            simulated.apply([pod(name, group=None)])
        elif action == "bind":
            simulated.send(effects.Bind(namespace="a", name=name, uid=uid, node="n1"))
        elif action == "evict":
            simulated.send(effects.Evict(namespace="a", name=name, uid=uid, reason="r"))
        elif action == "delete" and present:
            simulated.delete([f"pod/a/{name}"])
        elif action == "grace" and present:
            simulated.delete([f"pod/a/{name}"], grace=number * SECOND)
        elif action == "advance":
            simulated.advance(number * SECOND)
        elif action == "settle":
            simulated.settle()
    simulated.settle()
    return simulated, mirror


@settings(max_examples=drawn(80), deadline=None)
@given(ACTIONS)
def test_a_cache_always_mirrors_the_store_and_every_run_is_the_same(actions):
    simulated, mirror = play(actions)
    stored_objects = {
        (kind.name, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]): manifest
        for kind in kinds.KINDS
        for manifest in simulated.store.scan(kind)
    }
    assert {
        (key.kind.name, key.namespace, key.name): manifest for key, manifest in mirror.objects.items()
    } == stored_objects
    again, other = play(actions)
    assert other.events == mirror.events
    assert other.outcomes == mirror.outcomes
    assert again.store.resource_version == simulated.store.resource_version
    for manifest in simulated.store.scan(kinds.POD):
        metadata = manifest["metadata"]
        assert metadata["annotations"]["scheduling.k8s.io/group-name"]  # companions leave nobody out


def test_a_cluster_without_a_scheduler_settles_too():
    simulated = SimulatedCluster()
    simulated.apply([pod(node="n1", annotations={"pumice.dev/run-time": "1s"})])
    simulated.step()
    assert stored(simulated, "pod/a/p")["status"]["phase"] == "Succeeded"
    assert simulated.pump() == 0
