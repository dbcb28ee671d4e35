"""What becomes of pods: bound, evicted, told."""

from __future__ import annotations

import pytest
from contract_objects import code, condition, pod, uid

from pumice.api import kinds, names
from pumice.cache import effects

RUNNING = {
    "phase": "Running",
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ],
}


def bind(harness, name="p", node="n1", *, of=None, **fields):
    known = uid(harness, kinds.POD, name) if of is None else of
    return effects.Bind(namespace=harness.namespace, name=name, uid=known, node=node, **fields)


def evict(harness, name="p", *, of=None, **fields):
    known = uid(harness, kinds.POD, name) if of is None else of
    return effects.Evict(namespace=harness.namespace, name=name, uid=known, reason="preempt", **fields)


def status_patch(harness, status, name="p", *, of=None):
    return effects.Patch(
        kind=kinds.POD,
        namespace=harness.namespace,
        name=name,
        uid=uid(harness, kinds.POD, name) if of is None else of,
        body={"status": status},
        subresource="status",
        strategic=True,
    )


def unschedulable(message):
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


# -- binding ---------------------------------------------------------------------------------------------------


def test_a_bound_pod_has_its_node_its_annotations_and_the_condition(harness):
    harness.apply(pod(harness, annotations={"mine": "1"}))
    (outcome,) = harness.perform(bind(harness, annotations={"added": "2"}))
    found = harness.find(kinds.POD, "p")
    assert code(outcome) is None
    assert found["spec"]["nodeName"] == "n1"
    assert found["metadata"]["annotations"] == {names.GROUP_NAME: "g", "mine": "1", "added": "2"}
    assert condition(found, "PodScheduled")["status"] == "True"


def test_a_pod_that_is_not_there_is_not_found(harness):
    (outcome,) = harness.perform(bind(harness, "missing", of="some-uid"))
    assert code(outcome) == "notfound"
    assert "missing" in outcome.failure.message


def test_another_pod_of_that_name_is_not_bound(harness):
    harness.apply(pod(harness))
    (outcome,) = harness.perform(bind(harness, of="00000000-0000-4000-8000-00000000ffff"))
    assert code(outcome) == "conflict"
    assert not harness.find(kinds.POD, "p")["spec"].get("nodeName")


def test_a_pod_that_is_bound_elsewhere_stays_there(harness):
    harness.apply(pod(harness, node="n2"))
    (outcome,) = harness.perform(bind(harness))
    assert code(outcome) == "conflict"
    assert "n2" in outcome.failure.message
    assert harness.find(kinds.POD, "p")["spec"]["nodeName"] == "n2"


def test_a_pod_that_is_bound_where_it_should_be_is_bound(harness):
    harness.apply(pod(harness))
    first, second = harness.perform(bind(harness), bind(harness))
    assert (code(first), code(second)) == (None, None)


def test_a_pod_that_is_going_is_not_bound(harness):
    harness.apply(pod(harness, finalizers=["example.com/wait"]))
    harness.delete(kinds.POD, "p")
    (outcome,) = harness.perform(bind(harness))
    assert code(outcome) == "conflict"


def test_a_pod_whose_last_gate_was_taken_off_is_bound_and_keeps_the_rest_of_its_spec(harness):
    gated = pod(harness)
    gated["spec"] |= {"schedulingGates": [{"name": names.QUEUE_GATE}], "nodeSelector": {"a": "b"}}
    harness.apply(gated)
    known = {"kind": kinds.POD, "namespace": harness.namespace, "name": "p", "uid": uid(harness, kinds.POD, "p")}
    (outcome,) = harness.perform(effects.Patch(**known, body={"spec": {"schedulingGates": None}}))
    assert code(outcome) is None
    (outcome,) = harness.perform(bind(harness))
    assert code(outcome) is None
    spec = harness.find(kinds.POD, "p")["spec"]
    assert (spec["nodeName"], spec["nodeSelector"]) == ("n1", {"a": "b"})
    assert not spec.get("schedulingGates")


def test_a_gated_pod_is_not_bound(harness):
    gated = pod(harness)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    harness.apply(gated)
    (outcome,) = harness.perform(bind(harness))
    assert code(outcome) == "conflict"


def test_many_binds_at_once_all_arrive(harness):
    harness.apply(*(pod(harness, f"p{n}") for n in range(40)))
    outcomes = harness.perform(*(bind(harness, f"p{n}", f"n{n % 3}") for n in range(40)))
    assert [code(outcome) for outcome in outcomes] == [None] * 40
    assert [harness.find(kinds.POD, f"p{n}")["spec"]["nodeName"] for n in range(3)] == ["n0", "n1", "n2"]


def test_a_bind_whose_answer_is_lost_is_unknown_and_its_repetition_a_success(harness):
    harness.apply(pod(harness))
    harness.lose_reply("bind", "p")
    (outcome,) = harness.perform(bind(harness))
    assert code(outcome) == "unknown"
    assert harness.find(kinds.POD, "p")["spec"]["nodeName"] == "n1"
    (read, again) = harness.perform(effects.Read(kind=kinds.POD, namespace=harness.namespace, name="p"), bind(harness))
    assert read.object["spec"]["nodeName"] == "n1"
    assert code(again) is None


# -- evicting --------------------------------------------------------------------------------------------------


