"""The clock of the lease."""

from __future__ import annotations

import time

from pumice.server.threads import clocks


def test_the_clock_of_the_lease_goes_on_while_the_machine_sleeps(monkeypatch):
    asleep = 20_000_000_000  # nanoseconds that only one of the clocks has counted
    real = time.clock_gettime_ns
    before = clocks.monotonic()
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: real(clock) + (asleep if clock == time.CLOCK_BOOTTIME else 0)
    )
    assert clocks.monotonic() - before >= asleep // 1000
