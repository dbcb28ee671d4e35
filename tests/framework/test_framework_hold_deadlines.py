"""When a hold of room makes another cycle necessary."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, Desk, group, node, pod
from pumice.api import timestamp
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


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize(("grace", "given"), [(10, None), (None, None), (10, 5)])
@pytest.mark.parametrize(("ahead", "later"), [(0, 0), (7, 0), (3600, 0), (3600, 20)])
def test_a_hold_waits_for_no_clock_that_is_ahead(restarted, grace, given, ahead, later) -> None:
    """A victim that does not go when it should; another may be deleted on the node a while after the first, and others go elsewhere."""
    allowed = given or grace or 30

    def victim(name, second):
        made = pod(name, "old", node="n", deleting=second + ahead + allowed, terminationGracePeriodSeconds=grace)
        made["metadata"]["deletionGracePeriodSeconds"] = given
        return made

    desk = Desk().feed(node("n", "4"), group("old"), group("g"), victim("old-0", 0), pod("g-0", "g", cpu="1"))
    bystander = pod("bystander", "old", node="else")
    desk.feed(bystander).apply()
    known, claimant = Reservations(), desk.task("g-0")
    known.holds[claimant.uid] = Hold(
        "n", () if restarted else (desk.task("old-0").uid,), made=None if restarted else NOW
    )
    for second in range(later + allowed + 60):
        if second == 3:
            desk.delete(bystander).apply()
        if later and second == later:
            desk.feed(victim("old-1", later))
            desk.apply()
        assert known.renew(desk.cluster, NOW + second * SECOND) == [claimant]
        assert known.deadline(NOW + second * SECOND) is not None
        if second == allowed - 1 and not later:
            told = known.awaited(desk.cluster, claimant.job)
            assert timestamp.format_timestamp(NOW + (allowed + 60) * SECOND) in told
        if not restarted and second == allowed + 59:
            break
    end = (later if restarted else 0) + allowed + 60
    assert known.renew(desk.cluster, NOW + end * SECOND) == []


@pytest.mark.parametrize("given", [None, 0])
@pytest.mark.parametrize("grace", [0, 1, 45, None])
def test_a_victim_has_as_long_as_it_was_given_from_when_it_is_first_seen_to_go(grace, given):
    victim = pod("old-0", "old", node="n", deleting=3600, terminationGracePeriodSeconds=grace)
    victim["metadata"]["deletionGracePeriodSeconds"] = given
    desk = Desk().feed(node("n", "4"), group("old"), group("g"), victim, pod("g-0", "g", cpu="1")).apply()
    known, claimant = Reservations(), desk.task("g-0")
    known.holds[claimant.uid] = Hold("n", (desk.task("old-0").uid,), made=NOW)
    assert known.renew(desk.cluster, NOW) == [claimant]
    allowed = 0 if given == 0 else 30 if grace is None else grace
    assert known.deadline(NOW) == NOW + (allowed + 60) * SECOND
