"""overcommit: how much may wait for room."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod

CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: overcommit%s}]
"""


def opened(*manifests, factor=None):
    """A cluster of 100 cores, 90 of them used."""
    arguments = "" if factor is None else f", arguments: {{overcommit-factor: {factor}}}"
    desk = Desk(CONFIGURATION % arguments).feed(node("m", "100", "100Gi", "100"))
    desk.feed(pod("other", cpu="90", memory="1Gi", node="m", scheduler="someone"), *manifests)
    return desk, desk.session()


def votes(desk, session, *minima):
    """Ask about one group after the other, letting in whoever may come."""
    found = []
    for name in minima:
        job = desk.cluster.jobs[f"a/{name}"]
        found.append(session.job_enqueueable(job).value)
        if found[-1] > 0:
            session.job_enqueued(job)
    return found


@pytest.mark.parametrize("factor", [None, 1.2, 0.8])
def test_ov1_ov2_budget_is_the_cluster_times_the_factor_less_what_is_used(factor):
    desk, session = opened(
        group("in", phase="Inqueue", minResources={"cpu": "10"}),
        group("a", minResources={"cpu": "15"}),
        group("b", minResources={"cpu": "6"}),
        group("c", minResources={"cpu": "5"}),
        factor=factor,
    )
    assert votes(desk, session, "a", "b", "c") == [1, -1, 1]
    assert [text for _, text in session.findings.notices] == ["resource in cluster is overused: overused cpu"]


def test_refusal_tells_the_numbers():
    desk, session = opened(group("a", minResources={"cpu": "31", "memory": "200Gi"}))
    vote = session.job_enqueueable(desk.cluster.jobs["a/a"])
    assert vote.reason == (
        "overcommit: minResources exceed what may wait for room: cpu 31 + 0 let in, budget 30 (1.2 x all nodes less what is used); "
        "memory 200Gi + 0 let in, budget 119Gi (1.2 x all nodes less what is used)"
    )
    assert session.findings.notices[0][1] == "resource in cluster is overused: overused cpu, overused memory"


def test_ov3_only_resources_that_the_group_names_are_compared():
    desk, session = opened(
        group("in", phase="Inqueue", minResources={"cpu": "50"}),
        group("m", minResources={"memory": "1Gi"}),
        group("p", minResources={"pods": "5000"}),
        group("none"),
    )
    assert votes(desk, session, "m", "p", "none") == [1, 1, 1]


def test_resource_that_no_node_offers_is_refused():
    desk, session = opened(group("a", minResources={"example.com/acc": "1"}))
    assert session.job_enqueueable(desk.cluster.jobs["a/a"]).reason.endswith("no node offers example.com/acc")


def test_factor_is_the_decimal_as_written():
    # In binary floating point 3 x 1.1 is more than 3.3.
    desk = Desk(CONFIGURATION % ", arguments: {overcommit-factor: 1.1}").feed(node("m", "3"))
    desk.feed(group("a", minResources={"cpu": "3300m"}), group("b", minResources={"cpu": "3301m"}))
    session = desk.session()
    assert [session.job_enqueueable(desk.cluster.jobs[f"a/{name}"]).value for name in "ab"] == [1, -1]


def test_huge_factor_is_no_limit():
    desk, session = opened(group("a", minResources={"cpu": "9000000000"}), factor="1e18")
    assert votes(desk, session, "a") == [1]


def test_inqueue_counts_in_full():
    desk, session = opened(
        group("in", phase="Inqueue", minResources={"cpu": "20"}),
        pod("in-0", "in", cpu="5", memory="1Gi", node="m"),
        group("a", minResources={"cpu": "6"}),
        group("b", minResources={"cpu": "5"}),
    )
    assert votes(desk, session, "a", "b") == [-1, 1]


def test_running_group_counts_with_what_it_lacks():
    desk, session = opened(
        group("run", phase="Running", minResources={"cpu": "20"}),
        pod("run-0", "run", cpu="5", memory="1Gi", node="m"),
        group("a", minResources={"cpu": "11"}),
        group("b", minResources={"cpu": "10"}),
    )
    assert votes(desk, session, "a", "b") == [-1, 1]


def test_gated_pods_are_taken_off():
    desk, session = opened(
        group("in", phase="Inqueue", minResources={"cpu": "30"}),
        pod("in-0", "in", cpu="10", schedulingGates=[{"name": "example.com/wait"}]),
        group("a", minResources={"cpu": "10"}),
    )
    assert votes(desk, session, "a") == [1]
