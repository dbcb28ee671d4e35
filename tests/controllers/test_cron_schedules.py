"""Cron lines, held against a slow clock that asks every minute whether it is meant."""

from __future__ import annotations

import datetime as dt
import functools
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import duration, time_zones, timestamp
from pumice.controllers.cron_jobs import cron_fields, schedules
from pumice.controllers.cron_jobs.cron_fields import ScheduleError

SECOND = duration.SECOND
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Asia/Kathmandu",  # a quarter of an hour off
    "Asia/Beirut",  # changes at midnight
    "America/Havana",
    "America/St_Johns",  # used to change a minute after midnight
    "Pacific/Apia",  # left out a day
    "Africa/Casablanca",
)
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def at(text):
    return timestamp.parse(text)


# ---- the oracle: a second reading of the grammar, and one question for every minute


@functools.cache
def numbers(field, least, most):
    found = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        low = least if first == "*" else int(first)
        high = most if first == "*" or (step and not last) else int(last or first)
        found |= {number for number in range(low, high + 1) if (number - low) % int(step or 1) == 0}
    return found


def is_meant(line, clock):
    fields = line.split()
    minute, hour, day, month, weekday = (numbers(field, *bounds) for field, bounds in zip(fields, BOUNDS, strict=True))
    stars = [any(part in ("*", "*/1") for part in fields[place].split(",")) for place in (2, 4)]
    days = (clock.day in day, (clock.weekday() + 1) % 7 in weekday)
    fits = all(days) if any(stars) else any(days)
    return clock.minute in minute and clock.hour in hour and clock.month in month and fits


def slowly(line, zone, begin, minutes):
    first = begin // SECOND // 60 * 60 + 60
    for second in range(first, first + minutes * 60, 60):
        if is_meant(line, dt.datetime.fromtimestamp(second, zone)):
            yield second * SECOND


