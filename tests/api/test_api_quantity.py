import time
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import quantity

LARGEST = 2**63 - 1
SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{name: Fraction(1000**step) for step, name in enumerate("kMGTPE", start=1)},
    **{name + "i": Fraction(1024**step) for step, name in enumerate("KMGTPE", start=1)},
}

texts = st.builds(
    lambda sign, digits, suffix: (sign + digits, suffix),
    st.sampled_from(["", "+", "-"]),
    st.one_of(
        st.from_regex(r"[0-9]{1,20}", fullmatch=True),
        st.from_regex(r"[0-9]{1,12}\.[0-9]{0,14}", fullmatch=True),
        st.from_regex(r"\.[0-9]{1,14}", fullmatch=True),
    ),
    st.sampled_from(sorted(SUFFIXES)),
)
exponents = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 40)).map(
    lambda parts: "".join(map(str, parts))
)


def reference(number: str, factor: Fraction) -> Fraction:
    """The same value by decimal arithmetic with digits to spare."""
    exact = Decimal(number)
    context = Context(prec=400, Emax=10**6, Emin=-(10**6))
    value = context.divide(context.multiply(exact, Decimal(factor.numerator)), Decimal(factor.denominator))
    return Fraction(value.quantize(Decimal("1e-9"), rounding=ROUND_UP, context=context))


@settings(max_examples=drawn(400), deadline=None)
@given(texts)
def test_every_suffix_parses_to_the_value_of_decimal_arithmetic(text):
    number, suffix = text
    assert quantity.parse(number + suffix) == reference(number, SUFFIXES[suffix])


@settings(max_examples=drawn(300), deadline=None)
@given(texts, exponents)
def test_every_exponent_parses_to_the_value_of_decimal_arithmetic(text, exponent):
    number, _ = text
    assert quantity.parse(number + exponent) == reference(number, Fraction(10) ** int(exponent[1:]))


@settings(max_examples=drawn(300), deadline=None)
@given(texts, st.sampled_from([1, 1000, 10**9]))
def test_scaling_rounds_away_from_zero_and_saturates(text, factor):
    number, suffix = text
    exact = reference(number, SUFFIXES[suffix]) * factor
    away = -(-exact // 1) if exact > 0 else exact // 1
    assert quantity.scaled(number + suffix, factor) == max(-LARGEST, min(LARGEST, away))


@settings(max_examples=drawn(300), deadline=None)
@given(st.integers(-LARGEST, LARGEST))
def test_formatted_amounts_parse_back_to_themselves(amount):
    assert quantity.parse(quantity.format_milli(amount)) * 1000 == amount
    assert quantity.parse(quantity.format_bytes(amount)) == amount
    assert quantity.parse(quantity.format_whole(amount)) == amount


@settings(max_examples=drawn(200), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_its_shortest_decimal_text(number):
    assert quantity.parse(number) == quantity.parse(repr(number))


@settings(max_examples=drawn(500), deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_quantity_or_a_named_error(text):
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        assert str(error)  # noqa: PT017  either outcome is right; the error must say something


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("2", 2),
        ("4Gi", 4 * 2**30),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("+5", 5),
        ("-1", -1),
        ("1E", 10**18),
        ("1E3", 1000),
        ("1e3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("1e+3", 1000),
        ("1Ei", 2**60),
        ("0.5Ki", 512),
        ("100n", Fraction(1, 10**7)),
        ("007", 7),
        (3, 3),
        (0.1, Fraction(1, 10)),
        (1e30, 10**30),
        (1e-7, Fraction(1, 10**7)),
        ("-0", 0),
    ],
)
def test_every_form_of_the_grammar_has_its_value(text, value):
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("text", "nanos"),
    [("0.1n", 1), ("1.1n", 2), ("-0.1n", -1), ("-1.1n", -2), ("1e-100", 1), ("0e-100", 0), ("0.0000000001", 1)],
)
def test_finer_than_nano_is_rounded_away_from_zero(text, nanos):
    assert quantity.parse(text) == Fraction(nanos, 10**9)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "abc",
            "1 Gi",
            " 1",
            "1 ",
            "1\n",
            "1ki",
            "1K",
            "1gi",
            "1mi",
            "1Mii",
            "1GiB",
            "1e",
            "1e1.5",
            "1Ee3",
            "1.1.1",
        ],
        *["+", "-", ".", "+.", "--1", "1-", "0x10", "1_000", "Infinity", "NaN", "m", "Gi", "1,5", "\u0661", "1e\u0663"],
        *[True, False, float("inf"), float("-inf"), float("nan"), None, [], {}],
    ],
)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


def test_a_boolean_is_refused_although_the_equal_integer_is_known():
    assert quantity.parse(1) == 1
    with pytest.raises(quantity.QuantityError):
        quantity.parse(True)


def test_an_error_shows_the_text_cut_to_forty_characters():
    with pytest.raises(quantity.QuantityError, match="'abc'"):
        quantity.parse("abc")
    with pytest.raises(quantity.QuantityError, match="^'" + "z" * 39 + "…'"):
        quantity.parse("z" * 50)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9223372036854775807", LARGEST),
        ("9223372036854775808", LARGEST),
        ("-9223372036854775808", -LARGEST),
        ("8Ei", LARGEST),
        ("1e30", LARGEST),
        ("-1e30", -LARGEST),
        ("1e1000000000", LARGEST),
        ("-1e1000000000", -LARGEST),
        ("0." + "0" * 40 + "1e999999999", LARGEST),
        ("1e-1000000000", 1),
        ("0e1000000000", 0),
        (10**30, LARGEST),
    ],
)
def test_whole_saturates_at_what_an_int64_holds(text, expected):
    assert quantity.whole(text) == expected


def test_milli_of_the_largest_integer_saturates_instead_of_wrapping():
    assert quantity.milli(LARGEST) == LARGEST
    assert quantity.milli(str(LARGEST)) == LARGEST


def test_a_tiny_negative_amount_stays_negative():
    assert quantity.milli("-1n") == -1


@pytest.mark.parametrize(
    "text", ["9" * 10_000_000, "1e" + "9" * 10_000_000, "9" * 65, 10**100, 1 << 10_000_000], ids=range(5)
)
def test_a_giant_number_is_refused_at_once(text):
    started = time.thread_time()
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    ("write", "amount", "text"),
    [
        (quantity.format_milli, 0, "0"),
        (quantity.format_milli, 1, "1m"),
        (quantity.format_milli, 1500, "1500m"),
        (quantity.format_milli, 2000, "2"),
        (quantity.format_milli, -1500, "-1500m"),
        (quantity.format_milli, 2_000_000, "2k"),
        (quantity.format_bytes, 0, "0"),
        (quantity.format_bytes, 1000, "1000"),
        (quantity.format_bytes, 1024, "1Ki"),
        (quantity.format_bytes, 1073741824, "1Gi"),
        (quantity.format_bytes, 1536 * 2**20, "1536Mi"),
        (quantity.format_bytes, -(2**20), "-1Mi"),
        (quantity.format_whole, 0, "0"),
        (quantity.format_whole, 110, "110"),
        (quantity.format_whole, 5000, "5k"),
        (quantity.format_whole, 10**21, "1000E"),
    ],
)
def test_amounts_are_written_in_canonical_form(write, amount, text):
    assert write(amount) == text
