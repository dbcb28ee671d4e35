"""proportion: shares, order, limits, reclaim and admission of queues in a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.api import names
from pumice.framework import subject
from pumice.plugins.proportion import Proportion, kube_batch

CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: proportion}]
"""
LEGACY = CONFIGURATION.replace("actions:", "compatibility: kube-batch\nactions:")
GI = 2**30


def running(name, in_queue, *pods):
    """A running job; its pods as (cpu, memory), on node m."""
    made = [pod(f"{name}-{i}", name, cpu=cpu, memory=memory, node="m") for i, (cpu, memory) in enumerate(pods)]
    return [group(name, 0, queue=in_queue, phase="Running"), *made]


def waiting(name, in_queue, *pods, **spec):
    made = [pod(f"{name}-{i}", name, cpu=cpu, memory=memory) for i, (cpu, memory) in enumerate(pods)]
    return [group(name, 0, queue=in_queue, phase="Inqueue", **spec), *made]


def opened(*manifests, cpu="10", memory="10Gi", text=CONFIGURATION):
    desk = Desk(text).feed(node("m", cpu, memory, "1000"), *manifests)
    session = desk.session()
    plugin = next(p for tier in desk.scheduler.engine.plugins for p in tier if isinstance(p, Proportion))
    return desk, session, plugin


def deserved(desk, plugin, *queues):
    """Cores and GiB of each queue."""
    rows = [plugin.deserved[desk.cluster.queues[name].row] for name in queues]
    return [(row[0] / 1000, row[1] / GI) for row in rows]


# -- worked cases ----------------------------------------------------------------------------------------------


def test_pp1_shares_by_weight_within_what_is_asked_for():
    desk, _, plugin = opened(
        *(queue(name, weight=w) for name, w in (("q1", 1), ("q2", 2), ("q3", 3))),
        *waiting("a", "q1", ("2", "4Gi")),
        *waiting("b", "q2", ("12", "24Gi")),
        *waiting("c", "q3", ("4", "4Gi")),
        cpu="12",
        memory="24Gi",
    )
    assert deserved(desk, plugin, "q1", "q2", "q3") == [(2, 4), (6, 16), (4, 4)]


def test_pp2_capability_and_guarantee():
    desk, _, plugin = opened(
        queue("qa", guarantee={"resource": {"cpu": "4"}}, capability={"cpu": "6"}),
        queue("qb"),
        *waiting("a", "qa", ("10", "10Gi")),
        *waiting("b", "qb", ("30", "60Gi")),
        cpu="20",
        memory="40Gi",
    )
    assert deserved(desk, plugin, "qa", "qb") == [(6, 10), (14, 30)]


def test_pp3_shares_of_one_resource_do_not_wait_for_another():
    desk, _, plugin = opened(
        queue("qx"), queue("qy"), *waiting("a", "qx", ("10", "2Gi")), *waiting("b", "qy", ("2", "10Gi"))
    )
    assert deserved(desk, plugin, "qx", "qy") == [(8, 2), (2, 8)]


def test_pp4_guarantee_beyond_the_request():
    desk, _, plugin = opened(
        queue("qx", guarantee={"resource": {"cpu": "4"}}),
        queue("qy"),
        *waiting("a", "qx", ("1", "1Gi")),
        *waiting("b", "qy", ("20", "2Gi")),
    )
    assert deserved(desk, plugin, "qx", "qy") == [(4, 1), (6, 2)]


def pp5(*held):
    """q2 of PP1 deserves 6 cores and 16Gi, and holds what is given."""
    return opened(
        *(queue(name, weight=w) for name, w in (("q1", 1), ("q2", 2), ("q3", 3))),
        *waiting("a", "q1", ("2", "4Gi")),
        *running("held", "q2", *held),
        *waiting("b", "q2", ("10", "40Gi"), ("1", "1Gi"), (None, "2Gi")),
        *waiting("c", "q3", ("4", "4Gi")),
        cpu="12",
        memory="24Gi",
    )


