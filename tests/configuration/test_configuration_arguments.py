"""How one argument is read: what its value becomes, and what is said where it cannot be what is written."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from pumice.api import documents
from pumice.framework.configuration import Argument, arguments

SECOND = 1_000_000
SWITCH = Argument("mode", "string", "soft", choices=("soft", "off"))
PAUSE = Argument("pause", "duration", 5 * SECOND, minimum=0, maximum=60 * SECOND)
AT_LEAST = Argument("pause", "duration", SECOND, minimum=1, replacement=2 * SECOND)
SHARE = Argument("share", "float", Fraction(1, 2), minimum=0, maximum=1)
COUNT = Argument("count", "int", 3, minimum=1, maximum=9, replacement=1)
ANY = Argument("any", "int", 3)
TRUTH = Argument("truth", "bool", default=True)
SIZE = Argument("size", "quantity", 4)
WORDS = Argument("words", "strings", ())
LIST = Argument("list", "list")
MAP = Argument("map", "map")
HUGE = 2**63


def read(argument, written, *, lenient=False):
    """Give the value, or else why it is refused, and the warning."""
    (document,) = documents.load_all(f"{argument.name}: {written}", "test")
    found = arguments.read(argument, document, (argument.name,), lenient=lenient)
    return found.refusal or found.value, found.warning


READ = [
    (SWITCH, "soft", "soft"),
    (SWITCH, "off", "off"),
    (SWITCH, '"off"', "off"),
    (PAUSE, "0", 0),
    (PAUSE, "0s", 0),
    (PAUSE, "1m", 60 * SECOND),
    (PAUSE, "1500ms", 1_500_000),
    (SHARE, "0", Fraction(0)),
    (SHARE, "1", Fraction(1)),
    (SHARE, "0.1", Fraction(1, 10)),
    (SHARE, "1e-2", Fraction(1, 100)),
    (SHARE, "1_0e-2", Fraction(1, 10)),
    (COUNT, "1", 1),
    (COUNT, "9", 9),
    (ANY, str(HUGE - 1), HUGE - 1),
    (ANY, "-5", -5),
    (TRUTH, "false", False),
    (TRUTH, '"f"', False),
    (TRUTH, '"1"', True),
    (SIZE, "7", 7),
    (SIZE, "200Mi", "200Mi"),
    (WORDS, '"a, b,,c "', ("a", "b", "c")),
    (LIST, "[1, {a: 0.5}]", [1, {"a": Fraction(1, 2)}]),
    (MAP, "{a: [0.25]}", {"a": [Fraction(1, 4)]}),
]
REFUSED = [
    (SWITCH, "on", "expected a string, found the boolean true"),
    (Argument("mode", "string", "soft"), "off", "expected a string, found the boolean false"),
    (PAUSE, "false", 'expected a duration such as "30s", found the boolean false'),
    (PAUSE, "1", 'expected a duration such as "30s", found the integer 1'),
    (AT_LEAST, "0", 'expected a duration such as "30s", found the integer 0'),
    (ANY, "true", "expected an integer, found the boolean true"),
    (ANY, "1.5", "expected an integer, found the number 1.5"),
    (ANY, str(HUGE), f"expected an integer, found the integer {HUGE}; integers end at {HUGE - 1}"),
    (TRUTH, "2", "expected true or false, found the integer 2"),
    (TRUTH, '"maybe"', 'expected true or false, found the string "maybe"'),
    (
        SIZE,
        "lots",
        'expected an integer, or a quantity such as "200Mi", found the string "lots": \'lots\' is no quantity: write a number with an optional suffix, such as 500m, 2, 4Gi or 1e3',
    ),
    (SHARE, ".inf", "expected a number, found the number inf; it must be finite"),
    (LIST, "{a: 1}", "expected a list, found a map of 1"),
    (MAP, "[1]", "expected a map, found a list of 1"),
    (LIST, f"[0.{'1' * 80}]", "expected a list, found a list of 1 of 82 characters; at most 64 are read"),
]
QUOTED = "; write it without quotes (quoted numbers are read only under `compatibility: kube-batch`)"
REPLACED = [
    (SWITCH, "hard", "soft", 'found the string "hard", but known are soft, off; soft is used instead'),
    (PAUSE, "61s", 5 * SECOND, 'found the string "61s", but the maximum is 1m0s; 5s is used instead'),
    (PAUSE, '"-1s"', 5 * SECOND, 'found the string "-1s", but the minimum is 0s; 5s is used instead'),
    (SHARE, "1.5", Fraction(1, 2), "found the number 1.5, but the maximum is 1; 0.5 is used instead"),
    (COUNT, "0", 1, "found the integer 0, but the minimum is 1; 1 is used instead"),
    (COUNT, "10", 1, "found the integer 10, but the maximum is 9; 1 is used instead"),
    (Argument("count", "int", minimum=1), "0", None, "found the integer 0, but the minimum is 1; nothing is used instead"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "written", "value"), READ)
def test_what_may_be_written_is_read(argument, written, value):
    assert read(argument, written) == (value, "")


@pytest.mark.parametrize(("argument", "written", "told"), REFUSED)
def test_what_is_of_another_type_is_refused(argument, written, told):
    assert read(argument, written) == (told, "")


@pytest.mark.parametrize(("argument", "written", "value", "told"), REPLACED)
def test_what_is_out_of_range_is_replaced_and_that_is_said(argument, written, value, told):
    assert read(argument, written) == (value, told)


def test_a_text_that_is_no_duration_is_replaced_only_where_something_is_named_for_that():
    value, told = read(AT_LEAST, "soon")
    assert value == 2 * SECOND
    assert told.endswith("; 2s is used instead")
    refused, _ = read(PAUSE, "soon")
    assert refused.startswith('expected a duration such as "30s": ')


@pytest.mark.parametrize(
    ("argument", "text", "value"),
    [
        (ANY, "12", 12),
        (ANY, "-12", -12),
        (ANY, str(-HUGE), -HUGE),
        (SHARE, ".5", Fraction(1, 2)),
        (SHARE, "5.e-1", Fraction(1, 2)),
        (Argument("any", "float", Fraction(0)), "1e18", Fraction(10**18)),
    ],
)
def test_a_quoted_number_is_read_under_the_rules_of_kube_batch_alone(argument, text, value):
    assert read(argument, f'"{text}"', lenient=True) == (value, "")
    refused, _ = read(argument, f'"{text}"')
    assert refused == f'expected {arguments.EXPECTED[argument.kind]}, found the string "{text}"{QUOTED}'


@pytest.mark.parametrize("text", ["1.5", str(HUGE), str(-HUGE - 1), "x", "", "1" * 20])
def test_a_quoted_text_that_is_no_integer_is_refused(text):
    refused, _ = read(ANY, f'"{text}"', lenient=True)
    assert refused.startswith("expected an integer, found the string")
    assert "without quotes" not in refused


@pytest.mark.parametrize("text", ["1e401", "1e19", "1" * 65, "e5", "."])
def test_a_quoted_text_that_is_no_number_or_too_large_a_one_is_refused(text):
    refused, _ = read(Argument("any", "float", Fraction(0)), f'"{text}"', lenient=True)
    assert refused.startswith("expected a number, found the string")


DECLARED = [
    (COUNT, ""),
    (SHARE, ""),
    (msgspec.structs.replace(COUNT, default=1), ""),
    (msgspec.structs.replace(COUNT, default=9), ""),
    (msgspec.structs.replace(COUNT, default=0), "setting count has the default 0, below the minimum of 1"),
    (msgspec.structs.replace(COUNT, default=10), "setting count has the default 10, above the maximum of 9"),
    (msgspec.structs.replace(COUNT, minimum=True), "setting count has the minimum True, and must have a number"),
    (msgspec.structs.replace(COUNT, maximum="9"), "setting count has the maximum '9', and must have a number"),
    (msgspec.structs.replace(COUNT, default=True), "setting count has the default True, a bool, and must be an int"),
    (msgspec.structs.replace(COUNT, default=None), "setting count has the default None, a NoneType, and must be an int"),
    (msgspec.structs.replace(COUNT, name="count.*", default=None), ""),
    (msgspec.structs.replace(COUNT, replacement="1"), "setting count has the replacement '1', a str, and must be an int"),
    (msgspec.structs.replace(SWITCH, default="on"), "setting mode has the default on, which is none of soft, off"),
    (msgspec.structs.replace(PAUSE, default=None), ""),
    (msgspec.structs.replace(PAUSE, default=61 * SECOND), "setting pause has the default 1m1s, above the maximum of 1m0s"),
    (msgspec.structs.replace(WORDS, default=("a", 1)), "setting words has the default ('a', 1), and must be a tuple of str"),
    (msgspec.structs.replace(MAP, fields=(msgspec.structs.replace(ANY, default="3"),)), "in map setting any has the default '3', a str, and must be an int"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "told"), DECLARED)
def test_what_is_declared_must_be_what_a_file_could_bring(argument, told):
    assert arguments.misdeclared([TRUTH, argument]) == told


def test_a_name_is_declared_once():
    assert arguments.misdeclared([ANY, COUNT, ANY]) == "setting any is declared twice"


def test_a_key_sets_the_argument_of_its_name_else_that_of_the_longest_pattern_else_that_of_the_first_of_them():
    declared = [Argument(name, "int", 0) for name in ("a.*", "a.b.*", "*.c", "a.*.d", "a.b.*.d", "a.b", "x.*", "*.y")]
    for key, name in (
        ("a.b", "a.b"),
        ("a.x", "a.*"),
        ("a.b.x", "a.b.*"),
        ("x.c", "*.c"),
        ("a.x.d", "a.*.d"),
        ("x.y", "x.*"),
        ("a.", None),
        (".c", None),
        ("other", None),
    ):
        found = arguments.match(declared, key)
        assert (found and found.name) == name
