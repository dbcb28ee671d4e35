"""Why nobody goes: all candidates, by the first thing that keeps them."""

from __future__ import annotations

from collections import Counter

import pytest
from explaining_worlds import EVERYTHING, asked, desk, worlds
from hypothesis import given, settings

from builders import Desk, group, metadata, node, pod, priority_class, queue
from drawing import drawn
from pumice.framework.explaining import text

GANGS = EVERYTHING.replace("preempt, reclaim", "gangpreempt, gangreclaim")


def budget(name, **labels):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, "a"),
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 0},
    }


def crowd(text_=EVERYTHING):
    """A full node: nine pods under a budget, eight of equal priority, one that must not be preempted; somebody waits."""
    made = Desk(text_).feed(node("n", cpu="18"), priority_class("high", 10), budget("web", app="web"), queue("other"))
    made.feed(group("low", 1), group("equal", 1, priorityClassName="high"), group("fixed", 1))
    made.feed(*(pod(f"low-{i}", "low", cpu="1", node="n", labels={"app": "web"}) for i in range(9)))
    made.feed(*(pod(f"equal-{i}", "equal", cpu="1", node="n") for i in range(8)))
    made.feed(pod("fixed-0", "fixed", cpu="1", node="n", annotations={"volcano.sh/preemptable": "false"}))
    return made.feed(group("g", 1, priorityClassName="high"), pod("g-0", "g", cpu="2"))


@pytest.mark.parametrize(("text_", "action"), [(EVERYTHING, "preempt"), (GANGS, "gangpreempt")])
def test_candidates_are_told_by_what_keeps_them(text_, action):
    (explained,) = asked(crowd(text_), ("job", "a/g"))
    assert (
        f"  {action}: 18 candidates: 9 protected by PodDisruptionBudget a/web, 8 of equal priority, 1 marked as not preemptable"
    ) in text(explained)


def test_pods_of_a_queue_that_gives_nothing_back_are_told_so():
    made = Desk(EVERYTHING).feed(node("n", cpu="2"), queue("kept", reclaimable=False), group("low", 1, queue="kept"))
    made.feed(*(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(2)), group("g", 1), pod("g-0", "g", cpu="1"))
    (explained,) = asked(made, ("job", "a/g"))
    assert "  reclaim: 2 candidates: 2 queue kept is not reclaimable" in text(explained)
    assert "  preempt: no candidates" in text(explained)


def test_pods_with_requests_are_said_to_stay_for_one_without():
    made = Desk(EVERYTHING).feed(node("n", cpu="2", pods="1"), priority_class("high", 10), group("low", 0))
    made.feed(pod("low-0", "low", cpu="1", node="n"))
    made.feed(group("g", 1, priorityClassName="high"), pod("g-0", "g"))
    (explained,) = asked(made, ("job", "a/g"))
    assert "  preempt: 1 candidate: 1 with requests, for a pod without" in text(explained)


def test_members_that_their_gang_needs_are_told_so():
    made = Desk(EVERYTHING.replace("{name: proportion}, ", "")).feed(node("n", cpu="2"), priority_class("high", 10))
    made.feed(group("low", 2), *(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(2)))
    made.feed(group("g", 1, priorityClassName="high"), pod("g-0", "g", cpu="1"))
    (explained,) = asked(made, ("job", "a/g"))
    assert "  preempt: 2 candidates: 2 needed by their gang" in text(explained)


def test_pods_that_may_go_and_help_nobody_are_told_so():
    made = Desk(EVERYTHING).feed(node("n", cpu="2"), priority_class("high", 10), group("low", 1))
    made.feed(*(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(2)))
    made.feed(group("g", 1, priorityClassName="high"), pod("g-0", "g", cpu="4"))
    (explained,) = asked(made, ("job", "a/g"))
    assert explained.evictions[0].groups[-1].offered
    assert "may go, but their room does not help" in explained.evictions[0].groups[-1].reason


@settings(max_examples=drawn(100))
@given(worlds())
def test_the_groups_of_candidates_add_up_to_everybody_whom_the_action_could_think_of(objects):
    made = desk(objects)
    before = {
        each["metadata"]["name"]: each["spec"].get("queue", "default") for each in objects if each["kind"] == "PodGroup"
    }
    for explained in asked(made, *(("job", f"a/{name}") for name in before)):
        own = explained.queue
        running = Counter(
            task.job.queue == own
            for task in made.cluster.tasks.values()
            if task.job is not None and task.job_key != explained.job and task.status.name in ("RUNNING", "BOUND")
        )
        for verdict in explained.evictions:
            assert sum(group.count for group in verdict.groups) == verdict.candidates
            if not made.world.evictions:
                least = running[verdict.action == "preempt"]
                assert verdict.candidates == least