def test_pp5_a_queue_with_some_share_left_is_not_overused_but_takes_no_pod_beyond():
    desk, session, plugin = pp5(("6", "10Gi"))
    q2 = desk.cluster.queues["q2"]
    assert deserved(desk, plugin, "q2") == [(6, 16)]
    assert session.overused(q2) is None
    said = session.allocatable(q2, subject.equal_tasks([desk.task("b-1")]))
    assert (
        said == "cpu 1 for a pod goes beyond its share: allocated cpu 6 of 6, memory 10Gi of 16Gi, pods 1 of 4 deserved"
    )
    assert session.preemptive(q2, subject.equal_tasks([desk.task("b-1")])) == said
    assert session.allocatable(q2, subject.equal_tasks([desk.task("b-2")])) is None


def test_pp5_reclaim_takes_what_is_above_in_some_resource():
    desk, _, plugin = pp5(*[("1", "1Gi")] * 7, ("1", "3Gi"))
    victims = [desk.task(f"held-{i}") for i in range(3)]
    assert plugin.above(desk.task("a-0"), victims) == victims[:2]


# -- shares ----------------------------------------------------------------------------------------------------


def test_queue_without_pending_work_counts_as_overused():
    desk, session, _ = opened(queue("red"), *running("a", "red", ("2", "1Gi")))
    assert (
        session.overused(desk.cluster.queues["red"]) == "allocated cpu 2 of 2, memory 1Gi of 1Gi, pods 1 of 1 deserved"
    )


def test_guarantee_of_a_queue_without_jobs_is_off_the_limit_of_others_and_off_their_share():
    desk, _, plugin = opened(
        queue("idle", guarantee={"resource": {"cpu": "4"}}),
        queue("red"),
        queue("blue"),
        *waiting("r", "red", ("10", "1Gi")),
        *waiting("b", "blue", ("10", "1Gi")),
    )
    assert deserved(desk, plugin, "red", "blue", "idle") == [(3, 1), (3, 1), (4, 0)]
    assert plugin.limits.real_capability[desk.cluster.queues["red"].row, 0] == 6000


def test_unlisted_resources_are_not_limited():
    desk, _, plugin = opened(queue("red", capability={"cpu": "3"}), *waiting("r", "red", ("10", "9Gi")))
    assert deserved(desk, plugin, "red") == [(3, 9)]


def test_invalid_queue_and_invalid_group_count_for_nothing():
    desk, _, plugin = opened(
        queue("bad", guarantee={"resource": {"cpu": "-1"}}),
        queue("red"),
        queue("blue"),
        *waiting("x", "bad", ("10", "1Gi")),
        *waiting("y", "blue", ("10", "1Gi"), minResources={"cpu": "-1"}),
        *waiting("r", "red", ("10", "1Gi")),
    )
    assert deserved(desk, plugin, "red", "blue") == [(10, 1), (0, 0)]


def test_pods_of_an_invalid_group_ask_for_nothing_until_it_is_mended():
    desk, _, plugin = opened(
        queue("red"),
        queue("blue"),
        *waiting("r", "red", ("2", "1Gi")),
        *waiting("b", "blue", ("10", "1Gi")),
        *waiting("x", "red", ("7", "1Gi"), minResources={"cpu": "-1"}),
    )

    def dues(*changed):
        desk.feed(*changed)
        desk.session()
        return deserved(desk, plugin, "red", "blue")

    bad, good = ({"minResources": {"cpu": cpu}} for cpu in ("-1", "1"))
    assert deserved(desk, plugin, "red", "blue") == [(2, 1), (8, 1)]
    assert dues(group("x", 0, queue="red", phase="Inqueue", **good)) == [(5, 2), (5, 1)]
    assert dues(group("x", 0, queue="red", phase="Inqueue", **bad)) == [(2, 1), (8, 1)]
    desk.delete(group("x", 0, queue="red", phase="Inqueue", **bad))
    assert dues() == [(2, 1), (8, 1)], "its pods are in no queue"
    assert dues(group("x", 0, queue="red", phase="Inqueue", **good)) == [(5, 2), (5, 1)]


