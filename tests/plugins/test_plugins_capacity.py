"""capacity with flat queues: limits, dues, order, admission and victims."""

import pytest
from capacity_desk import FLAT, LEVEL, asked, desk, job, limited, opened, order, reclaimed

from builders import pod, queue
from pumice.framework import configuration, registry
from pumice.framework.subject import EvictionContext

ORE = limited("ore", guarantee="2c/4Gi", deserved="8c/16Gi", capability="12c")
TIN = limited("tin", deserved="6c/12Gi")
MUD = limited("mud")
GI = 2**30


def quarry(*manifests, text=FLAT):
    return desk(ORE, TIN, MUD, *manifests, text=text)


# ---- CA1: limits and order


def test_ca1_limits_leave_room_for_the_guarantees_of_others():
    made = quarry()
    _, plugin = opened(made)
    limits = {name: plugin.accounts[name].limit[:2].tolist() for name in ("ore", "tin", "mud")}
    assert limits == {"ore": [12_000, 40 * GI], "tin": [18_000, 36 * GI], "mud": [18_000, 36 * GI]}


def test_ca1_queues_are_ordered_by_the_part_of_their_due():
    made = quarry(*job("o", "ore", "6c/8Gi"), *job("t", "tin", "6c/3Gi"))
    _, plugin = opened(made)
    assert [plugin.accounts[name].share for name in ("ore", "tin", "mud")] == [0.75, 1.0, 1.0]
    assert order(made, "mud", "tin", "ore") == ["ore", "tin", "mud"]


def test_priority_comes_before_share():
    made = quarry(limited("top", deserved="1c", priority=5), *job("t", "top", "4c"))
    assert order(made, "ore", "top") == ["top", "ore"]


@pytest.mark.parametrize(
    ("spec", "deserved"),
    [
        ({"deserved": "50c/1Gi"}, [20_000, GI]),
        ({"deserved": "50c", "capability": "4c"}, [4_000, 0]),
        ({"deserved": "1c", "guarantee": "3c/2Gi"}, [3_000, 2 * GI]),
        ({"capability": "0c/1Gi"}, [0, 0]),
    ],
)
def test_a_due_is_bounded_by_the_limit_and_at_least_the_guarantee(spec, deserved):
    _, plugin = opened(desk(limited("q", **spec)))
    assert plugin.accounts["q"].deserved[:2].tolist() == deserved


def test_a_resource_that_the_capability_does_not_list_is_not_limited_by_it():
    made = desk(limited("q", capability="0c/1Gi"))
    _, plugin = opened(made)
    assert plugin.accounts["q"].limit[:2].tolist() == [20_000, GI]


def test_a_due_of_something_that_no_node_offers_is_a_due_of_which_nothing_is_held():
    made = desk(queue("q", deserved={"nvidia.com/gpu": "2"}), *job("j", "q", "4c"))
    _, plugin = opened(made)
    assert (plugin.accounts["q"].share, plugin.accounts["q"].best_effort) == (0.0, False)


# ---- CA2: allocatable and preemptive


def test_ca2_a_queue_takes_pods_up_to_its_limit():
    made = quarry(*job("t", "tin", "15c", wanted=["3c", "3001mc"]))
    session, _ = opened(made)
    tin = made.cluster.queues["tin"]
    assert session.allocatable(tin, asked(made, "t-w0")) is None
    refusal = session.allocatable(tin, asked(made, "t-w1"))
    assert refusal == "beyond the limit: cpu 15 held + 3001m for a pod, limit 18"


def test_ca2_one_resource_below_the_due_is_enough_to_reclaim():
    made = quarry(*job("t", "tin", "4c/20Gi", wanted=["2c/1Gi", "3c/1Gi"]))
    session, _ = opened(made)
    tin = made.cluster.queues["tin"]
    assert session.preemptive(tin, asked(made, "t-w0")) is None
    refusal = session.preemptive(tin, asked(made, "t-w1"))
    assert refusal == (
        "beyond its due in all that is asked for: "
        "cpu 4 held + 3 for a pod, deserved 6; memory 20Gi held + 1Gi for a pod, deserved 12Gi"
    )


