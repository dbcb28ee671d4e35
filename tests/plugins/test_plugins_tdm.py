"""tdm: windows of the day, and how many pods of a job may go at once."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from pumice.api import time_zones
from pumice.plugins.tdm import budgets, windows

MINUTE = 60_000_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]


def text(start, end):
    return f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"


def slowly_open(start, end, now, zone):
    """Whether a day of the last two has a window that a moment is in, by the clock on the wall of each day."""
    for day in range(-2, 2):
        date = dt.datetime.fromtimestamp(now // 1_000_000, zone).date() + dt.timedelta(days=day)
        later = date if start < end else date + dt.timedelta(days=1)
        first = dt.datetime.combine(date, dt.time(start // 60, start % 60), zone).timestamp() * 1_000_000
        last = dt.datetime.combine(later, dt.time(end // 60, end % 60), zone).timestamp() * 1_000_000
        if first <= now <= last:
            return True
    return False


MINUTES = st.integers(0, 24 * 60 - 1)
MOMENTS = st.integers(1_767_225_600 // 60, 1_798_761_600 // 60).map(lambda minutes: minutes * MINUTE)  # of 2026


@given(MINUTES, MINUTES, MOMENTS, st.integers(-1, 1), st.sampled_from(ZONES))
@example(21 * 60, 6 * 60, 1_767_225_600_000_000 + 3 * 60 * MINUTE, 0, "UTC")
def test_a_window_is_open_from_its_start_to_its_end_by_the_clock_of_its_zone(start, end, now, offset, name):
    zone = zoneinfo.ZoneInfo(name)
    window = windows.parse(text(start, end))
    assert windows.is_open(window, now + offset, zone) == slowly_open(start, end, now + offset, zone)


@given(MINUTES, MINUTES, MOMENTS, st.sampled_from(ZONES))
def test_nothing_changes_before_the_next_change(start, end, now, name):
    zone = zoneinfo.ZoneInfo(name)
    window = windows.parse(text(start, end))
    change = windows.next_change(window, now, zone)
    state = windows.is_open(window, now, zone)
    until = now + 30 * 60 * MINUTE if change is None else change
    for moment in range(now, until, 7 * MINUTE):
        assert windows.is_open(window, moment, zone) == state
    if change is None:
        assert start == end
    else:
        assert windows.is_open(window, change, zone) != state
        assert windows.is_open(window, change - 1, zone) == state


@pytest.mark.parametrize("wrong", ["", "10:00", "24:00-01:00", "10:60-11:00", "10-11", "٣:00-04:00", "1:2-3:4", "-"])
def test_a_window_that_cannot_be_read_is_refused(wrong):
    with pytest.raises(windows.WindowError, match="window"):
        windows.parse(wrong)


@pytest.mark.parametrize("wrong", ["", "Nowhere/Land", "../../etc/passwd", "/etc/localtime", "a\0b"])
def test_a_time_zone_that_nobody_knows_is_refused(wrong):
    with pytest.raises(time_zones.ZoneError, match="time zone"):
        time_zones.zone_of(wrong)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({"volcano.sh/jdb-max-unavailable": "30%"}, 1, id="TD2: 3 may be missing, 2 are"),
        pytest.param({"volcano.sh/jdb-min-available": "50%"}, 3, id="TD2: 5 stay of 8"),
        pytest.param({"volcano.sh/jdb-min-available": "90%"}, 1, id="TD2: fewer run than should"),
        pytest.param({}, 1, id="TD2: no budget"),
        pytest.param({"volcano.sh/jdb-min-available": "8"}, 0, id="all that run stay"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "1"}, 0, id="more are missing than may be"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "25%"}, 1, id="percentages are rounded up"),
        pytest.param(
            {"volcano.sh/jdb-min-available": "2", "volcano.sh/jdb-max-unavailable": "0"}, 6, id="the minimum wins"
        ),
        pytest.param({"volcano.sh/jdb-min-available": "many"}, 1, id="unreadable"),
        pytest.param({"volcano.sh/jdb-min-available": "-1"}, 1, id="negative"),
    ],
)
def test_a_budget_says_how_many_pods_may_go(annotations, expected):
    made = group("g", 1, phase="Running")
    made["metadata"]["annotations"] = annotations
    running = [pod(f"g-w-{i}", "g", cpu="1", node="m1", phase="Running") for i in range(8)]
    waiting = [pod(f"g-w-{i}", "g", cpu="1") for i in range(8, 10)]
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n').feed(node("m1"), made, *running, *waiting)
    job = next(iter(desk.session().cluster.jobs.values()))
    assert budgets.allowed(job) == expected