def test_terminating_pod_no_longer_counts_against_its_queue():
    desk, _, plugin = opened(
        queue("red"),
        *waiting("r", "red", ("9", "1Gi")),
        pod("leaving", "r", cpu="4", memory="1Gi", node="m", deleting=True),
    )
    assert deserved(desk, plugin, "red") == [(9, 1)]
    assert plugin.share(desk.cluster.queues["red"]) == 0


def test_shares_are_kept_while_nothing_changed_and_worked_out_anew_when_something_did():
    desk, _, plugin = opened(queue("red"), *waiting("r", "red", ("3", "1Gi")))
    before = plugin.deserved
    desk.session()
    assert plugin.deserved is before
    desk.modify(pod("r-0", "r", cpu="4", memory="1Gi")).session()
    assert deserved(desk, plugin, "red") == [(4, 1)]
    desk.modify(queue("red", capability={"cpu": "2"})).session()
    assert deserved(desk, plugin, "red") == [(2, 1)]
    desk.modify(node("m", "1", "10Gi", "1000")).session()
    assert deserved(desk, plugin, "red") == [(1, 1)]


# -- order -----------------------------------------------------------------------------------------------------


def order(desk, session, *queues):
    return [q.name for q in session.queue_order.sort(desk.cluster.queues[name] for name in queues)]


def test_higher_queue_priority_comes_first_then_the_smaller_share():
    desk, session, _ = opened(
        queue("low"),
        queue("less"),
        queue("high", priority=7),
        *running("l", "low", ("2", "1Gi")),
        *waiting("lw", "low", ("9", "1Gi")),
        *running("s", "less", ("1", "1Gi")),
        *waiting("sw", "less", ("9", "1Gi")),
        *running("h", "high", ("3", "1Gi")),
        *waiting("hw", "high", ("9", "1Gi")),
    )
    assert order(desk, session, "low", "less", "high") == ["high", "less", "low"]


def test_order_follows_placements_within_the_cycle():
    desk, session, plugin = opened(
        queue("red"), queue("blue", created=1), *waiting("r", "red", ("4", None)), *waiting("b", "blue", ("9", None))
    )
    assert order(desk, session, "red", "blue") == ["red", "blue"]
    statement = session.statement()
    statement.allocate([desk.task("r-0")], [desk.node("m")])
    assert plugin.share(desk.cluster.queues["red"]) == 1
    assert order(desk, session, "red", "blue") == ["blue", "red"]
    statement.discard()
    assert order(desk, session, "red", "blue") == ["red", "blue"]


def test_rounding_tells_no_equal_shares_apart():
    # 10 cores by 1 and 3 of 7 are no whole millicores: both hold 0.7 of their exact part, so the older one is first.
    desk, session, _ = opened(
        queue("one"),
        queue("three", weight=3, created=1),
        queue("rest", weight=3, created=2),
        *running("a", "one", ("1", None)),
        *running("b", "three", ("3", None)),
        *(each for name in ("one", "three", "rest") for each in waiting(f"w{name}", name, ("20", None))),
    )
    assert order(desk, session, "one", "three") == ["one", "three"]


# -- closed queues and admission -------------------------------------------------------------------------------


