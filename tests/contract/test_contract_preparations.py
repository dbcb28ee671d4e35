"""What is written before a bind: locks of nodes, and claims for devices."""

from __future__ import annotations

import pytest
from contract_objects import code, pod, uid

from pumice.api import kinds, timestamp
from pumice.cache import effects
from pumice.model.preparations import NodeLock

STAMP = "2026-01-01T00:00:00.000001Z"


def node(harness, **annotations):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n-{harness.namespace}", "annotations": annotations},
    }


def lock(harness, stamp=STAMP):
    return NodeLock(node=f"n-{harness.namespace}", annotation="gpu", stamp=stamp)


def prepare(harness, *preparations):
    known = uid(harness, kinds.POD, "p")
    return effects.Prepare(
        namespace=harness.namespace, name="p", uid=known, node=f"n-{harness.namespace}", preparations=preparations
    )


def take_back(harness, *preparations):
    known = uid(harness, kinds.POD, "p")
    return effects.TakeBack(namespace=harness.namespace, name="p", uid=known, preparations=preparations)


def annotation(harness):
    return (harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"].get("annotations") or {}).get("gpu")


def test_a_node_is_locked_and_locking_it_again_changes_nothing(harness):
    harness.apply(node(harness), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) is None
    assert annotation(harness) == STAMP
    version = harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"]["resourceVersion"]
    (again,) = harness.perform(prepare(harness, lock(harness)))
    assert code(again) is None
    assert harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"]["resourceVersion"] == version


def test_a_young_lock_of_somebody_else_stands(harness):
    other = timestamp.format_timestamp(harness.now() - 60_000_000)
    harness.apply(node(harness, gpu=other), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) == "conflict"
    assert other in outcome.failure.message
    assert annotation(harness) == other


@pytest.mark.parametrize("old", ["2020-01-01T00:00:00Z", "nonsense"])
def test_an_old_lock_is_taken_over(harness, old):
    harness.apply(node(harness, gpu=old), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) is None
    assert annotation(harness) == STAMP


def test_a_lock_is_taken_back_and_one_of_somebody_else_is_left(harness):
    harness.apply(node(harness), pod(harness))
    harness.perform(prepare(harness, lock(harness)))
    (other,) = harness.perform(take_back(harness, lock(harness, "2026-01-01T00:00:00.000002Z")))
    assert code(other) is None
    assert annotation(harness) == STAMP
    (mine,) = harness.perform(take_back(harness, lock(harness)))
    assert code(mine) is None
    assert annotation(harness) is None
    (again,) = harness.perform(take_back(harness, lock(harness)))
    assert code(again) is None


def test_a_node_that_is_gone_cannot_be_locked_and_has_nothing_to_take_back(harness):
    harness.apply(pod(harness))
    forth, back = harness.perform(prepare(harness, lock(harness)), take_back(harness, lock(harness)))
    assert code(forth) == "notfound"
    assert code(back) is None


def test_two_pods_that_leave_together_share_a_lock(harness):
    harness.apply(node(harness), pod(harness), pod(harness, "q"))
    known = uid(harness, kinds.POD, "q")
    other = effects.Prepare(
        namespace=harness.namespace, name="q", uid=known, node=f"n-{harness.namespace}", preparations=(lock(harness),)
    )
    outcomes = harness.perform(prepare(harness, lock(harness)), other)
    assert [code(each) for each in outcomes] == [None, None]
