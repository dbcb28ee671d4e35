"""Patterns of node names: what Python's own matcher finds, in a time that nobody can make long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, node
from drawing import drawn
from pumice.model import pattern_parsing, patterns

LEAVES = [
    "a",
    "b",
    "-",
    ".",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    r"[0-9-]",
    "^",
    "$",
    r"\b",
    r"\B",
    "(?i:A)",
    r"\S",
    "[^\\d]",
    "[]a]",
    "[^]b-]",
    "[a-]",
    r"[\w-]",
    r"[\x61-\x62.]",
    r"\x2d",
    r"\055",
    r"\-",
    r"\.",
    "(?#b)",
    "a(?#b)*",
    "(?P<n{}>a)",
    "(?s:.)",
    "(?i:b-(?-i:A))",
    "{",
    "a{b",
    "a{,2}",
    "}",
    "]",
    r"[\D]",
    r"\A",
    r"\Z",
]
SUFFIXES = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?"]


def numbered(pattern):
    """Give every named group a name of its own."""
    pieces = pattern.split("n{}")
    return "".join(f"{piece}n{number}" for number, piece in enumerate(pieces[:-1])) + pieces[-1]


made = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda ways: f"({'|'.join(ways)})"),
        st.tuples(inner, st.sampled_from(SUFFIXES)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@settings(max_examples=drawn(400), deadline=None)
@given(pattern=made.map(numbered), names=st.lists(st.text("ab-0A{}].", max_size=7), max_size=8))
def test_all_ways_at_once_find_what_one_after_another_finds(pattern, names):
    automaton, searcher = patterns.Automaton(pattern_parsing.parse(pattern)), patterns.searcher(pattern)
    for name in names:
        expected = re.search(pattern, name) is not None
        assert automaton.search(name) == expected
        assert searcher(name) == expected


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "(.*a){12}$", "a?" * 30 + "a" * 30 + "$", ".*.*.*.*.*.*x", "(?:(){4000000000}a*)*b*c*$"],
)
def test_no_pattern_takes_long(pattern):
    started = time.thread_time()
    patterns.searcher(pattern)("a" * 252 + "!")
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("n[", "unterminated character set"),
        ("a{99999999999}", "repetition number is too large"),
        ("(?=a)b", "looks around"),
        ("(?<!a)b", "looks around"),
        ("(?P<n>a)(?P=n)", "refers back"),
        ("(a)?(?(1)b|c)", "refers back"),
        ("a*+b", "looks around"),
        ("(?>a*)b", "looks around"),
        ("(?x) a b", "the flag x is not known; known are i, m and s"),
        (r"(a)\1", "refers back"),
        ("(((a{30}){30}){30})+", "more than 2000 states"),
        ("a" * 2000, "2000 characters"),
        ("(" * 1000 + ")" * 1000, "1024 are read"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(pattern, why):
    with pytest.raises(pattern_parsing.PatternError, match=re.escape(why)):
        patterns.searcher(pattern)


def test_a_bad_pattern_costs_its_hyper_node_alone():
    desk = Desk().feed(node("n1"))
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "a{99999999999}"}}}
    hyper = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "h", "uid": "h"},
        "spec": {"tier": 1, "members": [member]},
    }
    desk.feed(hyper).cycle()
    assert "the repetition number is too large" in desk.world.notes[-1][2]


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("^gpu-[[:digit:]]+$", "gpu-12", True),
        ("^gpu-[[:digit:]]+$", "gpu-x", False),
        ("^[[:alpha:]_-]+$", "rack_a-b", True),
        ("^[^[:upper:]]+$", "Rack", False),
    ],
)
def test_named_classes_mean_what_they_mean_to_the_peers(pattern, name, found):
    assert patterns.searcher(pattern)(name) is found


def test_a_class_that_nobody_knows_is_refused_by_name():
    with pytest.raises(pattern_parsing.PatternError, match=r"the class \[:digits:\] is not known"):
        patterns.searcher("[[:digits:]]")
