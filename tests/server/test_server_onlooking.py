"""What whoever looks on is told of a scheduler itself."""

from __future__ import annotations

from pumice.server.onlooking import REMEMBERED, CycleTimes


def test_times_of_the_last_cycles_are_told_and_older_ones_forgotten():
    times = CycleTimes()
    assert times.told() == {}
    for number in (3000, 1000, 2000):
        times.add(number)
    assert times.told() == {"median": 2.0, "longest": 3.0, "last": 2.0}
    for _ in range(REMEMBERED):
        times.add(500)
    assert times.told() == {"median": 0.5, "longest": 0.5, "last": 0.5}
