"""What a cycle is started for at once: whatever gives room or something to run. The echo of our own writes can wait."""

from __future__ import annotations

import pytest
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
    assert urgency.can_wait(desk().cluster, event_type, pod(node, phase, going)) is waits


def known(cluster, kind):
    return next(iter(cluster.jobs.values())).group if kind == "group" else cluster.queues["q"].object


@pytest.mark.parametrize("kind", ["group", "queue"])
def test_a_group_or_queue_can_wait_while_nobody_but_us_has_changed_it(kind):
    cluster = desk().cluster
    same = known(cluster, kind)
    counted = structs.replace(same, status=structs.replace(same.status, running=7))
    assert urgency.can_wait(cluster, "MODIFIED", counted)
    assert not urgency.can_wait(cluster, "DELETED", counted)
    for name, value in {
        "uid": "another",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "deletion_timestamp": "2026-01-01T00:00:00Z",
        "name": "unheard-of",
    }.items():
        changed = structs.replace(counted, metadata=structs.replace(counted.metadata, **{name: value}))
        assert not urgency.can_wait(cluster, "MODIFIED", changed), name


def test_a_group_that_needs_fewer_and_a_queue_that_opens_cannot_wait():
    cluster = desk().cluster
    group, queue = known(cluster, "group"), known(cluster, "queue")
    smaller = structs.replace(group, spec=structs.replace(group.spec, min_member=0))
    larger = structs.replace(queue, spec=structs.replace(queue.spec, weight=99))
    closed = structs.replace(queue, status=structs.replace(queue.status, state="Closed"))
    for each in (smaller, larger, closed):
        assert not urgency.can_wait(cluster, "MODIFIED", each)


def test_whatever_else_changes_is_looked_at_at_once():
    cluster = desk().cluster
    broken = decoding.decode({**builders.pod("p", "g"), "spec": {"containers": 7}})
    for each in (found(builders.node("n1")), broken):
        assert not urgency.can_wait(cluster, "MODIFIED", each)
