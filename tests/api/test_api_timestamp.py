import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import timestamp

NEW_YEAR = 1_767_225_600_000_000


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01T00:00:00.001Z", NEW_YEAR + 1000),
        ("2026-01-01T00:00:00.123456789Z", NEW_YEAR + 123_456),
        ("2026-01-01T01:30:00+01:30", NEW_YEAR),
        ("2025-12-31T16:00:00-08:00", NEW_YEAR),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
    ],
)
def test_a_timestamp_has_its_microseconds(text, microseconds):
    assert timestamp.parse(text) == microseconds


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "now",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
        ],
        *["2026-01-01T25:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+24:00"],
        *[
            "2026-01-01T00:00:00+01:60",
            "0000-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z\n",
            "2026-01-01T00:00:0\u0660Z",
            None,
            5,
        ],
    ],
)
def test_what_is_no_timestamp_is_refused_and_shown(text):
    with pytest.raises(timestamp.TimestampError, match="is no timestamp"):
        timestamp.parse(text)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (NEW_YEAR, "2026-01-01T00:00:00Z"),
        (NEW_YEAR + 1000, "2026-01-01T00:00:00.001000Z"),
        (-500_000, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_only_parts_of_a_second_are_written_with_six_digits(microseconds, text):
    assert timestamp.format_timestamp(microseconds) == text


@pytest.mark.parametrize("microseconds", [2**62, -(2**62), 2**100])
def test_a_time_outside_the_calendar_is_refused(microseconds):
    with pytest.raises(timestamp.TimestampError, match=str(microseconds)):
        timestamp.format_timestamp(microseconds)


@settings(max_examples=drawn(300), deadline=None)
@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_a_written_timestamp_reads_as_itself(moment):
    microseconds = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    assert timestamp.parse(timestamp.format_timestamp(microseconds)) == microseconds
