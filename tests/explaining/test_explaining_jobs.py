"""What an explanation says of a job as a whole: its members by status, who speaks for and against it, what is held for it, and nothing of what does not concern it."""

from __future__ import annotations

import pytest
from explaining_worlds import EVERYTHING, asked

from builders import GANG, Desk, group, node, pod, priority_class
from pumice.cache.effects import Bind
from pumice.framework.explaining import jobs
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


def test_the_phase_and_the_queue_are_those_of_the_group_and_there_are_none_without():
    made = Desk().feed(node("n1"), group("g", 1), pod("p", "g", cpu="9"), pod("q", "unknown", cpu="1"))
    grouped, stray = asked(made, ("job", "a/g"), ("job", "a/unknown"))
    assert (grouped.phase, grouped.queue_verdict.queue) == ("Inqueue", "default")
    assert (stray.phase, stray.queue_verdict) == ("", None)


@pytest.mark.parametrize("said", ["", "let in"])
@pytest.mark.parametrize("phase", ["", "Inqueue"])
def test_each_action_is_told_with_what_it_said_and_when_in_the_order_in_which_they_run(phase, said):
    made = Desk().feed(group("g", 1, phase=phase))
    session = made.session()
    session.record.begin(1, 0)
    session.record.judge("a/g", "bind", "refused")
    session.record.begin(7, 0)
    session.record.say("backfill", "placed", "a/g")
    if said:
        session.record.say("enqueue", said, "a/g")
    told = jobs.explain(session, (), made.cluster.jobs["a/g"])
    assert [(each.action, each.cycle, each.said) for each in told.actions] == [
        ("enqueue", 7 if said else 0, said or ("was let in before" if phase else "")),
        ("allocate", 0, ""),
        ("backfill", 7, "placed"),
        ("bind", 1, "refused"),
    ]


def notes(made, *names):
    return [list(each.notes) for each in asked(made, *(("job", f"a/{name}") for name in names))]


def test_what_else_bears_on_a_job_is_noted_object_by_object():
    gates = {"schedulingGates": [{"name": "example.com/wait"}]}
    made = Desk().feed(node("n1"), priority_class("high", 10), group("bad", -1), group("plain", 1))
    made.feed(group("class", 1, priorityClassName="hihg"), pod("class-0", "class", cpu="9"))
    made.feed(group("gated", 1), *(pod(f"g-{i}", "gated", cpu="1", **gates) for i in (2, 1)), pod("g-0", "gated"))
    made.feed(pod("plain-0", "plain", cpu="7"), pod("stray-0", "stray", cpu="1"))
    assert notes(made, "plain", "stray", "gated") == [
        [],
        [],
        ["2 pods wait for a scheduling gate to be taken off, g-1 first"],
    ]
    bad, named = notes(made, "bad", "class")
    assert bad[-1] == "the group is invalid: spec.minMember: -1 is outside 0..2147483647"
    unknown, never = named
    assert unknown.startswith("priority class hihg does not exist, so it has priority 0; ")
    assert never.startswith("can never run: ")


def test_a_bind_that_failed_twice_pauses_until_its_time_has_come():
    made = Desk().feed(node("n1", cpu="4"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in (1, 0)))
    for _ in range(2):
        made.cycle()
        for bind in made.world.of(Bind):
            made.settle(bind, "refused", "no such luck")
        made.world.effects.clear()
    made.modify(node("n1", cpu="500m"))
    began = made.now
    (paused,) = notes(made, "g")
    assert "2 pods pause after a bind that failed, g-0 first" in paused
    made.now = began + 10_000
    (over,) = notes(made, "g")
    assert not [each for each in over if "pause" in each]


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
    made.feed(priority_class("high", 10))
    named = {"phase": "Inqueue", "priorityClassName": "high"}
    if case == "runs":
        made.feed(group("g", 1, **named), pod("p", "g", cpu="1", node="n1"))
    else:
        made.feed(group("g", -1, **named), pod("p", "g", cpu="2"))
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
