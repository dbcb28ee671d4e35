"""What a queue says to a job, and how it stands."""

from __future__ import annotations

import pytest
from explaining_worlds import EVERYTHING, asked

from builders import Desk, group, node, pod, queue
from pumice.framework.explaining import text

CAPACITY = EVERYTHING.replace("{name: proportion}", "{name: capacity, enableHierarchy: true}")


def test_a_job_beyond_its_queues_ceiling_is_told_dimension_numbers_and_who_holds_it():
    made = Desk(EVERYTHING).feed(node("n", cpu="16"), queue("q", capability={"cpu": "4"}), group("old", 1, queue="q"))
    made.feed(*(pod(f"old-{i}", "old", cpu="1", node="n") for i in range(3)))
    made.feed(group("g", 1, queue="q"), pod("g-0", "g", cpu="2"))
    (explained,) = asked(made, ("job", "a/g"))
    (dimension,) = explained.queue_verdict.dimensions
    assert (dimension.resource, dimension.have, dimension.want, dimension.limit) == ("cpu", "3", "2", "4")
    assert [(holder.name, holder.amount, holder.pods) for holder in dimension.holders] == [("a/old", "3", 3)]
    assert "  queue q: cpu 3 held + 2 wanted, ceiling 4; held by a/old 3" in text(explained)


def test_a_job_that_was_not_let_in_counts_what_was_let_in_before_it():
    made = Desk(EVERYTHING).feed(node("n", cpu="16"), queue("q", capability={"cpu": "4"}))
    made.feed(
        group("a", 1, queue="q", minResources={"cpu": "3"}),
        group("b", 1, queue="q", created=1, minResources={"cpu": "2"}),
    )
    made.feed(pod("b-0", "b", cpu="2"))
    (explained,) = asked(made, ("job", "a/b"))
    assert explained.state == "not let in"
    held = "queue q holds 3 of its 4 cpu (3 of it let in and not placed yet)"
    assert explained.cause == f"not let in: {held}, the job asks for 2 more"
    assert "  queue q: cpu 0 held + 3 let in + 2 wanted, ceiling 4" in text(explained)
    assert [(v.plugin, v.answer) for v in explained.votes if v.point == "JobEnqueueable"] == [("proportion", "against")]


def test_a_limit_of_a_queue_above_is_named():
    made = Desk(CAPACITY).feed(node("n", cpu="16"), queue("team", parent="root", capability={"cpu": "2"}))
    made.feed(queue("leaf", parent="team"), group("g", 1, queue="leaf"), pod("g-0", "g", cpu="3"))
    (explained,) = asked(made, ("job", "a/g"))
    assert any(line.startswith("  queue team: cpu 0 held + 3 wanted, ceiling 2") for line in text(explained))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, "queue nowhere does not exist"), ({"weight": 0}, "spec.weight: 0 is outside 1..65535")],
    ids=["missing", "invalid"],
)
def test_a_queue_that_cannot_be_used_is_the_verdict(spec, expected):
    made = Desk(EVERYTHING).feed(node("n"), *([queue("nowhere", **spec)] if spec else []))
    made.feed(group("g", 1, queue="nowhere"), pod("g-0", "g", cpu="1"))
    (explained,) = asked(made, ("job", "a/g"))
    assert explained.state == "invalid"
    assert explained.queue_verdict.refusals == (expected,)


def test_a_queue_is_told_what_it_holds_is_due_and_may_hold():
    made = Desk(EVERYTHING).feed(node("n", cpu="8"), queue("lent"), queue("own", guarantee={"resource": {"cpu": "2"}}))
    made.feed(group("big", 6, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(6)))
    made.feed(group("g", 2, queue="own", minResources={"cpu": "5"}), pod("g-0", "g", cpu="2"))
    own, lent = asked(made, ("queue", "own"), ("queue", "lent"))
    (cpu,) = [each for each in own.dimensions if each.resource == "cpu"]
    assert (own.plugin, own.share, cpu.held, cpu.asked, cpu.let_in) == ("proportion", 0.0, "0", "2", "5")
    assert (cpu.due, cpu.guarantee, cpu.ceiling, cpu.room) == ("2", "2", "8", "2")
    (cpu,) = [each for each in lent.dimensions if each.resource == "cpu"]
    assert (lent.share, cpu.held, cpu.due, cpu.ceiling, cpu.room) == (1.0, "6", "6", "6", "6")
    assert [(job.job, job.running, job.held) for job in lent.jobs] == [("a/big", 6, {"cpu": "6"})]


