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
    assert urgency.Urgency(desk().cluster).can_wait(event_type, pod(node, phase, going)) is waits


def known(cluster, kind):
    return next(iter(cluster.jobs.values())).group if kind == "group" else cluster.queues["q"].object


@pytest.mark.parametrize("kind", ["group", "queue"])
def test_a_group_or_queue_can_wait_while_nobody_but_us_has_changed_it(kind):
    cluster = desk().cluster
    same = known(cluster, kind)
    counted = structs.replace(same, status=structs.replace(same.status, running=7))
    assert urgency.Urgency(cluster).can_wait("MODIFIED", counted)
    assert not urgency.Urgency(cluster).can_wait("DELETED", counted)
    for name, value in {
        "uid": "another",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "deletion_timestamp": "2026-01-01T00:00:00Z",
        "name": "unheard-of",
    }.items():
        changed = structs.replace(counted, metadata=structs.replace(counted.metadata, **{name: value}))
        assert not urgency.Urgency(cluster).can_wait("MODIFIED", changed), name


def test_a_group_that_needs_fewer_and_a_queue_that_opens_cannot_wait():
    cluster = desk().cluster
    group, queue = known(cluster, "group"), known(cluster, "queue")
    smaller = structs.replace(group, spec=structs.replace(group.spec, min_member=0))
    larger = structs.replace(queue, spec=structs.replace(queue.spec, weight=99))
    closed = structs.replace(queue, status=structs.replace(queue.status, state="Closed"))
    for each in (smaller, larger, closed):
        assert not urgency.Urgency(cluster).can_wait("MODIFIED", each)


def test_whatever_else_changes_is_looked_at_at_once():
    cluster = desk().cluster
    broken = decoding.decode({**builders.pod("p", "g"), "spec": {"containers": 7}})
    for each in (found(builders.node("n1")), broken):
        assert not urgency.Urgency(cluster).can_wait("MODIFIED", each)


def members(count, start=0):
    return [builders.pod(f"m{number}", "gang", cpu="1") for number in range(start, start + count)]


@given(st.integers(1, 12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_of_a_gang_only_the_pod_that_completes_it_and_those_after_it_cannot_wait(minimum, cycles):
    made = builders.Desk().feed(builders.group("gang", minimum))
    made.cache.apply(builders.NOW)
    judge = urgency.Urgency(made.cluster)
    for number, manifest in enumerate(members(12), start=1):
        assert judge.can_wait("ADDED", found(manifest)) == (number < minimum)
        assert judge.can_wait("MODIFIED", found(manifest)) == (number < minimum)  # told again before anybody has looked
        made.feed(manifest)
        if cycles[number - 1]:
            made.cache.apply(builders.NOW)
            assert judge.can_wait("MODIFIED", found(manifest))  # the echo of what was written on it


def test_a_pod_whose_group_nobody_knows_and_one_without_a_group_cannot_wait():
    judge = urgency.Urgency(desk().cluster)
    assert not judge.can_wait("ADDED", found(builders.pod("a", "unheard-of", cpu="1")))
    alone = builders.pod("b", "g", cpu="1")
    alone["metadata"].pop("annotations")
    assert not judge.can_wait("ADDED", found(alone))


def test_a_pod_that_is_given_its_group_after_it_was_seen_cannot_wait():
    alone = builders.pod("p", "g", cpu="1")
    given = {**alone, "metadata": {**alone["metadata"]}}
    alone["metadata"] = {**alone["metadata"], "annotations": {}}
    made = builders.Desk().feed(alone, builders.group("g", 1))
    made.cache.apply(builders.NOW)
    assert not urgency.Urgency(made.cluster).can_wait("MODIFIED", found(given))


def test_a_pod_that_waits_cannot_wait_once_its_gate_is_off_or_it_has_another_label():
    made = builders.Desk().feed(builders.group("g"), gated := {**builders.pod("p", "g", cpu="1")})
    gated["spec"]["schedulingGates"] = [{"name": "x"}]
    made.cache.apply(builders.NOW)
    judge = urgency.Urgency(made.cluster)
    assert judge.can_wait("MODIFIED", found(gated))
    free = {**gated, "spec": {**gated["spec"], "schedulingGates": []}}
    named = {**gated, "metadata": {**gated["metadata"], "labels": {"a": "b"}}}
    for each in (free, named):
        assert not judge.can_wait("MODIFIED", found(each))


@pytest.mark.parametrize("seen", [False, True])
def test_what_is_remembered_of_gangs_that_come_is_bounded(seen):
    made = builders.Desk().feed(*(builders.group(f"g{number}", 2) for number in range(30)))
    made.cache.apply(builders.NOW)
    with mock.patch.object(urgency, "MOST", 10):
        judge = urgency.Urgency(made.cluster)
        for number in range(30):
            manifest = builders.pod(f"p{number}", f"g{number}", cpu="1")
            assert judge.can_wait("ADDED", found(manifest))
            assert len(judge._coming) <= 10
            if seen:
                made.feed(manifest)
                made.cache.apply(builders.NOW)
