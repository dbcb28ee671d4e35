"""Cost follows change: a cycle in which nothing can have changed is skipped, and wakes when something may have."""

from __future__ import annotations

import pytest

from builders import GANG, SECOND, Desk, group, node, pod, priority_class, queue, settings
from pumice.cache.effects import Bind, Note
from pumice.framework.plugin import Plugin
from pumice.framework.reservations import Hold
from pumice.framework.sampling import Sampler

WATCHING = GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: watch}")


def at_rest(config=GANG, *classes):
    """A desk on which a gang waits that cannot fit, and nothing has happened for a while."""
    made = Desk(config, *classes).feed(
        queue("q"), node("n1", cpu="2"), group("g", 2), *(pod(f"g-w-{i}", "g", cpu="2") for i in range(2))
    )
    for _ in range(4):
        made.cycle()
    return made


def test_a_cycle_in_which_nothing_changed_is_skipped_and_writes_nothing():
    made = at_rest()
    made.world.effects.clear()
    for _ in range(5):
        record = made.cycle()
        assert record.skipped
        assert record.trace() == []
    assert made.world.effects == []


def test_an_empty_cluster_comes_to_rest():
    made = Desk(queues=())
    for _ in range(3):
        made.cycle()
    assert made.cycle().skipped


EVENTS = [
    ("a new pod", lambda d: d.feed(pod("new", "g", cpu="1"))),
    ("a changed pod", lambda d: d.modify(pod("g-w-0", "g", cpu="1"))),
    ("a pod that is gone", lambda d: d.delete(pod("g-w-0", "g"))),
    ("a pod of another scheduler", lambda d: d.feed(pod("alien", scheduler="else", node="n1"))),
    ("a new node", lambda d: d.feed(node("n2"))),
    ("a changed node", lambda d: d.modify(node("n1", cpu="4"))),
    ("a node that is gone", lambda d: d.delete(node("n1"))),
    ("a changed group", lambda d: d.modify(group("g", 1))),
    ("a new queue", lambda d: d.feed(queue("new"))),
    ("a queue that is gone", lambda d: d.delete(queue("q"))),
    ("a priority class", lambda d: d.feed(priority_class("high", 9))),
]


@pytest.mark.parametrize(("case", "happens"), EVENTS, ids=[case for case, _ in EVENTS])
def test_an_event_wakes_the_next_cycle(case, happens):
    made = at_rest()
    happens(made)
    assert not made.cycle().skipped
    for _ in range(4):
        made.cycle()
    assert made.cycle().skipped


def test_an_event_that_makes_room_is_acted_upon_in_the_next_cycle():
    made = at_rest()
    made.feed(node("n2", cpu="2"))
    made.cycle()
    assert made.world.binds == {"g-w-0": "n1", "g-w-1": "n2"}


def test_a_cycle_that_made_progress_is_followed_by_another():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    assert made.cycle().binds == 1
    assert not made.cycle().skipped


OVERCOMMIT = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: overcommit}, {name: predicates}]\n'


def test_a_group_that_has_entered_another_phase_is_followed_by_another_cycle_though_no_event_comes():
    """Until `first` counts as Running its minimum is counted beside its pod, so `second` is not let in: 1 used + 1 let in + 1 > 1.2 x 2 (overcommit)."""
    made = Desk(OVERCOMMIT).feed(node("n1", cpu="2"))
    made.feed(group("first", minResources={"cpu": "1"}), pod("p", "first", cpu="1"))
    made.cycle()
    made.settle(made.world.of(Bind)[0]).modify(pod("p", "first", cpu="1", node="n1"))
    made.feed(group("second", minResources={"cpu": "1"}), pod("q", "second", cpu="1"))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
    made.cycle()
    assert made.world.binds == {"p": "n1", "q": "n1"}


def test_settings_of_a_queue_that_have_no_effect_are_told_once_however_often_its_status_changes():
    limits = {"capability": {"cpu": "4"}, "guarantee": {"resource": {"cpu": "1"}}}
    made = Desk().feed(queue("q", **limits), node("n1"))
    for state in ("", "Open", "Closed", "Open"):
        made.modify(queue("q", state=state, **limits))
        made.cycle()
    told = [note.message for note in made.world.of(Note) if note.reason == "SettingHasNoEffect"]
    assert len(told) == 1
    assert "capability" in told[0]
    assert "guarantee" in told[0]


def test_a_reconfiguration_wakes_the_next_cycle():
    made = at_rest()
    made.scheduler.reconfigure(settings(GANG.replace("nodeorder", "binpack"))[0])
    assert not made.cycle().skipped


def test_a_bind_that_failed_is_tried_again_when_its_time_has_come_though_no_event_comes():
    """The first retry is at once, the second after 5 ms, the third after 10 ms (cache 10)."""
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    made.cycle(0)
    for delay in (0, 10_000, 20_000, 40_000):
        tries = len(made.world.of(Bind))
        made.settle(made.world.of(Bind)[-1], "refused")
        if delay:
            made.cycle(0)
            made.now += delay - 1
            made.cycle(0)
            assert len(made.world.of(Bind)) == tries
            assert made.cycle(0).skipped
            made.now += 1
        made.cycle(0)
        assert len(made.world.of(Bind)) == tries + 1


class Watch(Plugin):
    """Reads the clock, and may say when to look again."""

    name = "watch"
    points = frozenset({"JobReady"})
    until = None

    def open(self, session):
        self.seen = session.now
        if self.until is not None and session.now < self.until:
            session.wake_at(self.until)


def test_a_policy_that_reads_the_clock_and_does_not_say_when_is_asked_every_cycle():
    Watch.until = None
    made = at_rest(WATCHING, Watch)
    assert not any(made.cycle().skipped for _ in range(5))


def test_a_policy_that_says_when_its_answer_changes_is_asked_then():
    made = at_rest(WATCHING, Watch)
    Watch.until = made.now + 3 * SECOND
    skipped = [made.cycle().skipped for _ in range(6)]
    assert skipped == [False, True, True, False, False, False]


class Raising(Plugin):
    """Cannot say whether it is settled."""

    name = "raising"

    def is_settled(self, _session):
        raise ValueError("who knows")


SPOILT = {
    "nothing": lambda _: None,
    "a breakdown": lambda session: session.breakdowns.note("p", "score", Raising, ValueError("no")),
    "a failure": lambda session: session.failures.append(ValueError("no")),
    "a hold": lambda session: session.reservations.holds.update(uid=Hold("n1")),
    "who may refuse": lambda session: setattr(session.handlers, "may_refuse", True),
    "room that is being released": lambda session: session.cluster.nodes.releasing.__setitem__((0, 0), 1),
    "nodes that are not looked at": lambda session: setattr(session.evaluator, "sampler", Sampler(1, 50)),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_cycle_is_settled_if_only_room_and_nothing_else_decides(spoilt):
    made = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n').feed(node("n1"), group("g"), pod("p", "g"))
    session, engine = made.session(), made.scheduler.engine
    engine.decide(session)
    assert engine.is_settled(session)
    SPOILT[spoilt](session)
    assert engine.is_settled(session) is (spoilt == "nothing")


def test_who_cannot_say_whether_it_is_settled_is_not():
    made = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: raising}]\n', Raising).feed(node("n1"))
    session, engine = made.session(), made.scheduler.engine
    engine.decide(session)
    assert not engine.is_settled(session)
    assert [str(error) for error in session.failures] == ["who knows"]
