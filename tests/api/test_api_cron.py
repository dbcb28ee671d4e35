"""Schedules of cron jobs: what they mean, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import cron


@pytest.mark.parametrize(
    ("text", "minutes", "hours"),
    [
        ("0 3 * * *", {0}, {3}),
        ("*/20 * * * *", {0, 20, 40}, set(range(24))),
        ("5/25 1-3 * * *", {5, 30, 55}, {1, 2, 3}),
        ("1,2,10-20/5 ? * * *", {1, 2, 10, 15, 20}, set(range(24))),
        ("@hourly", {0}, set(range(24))),
        ("@daily", {0}, {0}),
    ],
)
def test_fields_name_their_values(text, minutes, hours):
    found = cron.parse(text)

    assert (found.minutes, found.hours) == (minutes, hours)


def test_months_and_days_may_be_words():
    found = cron.parse("0 0 1 JAN-mar Mon,FRI")

    assert (found.months, found.weekdays, found.any_day, found.any_weekday) == ({1, 2, 3}, {1, 5}, False, False)
    assert cron.parse("0 0 * * 0").any_day
    assert cron.parse("@every 1h30m").every == 5_400_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 0 fields, and must have 5"),
        ("* * * *", "has 4 fields"),
        ("* * * * * *", "has 6 fields"),
        ("60 * * * *", "minute: 60 is not within 0 to 59"),
        ("* 24 * * *", "hour: 24"),
        ("* * 0 * *", "day of month: 0"),
        ("* * * 13 *", "month: 13"),
        ("* * * * 7", "day of week: 7"),
        ("* * * foo *", 'month: "foo"'),
        ("*/0 * * * *", "has the step 0"),
        ("5-1 * * * *", "begins with 5, behind its end 1"),
        ("1-2-3 * * * *", "neither"),
        ("*-3 * * * *", "is one already"),
        ("@reboot", "no schedule; the words are @yearly"),
        ("@every soon", "no duration"),
        ("@every -5m", "above 0"),
        ("TZ=UTC * * * * *", "names a time zone"),
        ("x" * 300, "has 300 characters"),
        (f"{'9' * 60} * * * *", "is not within"),
        (f"*/{'9' * 60} * * * *", ""),
    ],
)
def test_what_is_no_schedule_is_named_with_its_field(text, message):
    if not message:
        assert cron.parse(text).minutes == {0}
        return
    with pytest.raises(cron.CronError) as caught:
        cron.parse(text)

    assert message in str(caught.value)


@given(st.text(alphabet="0123456789*/-,?@ jJaAnNTZ=", max_size=30))
def test_any_text_is_a_schedule_or_refused(text):
    try:
        found = cron.parse(text)
    except cron.CronError:
        return
    assert found.every > 0 or all((found.minutes, found.hours, found.days, found.months, found.weekdays))
