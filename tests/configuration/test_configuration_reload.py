"""A refused file leaves the last good one in force; no text of any kind raises anything but a refusal."""

from __future__ import annotations

import pytest
from configuration_catalog import CATALOG, SHIPPED
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.framework import configuration
from pumice.framework.configuration import ConfigurationHolder

FLAT = 'plugins: "gang, priority"\nactions: "allocate"\nplugin.gang.jobready: "true"\n'
DISABLE = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    disableJobOrder: true\n    arguments: {}\n"
RICH = SHIPPED + (
    "    arguments:\n      binpack.cpu: -5\n      binpack.resources: a, b\n      binpack.resources.a: 0x10\n"
    "configurations:\n- name: allocate\n  arguments: {predicateErrorCacheEnable: 'true'}\n"
    "metrics: {type: prometheus, interval: 30s}\ncompatibility: volcano\n"
)
GOOD = (SHIPPED, FLAT, DISABLE, RICH)


def holder() -> ConfigurationHolder:
    return ConfigurationHolder(CATALOG, configuration.load(SHIPPED, CATALOG, "conf"))


def test_case_8_a_refused_file_leaves_the_old_one_in_force():
    held = holder()
    before = held.current
    problems = held.offer(SHIPPED.replace("allocate", "alocate"))
    assert [problem.line for problem in problems] == [1]
    assert held.current is before
    assert held.last_refusal is not None
    assert held.last_refusal.problems == problems
    assert held.last_refusal.source == "conf"


def test_case_11_a_quoted_integer_leaves_the_old_one_in_force():
    held = holder()
    before = held.current
    assert held.offer(SHIPPED + '    arguments: {binpack.weight: "10"}\n')
    assert held.current is before


def test_an_accepted_file_replaces_the_old_one_and_ends_the_refusal():
    held = holder()
    held.offer("nonsense")
    assert held.offer(SHIPPED + "    arguments: {binpack.weight: 10}\n") == ()
    assert held.current.plugin("binpack").arguments["binpack.weight"] == 10
    assert held.last_refusal is None
    assert [(offer.number, offer.accepted) for offer in held.history] == [(1, False), (2, True)]


def test_a_removed_argument_is_its_default_again():
    held = holder()
    held.offer(SHIPPED + "    arguments: {binpack.weight: 10}\n")
    held.offer(SHIPPED)
    assert held.current.plugin("binpack").arguments["binpack.weight"] == 1


def test_history_is_bounded():
    held = holder()
    for _ in range(30):
        held.offer("nonsense")
    assert [offer.number for offer in held.history] == list(range(11, 31))


@pytest.mark.parametrize("text", GOOD, ids=["shipped", "flat", "disable", "rich"])
def test_the_files_that_are_mutated_below_are_good(text):
    assert configuration.load(text, CATALOG).actions


PIECES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            "\n",
            "  ",
            "- ",
            ": ",
            "~",
            "[]",
            "{}",
            "*a ",
            "&a ",
            "<<: ",
            "!!int ",
            "1e999",
            ".nan",
            '"',
            "'",
            "\t",
            "|\n",
            "true",
            "-1",
        ]
    ),
    st.sampled_from(
        [
            "name",
            "plugins",
            "tiers",
            "actions",
            "gang",
            "plugin.gang.jobready: x\n",
            "disableJobOrder: 1\n",
            "compatibility: ",
        ]
    ),
)


@given(st.sampled_from(GOOD), st.lists(st.tuples(st.integers(0, 700), st.integers(0, 30), PIECES), max_size=5))
@settings(max_examples=drawn(600), deadline=None)
def test_a_mutated_file_is_accepted_or_refused_with_lines(text, changes):
    for at, length, piece in changes:
        start = at % (len(text) + 1)
        text = text[:start] + piece + text[start + length :]
    held, again = holder(), holder()
    before = held.current
    problems = held.offer(text)
    assert problems == again.offer(text)
    assert held.current == again.current
    assert (held.current is before) == bool(problems)
    assert all(problem.line >= 1 or "first 50" in problem.message for problem in problems)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        ("actions",),
        ("tiers",),
        ("tiers", 0),
        ("tiers", 1, "plugins"),
        ("tiers", 1, "plugins", 2),
        ("tiers", 1, "plugins", 5, "arguments"),
        ("tiers", 1, "plugins", 5, "arguments", "binpack.cpu"),
        ("tiers", 0, "plugins", 1, "enablePreemptable"),
        ("tiers", 0, "plugins", 1, "name"),
        ("configurations",),
        ("configurations", 0),
        ("configurations", 0, "arguments"),
        ("configurations", 0, "name"),
        ("metrics",),
        ("metrics", "type"),
        ("compatibility",),
        ("plugins",),
    ]
)


@given(PATHS, VALUES)
@settings(max_examples=drawn(300), deadline=None)
def test_a_value_of_any_type_anywhere_is_accepted_or_refused(path, value):
    import json

    import yaml

    data = yaml.safe_load(RICH)
    target = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    text = json.dumps(data).replace("NaN", ".nan").replace("Infinity", ".inf")
    held = holder()
    problems = held.offer(text)
    assert bool(problems) == (held.last_refusal is not None)