def test_closed_queue_refuses_and_names_its_state():
    desk, session, _ = opened(
        queue("shut", state="Closing"),
        *waiting("s", "shut", ("1", "1Gi")),
        group("g", 1, queue="shut", minResources={"cpu": "1"}),
    )
    shut = desk.cluster.queues["shut"]
    reason = "its state is Closing, only Open queues take new work"
    assert session.allocatable(shut, subject.equal_tasks([desk.task("s-0")])) == reason
    assert session.preemptive(shut, subject.equal_tasks([desk.task("s-0")])) == reason
    assert session.job_enqueueable(desk.cluster.jobs["a/g"]).reason == f"proportion: queue shut: {reason}"


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"cpu": "4", "memory": "2Gi"}, ""),
        ({"cpu": "5", "memory": "2Gi"}, "insufficient cpu"),
        ({"memory": "29Gi"}, "insufficient memory"),
        ({"pods": "5000"}, ""),
        ({"example.com/acc": "1"}, "insufficient example.com/acc"),
        ({"example.com/acc": "0"}, ""),
        ({"cpu": "5", "memory": "200Gi"}, "insufficient cpu, insufficient memory"),
    ],
)
def test_minimum_must_fit_beside_what_is_held_and_let_in(asked, refused):
    # As capacity's CA4: limit 12 cores and 40Gi, held 6 and 8Gi of which 1 core is beyond the minimum, let in 3 and 6Gi.
    desk, session, _ = opened(
        queue("ore", capability={"cpu": "12"}),
        *running("held", "ore", ("6", "8Gi")),
        group("held", 1, queue="ore", phase="Running", minResources={"cpu": "5", "memory": "8Gi"}),
        group("in", 1, queue="ore", phase="Inqueue", minResources={"cpu": "3", "memory": "6Gi"}),
        group("g", 1, queue="ore", minResources=asked),
        cpu="20",
        memory="40Gi",
    )
    vote = session.job_enqueueable(desk.cluster.jobs["a/g"])
    assert vote.value == (-1 if refused else 1)
    assert [text for _, text in session.findings.notices] == (
        [f"queue resource quota insufficient: {refused}"] if refused else []
    )
    if refused == "insufficient cpu":
        assert vote.reason == (
            "proportion: queue ore: minResources exceed its room: cpu 5 + 5 held + 3 let in, limit 12"
        )


def test_group_that_was_let_in_counts_for_the_next_one():
    desk, session, _ = opened(
        group("first", minResources={"cpu": "6"}), group("second", minResources={"cpu": "5"}), group("third")
    )
    first, second, third = (desk.cluster.jobs[f"a/{name}"] for name in ("first", "second", "third"))
    session.job_enqueued(third)
    assert session.job_enqueueable(first).value == 1
    session.job_enqueued(first)
    assert session.job_enqueueable(second).value == -1
    assert session.job_enqueueable(third).value == 1


def test_elastic_and_inqueue_are_counted_once_per_cycle_and_anew_in_the_next():
    desk, session, plugin = opened(group("first", minResources={"cpu": "6"}))
    session.job_enqueued(desk.cluster.jobs["a/first"])
    row = desk.cluster.queues[names.DEFAULT_QUEUE].row
    assert plugin.admitted.inqueue[row, 0] == 6000
    desk.session()
    assert plugin.admitted.inqueue[row, 0] == 0


# -- kube-batch's rules ----------------------------------------------------------------------------------------


def test_kb1_weights_only():
    desk, session, plugin = opened(
        queue("qx", capability={"cpu": "1"}, guarantee={"resource": {"memory": "6Gi"}}),
        queue("qy"),
        *waiting("a", "qx", ("10", "2Gi")),
        *waiting("b", "qy", ("2", "10Gi")),
        text=LEGACY,
    )
    assert deserved(desk, plugin, "qx", "qy") == [(5, 5), (5, 5)]
    assert not session.allocatable.active
    assert not session.preemptive.active
    assert not session.job_enqueueable.active


@pytest.mark.parametrize(("left", "covered"), [((1009, 10, 9), True), ((1011, 10, 9), False), ((1010, 10, 9), False)])
def test_kb3_amounts_are_compared_with_a_tolerance(left, covered):
    desk, _, _ = opened(text=LEGACY)
    tolerance = kube_batch.tolerances(desk.cluster.vocabulary)
    assert tolerance.tolist() == [10, 10 * 2**20, 0]
    right = tolerance * 0
    right[0] = 1000
    assert kube_batch.covered(right * 0 + left, right, tolerance) is covered


