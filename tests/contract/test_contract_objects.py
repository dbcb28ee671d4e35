"""What becomes of groups, queues and other objects, and what is told about them."""

from __future__ import annotations

from contract_objects import code, pod, pod_group, queue, uid

from pumice.api import kinds
from pumice.cache import effects

STATUS = {
    "phase": "Running",
    "conditions": [
        {
            "type": "Scheduled",
            "status": "True",
            "transitionID": "1",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "tasks in gang are ready to be scheduled",
            "message": "",
        }
    ],
    "running": 3,
    "succeeded": 1,
    "failed": 1,
}


def patch(harness, kind, name, body, *, of=None, subresource=""):
    return effects.Patch(
        kind=kind,
        namespace=harness.namespace if kind.namespaced else "",
        name=name,
        uid=uid(harness, kind, name) if of is None else of,
        body=body,
        subresource=subresource,
    )


def note(harness, kind, name, **fields):
    return effects.Note(
        **{
            "kind": kind,
            "namespace": harness.namespace if kind.namespaced else "",
            "name": name,
            "uid": uid(harness, kind, name),
            "type": "Normal",
            "reason": "Scheduled",
            "message": "hello",
            **fields,
        }
    )


# -- groups and queues -----------------------------------------------------------------------------------------


def test_the_status_of_a_group_is_written_zeros_included_and_the_rest_left_alone(harness):
    harness.apply(
        pod_group(harness, labels={"l": "1"}, annotations={"a": "1"}, finalizers=["example.com/wait"], status=STATUS)
    )
    before = harness.find(kinds.POD_GROUP, "g")
    status = {"phase": "Pending", "conditions": [], "running": 0, "succeeded": 0, "failed": 0}
    (outcome,) = harness.perform(patch(harness, kinds.POD_GROUP, "g", {"status": status}))
    found = harness.find(kinds.POD_GROUP, "g")
    assert code(outcome) is None
    assert found["status"] == status
    assert found["spec"] == before["spec"]
    for field in ("uid", "labels", "annotations", "finalizers"):
        assert found["metadata"][field] == before["metadata"][field]
    assert outcome.object["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


def test_what_others_wrote_into_the_status_of_a_group_stays(harness):
    harness.apply(pod_group(harness, status={**STATUS, "failed": 7}))
    harness.perform(patch(harness, kinds.POD_GROUP, "g", {"status": {"running": 0}}))
    found = harness.find(kinds.POD_GROUP, "g")["status"]
    assert (found["running"], found["failed"], found["phase"]) == (0, 7, "Running")


def test_statuses_of_one_group_are_written_in_order(harness):
    harness.apply(pod_group(harness))
    known = uid(harness, kinds.POD_GROUP, "g")
    harness.perform(*(patch(harness, kinds.POD_GROUP, "g", {"status": {"running": n}}, of=known) for n in range(10)))
    assert harness.find(kinds.POD_GROUP, "g")["status"]["running"] == 9


def test_another_group_of_that_name_is_not_written(harness):
    harness.apply(pod_group(harness))
    (outcome,) = harness.perform(patch(harness, kinds.POD_GROUP, "g", {"status": {"running": 1}}, of="another"))
    assert code(outcome) == "conflict"
    assert not harness.find(kinds.POD_GROUP, "g").get("status", {}).get("running")


def test_a_group_that_is_gone_is_not_found(harness):
    (outcome,) = harness.perform(patch(harness, kinds.POD_GROUP, "gone", {"status": {}}, of=""))
    assert code(outcome) == "notfound"


def test_a_status_whose_answer_is_lost_is_unknown_and_its_repetition_a_success(harness):
    harness.apply(pod_group(harness))
    harness.lose_reply("status", "g")
    (outcome,) = harness.perform(patch(harness, kinds.POD_GROUP, "g", {"status": {"running": 5}}))
    assert code(outcome) == "unknown"
    assert harness.find(kinds.POD_GROUP, "g")["status"]["running"] == 5
    (again,) = harness.perform(patch(harness, kinds.POD_GROUP, "g", {"status": {"running": 5}}))
    assert code(again) is None


def test_the_status_of_a_queue_is_written_through_its_own_door(harness):
    harness.apply(queue(harness))
    name = queue(harness)["metadata"]["name"]
    body = {"status": {"allocated": {"cpu": "2", "memory": "0"}, "running": 1, "pending": 0}}
    (outcome,) = harness.perform(patch(harness, kinds.QUEUE, name, body, subresource="status"))
    body = {"status": {"allocated": {"cpu": "0", "memory": None}, "running": 0}}
    harness.perform(patch(harness, kinds.QUEUE, name, body, subresource="status"))
    found = harness.find(kinds.QUEUE, name)
    assert code(outcome) is None
    assert found["status"]["allocated"] == {"cpu": "0"}
    assert found["status"]["running"] == 0
    assert found["spec"]["weight"] == 4


# -- creating and reading --------------------------------------------------------------------------------------


def test_what_is_created_is_there_and_creating_it_again_changes_nothing(harness):
    manifest = queue(harness)
    name = manifest["metadata"]["name"]
    (first,) = harness.perform(effects.Create(kind=kinds.QUEUE, manifest=manifest))
    second_manifest = {**manifest, "spec": {"weight": 9}}
    (second,) = harness.perform(effects.Create(kind=kinds.QUEUE, manifest=second_manifest))
    assert (code(first), code(second)) == (None, None)
    assert first.object["metadata"]["uid"] == second.object["metadata"]["uid"]
    assert harness.find(kinds.QUEUE, name)["spec"]["weight"] == 4


def test_what_is_there_is_read_and_what_is_not_is_not_found(harness):
    harness.apply(pod(harness))
    read = (effects.Read(kind=kinds.POD, namespace=harness.namespace, name=name) for name in ("p", "q"))
    found, missing = harness.perform(*read)
    assert code(found) is None
    assert found.object["metadata"]["uid"] == uid(harness, kinds.POD, "p")
    assert code(missing) == "notfound"
    assert missing.object is None


# -- events ----------------------------------------------------------------------------------------------------


def test_events_are_recorded_about_objects_with_and_without_a_namespace(harness):
    harness.apply(pod(harness), queue(harness))
    name = queue(harness)["metadata"]["name"]
    harness.perform(
        note(harness, kinds.POD, "p"),
        note(harness, kinds.POD, "p", type="Warning", reason="Evict", message="Pod is evicted, because of preempt"),
        note(harness, kinds.QUEUE, name, message="x"),
    )
    assert harness.events(kinds.POD, "p") == [
        ("Normal", "Scheduled", "hello"),
        ("Warning", "Evict", "Pod is evicted, because of preempt"),
    ]
    assert harness.events(kinds.QUEUE, name) == [("Normal", "Scheduled", "x")]


def test_events_come_beside_other_effects(harness):
    harness.apply(*(pod(harness, f"p{n}") for n in range(10)))
    binds = [
        effects.Bind(namespace=harness.namespace, name=f"p{n}", uid=uid(harness, kinds.POD, f"p{n}"), node="n1")
        for n in range(10)
    ]
    outcomes = harness.perform(*binds, *(note(harness, kinds.POD, f"p{n}") for n in range(10)))
    assert [code(outcome) for outcome in outcomes] == [None] * 10
    assert all(harness.events(kinds.POD, f"p{n}") == [("Normal", "Scheduled", "hello")] for n in range(10))
