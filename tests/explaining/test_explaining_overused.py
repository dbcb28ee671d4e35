"""A queue that has enough: what its waiting jobs and the queue itself say of that."""

from __future__ import annotations

import pytest
from explaining_worlds import asked

from builders import Desk, group, node, pod, queue
from pumice.framework.plugin import Plugin

TEXT = """
actions: "allocate"
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: {}}}]
"""


class Judging(Plugin):
    """Has had enough of queues whose name begins with `full`, and knows nothing of amounts."""

    name = "judging"

    def open(self, session):
        session.overused.add(lambda queue: "it had its turn" if queue.name.startswith("full") else None)


def waiting(policy, where, *more):
    desk = Desk(TEXT.format(policy), Judging).feed(node("n1", cpu="8"), *more)
    desk.feed(group("g", 1, queue=where), pod("g-0", "g", cpu="2"))
    return desk


@pytest.mark.parametrize(("where", "said"), [("full-up", "it had its turn"), ("free", "")])
def test_whoever_calls_a_queue_overused_is_quoted_by_it_and_its_jobs(where, said):
    desk = waiting("judging", where, queue("full-up"), queue("free"))
    of_queue, of_job = asked(desk, ("queue", where), ("job", "a/g"))
    assert of_queue.overused == said
    if said:
        assert of_job.cause == f"queue {where} is overused: {said}"
    else:
        assert desk.world.binds == {"g-0": "n1"}


@pytest.mark.parametrize("asks", [2, 4])
def test_of_a_queue_that_is_known_to_lack_room_its_jobs_are_told_that_instead(asks):
    desk = waiting("judging}, {name: capacity", "full-up", queue("full-up", capability={"cpu": "6"}))
    desk.feed(pod("g-0", "g", cpu=str(asks))).feed(group("r", 1, queue="full-up"), pod("r-0", "r", cpu="4", node="n1"))
    of_queue, of_job = asked(desk, ("queue", "full-up"), ("job", "a/g"))
    assert of_queue.overused == "it had its turn"
    lacks = "queue full-up holds 4 of its 6 cpu, the job asks for 4 more"
    assert of_job.cause == (lacks if asks > 2 else "queue full-up is overused: it had its turn")


@pytest.mark.parametrize(
    ("capability", "cause"),
    [
        ("2", "queue small may hold 2 cpu at the most, the job asks for 3"),
        ("3", "queue small holds 1 of its 3 cpu, the job asks for 3 more"),
    ],
)
def test_a_gang_that_its_queue_does_not_take_on_whole_is_not_told_that_nodes_lack_room(capability, cause):
    desk = Desk(TEXT.format("capacity")).feed(node("n1", cpu="8"), queue("small", capability={"cpu": capability}))
    desk.feed(group("r", 1, queue="small"), pod("r-0", "r", cpu="1", node="n1"))
    desk.feed(group("g", 3, queue="small"), *(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    (of_job,) = asked(desk, ("job", "a/g"))
    assert desk.world.binds == {}
    assert of_job.cause == cause


GATES = {"schedulingGates": [{"name": "example.com/wait"}]}


@pytest.mark.parametrize(
    ("minimum", "runs", "asks"), [(1, 0, 2), (1, 1, 2), (2, 1, 2), (2, 0, 7), (3, 1, 7), (3, 0, 8)]
)
def test_a_gang_is_said_to_ask_a_full_queue_for_what_its_minimum_lacks_or_for_the_next_pod_by_name(minimum, runs, asks):
    """Who waits for a gate asks for nothing yet, and who asks for nothing is no reason."""
    desk = Desk(TEXT.format("capacity")).feed(node("n1", cpu="64"), queue("full", capability={"cpu": str(20 + runs)}))
    desk.feed(group("r", 1, queue="full"), pod("r-0", "r", cpu="20", node="n1"), group("g", minimum, queue="full"))
    desk.feed(*(pod(f"g-run-{i}", "g", cpu="1", node="n1") for i in range(runs)))
    desk.feed(*(pod(f"g-{name}", "g", cpu=cpu) for name, cpu in (("4", "1"), ("3", "5"), ("2", "2"))))
    desk.feed(pod("g-1", "g", cpu="3", **GATES), *([pod("g-0", "g")] if minimum == 1 else []))
    (of_job,) = asked(desk, ("job", "a/g"))
    assert of_job.cause == f"queue full holds {20 + runs} of its {20 + runs} cpu, the job asks for {asks} more"


def test_of_equal_pods_each_job_is_said_to_ask_a_full_queue_for_what_it_needs_itself():
    desk = Desk(TEXT.format("capacity")).feed(node("n1", cpu="64"), queue("full", capability={"cpu": "20"}))
    desk.feed(group("r", 1, queue="full"), pod("r-0", "r", cpu="20", node="n1"))
    for size in (1, 2, 3):
        desk.feed(
            group(f"g{size}", size, queue="full"), *(pod(f"g{size}-{i}", f"g{size}", cpu="1") for i in range(size))
        )
    found = asked(desk, *(("job", f"a/g{size}") for size in (1, 2, 3)))
    assert [each.cause for each in found] == [
        f"queue full holds 20 of its 20 cpu, the job asks for {size} more" for size in (1, 2, 3)
    ]


@pytest.mark.parametrize(("minimum", "runs"), [(1, 0), (2, 1), (3, 2), (2, 0), (3, 1)])
def test_where_all_that_nodes_have_is_taken_who_needs_one_pod_is_told_of_nodes_and_a_gang_of_its_queue(minimum, runs):
    desk = Desk(TEXT.format("proportion")).feed(node("n1", cpu="32"), group("r", 1), group("g", minimum))
    desk.feed(pod("r-0", "r", cpu=str(32 - runs), node="n1"))
    desk.feed(*(pod(f"run-{i}", "g", cpu="1", node="n1") for i in range(runs)))
    desk.feed(*(pod(f"g-{i}", "g", cpu="2") for i in range(minimum - runs)))
    (found,) = asked(desk, ("job", "a/g"))
    if minimum - runs == 1:
        assert found.cause == "no node has 2 cpu free: the freest of 1, n1, has 0 cpu"
    else:
        assert found.cause == "queue default holds 32 of all 32 cpu that there are, the job asks for 4 more"