def spans(least, most, *, single):
    number = st.integers(least, most)
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    base = st.one_of(st.just("*"), ranges, *([number.map(str)] if single else []))
    stepped = st.tuples(st.one_of(base, number.map(str)), st.integers(1, 20)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.lists(st.one_of(base, base, stepped), min_size=1, max_size=3).map(",".join)


def lines():
    loose = st.one_of(st.just("*"), st.just("*"), spans(1, 31, single=True))
    return st.tuples(
        spans(0, 59, single=True),
        spans(0, 23, single=True),
        loose,
        st.one_of(st.just("*"), st.just("*"), spans(1, 12, single=True)),
        st.one_of(st.just("*"), spans(0, 6, single=True)),
    ).map(" ".join)


CHANGES = tuple(
    at(text)
    for text in (
        "2026-03-29T01:00:00Z",  # Berlin, Beirut
        "2026-10-25T01:00:00Z",
        "2026-03-08T07:00:00Z",  # New York, Havana
        "2026-11-01T06:00:00Z",
        "2026-04-04T15:00:00Z",  # Lord Howe
        "2026-10-03T15:30:00Z",
        "2010-11-07T02:31:00Z",  # St. John's, a minute after midnight
        "2011-12-30T10:00:00Z",  # Apia
        "2026-02-28T23:00:00Z",
        "2028-02-29T00:00:00Z",
    )
)
moments = st.tuples(st.sampled_from(CHANGES), st.integers(-50 * 3600, 26 * 3600)).map(
    lambda pair: pair[0] + pair[1] * SECOND
)


@settings(max_examples=drawn(150), deadline=None)
@given(lines(), st.sampled_from(ZONES), moments, st.integers(0, SECOND))
def test_the_next_start_is_the_first_minute_that_is_meant(line, name, moment, part):
    zone = zoneinfo.ZoneInfo(name)
    wanted = next(slowly(line, zone, moment, 3 * 24 * 60), None)
    found = schedules.parse(line, zone).after(moment + part, 0)
    if wanted is None:
        assert found is None or found > moment + 3 * 24 * 3600 * SECOND
    elif wanted > moment + part:
        assert found == wanted


@settings(max_examples=drawn(60), deadline=None)
@given(lines(), st.sampled_from(ZONES), moments, st.integers(0, 2 * 24 * 3600))
def test_the_latest_start_of_a_span_is_the_last_minute_that_is_meant(line, name, moment, seconds):
    zone = zoneinfo.ZoneInfo(name)
    until = moment + seconds * SECOND
    starts = [start for start in slowly(line, zone, moment, seconds // 60 + 1) if moment < start <= until]
    assert schedules.parse(line, zone).latest(moment, until, 0) == (starts[-1] if starts else None)


@pytest.mark.parametrize(
    ("line", "after", "until", "wanted"),
    [
        ("0 0 1 1 *", "2020-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2019-06-01T00:00:00Z", "2027-06-01T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("0 0 15 * *", "2020-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "2025-05-15T00:00:00Z"),
        ("0 0 * * 1", "2020-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "2025-05-26T00:00:00Z"),
        ("0 0 30 2 *", "2020-06-01T00:00:00Z", "2025-06-01T00:00:00Z", None),
    ],
)
def test_rare_starts_are_found_far_back(line, after, until, wanted):
    found = schedules.parse(line, None).latest(at(after), at(until), 0)
    assert found == (None if wanted is None else at(wanted))


@pytest.mark.parametrize(
    ("year", "wanted"), [(2098, None), (2099, "2104-02-29T00:00:00Z"), (2103, "2104-02-29T00:00:00Z")]
)
def test_a_start_is_looked_for_until_the_end_of_the_fifth_year(year, wanted):
    """There is no 29th of February in 2100."""
    found = schedules.parse("0 0 29 2 *", None).after(at(f"{year}-06-01T00:00:00Z"), 0)
    assert found == (None if wanted is None else at(wanted))


NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("line", "moment", "wanted"),
    [
        ("30 2 11 3 *", "2012-03-11T00:00:00-05:00", "2013-03-11T02:30:00-04:00"),  # left out
        ("0 * * * *", "2012-03-11T01:00:00-05:00", "2012-03-11T03:00:00-04:00"),
        ("0 2 * * *", "2012-03-11T00:00:00-05:00", "2012-03-12T02:00:00-04:00"),
        ("0 1 * * *", "2012-11-04T00:00:00-04:00", "2012-11-04T01:00:00-04:00"),  # twice
        ("0 1 * * *", "2012-11-04T01:00:00-04:00", "2012-11-04T01:00:00-05:00"),
        ("0 1 * * *", "2012-11-04T01:00:00-05:00", "2012-11-05T01:00:00-05:00"),
        ("30 1 4 11 *", "2012-11-04T01:45:00-04:00", "2012-11-04T01:30:00-05:00"),
        ("30 2 4 11 *", "2012-11-04T00:00:00-04:00", "2012-11-04T02:30:00-05:00"),
    ],
)
def test_daylight_saving_leaves_starts_out_or_repeats_them(line, moment, wanted):
    found = schedules.parse(line, zoneinfo.ZoneInfo(NEW_YORK)).after(at(moment), 0)
    assert found == at(wanted)
    assert schedules.parse(f"TZ={NEW_YORK} {line}", None).after(at(moment), 0) == at(wanted)
    assert schedules.parse(f"CRON_TZ={NEW_YORK}  {line}", None).after(at(moment), 0) == at(wanted)


def test_a_minute_is_found_in_the_hour_in_which_the_clock_goes_forward():
    """Pyongyang went from 23:30 to 0:00."""
    schedule = schedules.parse("10 0 * * *", zoneinfo.ZoneInfo("Asia/Pyongyang"))
    assert schedule.after(at("2018-05-04T22:00:00+08:30"), 0) == at("2018-05-05T00:10:00+09:00")


def test_where_the_clock_goes_back_over_midnight_the_second_end_of_the_day_is_followed_by_the_same_next_day():
    """St. John's goes back from 0:01 to 23:01."""
    schedule = schedules.parse("0 12 7 11 *", zoneinfo.ZoneInfo("America/St_Johns"))
    assert schedule.after(at("2010-11-06T23:30:00-03:30"), 0) == at("2010-11-07T12:00:00-03:30")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("*/15 * * * *", "2012-07-09T15:00:00Z"),
        ("20-35/15 * * * *", "2012-07-09T15:20:00Z"),
        ("*/15 20-23 * * *", "2012-07-09T20:00:00Z"),
        ("0 0 * Feb Mon", "2013-02-04T00:00:00Z"),
        ("0 0 1 feb mon", "2013-02-01T00:00:00Z"),  # either the first, or a Monday
        ("0 0 * FEB Mon,Wed", "2013-02-04T00:00:00Z"),
        ("0 0 */2 * Mon", "2012-07-11T00:00:00Z"),  # a step above 1 restricts the day
        ("0 0 ? * 2", "2012-07-10T00:00:00Z"),
        ("5/20 * * * *", "2012-07-09T15:05:00Z"),
        ("@hourly", "2012-07-09T15:00:00Z"),
        ("@daily", "2012-07-10T00:00:00Z"),
        ("@midnight", "2012-07-10T00:00:00Z"),
        ("@weekly", "2012-07-15T00:00:00Z"),
        ("@monthly", "2012-08-01T00:00:00Z"),
        ("@yearly", "2013-01-01T00:00:00Z"),
        ("@annually", "2013-01-01T00:00:00Z"),
    ],
)
def test_lines(line, wanted):
    assert schedules.parse(line, None).after(at("2012-07-09T14:45:00Z"), 0) == at(wanted)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * *", "has 6 fields"),
        ("60 * * * *", "outside 0 to 59"),
        ("* 24 * * *", "outside 0 to 23"),
        ("* * 0 * *", "outside 1 to 31"),
        ("* * * 13 *", "outside 1 to 12"),
        ("* * * * 7", "outside 0 to 6"),
        ("*/0 * * * *", "step of 0"),
        ("5-1 * * * *", "begins after its end"),
        ("1-2-3 * * * *", "too many"),
        ("1/2/3 * * * *", "too many"),
        ("a * * * *", "is no number"),
        ("-1 * * * *", "is no number"),
        ("²  * * * *", "is no number"),
        ("mon * * * *", "is no number"),
        ("9" * 50 + " * * * *", "is no number"),
        ("@sometimes", "is none of @yearly"),
        ("@every", "is none of @yearly"),
        ("@every soon", "soon"),
        ("TZ=Moon/Crater * * * * *", "unknown time zone 'Moon/Crater'"),
        ("* * * * " + "1," * 5000, "fields"),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_reason(line, says):
    with pytest.raises(ScheduleError, match=says):
        schedules.parse(line, None)


def test_a_zone_is_named_once():
    with pytest.raises(ScheduleError, match="leave one out"):
        schedules.parse("TZ=UTC * * * * *", dt.UTC)


@pytest.mark.parametrize(
    "name", ["", "Local", "local", "Moon/Crater", "../../etc/passwd", "America", "a\0b", "x" * 5000]
)
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(time_zones.ZoneError):
        time_zones.zone_of(name)


def test_what_never_comes_is_said_so():
    assert schedules.parse("0 0 30 2 *", None).after(at("2026-01-01T00:00:00Z"), 0) is None


@given(st.integers(0, 10**6), st.integers(0, 10**8), st.integers(0, 10**8), st.integers(0, 10**6))
def test_every_means_equal_distances_from_the_last_start(span, anchor, moment, part):
    made = schedules.parse(f"@every {span}ms", None)
    step = max(1, span // 1000) * SECOND
    base = anchor * SECOND
    anchor, moment = base + part, base + moment * SECOND // 100
    found = made.after(moment, anchor)
    assert found > moment
    assert (found - base) % step == 0
    assert found - step <= max(moment, base)
    latest = made.latest(anchor, moment, anchor)
    assert (latest is None) == (moment < base + step)
    if latest is not None:
        assert latest <= moment < latest + step


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        schedules.parse(text, None)
    except ScheduleError:
        return
    assert len(text.split()) >= 2 or text.strip().startswith("@")


@given(st.text(alphabet="0123456789*/-,? ", max_size=24))
def test_any_field_is_read_or_refused(text):
    try:
        found = cron_fields.parse(text)
    except ScheduleError:
        return
    assert found.minutes <= set(range(60))