def test_who_goes_for_whom_is_told_on_both_queues():
    made = Desk(EVERYTHING).feed(node("n", cpu="4"), queue("lent"), queue("own"))
    made.feed(group("big", 1, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(4)))
    made.feed(group("g", 2, queue="own"), *(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    lent, job, held = asked(made, ("queue", "lent"), ("job", "a/g"), ("node", "n"))
    victims = sorted(made.world.evictions)
    assert [(going.pod, going.claimant) for going in lent.going] == [(f"a/{name}", "a/g") for name in victims]
    assert len(victims) == 2
    assert job.state == "holds room"
    assert {hold.pod for hold in job.holds} == {hold.pod for hold in held.holds} == {"a/g-0", "a/g-1"}
    assert job.holds[0].awaits == tuple(f"a/{name}" for name in victims)


def test_what_would_be_reclaimed_is_told_though_the_queue_may_not_ask():
    made = Desk(EVERYTHING).feed(node("n", cpu="4"), queue("lent"), queue("own", capability={"cpu": "1"}))
    made.feed(group("big", 1, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(4)))
    made.feed(group("g", 1, queue="own"), pod("g-0", "g", cpu="2"))
    own, lent = asked(made, ("queue", "own"), ("queue", "lent"))
    assert [(c.claimant, c.owner, c.job) for c in own.claims] == [("own", "lent", "a/g")]
    assert own.claims == lent.claimed
    assert own.claims[0].refusal == (
        "cpu 2 for a pod goes beyond its share: allocated cpu 0 of 1, pods 0 of 1 deserved"
    )


def test_what_would_be_reclaimed_by_a_queue_that_may_ask_has_no_refusal():
    made = Desk(EVERYTHING).feed(node("n", cpu="4"), queue("lent"), queue("own"))
    made.feed(group("big", 1, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(4)))
    made.feed(group("g", 1, queue="own"), pod("g-0", "g", cpu="2", nodeSelector={"no": "where"}))
    (own,) = asked(made, ("queue", "own"))
    (claim,) = own.claims
    assert (claim.claimant, claim.owner, claim.job, claim.amounts, claim.refusal) == (
        "own",
        "lent",
        "a/g",
        {"cpu": "2"},
        "",
    )


@pytest.mark.parametrize(("minimum", "has", "asks"), [(1, "2", "1"), (2, "2", "1"), (3, "1", "2"), (4, "1", "3")])
def test_a_gang_asks_its_queue_for_what_it_lacks_to_its_minimum_or_for_its_next_pod(minimum, has, asks):
    """One runs, and one may wait for room that is being released if that is enough; one waits for a gate."""
    gates = {"schedulingGates": [{"name": "example.com/wait"}]}
    made = Desk(EVERYTHING).feed(node("n1", cpu="1"), node("n2", cpu="1"), queue("q", capability={"cpu": "2"}))
    made.feed(pod("leaves", scheduler="else", cpu="1", node="n1", deleting=9), group("g", minimum, queue="q"))
    made.feed(pod("g-0", "g", cpu="1", node="n2"), pod("g-1", "g", **gates, cpu="1"))
    made.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2, 7)))
    (explained,) = asked(made, ("job", "a/g"))
    (dimension,) = explained.queue_verdict.dimensions
    assert (dimension.have, dimension.want, dimension.limit) == (has, asks, "2")


def test_a_job_of_which_only_a_pod_that_asks_for_nothing_waits_asks_its_queue_for_nothing():
    made = Desk(EVERYTHING).feed(node("n", cpu="4", pods="4"), queue("lent"), queue("own", capability={"cpu": "1"}))
    made.feed(group("big", 1, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(4)))
    made.feed(group("g", 1, queue="own"), pod("g-0", "g"))
    job, own = asked(made, ("job", "a/g"), ("queue", "own"))
    assert (job.state, job.queue_verdict.dimensions, own.claims) == ("waits", (), ())
