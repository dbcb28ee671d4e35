"""What a cycle is started for at once: whatever gives room or something to run. The echo of our own writes can wait."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import builders
from pumice.api import decoding
from pumice.server.threads import urgency


def found(manifest):
    return decoding.decode(manifest)


def desk():
    made = builders.Desk()
    made.feed(builders.node("n1"), builders.queue("q"), builders.group("g", queue="q"))
    made.cache.apply(builders.NOW)
    return made


def judge_of(made):
    return urgency.Urgency(made.cluster, made.cache.shadows)


def pod(node="", phase="", going=False):
    manifest = builders.pod("p", "g", cpu="1")
    if node:
        manifest["spec"]["nodeName"] = node
    if phase:
        manifest.setdefault("status", {})["phase"] = phase
    if going:
        manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found(manifest)


@pytest.mark.parametrize(
    ("node", "phase", "going", "event_type", "waits"),
    [
        ("", "Pending", False, "ADDED", False),
        ("", "Pending", False, "MODIFIED", False),
        ("n1", "Pending", False, "ADDED", True),
        ("n1", "Pending", False, "MODIFIED", True),
        ("n1", "Running", False, "MODIFIED", True),
        ("n1", "Succeeded", False, "MODIFIED", False),
        ("n1", "Failed", False, "MODIFIED", False),
        ("n1", "Running", True, "MODIFIED", False),
        ("n1", "Running", False, "DELETED", False),
    ],
)
def test_a_pod_can_wait_while_it_has_a_node_and_stays_there(node, phase, going, event_type, waits):
    assert judge_of(desk()).wait(event_type, pod(node, phase, going)) == (urgency.LATER if waits else urgency.NOW)


def known(cluster, kind):
    return next(iter(cluster.jobs.values())).group if kind == "group" else cluster.queues["q"].object


@pytest.mark.parametrize("kind", ["group", "queue"])
def test_a_group_or_queue_can_wait_while_nobody_but_us_has_changed_it(kind):
    made = desk()
    same = known(made.cluster, kind)
    counted = structs.replace(same, status=structs.replace(same.status, running=7))
    assert judge_of(made).wait("MODIFIED", counted)
    assert not judge_of(made).wait("DELETED", counted)
    for name, value in {
        "uid": "another",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "deletion_timestamp": "2026-01-01T00:00:00Z",
    }.items():
        changed = structs.replace(counted, metadata=structs.replace(counted.metadata, **{name: value}))
        assert not judge_of(made).wait("MODIFIED", changed), name


def test_a_group_that_needs_fewer_and_a_queue_that_opens_cannot_wait():
    made = desk()
    group, queue = known(made.cluster, "group"), known(made.cluster, "queue")
    smaller = structs.replace(group, spec=structs.replace(group.spec, min_member=0))
    larger = structs.replace(queue, spec=structs.replace(queue.spec, weight=99))
    closed = structs.replace(queue, status=structs.replace(queue.status, state="Closed"))
    for each in (smaller, larger, closed):
        assert not judge_of(made).wait("MODIFIED", each)


def test_whatever_else_changes_is_looked_at_at_once():
    made = desk()
    broken = decoding.decode({**builders.pod("p", "g"), "spec": {"containers": 7}})
    for each in (found(builders.node("n1")), broken):
        assert not judge_of(made).wait("MODIFIED", each)


def members(count, start=0):
    return [builders.pod(f"m{number}", "gang", cpu="1") for number in range(start, start + count)]


@given(st.integers(1, 12), st.booleans(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_of_a_gang_only_the_pod_that_completes_it_and_those_after_it_cannot_wait(minimum, looked, cycles):
    made = builders.Desk()
    judge = judge_of(made)
    group = builders.group("gang", minimum)
    assert judge.wait("ADDED", found(group)) == urgency.SOON
    made.feed(group)
    if looked:
        made.cache.apply(builders.NOW)
    for number, manifest in enumerate(members(12), start=1):
        expected = urgency.LATER if number < minimum else urgency.NOW
        assert judge.wait("ADDED", found(manifest)) == expected
        assert judge.wait("MODIFIED", found(manifest)) == expected  # told again before anybody has looked
        made.feed(manifest)
        if cycles[number - 1]:
            made.cache.apply(builders.NOW)
            assert judge.wait("MODIFIED", found(manifest)) == urgency.LATER  # the echo of what was written on it


def test_a_group_waits_for_its_pods_a_little_and_one_whose_pods_are_there_does_not():
    made = builders.Desk().feed(builders.pod("p", "late", cpu="1"))
    made.cache.apply(builders.NOW)
    judge = judge_of(made)
    assert judge.wait("ADDED", found(builders.group("late"))) == urgency.NOW
    assert judge.wait("ADDED", found(builders.group("empty"))) == urgency.SOON
    assert judge.wait("DELETED", found(builders.group("empty"))) == urgency.NOW


def test_a_pod_whose_group_nobody_knows_cannot_wait():
    assert not judge_of(desk()).wait("ADDED", found(builders.pod("a", "unheard-of", cpu="1")))


def alone(name, owner=None):
    manifest = builders.pod(name, "", cpu="1")
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
        manifest["metadata"]["ownerReferences"] = [reference]
    return manifest


@given(st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_pods_without_a_group_wait_for_the_one_that_is_made_for_them_which_cannot_wait_if_they_are_enough(
    minimum, first, looked
):
    made = builders.Desk()
    judge = judge_of(made)
    pods = [alone(f"p{number}", "u1") for number in range(8)]
    for manifest in pods[:first]:
        assert judge.wait("ADDED", found(manifest)) == urgency.LATER
        made.feed(manifest)
    if looked:
        made.cache.apply(builders.NOW)
    group = builders.group("podgroup-u1", minimum)
    assert judge.wait("ADDED", found(group)) == (urgency.NOW if first >= minimum else urgency.SOON)
    made.feed(group)
    made.cache.apply(builders.NOW)
    for number, manifest in enumerate(pods[first:], start=first + 1):
        assert judge.wait("ADDED", found(manifest)) == (urgency.LATER if number < minimum else urgency.NOW)


def test_a_pod_without_a_group_cannot_wait_where_it_has_an_implicit_one():
    made = builders.Desk()
    made.cache.follow(kube_batch=True, now=builders.NOW)
    assert not judge_of(made).wait("ADDED", found(alone("p")))


def test_a_pod_that_is_given_its_group_after_it_was_seen_cannot_wait():
    alone = builders.pod("p", "g", cpu="1")
    given = {**alone, "metadata": {**alone["metadata"]}}
    alone["metadata"] = {**alone["metadata"], "annotations": {}}
    made = builders.Desk().feed(alone, builders.group("g", 1))
    made.cache.apply(builders.NOW)
    assert not judge_of(made).wait("MODIFIED", found(given))


def test_a_pod_that_waits_cannot_wait_once_its_gate_is_off_or_it_has_another_label():
    made = builders.Desk().feed(builders.group("g"), gated := {**builders.pod("p", "g", cpu="1")})
    gated["spec"]["schedulingGates"] = [{"name": "x"}]
    made.cache.apply(builders.NOW)
    judge = judge_of(made)
    assert judge.wait("MODIFIED", found(gated))
    free = {**gated, "spec": {**gated["spec"], "schedulingGates": []}}
    named = {**gated, "metadata": {**gated["metadata"], "labels": {"a": "b"}}}
    for each in (free, named):
        assert not judge.wait("MODIFIED", found(each))


@pytest.mark.parametrize("seen", [False, True])
def test_what_is_remembered_of_gangs_that_come_is_bounded(seen):
    made = builders.Desk().feed(*(builders.group(f"g{number}", 2) for number in range(30)))
    made.cache.apply(builders.NOW)
    with mock.patch.object(urgency, "MOST", 10):
        judge = judge_of(made)
        for number in range(30):
            manifest = builders.pod(f"p{number}", f"g{number}", cpu="1")
            assert judge.wait("ADDED", found(manifest))
            if seen:
                made.feed(manifest)
                made.cache.apply(builders.NOW)

        def completes(number):
            return not judge.wait("ADDED", found(builders.pod(f"q{number}", f"g{number}", cpu="1")))

        assert completes(29)
        assert completes(0) == seen  # of a pod that is not remembered, and that the model does not have, nobody knows


@pytest.mark.parametrize("seen", [False, True])
def test_what_is_remembered_of_groups_that_come_is_bounded(seen):
    made = builders.Desk()
    with mock.patch.object(urgency, "MOST", 10):
        judge = judge_of(made)
        for number in range(30):
            group = builders.group(f"g{number}", 2)
            assert judge.wait("ADDED", found(group)) == urgency.SOON
            if seen:
                made.feed(group)
                made.cache.apply(builders.NOW)
        known = urgency.LATER if seen else urgency.NOW  # of those that are not remembered, a pod is looked at at once
        assert judge.wait("ADDED", found(builders.pod("p", "g29", cpu="1"))) == known
