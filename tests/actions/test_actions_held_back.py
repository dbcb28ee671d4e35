"""Who holds room for its only pod speaks for its equals only as long as nothing has changed, and where equals are treated alike."""

from __future__ import annotations

import contextlib
from unittest import mock

import msgspec
import numpy as np
import pytest
from test_actions_small_worlds import holders

from builders import Desk, group, node, pod, priority_class, queue, said_of
from pumice.actions.placing.held_back import HeldBack
from pumice.cache.options import Options
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL, Reads
from pumice.framework.reasons import FitSummary

AWAKE = msgspec.structs.replace(shortcuts.ALL, resting_holders=False)
REFUSAL = FitSummary(0, (), "queue default: enough", "default")
NO_NODE = FitSummary(1, (("Insufficient cpu", 1),))


class Trying:
    """A session in which jobs wait on nodes that are held for them, and what is known of them."""

    def __init__(self, *plugins, more="", taken=AWAKE, feed=(), options=None):
        self.desk = holders(3, *plugins, more=more, taken=taken, options=options)
        self.desk.feed(*feed)
        self.session = self.desk.session()
        assert self.session.reserved
        self.held = HeldBack(self.session)

    def asked(self, name, owner="default"):
        """Give what identifies a job that is tried."""
        task = self.desk.task(f"{name}-0")
        return self.desk.cluster.queues[owner], task.job, [task]

    def tries(self, name, says=None):
        """Try a job that ends where it began."""
        self.held.begin(*self.asked(name))
        if says is not None:
            self.session.findings.note_fit(self.asked(name)[2], says)
        self.held.end()

    def known(self, name, owner="default"):
        """Tell what is known of a job: nothing, that it stays, or why it is refused."""
        found = self.held.known(*self.asked(name, owner))
        return None if found is None else found.refusal or "stays"


def test_what_became_of_one_is_known_of_its_equals():
    trying = Trying()
    assert trying.known("g1") is None
    trying.tries("g0")
    assert trying.known("g1") == "stays"


def test_what_became_of_one_says_nothing_about_another_queue():
    trying = Trying(feed=[queue("other")])
    trying.tries("g0")
    assert trying.known("g1", "other") is None


def test_what_became_of_one_says_nothing_once_a_node_has_changed():
    trying = Trying(feed=[node("n9", "1"), group("new"), pod("new-0", "new", cpu="1")])
    trying.tries("g0")
    trying.session.statement().allocate([trying.desk.task("new-0")], [trying.desk.node("n9")])
    assert trying.known("g1") is None
    trying.tries("g2", REFUSAL)  # nor does it once another one was tried
    trying.tries("g2", FitSummary(0, (), "another", "default"))
    assert trying.known("g1").prefix == "another"


def test_of_each_kind_it_is_known_what_became_of_one():
    """One is of another namespace, and so of another kind."""
    trying = Trying()
    trying.tries("g0")
    trying.desk.task("g2-0").namespace = "b"
    task = next(task for task in trying.desk.cluster.tasks.values() if task.name == "g2-0")
    asked = trying.desk.cluster.queues["default"], task.job, [task]
    trying.held.begin(*asked)
    trying.held.end()
    assert trying.known("g1") == "stays"
    assert trying.held.known(*asked) is not None


def test_a_refusal_by_the_queue_is_known_if_it_was_said_in_this_turn():
    trying = Trying()
    trying.tries("g0", REFUSAL)
    assert trying.known("g1") is REFUSAL
    before = Trying()
    before.session.findings.note_fit(before.asked("g0")[2], REFUSAL)
    before.tries("g0")
    assert before.known("g1") is None


def test_one_of_which_anything_else_was_said_does_not_speak_for_others():
    trying = Trying()
    trying.tries("g0", NO_NODE)
    assert trying.known("g1") is None


def test_more_than_one_pod_has_to_be_tried():
    trying = Trying()
    owner, job, tasks = trying.asked("g0")
    trying.tries("g0")
    assert trying.held.known(owner, job, tasks) is not None
    assert trying.held.known(owner, job, tasks * 2) is None


class Odd(Plugin):
    """Has a say in what becomes of a job, of one kind or another."""

    name = "odd"
    points = frozenset({"Allocatable", "JobPipelined", "JobReady", "Predicate"})

    def open(self, session):
        self.has_a_say(session)


def odd(does):
    return type("Odd", (Odd,), {"has_a_say": lambda _, session: does(session)})


def fits(_, nodes):
    return np.zeros(len(nodes), dtype=np.int16)


