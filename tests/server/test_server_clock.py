"""The clocks of a process."""

from __future__ import annotations

import time
from types import SimpleNamespace

from pumice.server.threads import clocks


def test_the_clock_of_the_lease_goes_on_while_the_machine_sleeps(monkeypatch):
    asleep = 20_000_000_000  # nanoseconds that only one of the clocks has counted
    real = time.clock_gettime_ns
    before = clocks.monotonic()
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: real(clock) + (asleep if clock == time.CLOCK_BOOTTIME else 0)
    )
    assert clocks.monotonic() - before >= asleep // 1000


def test_the_time_never_goes_back_and_follows_a_wall_clock_that_was_set_back_until_it_has_caught_up():
    real = SimpleNamespace(wall=5_000_000_000, passed=0)
    clock = clocks.Forward(lambda: real.wall, lambda: real.passed)

    def after(seconds):
        """Look a hundred times in so many seconds; no look may slow the clock down."""
        for _ in range(100):
            real.wall += seconds * 10_000
            real.passed += seconds * 10_000
            last = clock()
        return last

    assert after(1) == real.wall
    real.wall += 60_000_000
    assert clock() == real.wall  # ahead it goes as it is told
    told = clock()
    real.wall -= 3_600_000_000
    assert clock() == told
    assert after(60) == told + 54_000_000
    assert after(10 * 3600 - 61) > real.wall
    assert after(60) == real.wall
