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
    made.feed(pod("g-0", "g", cpu="1", node="n2"), pod("g-1", "g", **gates, cpu="3"))
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


@pytest.mark.parametrize("config", [EVERYTHING, CAPACITY], ids=["proportion", "capacity"])
@pytest.mark.parametrize("asks", ["2", "3"])
def test_only_what_goes_beyond_the_ceiling_of_a_queue_is_told(asks, config):
    """What a job asks for and its queue has room for, to the last bit, is no lack of room, and places for pods are never one."""
    made = Desk(config).feed(node("n", cpu="4", memory="8Gi"), group("old", 1, queue="q"))
    made.feed(queue("q", parent="root", capability={"cpu": "4", "memory": "4Gi", "pods": "2"}))
    made.feed(pod("old-0", "old", cpu="2", memory="2Gi", node="n"), group("g", 1, queue="q"))
    made.feed(pod("g-0", "g", cpu=asks, memory="2Gi", nodeSelector={"no": "where"}))
    (explained,) = asked(made, ("job", "a/g"))
    told = [each.resource for each in explained.queue_verdict.dimensions]
    assert told == (["cpu"] if asks == "3" else [])


def test_among_the_pods_of_who_holds_some_are_those_that_wait_for_room_being_released():
    made = Desk(EVERYTHING).feed(node("n1", cpu="1"), node("n2", cpu="1"), queue("q", capability={"cpu": "2"}))
    made.feed(pod("leaves", scheduler="else", cpu="1", node="n1", deleting=9), group("old", 2, queue="q"))
    made.feed(pod("old-0", "old", cpu="1", node="n2"), pod("old-1", "old", cpu="1"))
    made.feed(group("g", 1, queue="q", created=1), pod("g-0", "g", cpu="1"))
    job, node_, own = asked(made, ("job", "a/g"), ("node", "n1"), ("queue", "q"))
    assert [hold.pod for hold in node_.holds] == ["a/old-1"]
    (dimension,) = job.queue_verdict.dimensions
    assert [(each.name, each.amount, each.pods) for each in dimension.holders] == [("a/old", "2", 2)]
    assert [(each.job, each.running, each.waiting) for each in own.jobs] == [("a/old", 1, 1), ("a/g", 0, 1)]


@pytest.mark.parametrize(("capability", "told", "drawn"), [("1m", "1m", 1), ("0", "", None), ("", "", None)])
def test_a_ceiling_is_told_however_small_and_none_where_there_is_none(capability, told, drawn):
    limits = {"cpu": capability} if capability else {}
    made = Desk(CAPACITY).feed(node("n", cpu="4"), queue("q", parent="root", capability=limits))
    found = []
    made.scheduler.cycle(lambda explainer: found.extend((explainer.queue("q"), explainer.shares())))
    (shares,) = [each.amounts for each in found[1] if each.queue == "q"]
    assert {each.resource: each.ceiling for each in found[0].dimensions} == ({"cpu": told} if told else {})
    assert {name: each.ceiling for name, each in shares.items()} == ({"cpu": drawn} if drawn else {})


@pytest.mark.parametrize(("holds", "guaranteed", "room"), [(1, 2, "2"), (3, 2, "1"), (4, 2, "0"), (6, 2, "0")])
def test_the_room_of_a_queue_is_what_others_leave_and_never_less_than_nothing(holds, guaranteed, room):
    made = Desk(EVERYTHING).feed(queue("own"), queue("lent", guarantee={"resource": {"cpu": str(guaranteed)}}))
    made.feed(node("n", cpu="4"), group("big", 1, queue="lent"), group("g", 1, queue="own"), pod("g-0", "g", cpu="9"))
    made.feed(*(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(holds)))
    (own,) = asked(made, ("queue", "own"))
    assert [each.room for each in own.dimensions if each.resource == "cpu"] == [room]


