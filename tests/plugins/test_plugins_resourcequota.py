"""resourcequota: groups wait while the quota of their namespace cannot hold them."""

from __future__ import annotations

import pytest

from builders import Desk, group, metadata, node

CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: resourcequota}]
"""


def quota(hard, used=None, *, name="q", namespace="a", stated=True):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(name, namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used or {}} if stated else {},
    }


def opened(*manifests):
    desk = Desk(CONFIGURATION).feed(node("m"), *manifests)
    return desk, desk.session()


def ask(desk, session, name, namespace="a"):
    job = desk.cluster.jobs[f"{namespace}/{name}"]
    vote = session.job_enqueueable(job)
    if vote.value > 0:
        session.job_enqueued(job)
    return vote


def test_rq1_what_is_let_in_counts_until_the_end_of_the_cycle():
    desk, session = opened(
        quota({"cpu": "10"}, {"cpu": "6"}),
        group("a", minResources={"cpu": "3"}),
        group("b", minResources={"cpu": "2"}),
        group("c", minResources={"memory": "4Gi"}),
    )
    assert [ask(desk, session, name).value for name in "abc"] == [1, -1, 1]
    text = "requested: cpu=2, used: cpu=9, limited: cpu=10"
    assert [told for _, told in session.findings.notices] == [f"resource quota insufficient, {text}"]
    session = desk.session()
    vote = ask(desk, session, "b")
    assert vote.value == 1
    assert ask(desk, session, "a").reason == (
        "resourcequota: quota a/q has no room for cpu: requested: cpu=3, used: cpu=8, limited: cpu=10"
    )


@pytest.mark.parametrize("key", ["requests.cpu", "limits.cpu", "count/pods"])
def test_rq2_names_are_compared_as_written(key):
    desk, session = opened(quota({key: "1"}, {key: "1"}), group("a", minResources={"cpu": "3"}))
    assert ask(desk, session, "a").value == 1
    desk, session = opened(quota({key: "1"}, {key: "1"}), group("a", minResources={key: "3"}))
    assert ask(desk, session, "a").value == -1


def test_every_quota_of_the_namespace_must_hold_and_no_other():
    desk, session = opened(
        quota({"cpu": "10"}),
        quota({"memory": "1Gi"}, name="r"),
        quota({"cpu": "1"}, namespace="b"),
        group("a", minResources={"cpu": "9", "memory": "2Gi"}),
        group("c", minResources={"cpu": "9"}),
        group("d", namespace="c", minResources={"cpu": "99"}),
    )
    assert ask(desk, session, "a").reason.startswith(
        "resourcequota: quota a/r has no room for memory: requested: memory=2Gi"
    )
    assert ask(desk, session, "c").value == 1
    assert ask(desk, session, "d", "c").value == 1


def test_quota_without_a_status_limits_by_its_spec():
    desk, session = opened(quota({"cpu": "1"}, stated=False), group("a", minResources={"cpu": "1500m"}))
    assert ask(desk, session, "a").value == -1


def test_quota_that_cannot_be_read_counts_as_absent_and_as_present_once_it_can():
    desk, session = opened(quota({"cpu": "lots"}), group("a", minResources={"cpu": "3", "limits.cpu": "abc"}))
    assert ask(desk, session, "a").value == 1
    session = desk.modify(quota({"cpu": "2"})).session()
    assert ask(desk, session, "a").value == -1
    session = desk.delete(quota({"cpu": "2"})).session()
    assert ask(desk, session, "a").value == 1


def test_amounts_are_compared_exactly():
    desk, session = opened(quota({"cpu": "1"}, {"cpu": "0.1"}), group("a", minResources={"cpu": "900m"}))
    assert ask(desk, session, "a").value == 1
    desk, session = opened(quota({"cpu": "1"}, {"cpu": "0.1"}), group("a", minResources={"cpu": "900000001n"}))
    assert ask(desk, session, "a").value == -1
