"""Worked cases of actions.md that need a plugin of the test's own, or a number."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod
from pumice.framework import sampling
from pumice.framework.extensions import ABSTAIN, PERMIT, reject
from pumice.framework.plugin import Plugin

VOTING = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: doorkeeper}]
"""


class Doorkeeper(Plugin):
    """Lets in what asks for less than four cores."""

    name = "doorkeeper"

    def open(self, session):
        session.job_enqueueable.add(self.vote)
        session.job_enqueued.add(lambda job: self.let_in.append(job.name))
        Doorkeeper.let_in = []

    def vote(self, job):
        cpu = job.min_resources.get("cpu", 0)
        return reject(f"{cpu}m is too much") if cpu >= 4000 else PERMIT if cpu else ABSTAIN


def phases(desk):
    """Give the phases that were written, except Pending, which is what no phase means."""
    written = {patch.name: patch.body["status"]["phase"] for patch in desk.world.patches("PodGroup")}
    return {name: phase for name, phase in written.items() if phase != "Pending"}


def test_case_10_a_rejected_group_does_not_hold_up_those_behind_it():
    desk = Desk(VOTING, Doorkeeper).feed(node("n"))
    desk.feed(group("big", created=1, minResources={"cpu": "8"}), group("small", created=2, minResources={"cpu": "1"}))
    desk.feed(
        group("free", created=3), group("empty", created=4, minResources={}), group("lost", created=5, queue="nope")
    )
    record = desk.cycle()
    assert phases(desk) == {"small": "Inqueue", "free": "Inqueue", "empty": "Inqueue"}
    assert Doorkeeper.let_in == ["small", "free", "empty"]
    assert "doorkeeper: 8000m is too much" in record.explain("a/big")


def test_case_10_without_min_resources_nobody_is_asked():
    desk = Desk(VOTING, Doorkeeper).feed(node("n"), group("g", 3))
    desk.cycle()
    assert phases(desk) == {"g": "Inqueue"}


def test_a_pending_group_that_is_not_let_in_places_nothing():
    desk = Desk(VOTING, Doorkeeper).feed(node("n"), group("g", minResources={"cpu": "8"}), pod("p", "g", cpu="1"))
    desk.cycle()
    assert not desk.world.binds


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"), [(1000, 0, 420), (6000, 0, 300), (80, 0, 80), (6000, 40, 2400)]
)
def test_case_21_the_peers_sample_of_nodes(nodes, percentage, expected):
    asked = percentage or sampling.adaptive(nodes, 5)
    assert sampling.enough(nodes, 100, asked) == expected


def test_case_21_every_node_is_looked_at_unless_sampling_is_asked_for():
    assert sampling.enough(6000, 100, 0) == 6000  # ours.md 19: percentage 0 means all nodes


def test_the_trace_of_a_cycle_names_who_was_let_in_and_placed():
    desk = Desk().feed(node("n"), group("g"), pod("p", "g", cpu="1"))
    record = desk.cycle()
    assert any("a/g" in line and "let in" in line for line in record.trace())
    assert desk.world.binds == {"p": "n"}
