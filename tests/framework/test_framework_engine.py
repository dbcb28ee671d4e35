"""When a cycle has settled everything, who is let in where nobody asks for votes, and who is named that broke down."""

from __future__ import annotations

import numpy as np
import pytest

from builders import GANG, Desk, group, node, pod, queue
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads
from pumice.framework.reservations import Hold

WITH = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: odd}]\n'


class Odd(Plugin):
    """Does one thing that keeps a cycle from being the last."""

    name = "odd"
    points = frozenset({"BestNode"})
    reads = Reads.COLUMNS
    does = ""

    def open(self, session):
        if self.does == "may refuse":
            session.add_handler(lambda run, sign: None, may_refuse=True)
        elif self.does == "names nodes":
            session.best_node.add(lambda *_: None)

    def is_settled(self, session):
        if self.does == "breaks down":
            raise RuntimeError("no idea")
        return self.does != "is not settled"


def settled(does="", *manifests, happens=lambda session: None):
    made = Desk(WITH, type("Odd", (Odd,), {"does": does})).feed(node("n"), *manifests)
    session, engine = made.session(), made.scheduler.engine
    engine.decide(session)
    happens(session)
    return engine.is_settled(session), session


@pytest.mark.parametrize(
    ("does", "is_settled"),
    [
        ("", True),
        ("may refuse", False),
        ("names nodes", False),
        ("is not settled", False),
        ("breaks down", False),
    ],
)
def test_a_cycle_has_settled_everything_unless_a_plugin_could_say_something_else_in_the_next(does, is_settled):
    found, session = settled(does)
    assert found is is_settled
    assert [str(error) for error in session.failures] == ["no idea"] * (does == "breaks down")


def broken(session):
    session.breakdowns.note("p", "Predicate", broken, ValueError("no"), "a/g")


HAPPENS = [
    ("a function broke down", broken),
    ("an action broke down", lambda session: session.failures.append(ValueError("no"))),
    ("room is held", lambda session: session.reservations.holds.update({"x": Hold("n")})),
]


@pytest.mark.parametrize("happens", [row[1] for row in HAPPENS], ids=[row[0] for row in HAPPENS])
def test_a_cycle_in_which_something_went_wrong_or_is_waited_for_is_not_the_last(happens):
    assert settled(happens=happens)[0] is False


def test_a_cycle_is_not_the_last_as_long_as_somebody_goes():
    assert settled("", pod("old", cpu="1", node="n", scheduler="else"))[0] is True
    goes = [group("old", 1), pod("old", "old", cpu="1", node="n", deleting=9)]
    assert settled("", *goes)[0] is False


def test_where_nobody_asks_for_votes_every_valid_group_of_an_open_queue_is_let_in():
    made = Desk(GANG.replace("enqueue, ", "")).feed(node("n"), queue("closed", state="Closed"), queue("bad", weight=0))
    made.feed(group("empty", 3), group("late", queue="closed"), group("invalid", -1), group("spoilt", queue="bad"))
    made.feed(group("runs", 1, phase="Running"), pod("r", "runs", cpu="1", node="n"), group("lost", queue="nowhere"))
    session = made.session()
    made.scheduler.engine.decide(session)
    assert session.findings.phases == {"a/empty": "Inqueue"}


class Broken(Plugin):
    """Breaks down about some jobs."""

    name = "broken"
    points = frozenset({"Predicate"})
    reads = Reads.COLUMNS
    about = frozenset()

    def open(self, session):
        session.predicate.add(self._fail)

    def _fail(self, subject, nodes):
        if subject.task.job_key in self.about:
            raise RuntimeError("no")
        return np.zeros(len(nodes), dtype=np.int16)


def test_who_broke_down_is_named_once_with_how_often_and_on_each_job_until_it_does_not_any_more():
    how = type("Broken", (Broken,), {"about": {"a/g0", "a/g1"}})
    made = Desk(GANG.replace("{name: predicates}", "{name: predicates}, {name: broken}"), how).feed(node("n"))
    for i in range(3):
        made.feed(group(f"g{i}", 1), pod(f"g{i}-0", f"g{i}", cpu=f"{i + 1}00m"))
    told = "\n".join(made.cycle().trace())
    assert told.count("plugin broken broke down at Predicate") >= 1
    assert "(about 2 jobs or queues)" in told
    assert made.world.binds == {"g2-0": "n"}
    record = made.cache.record
    assert all("broke down" in str(record.verdict(f"a/g{i}", "breakdown")) for i in range(2))
    assert record.verdict("a/g2", "breakdown") is None
    how.about = frozenset()
    for i in range(4):
        made.feed(group(f"more{i}", 0)).cycle()
    assert all(record.verdict(f"a/g{i}", "breakdown") is None for i in range(2))
    assert made.world.binds.keys() == {"g0-0", "g1-0", "g2-0"}
    assert made.scheduler.engine.breakdowns == []


def test_for_how_long_a_function_rests_about_a_job_is_forgotten_with_the_job():
    class Asked(Broken):
        cycles = ()

        def _fail(self, subject, nodes):
            type(self).cycles = (*self.cycles, cycle)
            return super()._fail(subject, nodes)

    Asked.about = {"a/g"}
    made = Desk(GANG.replace("{name: predicates}", "{name: predicates}, {name: broken}"), Asked).feed(node("n"))
    job = [group("g", 1), pod("g-0", "g", cpu="1")]
    made.feed(*job)
    for cycle in range(1, 6):
        made.feed(group(f"more{cycle}", 0)).cycle()
    assert tuple(dict.fromkeys(Asked.cycles)) == (1, 2, 4)
    made.delete(*job[::-1]).cycle()
    Asked.about = ()
    made.feed(*job).cycle()
    assert made.world.binds == {"g-0": "n"}