def test_an_evicted_pod_is_told_why_and_goes_with_its_own_grace(harness):
    harness.apply(pod(harness, node="n1", grace=17, status=RUNNING))
    (outcome,) = harness.perform(evict(harness))
    found = harness.find(kinds.POD, "p")
    assert code(outcome) is None
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["deletionGracePeriodSeconds"] == 17
    ready, disrupted = condition(found, "Ready"), condition(found, "DisruptionTarget")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "Evict", "preempt")
    assert (disrupted["status"], disrupted["reason"]) == ("True", "PreemptionByScheduler")
    assert condition(found, "Initialized")["status"] == "True"


def test_a_grace_that_is_asked_for_wins(harness):
    harness.apply(pod(harness, node="n1", status=RUNNING))
    harness.perform(evict(harness, grace_seconds=5))
    assert harness.find(kinds.POD, "p")["metadata"]["deletionGracePeriodSeconds"] == 5


def test_a_pod_without_a_node_goes_at_once(harness):
    harness.apply(pod(harness))
    (outcome,) = harness.perform(evict(harness))
    assert code(outcome) is None
    assert harness.find(kinds.POD, "p") is None


def test_evicting_what_is_going_already_changes_nothing_about_its_end(harness):
    harness.apply(pod(harness, node="n1", grace=60, status=RUNNING))
    harness.delete(kinds.POD, "p")
    before = harness.find(kinds.POD, "p")["metadata"]
    (outcome,) = harness.perform(evict(harness, grace_seconds=1))
    after = harness.find(kinds.POD, "p")["metadata"]
    assert code(outcome) is None
    assert after["deletionTimestamp"] == before["deletionTimestamp"]
    assert after["deletionGracePeriodSeconds"] == 60


@pytest.mark.parametrize("exists", [True, False])
def test_a_pod_that_is_gone_or_was_replaced_is_not_found_and_its_successor_untouched(harness, exists):
    if exists:
        harness.apply(pod(harness, node="n1", status=RUNNING))
    (outcome,) = harness.perform(evict(harness, of="00000000-0000-4000-8000-00000000ffff"))
    assert code(outcome) == "notfound"
    if exists:
        found = harness.find(kinds.POD, "p")
        assert "deletionTimestamp" not in found["metadata"]
        assert condition(found, "DisruptionTarget") is None


def test_an_eviction_whose_answer_is_lost_is_unknown_and_its_repetition_a_success(harness):
    harness.apply(pod(harness, node="n1", status=RUNNING))
    harness.lose_reply("evict", "p")
    (outcome,) = harness.perform(evict(harness))
    assert code(outcome) == "unknown"
    assert harness.find(kinds.POD, "p")["metadata"]["deletionTimestamp"]
    (again,) = harness.perform(evict(harness))
    assert code(again) is None


# -- statuses --------------------------------------------------------------------------------------------------


def test_a_condition_is_written_and_everything_else_left_alone(harness):
    harness.apply(pod(harness, labels={"l": "1"}, finalizers=["example.com/wait"], status=RUNNING))
    (outcome,) = harness.perform(
        status_patch(harness, {"conditions": [unschedulable("0/3 nodes")], "nominatedNodeName": "n7"})
    )
    found = harness.find(kinds.POD, "p")
    assert code(outcome) is None
    assert outcome.object["status"]["nominatedNodeName"] == "n7"
    assert condition(found, "PodScheduled")["message"] == "0/3 nodes"
    assert condition(found, "Ready")["status"] == "True"
    assert condition(found, "Initialized")["status"] == "True"
    assert found["status"]["phase"] == "Running"
    assert found["metadata"]["labels"] == {"l": "1"}
    assert found["metadata"]["finalizers"] == ["example.com/wait"]


def test_a_nomination_is_taken_back(harness):
    harness.apply(pod(harness))
    harness.perform(status_patch(harness, {"nominatedNodeName": "n7"}))
    harness.perform(status_patch(harness, {"nominatedNodeName": None}))
    assert not harness.find(kinds.POD, "p")["status"].get("nominatedNodeName")


def test_the_status_of_another_pod_of_that_name_is_not_written(harness):
    harness.apply(pod(harness))
    (outcome,) = harness.perform(
        status_patch(harness, {"nominatedNodeName": "n7"}, of="00000000-0000-4000-8000-00000000ffff")
    )
    assert code(outcome) == "conflict"
    assert not harness.find(kinds.POD, "p")["status"].get("nominatedNodeName")


def test_effects_on_one_pod_happen_in_order(harness):
    harness.apply(pod(harness))
    read = effects.Read(kind=kinds.POD, namespace=harness.namespace, name="p")
    outcomes = harness.perform(
        status_patch(harness, {"conditions": [unschedulable("first")]}),
        status_patch(harness, {"conditions": [unschedulable("second")]}),
        read,
    )
    assert [code(outcome) for outcome in outcomes] == [None] * 3
    assert condition(outcomes[2].object, "PodScheduled")["message"] == "second"
    outcomes = harness.perform(status_patch(harness, {"conditions": [unschedulable("third")]}), bind(harness), read)
    assert [code(outcome) for outcome in outcomes] == [None] * 3
    assert outcomes[2].object["spec"]["nodeName"] == "n1"
    assert condition(outcomes[2].object, "PodScheduled")["status"] == "True"