def test_a_queue_at_its_limit_may_not_reclaim():
    made = desk(limited("q", deserved="8c", capability="4c/1Gi"), *job("j", "q", "3c", wanted=["1c", "2c"]))
    session, _ = opened(made)
    q = made.cluster.queues["q"]
    assert session.preemptive(q, asked(made, "j-w0")) is None
    assert session.preemptive(q, asked(made, "j-w1")) == "beyond the limit: cpu 3 held + 2 for a pod, limit 4"


def test_pods_are_never_limited():
    made = desk(queue("q", capability={"pods": "1"}), *job("j", "q", "1c", wanted=["1c"]))
    session, _ = opened(made)
    assert session.allocatable(made.cluster.queues["q"], asked(made, "j-w0", 5)) is None


def test_a_closed_queue_takes_nothing_and_reclaims_nothing():
    made = desk(limited("q", deserved="8c", state="Closed"), *job("j", "q", wanted=["1c"]))
    session, _ = opened(made)
    closed = made.cluster.queues["q"]
    text = "its state is Closed, only Open queues take new work"
    assert session.allocatable(closed, asked(made, "j-w0")) == text
    assert session.preemptive(closed, asked(made, "j-w0")) == text
    assert session.job_enqueueable(made.cluster.jobs["a/j"]).reason == f"capacity: queue q: {text}"


def test_capacity_calls_no_queue_overused():
    session, _ = opened(quarry(*job("t", "tin", "18c")))
    assert "capacity" not in [registered.plugin for registered in session.overused]


# ---- CA3: victims


def test_ca3_a_queue_gives_back_what_it_holds_above_its_due():
    made = quarry(
        *job("o", "ore", "3c/3Gi", "3c/3Gi", "4c/4Gi"), *job("m", "mud", "1c"), *job("t", "tin", wanted=["1c/1Gi"])
    )
    assert reclaimed(made, "t-w0", "o-0", "o-1", "m-0") == ["o-0", "m-0"]


def test_what_is_guaranteed_is_never_given_back():
    made = desk(
        limited("q", guarantee="3c", deserved="3c"),
        limited("r", deserved="9c"),
        *job("j", "q", "2c", "2c"),
        *job("c", "r", wanted=["2c"]),
    )
    assert reclaimed(made, "c-w0", "j-0") == []
    made.modify(limited("q", guarantee="2c", deserved="3c"))
    assert reclaimed(made, "c-w0", "j-0", "j-1") == ["j-0"]


def test_a_guarantee_that_the_nodes_do_not_offer_counts_as_absent():
    made = desk(
        queue("q", guarantee={"resource": {"nvidia.com/gpu": "1"}}),
        limited("r", deserved="9c"),
        *job("j", "q", "2c"),
        *job("c", "r", wanted=["2c"]),
    )
    assert reclaimed(made, "c-w0", "j-0") == ["j-0"]


def test_a_victim_must_hold_something_that_is_asked_for():
    made = quarry(*job("m", "mud", "1c", "/1Gi"), *job("t", "tin", wanted=["/2Gi"]))
    assert reclaimed(made, "t-w0", "m-0", "m-1") == ["m-1"]


@pytest.mark.parametrize(
    ("deserved", "victims"),
    [
        ({}, ["j-0"]),  # due nothing: what it holds was lent
        ({"memory": "8Gi"}, ["j-0"]),  # due nothing of what the victim holds
        ({"cpu": "4", "nvidia.com/gpu": "0"}, ["j-0"]),  # a listed 0 counts: one gpu is above it
        ({"cpu": "4"}, []),  # cpu is not above, and gpus are not listed
        ({"cpu": "1"}, ["j-0"]),
    ],
)
def test_a_victims_queue_is_above_its_due_in_something_the_victim_holds(deserved, victims):
    made = desk(
        queue("q", deserved=deserved), limited("r", deserved="9c"), *job("c", "r", wanted=["2c"]), *job("j", "q")
    )
    made.modify(NODE_WITH_GPUS).feed(pod("j-0", "j", requests={"cpu": "2", "nvidia.com/gpu": "1"}, node="m"))
    assert reclaimed(made, "c-w0", "j-0") == victims


NODE_WITH_GPUS = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "m", "uid": "cluster.m"},
    "status": {"allocatable": {"cpu": "20", "memory": "40Gi", "pods": "1000", "nvidia.com/gpu": "8"}},
}


