"""capacity with a tree of queues: limits from the top down, order by branches, reclaim with ancestors, and queues without a place."""

import pytest
from capacity_desk import LEVEL, TREE, asked, desk, job, limited, opened, order, reclaimed

from builders import Desk, node, pod, queue
from pumice.plugins.sharing import queue_limits

QUEUES = [
    limited("eng", deserved="10c", capability="14c", guarantee="4c"),
    limited("ops", deserved="6c", guarantee="2c"),
    limited("ml", deserved="6c", guarantee="3c", parent="eng"),
    limited("web", deserved="4c", guarantee="1c", capability="20c", parent="eng"),
]


def company(*manifests, text=TREE):
    return desk(*QUEUES, *manifests, text=text, cpu="100", memory="100Gi")


# ---- CA5: limits, order, victims' order


def test_ca5_limits_come_from_the_top_down():
    _, plugin = opened(company())
    limits = {name: int(plugin.accounts[name].limit[0]) for name in ("root", "eng", "ops", "ml", "web")}
    unlimited = queue_limits.UNLIMITED
    assert limits == {"root": unlimited, "eng": 14_000, "ops": unlimited, "ml": 13_000, "web": 11_000}


def test_ca5_a_pod_must_fit_every_queue_above_it():
    made = company(*job("m", "ml", "10c", wanted=["2c", "1c"]), *job("w", "web", "3c"))
    session, _ = opened(made)
    ml = made.cluster.queues["ml"]
    refusal = session.allocatable(ml, asked(made, "m-w0"))
    assert refusal == "beyond the limit of queue eng above it: cpu 13 held + 2 for a pod, limit 14"
    assert session.allocatable(ml, asked(made, "m-w1")) is None
    assert session.allocatable(ml, asked(made, "m-w1", 2)) == (
        "beyond the limit of queue eng above it: cpu 13 held + 2 for 2 pods, limit 14"
    )


def test_ca5_leaves_compare_by_the_branches_in_which_they_differ():
    made = company(*job("m", "ml", "10c"), *job("w", "web", "3c"), *job("o", "ops", "5c"))
    assert order(made, "ml", "ops") == ["ops", "ml"]
    assert order(made, "ml", "web") == ["web", "ml"]
    assert order(made, "ml", "web", "ops") == ["ops", "web", "ml"]


def test_ca5_queues_near_the_claimants_lose_first():
    made = company(*job("m", "ml", "10c"), *job("o", "ops", "5c"), *job("w", "web", wanted=["1c"]))
    session, _ = opened(made)
    queues = made.cluster.queues
    assert session.victim_queue_compare(queues["ml"], queues["ops"], queues["web"]) < 0
    assert session.victim_queue_compare(queues["ops"], queues["ml"], queues["web"]) > 0


def test_leaves_come_before_queues_with_children_and_these_compare_directly():
    made = company(limited("hq", deserved="10c"), limited("lab", parent="hq", deserved="1c"), *job("m", "ml", "8c"))
    assert order(made, "eng", "root", "lab", "ml") == ["lab", "ml", "root", "eng"]
    assert order(made, "eng", "hq") == ["hq", "eng"]


def test_priority_is_that_of_the_leaf():
    made = company(limited("late", deserved="1c", parent="eng", priority=3), *job("l", "late", "5c"))
    assert order(made, "ops", "late") == ["late", "ops"]


def test_the_shares_of_branches_are_live():
    made = desk(
        limited("eng", deserved="6c"),
        limited("sci", deserved="6c"),
        limited("dev", deserved="3c", parent="eng"),
        limited("prod", deserved="3c", parent="eng"),
        limited("lab", deserved="6c", parent="sci"),
        *(m for name in ("dev", "prod", "lab") for m in job(name, name, wanted=["1c"] * 12)),
        text=TREE,
        cpu="12",
    )
    made.cycle()
    bound = [name.split("-")[0] for name in made.world.binds]
    assert {name: bound.count(name) for name in ("dev", "prod", "lab")} == {"dev": 3, "prod": 3, "lab": 6}


def test_the_share_of_a_branch_moves_leaves_of_other_priority_too():
    # Both leaves of low priority wait; what a leaf of high priority takes counts for its branch.
    made = desk(
        limited("a", deserved="10c"),
        limited("b", deserved="10c"),
        limited("a-high", deserved="5c", parent="a", priority=1),
        limited("a-low", deserved="5c", parent="a"),
        limited("b-low", deserved="5c", parent="b"),
        *job("ah", "a-high", wanted=["1c"] * 4),
        *job("al", "a-low", wanted=["1c"] * 4),
        *job("bl", "b-low", wanted=["1c"] * 4),
        text=TREE,
        cpu="8",
    )
    made.cycle()
    bound = [name.split("-")[0] for name in made.world.binds]
    assert bound == ["ah"] * 4 + ["bl"] * 4


