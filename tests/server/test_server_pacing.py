"""When cycles start: at once after a change, never more than half of the time, by time where something waits, at a fixed pace where one was given."""

from __future__ import annotations

import math
import threading
import time

from hypothesis import given
from hypothesis import strategies as st
from server_desk import Lines
from test_server_deciding import Notes

import builders
from pumice.framework import configuration, registry
from pumice.scheduler import Scheduler
from pumice.server.surroundings import Surroundings
from pumice.server.threads import deciding, mailbox, pacing, urgency
from testbed import waiting

moments = st.floats(0, 1e6, allow_nan=False)
spans = st.floats(0, 100, allow_nan=False)


@given(moments, spans, spans, st.none() | st.floats(-10, 100, allow_nan=False))
def test_without_a_period_a_change_starts_a_cycle_at_once_but_deciding_takes_no_more_than_half_of_the_time(
    started, spent, later, wakes_in
):
    pace = pacing.Pacing(None)
    ended = started + spent
    due = pace.next(started, ended, wakes_in)
    pause = min(ended - started, 1.0)
    assert ended + pause <= due <= ended + max(pause, 1.0)
    changed = pace.after_change(ended + later)
    assert changed == max(ended + pause, ended + later + pacing.QUIET)
    assert pace.after_echo(ended + later, 0.2) == max(ended + pause, ended + later + 0.2)


@given(moments, spans, st.floats(0.001, 0.999))
def test_what_waits_for_a_moment_is_looked_at_then(started, spent, wakes_in):
    ended = started + spent
    assert pacing.Pacing(None).next(started, ended, wakes_in) == max(
        ended + min(ended - started, 1.0), ended + wakes_in
    )


@given(moments, spans, spans, spans, st.none() | spans)
def test_with_a_period_the_pause_is_the_period_whatever_happens(started, spent, period, later, wakes_in):
    pace = pacing.Pacing(period)
    ended = started + spent
    assert pace.next(started, ended, wakes_in) == ended + period
    assert pace.after_change(ended + later) == pace.after_echo(ended + later, 0.2) == ended + period
    assert pace.after_more(ended + period) <= ended + period


@given(moments, spans, st.lists(st.floats(0, 2 * pacing.QUIET), max_size=50))
def test_a_burst_is_gathered_until_it_pauses_and_not_longer_than_its_limit(started, spent, gaps):
    pace = pacing.Pacing(None)
    first = started + 3 * spent
    pace.next(started, started + spent, None)
    due, coming = pace.after_change(first), first
    for gap in gaps:
        coming += gap
        if coming > due:  # the burst paused, or was cut
            break
        now = due
        due = pace.after_more(now)
        assert due <= max(now, first + pacing.GATHER)
        if due <= now:
            break
    assert due <= max(first + pacing.GATHER, started + spent + min(spent, pacing.LONGEST), first + pacing.QUIET)


class Rig:
    def __init__(self, period=None):
        self.desk, self.box, self.notes = builders.Desk(), mailbox.Mailbox(), Notes()
        known = registry.catalog()
        self.scheduler = Scheduler(self.desk.cache, configuration.default(known), lambda: builders.NOW)
        self.decider = deciding.Decider(
            self.scheduler,
            self.box,
            Lines(0).log,
            self.notes,
            period=period,
            around=Surroundings(wall=lambda: builders.NOW),
        )

    def run(self, story):
        def tell():
            try:
                story()
            finally:
                self.box.post(mailbox.Stop("test"))

        teller = threading.Thread(target=tell)
        self.box.post(mailbox.Begin())
        teller.start()
        self.box.serve(self.decider.steps())
        teller.join()


def wait(condition):
    return waiting.until(condition, every=0.001)


def test_a_change_that_is_told_of_is_decided_on_though_no_period_has_passed():
    rig = Rig()
    pacing_was_idle = []

    def story():
        assert wait(lambda: len(rig.notes.cycles) >= 1)
        pacing_was_idle.append(len(rig.notes.cycles))
        rig.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
        rig.box.ring()
        wait(lambda: rig.desk.world.binds)

    rig.run(story)
    assert rig.desk.world.binds == {"p": "n1"}
    assert pacing_was_idle


def test_nothing_spins_while_nothing_happens():
    rig = Rig()
    started = time.monotonic()
    rig.run(lambda: time.sleep(0.4))
    # One at once, one when everything that follows from starting is done, and one for each second.
    assert len(rig.notes.cycles) <= 2 + math.ceil(time.monotonic() - started)


def test_many_changes_in_a_row_are_one_message():
    box = mailbox.Mailbox()
    for _ in range(1000):
        box.ring()
    assert box.take(0) == mailbox.Changed()
    assert box.take(0) is None
    box.hush()
    box.ring()
    assert box.take(0) == mailbox.Changed()


@given(st.lists(st.sampled_from([0, 0.05, 0.2, None]), max_size=30))
def test_between_two_looks_there_is_one_message_of_each_kind_and_none_that_says_less_than_was_said(steps):
    box, expected, said = mailbox.Mailbox(), [], []
    for wait in steps:
        if wait is None:
            box.hush()
            said = []
            continue
        box.hint(wait) if wait else box.ring()
        if all(wait < earlier for earlier in said):
            said.append(wait)
            expected.append(mailbox.Echoed(wait) if wait else mailbox.Changed())
    found = []
    while (message := box.take(0)) is not None:
        found.append(message)
    assert found == expected


def test_a_burst_that_does_not_pause_is_decided_on_all_the_same():
    rig = Rig()

    def story():
        assert wait(lambda: len(rig.notes.cycles) >= 1)
        rig.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
        until = time.monotonic() + waiting.PATIENCE
        while not rig.desk.world.binds and time.monotonic() < until:
            rig.box.ring()

    rig.run(story)
    assert rig.desk.world.binds == {"p": "n1"}


def test_an_echo_is_looked_at_soon_though_not_at_once():
    rig = Rig()
    taken = []

    def story():
        assert wait(lambda: len(rig.notes.cycles) >= 1)
        rig.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
        started = time.monotonic()
        rig.box.hint(urgency.LATER)
        wait(lambda: rig.desk.world.binds)
        taken.append(time.monotonic() - started)

    rig.run(story)
    assert rig.desk.world.binds == {"p": "n1"}
    assert taken[0] >= urgency.LATER
