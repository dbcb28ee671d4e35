"""enqueue: groups are asked about one after the other, and each that is let in counts for those behind it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.framework.extensions import ABSTAIN, PERMIT, reject
from pumice.framework.plugin import Plugin

CORES = st.sampled_from([None, 0, 1, 2, 3, 5, 8])


@settings(max_examples=drawn(80), deadline=None)
@given(cores=st.integers(1, 20), capability=st.none() | st.integers(1, 25), asked=st.lists(CORES, max_size=30))
def test_groups_are_let_in_as_far_as_they_fit_beside_those_before_them(cores, capability, asked):
    limits = {} if capability is None else {"capability": {"cpu": str(capability)}}
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: overcommit}]\n- plugins: [{name: proportion}]\n'
    desk = Desk(text).feed(node("n0", cpu=str(cores)), queue("default", **limits))
    for number, each in enumerate(asked):
        stated = {} if each is None else {"minResources": {"cpu": str(each)}}
        desk.feed(group(f"g{number:02}", 1, created=number, **stated))
    desk.cycle()
    # overcommit decides: with a permit in its tier nobody below it is asked.
    budget, inside = 1200 * cores, []
    for number, each in enumerate(asked):
        if each is None or not each or 1000 * each <= budget:
            budget -= 1000 * (each or 0)
            inside.append(f"a/g{number:02}")
    assert [key for key, job in sorted(desk.cluster.jobs.items()) if job.phase == "Inqueue"] == inside


def full(count):
    """Groups that all fit, on one node."""
    yield from (node("n0", cpu="20"), queue("default"))
    for number in range(count):
        yield group(f"g{number:02}", 1, minResources={"cpu": "1"})


class Picky(Plugin):
    """Votes against one job, and hears of the others."""

    name = "picky"
    points = frozenset({"JobEnqueueable", "JobEnqueued"})

    def open(self, session):
        session.job_enqueueable.add(lambda job: reject("no") if job.name == "g03" else PERMIT)
        session.job_enqueued.add(lambda job: session.record.say("picky", "heard", job.key))


def test_one_that_is_refused_holds_up_nobody():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: overcommit}, {name: picky}]\n'
    record = Desk(text, Picky).feed(*full(6)).cycle()
    heard = [line for line in record.trace() if line.startswith("picky")]
    assert heard == [f"picky: a/g0{number}: heard" for number in (0, 1, 2, 4, 5)]
    assert "enqueue: a/g03: not let in: picky: no" in record.trace()


class Fragile(Plugin):
    """Breaks down when it is asked about one job."""

    name = "fragile"
    points = frozenset({"JobEnqueueable"})

    def open(self, session):
        session.job_enqueueable.add(self.vote)

    def vote(self, job):
        if job.name == "g03":
            raise ValueError("this one")
        return PERMIT


def test_a_vote_that_breaks_down_keeps_out_the_one_it_is_about():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: fragile}]\n'
    desk = Desk(text, Fragile).feed(*full(6))
    for _ in range(2):  # in the second cycle the vote rests about that job
        record = desk.cycle()
        phases = [desk.cluster.jobs[f"a/g{number:02}"].phase for number in range(6)]
        assert phases == ["Inqueue"] * 3 + ["Pending"] + ["Inqueue"] * 2
        assert "this one" in record.explain("a/g03")


class Deaf(Plugin):
    """Breaks down when it is told of one job."""

    name = "deaf"
    points = frozenset({"JobEnqueued"})

    def open(self, session):
        session.job_enqueued.add(self.hear)

    def hear(self, job):
        if job.name == "g00":
            raise ValueError("cannot hear")


def test_a_listener_that_breaks_down_costs_one_job_its_turn():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: deaf}]\n'
    desk = Desk(text, Deaf).feed(*full(6))
    record = desk.cycle()
    assert [desk.cluster.jobs[f"a/g{number:02}"].phase for number in range(6)] == ["Pending"] + ["Inqueue"] * 5
    assert "cannot hear" in record.explain("a/g00")


class Moody(Plugin):
    """Lets nobody in, each time for the next of its reasons."""

    name = "moody"
    points = frozenset({"JobEnqueueable"})
    reasons = ("too early", "too early", "too late")

    def open(self, session):
        reason = self.reasons[min(session.number, len(self.reasons)) - 1]
        session.job_enqueueable.add(lambda _: reject(reason))


def test_a_group_without_pods_is_told_of_every_other_reason_that_keeps_it_out():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: gang}, {name: moody}]\n'
    desk = Desk(text, Moody).feed(node("n0"), group("g", 1, minResources={"cpu": "1"}))
    said = []
    for number in range(len(Moody.reasons)):
        desk.cycle(seconds=600)
        desk.feed(node(f"another-{number}"))  # so that there is a cycle, which is not about the group
        said.append([m for patch in desk.world.patches("PodGroup") for m in messages(patch)])
    assert [[reason for reason in ("too early", "too late") if reason in " ".join(each)] for each in said] == [
        ["too early"], ["too early"], ["too early", "too late"]
    ]  # fmt: skip


def messages(patch):
    return [condition["message"] for condition in patch.body["status"]["conditions"]]


@pytest.mark.parametrize(
    ("minimum", "is_let_in"),
    [
        ({"cpu": "2"}, True),
        ({"cpu": "8"}, True),
        ({"cpu": "9"}, False),
        ({"cpu": "2", "pods": "500"}, True),
        ({"cpu": "2", "example.com/unknown": "0"}, True),
        ({"cpu": "2", "example.com/unknown": "1"}, False),
    ],
)
def test_a_gang_that_was_left_incomplete_needs_no_vote_if_what_it_lacks_is_free_in_sum(minimum, is_let_in):
    """Pods are not counted, and what nobody offers is free only if none of it is asked for."""
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: gang}, {name: moody}]\n'
    desk = Desk(text, Moody).feed(node("n0", cpu="8"), group("g", 2, phase="Pending", minResources=minimum))
    desk.feed(pod("g-0", "g", cpu="1", node="n0"), pod("g-1", "g", cpu="1"))
    record = desk.cycle()
    assert ("not let in" not in record.explain("a/g")) == is_let_in
    assert desk.cluster.jobs["a/g"].is_interrupted


class Wavering(Plugin):
    """Votes against a group at first, and has no opinion later."""

    name = "wavering"
    points = frozenset({"JobEnqueueable"})

    def open(self, session):
        session.job_enqueueable.add(lambda _: reject("not yet") if session.number == 1 else ABSTAIN)


def test_a_group_against_which_nobody_votes_is_let_in_and_told_so_alone():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: gang}, {name: wavering}]\n'
    desk = Desk(text, Wavering).feed(node("n0"), group("g", 1, minResources={"cpu": "1"}))
    assert "not let in: wavering: not yet" in desk.cycle().explain("a/g")
    record = desk.feed(node("n1")).cycle()
    assert desk.cluster.jobs["a/g"].phase == "Inqueue"
    assert "not yet" not in record.explain("a/g")