def test_what_the_root_does_not_list_is_unlimited_and_what_it_lists_is_not():
    made = company(*job("o", "ops", wanted=["9c/1Gi", "1c/90Gi"]))
    made.modify(limited("root", capability="8c"))
    session, _ = opened(made)
    ops = made.cluster.queues["ops"]
    assert session.allocatable(ops, asked(made, "o-w1")) is None
    # eng's guarantee of 4 stays out of reach of ops.
    refusal = session.allocatable(ops, asked(made, "o-w0"))
    assert refusal == "beyond the limit: cpu 0 held + 9 for a pod, limit 4"


def test_dues_of_a_tree_are_not_bounded_by_limits():
    _, plugin = opened(desk(limited("q", deserved="50c", capability="4c", guarantee="/1Gi"), text=TREE))
    assert plugin.accounts["q"].deserved[:2].tolist() == [50_000, 2**30]


# ---- CA6: reclaim with ancestors


@pytest.mark.parametrize(("level", "victims"), [(0, ["m-1"]), (1, []), (2, [])])
def test_ca6_ancestors_must_be_above_their_due_too(level, victims):
    made = company(
        *job("m", "ml", "7c", "1c"), *job("w", "web", "1c"), *job("o", "ops", wanted=["1c"]), text=LEVEL % level
    )
    assert reclaimed(made, "o-w0", "m-1") == victims
    made.feed(pod("w-9", "w", cpu="2", node="m"))
    assert reclaimed(made, "o-w0", "m-1") == ["m-1"]


def test_ancestors_are_counted_down_as_victims_leave():
    made = company(*job("m", "ml", *["1c"] * 12), *job("o", "ops", wanted=["1c"]), text=LEVEL % 1)
    # eng holds 12 of 10: two may go before it is at its due, though ml itself is due 6.
    assert len(reclaimed(made, "o-w0", *(f"m-{i}" for i in range(12)))) == 2
    made = company(*job("m", "ml", *["1c"] * 12), *job("o", "ops", wanted=["1c"]))
    assert len(reclaimed(made, "o-w0", *(f"m-{i}" for i in range(12)))) == 6


def test_an_ancestor_that_both_queues_have_is_not_asked():
    made = company(*job("m", "ml", "7c"), *job("w", "web", wanted=["1c"]), text=LEVEL % 1)
    assert reclaimed(made, "w-w0", "m-0") == []  # the guarantee of 3
    made = company(*job("m", "ml", "6c", "1c"), *job("w", "web", wanted=["1c"]), text=LEVEL % 1)
    assert reclaimed(made, "w-w0", "m-1") == ["m-1"]


@pytest.mark.parametrize(("level", "victims"), [(0, ["x-0"]), (1, [])])
def test_what_was_lent_inside_a_family_stays_unless_the_claimant_is_due_something(level, victims):
    made = company(
        limited("lent", parent="eng"),
        limited("also", parent="eng"),
        *job("x", "lent", "1c"),
        *job("y", "also", wanted=["1c"]),
        text=LEVEL % level,
    )
    assert reclaimed(made, "y-w0", "x-0") == victims
    made.modify(limited("also", parent="eng", deserved="1c"))
    assert reclaimed(made, "y-w0", "x-0") == ["x-0"]


@pytest.mark.parametrize(("level", "allowed"), [(0, False), (1, True)])
def test_a_queue_may_reclaim_for_an_ancestor_that_is_below_its_due(level, allowed):
    made = company(*job("m", "ml", "6c", wanted=["1c"]), text=LEVEL % level)
    session, _ = opened(made)
    assert (session.preemptive(made.cluster.queues["ml"], asked(made, "m-w0")) is None) == allowed


def test_reclaim_for_an_ancestor_stops_at_its_due():
    made = company(*job("m", "ml", "6c", wanted=["1c"]), *job("w", "web", "4c"), text=LEVEL % 5)
    session, _ = opened(made)
    refusal = session.preemptive(made.cluster.queues["ml"], asked(made, "m-w0"))
    assert refusal == "beyond its due in all that is asked for: cpu 6 held + 1 for a pod, deserved 6"


# ---- admission


def test_a_group_is_let_in_only_if_every_queue_above_has_room():
    made = company(
        *job("w", "web", "3c", minResources={"cpu": "3"}),
        *job("i", "web", minResources={"cpu": "4"}),
        *job("small", "ml", phase="Pending", minResources={"cpu": "7"}),
        *job("large", "ml", phase="Pending", minResources={"cpu": "8"}),
        *job("other", "ml", phase="Pending", minResources={"cpu": "1"}),
    )
    session, _ = opened(made)
    jobs = made.cluster.jobs
    assert session.job_enqueueable(jobs["a/small"]).value > 0
    assert session.job_enqueueable(jobs["a/large"]).reason == (
        "capacity: queue eng: minResources exceed its room: cpu 8 + 3 held + 4 let in, limit 14"
    )
    session.job_enqueued(jobs["a/small"])
    assert (
        "queue eng: minResources exceed its room: cpu 1 + 3 held + 11 let in"
        in session.job_enqueueable(jobs["a/other"]).reason
    )


# ---- queues without a place