def test_what_a_queue_is_due_is_protected_whatever_other_plugins_offer():
    waiting = [*job("t", "tin", wanted=["1c"]), *job("u", "ore", wanted=["1c"])]
    made = quarry(*job("o", "ore", "4c/1Gi", "4c"), *waiting)
    session, _ = opened(made)
    victim = made.task("o-0")
    assert session.protection(made.task("t-w0"), victim, "reclaim") == (
        "queue ore would hold less than is guaranteed to it: memory 0 of 4Gi"
    )
    assert session.protection(made.task("u-w0"), victim, "preempt") is None
    assert session.protection(None, victim, "shuffle") is None


def test_the_due_is_named_with_its_numbers():
    made = quarry(*job("o", "tin", "3c", "3c"), *job("t", "ore", wanted=["1c"]))
    session, _ = opened(made)
    for action in ("reclaim", "gangreclaim"):
        reason = session.protection(made.task("t-w0"), made.task("o-0"), action)
        assert reason == "queue tin holds no more than it is due: cpu 6 of 6, pods 2 of 0"


def test_gangpreempt_may_take_anybody_and_gangreclaim_what_is_above_the_due():
    made = quarry(*job("o", "ore", "3c/3Gi", "3c/3Gi", "4c/4Gi"), *job("t", "tin", wanted=["/1Gi"]))
    session, _ = opened(made)
    mine = next(r for r in session.unified_evictable if r.plugin == "capacity")
    asking, candidates = made.cluster.jobs["a/t"], [made.task("o-0"), made.task("o-1")]
    assert [t.name for t in mine.function(EvictionContext("gangpreempt", asking), candidates)] == ["o-0", "o-1"]
    assert [t.name for t in mine.function(EvictionContext("gangreclaim", asking), candidates)] == ["o-0"]


# ---- CA4: admission


@pytest.mark.parametrize(
    ("minimum", "reason"),
    [
        ("4", ""),
        ("5", "capacity: queue ore: minResources exceed its room: cpu 5 + 5 held + 3 let in, limit 12"),
    ],
)
def test_ca4_a_group_is_let_in_if_its_minimum_fits_the_queue(minimum, reason):
    made = quarry(
        *job("o", "ore", "6c/8Gi", minResources={"cpu": "5", "memory": "8Gi"}),
        *job("i", "ore", minResources={"cpu": "3", "memory": "6Gi"}),
        *job("new", "ore", phase="Pending", minResources={"cpu": minimum, "memory": "2Gi"}),
    )
    session, _ = opened(made)
    vote = session.job_enqueueable(made.cluster.jobs["a/new"])
    assert vote.reason == reason
    expected = [("new", "queue resource quota insufficient: insufficient cpu")] if reason else []
    assert [(each.name, text) for each, text in session.findings.notices] == expected


def test_groups_let_in_earlier_in_the_cycle_count():
    made = desk(limited("q", capability="6c"))
    made.feed(*(m for name in "abc" for m in job(name, "q", phase="Pending", minResources={"cpu": "3"})))
    made.cycle()
    phases = {each.name: made.scheduler.cache.record.explain(f"a/{each.name}") for each in made.cluster.jobs.values()}
    assert (
        "not let in: capacity: queue q: minResources exceed its room: cpu 3 + 0 held + 6 let in, limit 6" in phases["c"]
    )
    assert "not let in" not in phases["a"] + phases["b"]


# ---- arguments


def load(arguments):
    text = FLAT.replace("{name: capacity}", f"{{name: capacity, arguments: {{{arguments}}}}}")
    return configuration.load(text, registry.installed().catalog())


def test_arguments_are_read():
    assert load("ancestorReclaimLevel: 2").plugin("capacity").arguments["ancestorReclaimLevel"] == 2
    loaded = load("ancestorReclaimLevel: -1")
    assert loaded.plugin("capacity").arguments["ancestorReclaimLevel"] == 0
    assert "the minimum is 0" in str(loaded.warnings[0])


@pytest.mark.parametrize("name", ["capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable"])
def test_device_quotas_are_switched_without_a_warning(name):
    for switched in (True, False):
        loaded = load(f"{name}: {str(switched).lower()}")
        assert (loaded.plugin("capacity").arguments[name], loaded.warnings) == (switched, ())


def test_the_level_means_nothing_to_flat_queues():
    made = quarry(
        *job("m", "mud", "1c"), *job("t", "tin", wanted=["1c"]), text=LEVEL.replace("enableHierarchy: true, ", "") % 3
    )
    assert reclaimed(made, "t-w0", "m-0") == ["m-0"]
