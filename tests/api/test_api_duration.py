import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import duration

LONGEST = (2**63 - 1) // 1000


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("30s", 30_000_000),
        ("5m", 300_000_000),
        ("1h30m", 5_400_000_000),
        ("500ms", 500_000),
        ("-1.5s", -1_500_000),
        ("+1s", 1_000_000),
        (".5s", 500_000),
        ("1.s", 1_000_000),
        ("1h1h", 7_200_000_000),
        ("250us", 250),
        ("250\u00b5s", 250),
        ("250\u03bcs", 250),
        ("1500ns", 1),
        ("-1500ns", -1),
        ("999ns", 0),
        ("600ns600ns", 1),
        ("0.000001h", 3600),
        ("2562047h47m16.854775807s", LONGEST),
    ],
)
def test_a_go_duration_has_its_microseconds(text, microseconds):
    assert duration.parse(text) == microseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        "1",
        "s",
        "1 s",
        "1d",
        "1s ",
        "--1s",
        "1s-1s",
        ".s",
        "1h30",
        "1e3s",
        "2562048h",
        "9" * 70 + "s",
        None,
        5,
        "\u0661s",
    ],
)
def test_what_go_refuses_is_refused_and_shown(text):
    with pytest.raises(duration.DurationError, match="is no duration"):
        duration.parse(text)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0s"),
        (1, "1\u00b5s"),
        (1500, "1.5ms"),
        (500_000, "500ms"),
        (1_000_000, "1s"),
        (1_500_000, "1.5s"),
        (-1_500_000, "-1.5s"),
        (60_000_000, "1m0s"),
        (90_500_000, "1m30.5s"),
        (5_400_000_000, "1h30m0s"),
        (3_600_000_001, "1h0m0.000001s"),
    ],
)
def test_durations_are_written_as_go_writes_them(microseconds, text):
    assert duration.format_duration(microseconds) == text


@settings(max_examples=drawn(300), deadline=None)
@given(st.integers(-LONGEST, LONGEST))
def test_a_written_duration_reads_as_itself(microseconds):
    assert duration.parse(duration.format_duration(microseconds)) == microseconds
