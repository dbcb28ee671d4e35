import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.sim.clock import START, VirtualClock


def test_time_stands_still_until_it_is_advanced():
    clock = VirtualClock()
    assert clock.now() == START
    clock.advance(5)
    assert clock.now() == START + 5


def test_what_is_due_happens_in_time_order_then_in_order_of_registration():
    clock, seen = VirtualClock(0), []
    for name, instant in (("late", 30), ("first", 10), ("second", 10), ("exact", 20), ("beyond", 31)):
        clock.call_at(instant, lambda name=name: seen.append((name, clock.now())))
    clock.advance_to(30)
    assert seen == [("first", 10), ("second", 10), ("exact", 20), ("late", 30)]
    clock.advance(1)
    assert seen[-1] == ("beyond", 31)


def test_a_timer_set_by_a_timer_happens_in_the_same_advance_if_it_is_due():
    clock, seen = VirtualClock(0), []
    clock.call_at(10, lambda: clock.call_at(15, lambda: seen.append(clock.now())))
    clock.advance_to(15)
    assert seen == [15]


def test_a_timer_in_the_past_is_due_at_the_next_advance_by_nothing():
    clock, seen = VirtualClock(100), []
    clock.call_at(3, lambda: seen.append(clock.now()))
    assert seen == []
    clock.advance(0)
    assert seen == [100]


@pytest.mark.parametrize("back", [lambda clock: clock.advance(-1), lambda clock: clock.advance_to(9)])
def test_time_never_goes_back(back):
    clock = VirtualClock(10)
    with pytest.raises(ValueError, match="time cannot go back"):
        back(clock)


@settings(max_examples=drawn(50), deadline=None)
@given(st.lists(st.integers(0, 50), max_size=20), st.lists(st.integers(0, 20), max_size=5))
def test_however_time_is_cut_the_same_timers_happen_in_the_same_order(instants, cuts):
    def run(steps):
        clock, seen = VirtualClock(0), []
        for index, instant in enumerate(instants):
            clock.call_at(instant, lambda index=index: seen.append((clock.now(), index)))
        for step in steps:
            clock.advance(step)
        return seen

    assert run(cuts) == run([sum(cuts)])[: len(run(cuts))] == sorted(run(cuts))
