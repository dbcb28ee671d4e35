"""Who watches the parts of a process, in virtual time: what is due and not begun is told after 5 s and ends the process after 30 s; what goes on is told after 30 s."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.server.health import overdue


class Story:
    """A part, and one who looks at it every half second of a clock that is ours."""

    def __init__(self, part=None):
        self.part = part or overdue.Part("deciding", "a cycle")
        self.watch, self.now, self.found = overdue.Watch(), 1000.0, []
        self.watch.add(self.part)
        self.look()

    def look(self):
        new = self.watch.look(self.now)
        self.found += new
        return new

    def pass_time(self, seconds, step=overdue.EVERY, each=lambda: None):
        """Let time pass, with a look after each step; `each` is what the part does before it."""
        for _ in range(round(seconds / step)):
            self.now += step
            each()
            self.look()

    def until(self, wanted, limit=10_000):
        """Give after how many seconds something is found that is wanted."""
        began = self.now
        while self.now - began < limit:
            self.now += overdue.EVERY
            if any(wanted(each) for each in self.look()):
                return self.now - began
        return math.inf


def told(found):
    return not found.over


def ends(found):
    return found.ends


def test_a_cycle_that_was_due_and_is_not_begun_is_told_after_5_seconds_and_ends_the_process_after_30():
    story = Story()
    story.part.begin("a cycle")
    story.part.due(story.now + 2)
    assert story.until(told) == pytest.approx(7, abs=overdue.EVERY)
    assert story.watch.late() == "deciding: a cycle was due 5s ago and has not begun"
    assert story.until(ends) == pytest.approx(25, abs=overdue.EVERY)
    assert [each.ends for each in story.found] == [False, True]


def test_what_is_due_in_an_hour_is_not_missed_before():
    story = Story()
    story.part.due(story.now + 3600)
    assert story.until(told) == pytest.approx(3605, abs=1)


def test_a_cycle_that_runs_is_told_after_30_seconds_and_ended_after_the_deadline_alone():
    story = Story(overdue.Part("deciding", "a cycle", deadline=600))
    story.part.begin("a cycle")
    assert story.until(told) == pytest.approx(30, abs=1)
    assert not story.watch.late()
    assert story.watch.notes() == "deciding: a cycle has been going on for 30s"
    assert story.until(ends) == pytest.approx(570, abs=1)
    assert len(story.found) == 2


def test_without_a_deadline_a_cycle_may_run_for_ever():
    story = Story()
    story.part.begin("a cycle")
    assert story.until(ends, limit=5000) == math.inf
    assert len(story.found) == 1


def test_what_goes_on_again_is_told_once_and_a_second_stall_is_told_anew():
    story = Story()
    for stall in (1, 2):
        story.part.due(story.now)
        story.pass_time(10)
        story.part.begin("a cycle")
        story.pass_time(10)
        assert [each.over for each in story.found] == [False, True] * stall
        assert not story.watch.late()
    assert dict((labels[0], value) for name, labels, value in story.watch.samples() if name == "pumice_stalls_total") == {"deciding": 2}  # noqa: C402  # fmt: skip


def test_other_work_delays_what_is_due_and_does_not_excuse_that_it_is_never_begun():
    story = Story()
    story.part.begin("a cycle")

    def dumps():
        story.part.work("a dump")
        story.part.due(story.now - 1)

    story.pass_time(6, each=dumps)
    assert story.watch.late()
    story.part.work("a dump")
    story.pass_time(20)
    assert story.until(ends, limit=100) == math.inf  # the dump goes on, and has no deadline


@pytest.mark.parametrize("gap", [3.0, 60.0, 86_400.0])
def test_time_in_which_nobody_could_look_counts_for_nobody(gap):
    """A process that was stopped, a laptop that slept, a machine that has no time for us: the next look finds everything long overdue."""
    story = Story()
    for _ in range(20):
        story.part.begin("a cycle")
        story.part.due(story.now + 1)
        story.pass_time(1)
        story.now += gap
        story.look()
        story.pass_time(1.5)
    assert story.found == []


@given(st.lists(st.floats(0.0, 40.0), min_size=1, max_size=60), st.floats(0.05, 4.0))
def test_a_part_that_begins_within_three_seconds_of_running_is_never_blamed(gaps, pause):
    """Both run as often as the machine lets them: of time that passes without a look no more than a second counts."""
    story = Story()
    ran = 0.0
    story.part.due(story.now)
    for gap in gaps:
        story.now += gap
        story.look()
        ran += min(gap, overdue.LONGEST_STEP)
        if ran >= pause:
            story.part.begin("a cycle")
            story.part.due(story.now)
            ran = 0.0
    assert story.found == []


@given(st.lists(st.floats(0.0, 3.0), min_size=200, max_size=200))
def test_a_part_that_never_begins_is_ended_however_irregular_the_looks_are(gaps):
    story = Story()
    story.part.due(story.now)
    for gap in [*gaps, *[overdue.EVERY] * 80]:
        story.now += gap
        story.look()
    assert any(each.ends for each in story.found)
    assert not story.found[0].ends


def test_a_part_that_counts_its_turns_is_late_if_the_count_stands_still():
    count = [0]
    story = Story(overdue.Turning("journal", "a commit", lambda: count[0]))

    def turns():
        count[0] += 1

    story.pass_time(60, each=turns)
    assert story.found == []
    assert story.until(told) == pytest.approx(6, abs=1)
    assert story.until(ends) == pytest.approx(25, abs=1)
    assert story.watch.late().startswith("journal: a commit was due 3")


def test_a_part_that_rests_is_not_expected_to_turn():
    rests = [True]
    story = Story(overdue.Turning("turns", "a look", lambda: 7, rests=lambda: rests[0]))
    story.pass_time(1000)
    assert story.found == []
    rests[0] = False
    assert story.until(told) == pytest.approx(6, abs=1)


def test_a_part_that_the_process_can_do_without_is_told_and_noted_and_ends_nothing():
    story = Story(overdue.Turning("recording", "a write", lambda: 1, ends=False))
    assert story.until(told) < 10
    assert story.until(ends, limit=1000) == math.inf
    assert not story.watch.late()
    assert "recording: a write was due" in story.watch.notes()


def test_a_part_that_has_not_said_anything_is_not_overdue():
    story = Story()
    story.pass_time(1000)
    assert story.found == []
    assert not story.watch.late()
    assert not story.watch.notes()


def test_the_numbers_of_every_part_are_given():
    story = Story()
    busy = overdue.Part("io", "a turn")
    story.watch.add(busy)
    busy.begin("a long turn")
    story.part.due(story.now)
    story.look()
    story.pass_time(7)
    samples = {(name, *labels): value for name, labels, value in story.watch.samples()}
    assert samples["pumice_overdue_seconds", "deciding"] == pytest.approx(7, abs=0.6)
    assert samples["pumice_busy_seconds", "io"] == pytest.approx(7, abs=0.6)
    assert samples["pumice_overdue_seconds", "io"] == 0
    assert samples["pumice_stalls_total", "deciding"] == 1
    assert samples["pumice_stalls_total", "io"] == 0