SAYS = {
    "nothing": (lambda _: None, True),
    "a limit by queues": (lambda session: session.allocatable.add(lambda *_: None, reads=Reads.QUEUE), True),
    "a limit by jobs": (lambda session: session.allocatable.add(lambda *_: None, reads=Reads.JOB), False),
    "waiting by more than numbers": (
        lambda session: session.job_pipelined.add(lambda job: job.tally.waiting > 0, reads=Reads.JOB),
        False,
    ),
    "a handler that may refuse": (lambda session: session.add_handler(lambda *_: None, may_refuse=True), False),
    "a filter by Node objects": (lambda session: session.predicate.add(fits, reads=Reads.NODE), True),
    "a filter by what it likes": (lambda session: session.predicate.add(fits, reads=NODE_LOCAL), False),
    "a filter by other nodes": (lambda session: session.predicate.add(fits, reads=Reads.OTHER_NODES), False),
    "a filter by pods on the node": (lambda session: session.predicate.add(fits, reads=Reads.TASKS), False),
}


@pytest.mark.parametrize("case", SAYS)
def test_equals_are_spoken_for_only_where_queues_and_amounts_decide(case):
    does, spoken_for = SAYS[case]
    trying = Trying(odd(does), more=", {name: odd}")
    trying.tries("g0")
    assert (trying.known("g1") is not None) is spoken_for


GATES = Options(feature_gates=("SchedulingGatesQueueAdmission=true",))


@pytest.mark.parametrize(
    "more",
    [{"taken": msgspec.structs.replace(AWAKE, equal_jobs=False)}, {"options": GATES, "more": ", {name: capacity}"}],
)
def test_without_shortcuts_and_where_queues_take_gates_off_each_is_tried(more):
    trying = Trying(**more)
    trying.tries("g0")
    assert trying.known("g1") is None


def test_where_a_search_may_stop_before_it_has_seen_all_nodes_each_is_tried():
    trying = Trying()
    trying.session.evaluator.sampler = object()
    trying.tries("g0")
    assert trying.known("g1") is None


def test_where_nobody_heeds_minimums_each_is_tried():
    text = 'actions: "allocate, preempt"\ntiers:\n- plugins: [{name: priority}, {name: odd}]\n- plugins: [{name: predicates}]\n'
    starves = odd(lambda session: session.job_starving.add(lambda job: bool(job.pending)))
    starves.points = Odd.points | {"JobStarving"}
    desk = Desk(text, starves, taken=AWAKE).feed(priority_class("low", 1), priority_class("high", 9))
    for i in range(2):
        desk.feed(node(f"n{i}", "1"), group(f"low{i}", 0, phase="Running", priorityClassName="low"))
        desk.feed(pod(f"low{i}-0", f"low{i}", cpu="1", node=f"n{i}"))
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high"), pod(f"g{i}-0", f"g{i}", cpu="1"))
    desk.cycle()
    session = desk.session()
    assert len(session.reserved) == 2
    held, tasks = HeldBack(session), [desk.task("g0-0"), desk.task("g1-0")]
    held.begin(desk.cluster.queues["default"], tasks[0].job, tasks[:1])
    held.end()
    assert held.known(desk.cluster.queues["default"], tasks[1].job, tasks[1:]) is None


# -- whoever is spoken for ---------------------------------------------------------------------------------------


def life(more, changes, *, tries_each):
    """Play cycles of holders; give what was sent and what was said of each."""
    with mock.patch.object(HeldBack, "known", return_value=None) if tries_each else contextlib.nullcontext():
        desk = holders(4, more=more, taken=AWAKE)
        said = []
        for number, wave in enumerate(changes):
            desk.feed(
                *wave, group(f"late{number}", 1, phase="Inqueue"), pod(f"late{number}-0", f"late{number}", cpu="1")
            )
            record = desk.cycle()
            said.append([*record.trace(), *(said_of(record, key) for key in sorted(desk.cluster.jobs))])
            said += left_by_allocate(desk)
    return [repr(effect) for effect in desk.world.effects], said


def left_by_allocate(desk):
    """Give who holds room after allocate, and how it came about, in order."""
    session = desk.session()
    next(action for action in desk.scheduler.engine.actions if action.name == "allocate").execute(session)
    kept = [(task.name, run.evicted) for run in session.statements.kept for task in run.tasks]
    return [
        list(session.reserved),
        kept,
        [[task.name for task in each.tasks.values()] for each in desk.cluster.nodes.records],
    ]


LIVES = {
    "they stay": ("", [[], []]),
    "their queue may have no more": (", {name: capacity}", [[queue("default", capability={"cpu": "2"})], []]),
    "their queue may never have as much": (
        ", {name: capacity}",
        [[queue("default", capability={"cpu": "500m"})], []],
    ),
    "their queue is due no more": (
        ", {name: proportion}",
        [[queue("other", weight=9), group("o", 1, queue="other"), pod("o-0", "o", cpu="9")], []],
    ),
}


@pytest.mark.parametrize("case", LIVES)
def test_whoever_is_spoken_for_is_told_what_trying_would_have_told(case):
    more, changes = LIVES[case]
    assert life(more, changes, tries_each=False) == life(more, changes, tries_each=True)