def test_legacy_overused_within_the_tolerance():
    desk, session, _ = opened(
        queue("red"), *running("r", "red", ("9995m", "10235Mi")), *waiting("w", "red", ("5", "5Gi")), text=LEGACY
    )
    assert session.overused(desk.cluster.queues["red"]) == "allocated cpu 9995m of 10, memory 10235Mi of 10Gi deserved"


def test_legacy_candidates_count_even_if_not_offered():
    desk, session, _ = opened(
        queue("red"),
        queue("blue"),
        *running("r", "red", ("4", "2Gi"), ("2", "2Gi"), ("1", "2Gi")),
        *waiting("w", "red", ("5", "9Gi")),
        *waiting("b", "blue", ("9", "9Gi")),
        text=LEGACY,
    )
    claimant = desk.task("b-0")
    big, small, least = (desk.task(f"r-{i}") for i in range(3))
    # 7 cores and 6Gi are held, 5 and 5Gi deserved: no victim leaves both, so nobody is offered, whatever the order.
    assert session.reclaimable(claimant, [least, small, big]) == []
    desk, session, _ = opened(
        queue("red"),
        queue("blue"),
        *running("r", "red", ("4", "1Mi"), ("2", "1Mi"), ("1", "1Mi"), ("1", "7Gi")),
        *waiting("w", "red", ("5", "9Gi")),
        *waiting("b", "blue", ("9", "9Gi")),
        text=LEGACY,
    )
    big, small, least = (desk.task(f"r-{i}") for i in range(3))
    assert session.reclaimable(desk.task("b-0"), [least, small]) == [least, small]
    # The big one leaves 4 of 5 cores and is not offered, but is counted as gone for the small one.
    assert session.reclaimable(desk.task("b-0"), [big, least]) == []


# -- properties ------------------------------------------------------------------------------------------------

sizes = st.integers(1, 6)
jobs = st.lists(
    st.tuples(st.sampled_from(["red", "blue", "green"]), st.lists(sizes, min_size=1, max_size=4)), max_size=5
)
weights = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))


def verdicts(weights, jobs, *, cpu=1, extra=()):
    """Where everything is placed after two cycles, and what is said about the queues."""
    desk = Desk(CONFIGURATION.replace("{name: predicates}, ", "{name: predicates}, {name: nodeorder}, "))
    desk.feed(*(node(f"m{i}", str(5 * cpu)) for i in range(3)))
    desk.feed(
        *(
            queue(name, weight=w, created=i)
            for i, (name, w) in enumerate(zip(("red", "blue", "green"), weights, strict=True))
        )
    )
    for j, (name, pods) in enumerate(jobs):
        desk.feed(group(f"j{j}", 1, queue=name, created=j, phase="Inqueue"))
        desk.feed(*(pod(f"j{j}-{i}", f"j{j}", cpu=str(size * cpu), created=j) for i, size in enumerate(pods)))
    desk.feed(*extra)
    desk.cycle()
    session = desk.session()
    overused = {
        name: session.overused(q) is not None
        for name, q in desk.cluster.queues.items()
        if name in ("red", "blue", "green")
    }
    return desk.world.binds, overused


@settings(max_examples=drawn(40), deadline=None)
@given(weights, jobs)
def test_queue_without_jobs_or_guarantee_changes_no_verdict(weights, jobs):
    bystander = queue("aaa", weight=50, priority=3, capability={"cpu": "1"})
    assert verdicts(weights, jobs, extra=[bystander]) == verdicts(weights, jobs)


@settings(max_examples=drawn(40), deadline=None)
@given(weights, jobs, st.integers(2, 7))
def test_scaling_a_resource_everywhere_changes_no_verdict(weights, jobs, times):
    assert verdicts(weights, jobs, cpu=times)[0] == verdicts(weights, jobs)[0]
