"""When a hold of room makes another cycle necessary."""

from __future__ import annotations

import pytest

from pumice.framework.reservations import Hold, Reservations


@pytest.mark.parametrize(("now", "expected"), [(0, 15), (15, 20), (20, None)])
def test_a_hold_that_ended_wakes_nobody(now: int, expected: int | None) -> None:
    reservations = Reservations()
    for uid, since in (("placed", 5), ("waiting", 10)):
        reservations.holds[uid] = Hold("a")
        reservations.holds[uid].clear_since = since
        reservations.holds[uid].patience = 10
    assert reservations.deadline(now) == expected


def test_a_hold_is_as_it_is_until_the_moment_before_it_ends() -> None:
    reservations = Reservations()
    reservations.holds["waiting"] = hold = Hold("a", clear_since=5, patience=10)
    assert hold.unchanged_until + 1 == reservations.deadline(0) == 15
