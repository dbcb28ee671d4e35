"""What an explanation says of a job as a whole: its members by status, who speaks for and against it, what is held for it, and nothing of what does not concern it."""

from __future__ import annotations

import pytest
from explaining_worlds import EVERYTHING, asked

from builders import GANG, Desk, group, node, pod
from pumice.framework.explaining.explanations import QueueDimension
from pumice.framework.explaining.texts import standing_text
from pumice.framework.extensions import ABSTAIN, PERMIT, reject
from pumice.framework.plugin import Plugin
from pumice.framework.reservations import Hold

VOTING = GANG.replace("[{name: predicates}", "[{name: torn}, {name: predicates}")


def test_members_are_counted_by_their_status():
    made = Desk().feed(node("n1"), group("g", 1), *(pod(f"p{i}", "g", cpu="1", node="n1") for i in range(2)))
    made.feed(pod("q", "g", cpu="100"), pod("r", "g", cpu="1", node="n1", deleting=True))
    (told,) = asked(made, ("job", "a/g"))
    assert told.members == {"Pending": 1, "Running": 2, "Releasing": 1}


class Torn(Plugin):
    name = "torn"
    vote = ABSTAIN

    def open(self, session):
        session.job_pipelined.add(lambda job: self.vote)


@pytest.mark.parametrize(
    ("vote", "answer"), [(PERMIT, "for"), (ABSTAIN, "abstains"), (reject("it may not"), "against")]
)
def test_a_plugin_speaks_for_or_against_a_job_or_abstains(vote, answer):
    torn = type("Torn", (Torn,), {"vote": vote})
    made = Desk(VOTING, torn).feed(node("n1", cpu="1"), group("g", 1), pod("p", "g", cpu="2"))
    (told,) = asked(made, ("job", "a/g"))
    assert [each.answer for each in told.votes if each.plugin == "torn"] == [answer]


@pytest.mark.parametrize("case", ["runs", "invalid"])
def test_of_a_job_that_waits_for_no_node_neither_a_gang_nor_victims_are_told(case):
    made = Desk(EVERYTHING).feed(node("n1", cpu="2"), group("o", 1), pod("o", "o", cpu="1", node="n1"))
    if case == "runs":
        made.feed(group("g", 1), pod("p", "g", cpu="1", node="n1"))
    else:
        made.feed(group("g", -1), pod("p", "g", cpu="2"))
    (told,) = asked(made, ("job", "a/g"))
    assert told.state == case
    assert (told.gang, told.evictions, told.placements) == (None, (), ())


@pytest.mark.parametrize("placed", [False, True])
def test_room_that_is_held_is_told_until_the_pod_is_on_its_node(placed):
    made = Desk().feed(node("n1"), node("n2", cpu="1"), group("g", 3), pod("p", "g", cpu="1"))
    made.feed(pod("q", "g", cpu="1", node="n1" if placed else "")).apply()
    made.scheduler.reservations.holds[made.task("q").uid] = Hold("n1")
    (told,) = asked(made, ("job", "a/g"))
    assert [(each.pod, each.node) for each in told.holds] == ([] if placed else [("a/q", "n1")])


def test_how_a_queue_stands_names_what_there_is_and_always_what_it_holds():
    dimension = QueueDimension(
        resource="cpu", held="0", asked="0", let_in="", due="4", ceiling="", guarantee="0", room=""
    )
    assert standing_text(dimension) == "cpu: held 0, due 4"