OUT = {
    "lost": (queue("lost", parent="nowhere"), "its parent nowhere does not exist; create it or change spec.parent"),
    "below": (
        queue("below", parent="lost"),
        "it hangs below queue lost, which has no place: its parent nowhere does not exist; create it or change spec.parent",
    ),
    "left": (
        queue("left", parent="right"),
        "its parents form a circle: left → right → left; change spec.parent of one of them",
    ),
    "right": (
        queue("right", parent="left"),
        "its parents form a circle: left → right → left; change spec.parent of one of them",
    ),
    "child": (
        queue("child", parent="broken"),
        "its parent broken is invalid: spec.weight: 0 is outside 1..65535",
    ),
    "eng": (None, "it has children (ml, web); only queues without children take jobs"),
    "root": (None, "it has children (default, eng, ops); only queues without children take jobs"),
}


def crooked(*manifests, text=TREE):
    made = company(*(manifest for manifest, _ in OUT.values() if manifest), text=text)
    return made.feed(queue("broken", weight=0), *manifests)


@pytest.mark.parametrize("name", OUT)
def test_a_job_of_a_queue_that_takes_none_waits_with_a_named_reason(name):
    made = crooked(*job("j", name, wanted=["1c", ""]), *job("in", name, phase="Pending", minResources={"cpu": "1"}))
    made.cycle()
    assert made.world.binds == {}
    record = made.cache.record
    assert f"QueueTakesNoJobs: queue {name}: {OUT[name][1]}" in record.explain("a/j")
    assert f"not let in: capacity: queue {name}: {OUT[name][1]}" in record.explain("a/in")
    session, _ = opened(made)
    place = made.cluster.queues[name]
    assert session.allocatable(place, asked(made, "j-w0")) == OUT[name][1]
    assert session.preemptive(place, asked(made, "j-w0")) == OUT[name][1]


def test_what_such_queues_hold_and_are_guaranteed_counts_for_nothing():
    made = crooked(*job("m", "ml", wanted=["13c"]))
    made.modify(queue("lost", parent="nowhere", guarantee={"resource": {"cpu": "50"}}))
    made.feed(
        *job("e", "eng", "9c", phase="Running"), *job("x", "lost", "9c"), *job("y", "eng", minResources={"cpu": "5"})
    )
    session, plugin = opened(made)
    assert int(plugin.accounts["eng"].held[0]) == 0
    assert session.allocatable(made.cluster.queues["ml"], asked(made, "m-w0")) is None
    assert int(plugin.admitted.inqueue[made.cluster.queues["eng"].row][0]) == 0


def test_nothing_is_reclaimed_from_or_for_such_queues():
    made = crooked(*job("x", "lost", "3c", wanted=["1c"]), *job("m", "ml", "9c", "1c"), *job("o", "ops", wanted=["1c"]))
    assert reclaimed(made, "o-w0", "x-0", "m-1") == ["m-1"]
    assert reclaimed(made, "x-w0", "m-1") == []


def test_without_a_root_nobody_is_served():
    made = Desk(TREE, queues=("default",)).feed(node("m"), *job("j", "default", wanted=["1c"]))
    made.cycle()
    assert made.world.binds == {}
    text = "queue default: queue root does not exist, so no queue has a place in the tree; create or correct it"
    assert text in made.cache.record.explain("a/j")
    made.feed(queue("root")).cycle()
    assert list(made.world.binds) == ["j-w0"]


def test_an_invalid_root_counts_as_missing():
    made = Desk(TREE, queues=("default",)).feed(
        node("m"), queue("root", weight=-1), *job("j", "default", wanted=["1c"])
    )
    made.cycle()
    assert "queue root is invalid (spec.weight: -1 is outside 1..65535)" in made.cache.record.explain("a/j")


def test_a_root_without_children_takes_jobs():
    made = Desk(TREE, queues=("root",)).feed(node("m"), *job("j", "root", wanted=["1c"]))
    made.cycle()
    assert list(made.world.binds) == ["j-w0"]


def test_a_queue_that_gets_children_stops_taking_jobs_and_keeps_what_runs():
    made = desk(limited("q"), *job("j", "q", "1c", wanted=["1c"]), text=TREE)
    made.feed(queue("sub", parent="q"))
    made.cycle()
    assert made.world.binds == {}
    assert made.world.evictions == []
    made.delete(queue("sub", parent="q")).cycle()
    assert list(made.world.binds) == ["j-w0"]


def test_a_tree_of_a_thousand_levels_is_only_a_tree():
    chain = [queue("q0"), *(queue(f"q{i}", parent=f"q{i - 1}") for i in range(1, 1000))]
    made = desk(*chain, *job("j", "q999", wanted=["1c"]), text=TREE)
    made.cycle()
    assert list(made.world.binds) == ["j-w0"]


def test_a_long_circle_is_named_in_part():
    circle = [queue(f"q{i}", parent=f"q{(i + 1) % 50}") for i in range(50)]
    _, plugin = opened(desk(*circle, text=TREE))
    assert plugin.tree.problems["q0"].startswith("its parents form a circle: q0 → q1 → ")
    assert len(plugin.tree.problems["q0"]) < 200
