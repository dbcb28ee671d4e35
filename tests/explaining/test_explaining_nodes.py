"""What is on a node, what is held there, and why nobody who waits goes there."""

from __future__ import annotations

import pytest
from explaining_worlds import MAINTENANCE, asked, desk, worlds
from hypothesis import given, settings

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework.explaining import text


def test_an_empty_node_says_why_each_job_that_waits_does_not_go_there():
    made = Desk().feed(node("n", cpu="2", taints=[MAINTENANCE]), node("m", cpu="1"))
    made.feed(*(each for i in range(2) for each in (group(f"g{i}", 1), pod(f"g{i}-0", f"g{i}", cpu="2"))))
    made.feed(group("huge", 1), pod("huge-0", "huge", cpu="9"))
    (explained,) = asked(made, ("node", "n"))
    assert text(explained) == [
        "node n: tainted maintenance:NoSchedule, 0 pods",
        "  cpu: 2 free of 2",
        "  memory: 16Gi free of 16Gi",
        "  pods: 110 free of 110",
        "  2 jobs wait (a/g0 first): node(s) had untolerated taint(s)",
        "  1 job waits (a/huge): Insufficient cpu",
    ]


def test_a_node_that_would_take_members_of_a_gang_that_cannot_start_says_that_they_wait_for_something_else():
    made = Desk().feed(node("n", cpu="2"), group("g", 2), *(pod(f"g-{i}", "g", cpu="2") for i in range(2)))
    (explained,) = asked(made, ("node", "n"))
    (waiting,) = explained.waiting
    assert (waiting.fits, waiting.jobs, waiting.first) == (True, 1, "a/g")


def test_pods_of_others_and_going_ones_are_on_the_list():
    made = Desk().feed(node("n", cpu="4"), pod("alien", scheduler="else", cpu="1", node="n"), group("g", 1))
    made.feed(pod("g-0", "g", cpu="2", node="n", deleting=True), pod("small", "g", node="n"))
    (explained,) = asked(made, ("node", "n"))
    assert [(each.pod, each.job, each.status) for each in explained.pods] == [
        ("a/alien", "", "Running"),
        ("a/g-0", "a/g", "Releasing"),
        ("a/small", "a/g", "Running"),
    ]
    assert explained.foreign == 1
    told = text(explained)
    assert "  cpu: 1 free of 4, 2 being released" in told
    assert "  a/alien: Running, 1 cpu" in told
    assert "  a/g-0 of a/g in queue default: Releasing, 2 cpu" in told
    assert "  a/small of a/g in queue default: Running, no requests" in told


def test_of_reasons_that_keep_as_many_jobs_off_a_node_the_first_in_the_alphabet_comes_first():
    made = Desk().feed(node("n", cpu="2", taints=[MAINTENANCE]))
    made.feed(*(each for name, cpu in (("a", "1"), ("b", "9")) for each in (group(name), pod(name, name, cpu=cpu))))
    (explained,) = asked(made, ("node", "n"))
    assert [(each.first, each.jobs) for each in explained.waiting] == [("a/b", 1), ("a/a", 1)]


@pytest.mark.parametrize(("ready", "told"), [("True", True), ("False", False), ("Unknown", False), (None, True)])
def test_a_node_is_ready_that_says_so_or_says_nothing_of_it(ready, told):
    (explained,) = asked(Desk().feed(node("n", ready=ready)), ("node", "n"))
    assert explained.ready is told


def test_a_node_that_only_pods_name_is_not_ready_and_nobody_waits_for_it():
    made = Desk().feed(group("g", 1), pod("g-0", "g", cpu="1", node="lost"), group("h", 1), pod("h-0", "h", cpu="1"))
    (explained,) = asked(made, ("node", "lost"))
    assert (explained.ready, [each.pod for each in explained.pods], explained.waiting) == (False, ["a/g-0"], ())


@settings(max_examples=drawn(100))
@given(worlds())
def test_every_job_that_waits_is_counted_once_on_every_node(objects):
    made = desk(objects)
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]
    jobs = [each["metadata"]["name"] for each in objects if each["kind"] == "PodGroup"]
    answers = asked(made, *(("node", name) for name in names), *(("job", f"a/{name}") for name in jobs))
    waiting = sum(1 for each in answers[len(names) :] if "Pending" in each.members)
    for explained in answers[: len(names)]:
        assert sum(each.jobs for each in explained.waiting) == waiting