def borrowing(config, *queues):
    """One queue holds all that there is, and in another a job waits that fits no node."""
    made = Desk(config).feed(node("n", cpu="4"), *queues)
    made.feed(group("big", 1, queue="lent"), *(pod(f"big-{i}", "big", cpu="1", node="n") for i in range(4)))
    return made.feed(group("g", 1, queue="own"), pod("g-0", "g", cpu="2", nodeSelector={"no": "where"}))


@pytest.mark.parametrize("actions", ["reclaim", "gangreclaim", "reclaim, gangreclaim", "preempt, gangpreempt"])
def test_something_is_claimed_back_where_an_action_gives_it_back(actions):
    config = EVERYTHING.replace("preempt, reclaim", actions)
    (own,) = asked(borrowing(config, queue("lent"), queue("own")), ("queue", "own"))
    assert [each.owner for each in own.claims] == (["lent"] if "reclaim" in actions else [])


def test_queues_claim_from_each_other_and_not_those_above_them_nor_one_that_is_invalid():
    above = [queue(name, parent="root", deserved={"cpu": "2"}) for name in ("lenders", "owners")]
    leaves = [
        queue("lent", parent="lenders", deserved={"cpu": "2"}),
        queue("own", parent="owners", deserved={"cpu": "2"}),
    ]
    made = borrowing(CAPACITY, *above, *leaves, queue("bad", weight=0))
    for told in asked(made, *(("queue", name) for name in ("lenders", "owners", "lent", "own", "bad"))):
        claims = [("own", "lent", {"cpu": "2"})]
        assert [(c.claimant, c.owner, c.amounts) for c in told.claims] == (claims if told.queue == "own" else [])
        assert [(c.claimant, c.owner, c.amounts) for c in told.claimed] == (claims if told.queue == "lent" else [])


UNASKED = EVERYTHING.replace("{name: proportion}", "{name: capacity, enablePreemptive: false}")


@pytest.mark.parametrize("guaranteed", [0, 3])
@pytest.mark.parametrize("due", [0, 3, 4, 5])
@pytest.mark.parametrize("holds", [0, 1, 2, 3])
def test_a_queue_claims_back_what_it_lacks_of_what_another_holds_beyond_its_due_and_its_guarantee(
    holds, due, guaranteed
):
    made = Desk(UNASKED).feed(node("n", cpu="9"), queue("own", deserved={"cpu": "2", "memory": "4Gi"}))
    made.feed(queue("lent", deserved={"cpu": str(due)}, guarantee={"resource": {"cpu": str(guaranteed)}}))
    for name, count in (("own", holds), ("lent", 4)):
        made.feed(group(f"of-{name}", 1, queue=name))
        made.feed(*(pod(f"of-{name}-{i}", f"of-{name}", cpu="1", node="n") for i in range(count)))
    made.feed(group("g", 1, queue="own"), pod("g-0", "g", cpu="2", memory="2Gi", nodeSelector={"no": "where"}))
    (own,) = asked(made, ("queue", "own"))
    amount = min(2 - min(2, holds), 4 - min(4, max(due, guaranteed)))
    assert [each.amounts for each in own.claims] == ([{"cpu": str(amount)}] if amount else [])


@pytest.mark.parametrize("reclaimable", [True, False])
def test_nothing_is_claimed_from_a_queue_that_gives_nothing_back(reclaimable):
    made = borrowing(EVERYTHING, queue("lent", reclaimable=reclaimable), queue("own"))
    (own,) = asked(made, ("queue", "own"))
    assert [each.owner for each in own.claims] == (["lent"] if reclaimable else [])


def test_the_first_job_that_waits_and_may_be_served_is_who_claims():
    made = borrowing(EVERYTHING, queue("lent"), queue("own"), group("runs", 1, queue="own"))
    made.feed(
        group("bad", 1, queue="own", minResources={"cpu": "-1"}),
        pod("bad-0", "bad", cpu="1"),
        pod("runs-0", "runs", node="n"),
    )
    (own,) = asked(made, ("queue", "own"))
    assert [each.job for each in own.claims] == ["a/g"]
    assert list(own.waiting) == ["a/g"]
