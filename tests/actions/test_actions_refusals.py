"""Who is left alone after a refusal, and of whom one that was refused says nothing."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod
from pumice.actions.placing.refusals import Refusals
from pumice.cache.options import Options
from pumice.framework import dormancy
from pumice.framework.findings import LastTransaction
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import FitSummary
from pumice.model.statuses import Status

TEXT = """
actions: "allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}%s]
"""
NOWHERE = FitSummary(1, (("node(s) were unschedulable", 1),))
SHORT = FitSummary(1, (("Insufficient cpu", 1),))
OF_QUEUE = FitSummary(0, (), "queue default: it has enough", "default")
OF_DUE = FitSummary(0, (), "queue default: more than is due", "default", due=True)


class Refusing:
    """A session in which jobs of one pod are refused."""

    def __init__(self, desk):
        self.session = desk.session()
        self.owner = self.session.cluster.queues["default"]
        self.lying = dormancy.of(self.session)
        self.refusals = Refusals(self.session, "allocate", self.lying)
        self.refusals.begin(self.owner)

    def task(self, job):
        return self.session.cluster.tasks[f"a.{job}-0"]

    def lies(self, job, failure):
        """Have a job refused; tell whether it lies dormant."""
        task = self.task(job)
        self.session.findings.note_fit([task], failure)
        self.refusals.remember(self.owner, task.job, [task])
        return task.job.key in self.lying.noted

    def is_refused_at_once(self, job):
        """Tell whether a job is refused by what is known."""
        task = self.task(job)
        return self.refusals.at_once(self.owner, task.job, [task]) is not None


def desk(text=TEXT % "", *plugins):
    made = Desk(text, *plugins).feed(node("n", "4"))
    for name, cpu in (("big", "9"), ("small", "1"), ("equal", "1")):
        made.feed(group(name, 1, phase="Inqueue"), pod(f"{name}-0", name, cpu=cpu))
    return made


@pytest.mark.parametrize(
    ("job", "failure", "lends", "lies"),
    [
        ("big", SHORT, False, True),
        ("small", SHORT, False, False),  # who is gone by now may have left room
        ("small", NOWHERE, False, False),
        ("small", OF_QUEUE, False, True),
        ("small", OF_QUEUE, True, True),
        ("small", OF_DUE, False, True),
        ("small", OF_DUE, True, False),  # the due may give way in this cycle yet
    ],
)
def test_who_is_refused_is_left_alone_if_no_node_or_its_queue_can_take_it(job, failure, lends, lies):
    refusing = Refusing(desk())
    refusing.session.lending.enabled = lends
    assert refusing.lies(job, failure) is lies


@pytest.mark.parametrize(("other", "lies"), [("big", False), ("small", True)])
def test_who_had_been_put_somewhere_in_this_cycle_is_not_left_alone(other, lies):
    refusing = Refusing(desk())
    refusing.session.findings.remember(refusing.task(other), LastTransaction(Status.ALLOCATED, "n", evicted=False))
    assert refusing.lies("big", SHORT) is lies


class Planning(Plugin):
    """Plans ahead."""

    name = "planning"
    points = frozenset({"JobDelay"})

    def open(self, session):
        session.job_delay.add(lambda _: None)


@pytest.mark.parametrize(
    ("plans", "failure", "known"), [(False, NOWHERE, True), (True, NOWHERE, False), (True, SHORT, True)]
)
def test_where_room_is_promised_to_others_only_want_of_room_is_said_of_equals_too(plans, failure, known):
    """Anything else may be what is promised, which is in the way of this one alone."""
    refusing = Refusing(desk(TEXT % ", {name: planning}", Planning) if plans else desk())
    refusing.lies("small", failure)
    assert refusing.is_refused_at_once("equal") is known


@pytest.mark.parametrize(
    ("latest", "more", "lies"),
    [
        (False, {"cpu": "500m"}, True),
        (True, {"cpu": "500m"}, False),  # somebody reads for how many there is room
        (False, {"cpu": "4"}, False),  # by amounts there is room for all
    ],
)
def test_a_gang_of_which_a_part_finds_room_is_left_alone_as_long_as_nodes_have_too_little_for_all(latest, more, lies):
    made = Desk(TEXT % "", options=Options(latest_reasons=latest)).feed(
        node("n", "2"), node("m", cordoned=True, **more)
    )
    made.feed(group("g", 3, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    made.cycle()
    assert not made.world.binds
    assert ("a/g" in made.session().findings.dormant) is lies
