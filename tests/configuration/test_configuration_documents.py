"""YAML is read as Go's yaml.v2 reads it, with lines, and within bounds."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import documents


@pytest.fixture(params=["C", "pure"], autouse=True)
def loader(request, monkeypatch):
    monkeypatch.setattr(documents, "LOADER", yaml.SafeLoader if request.param == "pure" else documents.LOADER)


def read(text: str):
    return documents.load_all(text, "file")[0].data


SCALARS = [
    *[(word, True) for word in ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")],
    *[(word, False) for word in ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")],
    *[(word, None) for word in ("~", "null", "Null", "NULL", "")],
    ("tRUE", "tRUE"),
    ("nO", "nO"),
    ("12:30:45", "12:30:45"),
    ("1:30", "1:30"),
    ("2001-12-14", "2001-12-14"),
    ("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z"),
    ("1e3", 1000.0),
    ("1E3", 1000.0),
    ("1.5e-3", 0.0015),
    (".5", 0.5),
    ("5.", 5.0),
    ("-.5", -0.5),
    ("+12", 12),
    ("-12", -12),
    ("0", 0),
    ("017", 15),
    ("0o17", 15),
    ("-0o17", -15),
    ("0x1F", 31),
    ("0b101", 5),
    ("-0b101", -5),
    ("08", 8.0),
    ("1_000", 1000),
    ("1_000.5", 1000.5),
    ("_1", "_1"),
    ("._5", "._5"),
    ("9223372036854775807", 2**63 - 1),
    ("18446744073709551615", 2**64 - 1),
    ("-18446744073709551615", -18446744073709551615.0),
    ("99999999999999999999", 1e20),
    ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
    ("1e400", "1e400"),
    ("1.2.3", "1.2.3"),
    ("1Gi", "1Gi"),
    ("500m", "500m"),
    ("+", "+"),
    ("0x", "0x"),
    ('"12"', "12"),
    ("'y'", "y"),
    ("!!str 12", "12"),
    ("! 12", "12"),
    ('!!int "12"', 12),
    ("!!float 3", 3.0),
    ("!!timestamp 2001-12-14", "2001-12-14"),
    (".inf", math.inf),
    ("-.Inf", -math.inf),
]


@pytest.mark.parametrize(("written", "value"), SCALARS, ids=repr)
def test_scalars_have_the_type_that_go_gives_them(written, value):
    found = read(f"key: {written}\n")["key"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_a_float():
    assert math.isnan(read("a: .nan")["a"])


def test_a_number_of_any_length_is_read():
    assert isinstance(read(f"a: {'1' * 5000}")["a"], str)
    assert read(f"a: 0.{'1' * 5000}")["a"] == pytest.approx(0.1111111111)


KEYS = [("1: x", "1"), ("017: x", "15"), ("y: x", "true"), ("1.50: x", "1.50"), ('"y": x', "y"), ("a b: x", "a b")]


@pytest.mark.parametrize(("text", "key"), KEYS)
def test_keys_are_strings(text, key):
    assert read(text) == {key: "x"}


def test_merge_keys_fill_what_is_not_written():
    text = "a: &a {x: 1, y1: 2}\nb: &b {x: 3, z: 4}\nc:\n  <<: [*a, *b]\n  y1: 9\nd:\n  <<: *a\ne: {'<<': 1}\n"
    data = read(text)
    assert data["c"] == {"y1": 9, "x": 1, "z": 4}
    assert data["d"] == {"x": 1, "y1": 2}
    assert data["e"] == {"<<": 1}


def test_aliases_are_copies():
    data = read("a: &a {x: [1]}\nb: *a\n")
    data["a"]["x"].append(2)
    assert data["b"] == {"x": [1]}


def test_lines_of_keys_values_and_what_is_missing():
    text = "# comment\nfirst:\n  list:\n  - a\n  - b: 1\n    c:\n      deep\n  text: |\n    one\n    two\nanchor: &n {k: v}\nalias: *n\n"
    document = documents.load_all(text, "file")[0]
    lines = {
        (): 2,
        ("first",): 2,
        ("first", "list"): 3,
        ("first", "list", 0): 4,
        ("first", "list", 1): 5,
        ("first", "list", 1, "c"): 6,
        ("first", "text"): 8,
        ("alias",): 12,
        ("alias", "k"): 11,
        ("first", "nowhere", "else"): 2,
        ("nowhere",): 2,
    }
    assert {path: document.line_of(path) for path in lines} == lines
    assert document.value_line_of(("first", "list", 1, "c")) == 7
    assert document.at(("first", "list", 1, "b")) == 1


def test_scalars_remember_how_they_were_written():
    document = documents.load_all('a: 1.20\nb: "x"\nc: [0x10]\n', "file")[0]
    assert [document.text_of(path) for path in (("a",), ("b",), ("c", 0), ("c",), ("d",), ("a", "b"))] == [
        "1.20",
        "x",
        "0x10",
        None,
        None,
        None,
    ]


def test_documents_without_content_are_left_out():
    found = documents.load_all("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", "file")
    assert [(document.data, document.line_of(())) for document in found] == [({"a": 1}, 3), ({"b": 2}, 7)]
    assert documents.load_all("", "file") == []


BAD = [
    ("a: 1\nb: 2\na: 3\n", 3, 'key "a" is written twice; it is already on line 1'),
    ("x:\n  1: a\n  '1': b\n", 3, 'key "1" is written twice; it is already on line 2'),
    ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n", 4, 'key "<<" is written twice; it is already on line 3'),
    ("a: 1\nb: c: d\n", 2, "mapping values are not allowed"),
    ("a: [1, }\n", 1, ""),
    ("a: 1\nb: \x00\n", 2, "not allowed"),
    ("a: \ud800\n", 1, "U+D800"),
    ("a: *b\n", 1, "alias *b has no anchor &b before it"),
    ("a: &a [1, *a]\n", 1, "stands inside the value it names"),
    ("? [a]\n: 1\n", 1, "a key must be a name, not a list of 1"),
    ("~: 1\n", 1, "a key must be a name, not nothing"),
    ("a: !!python/object:os.system x\n", 1, "is not supported"),
    ("a: !!set {x}\n", 1, "is not supported"),
    ("a: !!int x\n", 1, '"x" is not of the type !!int'),
    ("a:\n  <<: 3\n", 2, '"<<" merges maps, not the integer 3'),
    ("[" * 5000, 1, "nested deeper than 100 levels"),
    ('a: "\\UFFFFFFFF"\n', 1, ""),
    ("%YAML 9.9\n---\na: 1\n", 1, "incompatible"),
]


@pytest.mark.parametrize(("text", "line", "fragment"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_bad_documents_name_the_line(text, line, fragment):
    with pytest.raises(documents.DocumentError) as caught:
        documents.load_all(text, "conf.yaml")
    assert caught.value.line == line
    assert fragment in caught.value.message
    assert str(caught.value).startswith("conf.yaml: line ")


def test_a_tower_of_aliases_is_refused():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(documents.DocumentError, match="aliases stand for more than 100000 values"):
        documents.load_all("\n".join(levels), "file")


def test_depth_added_by_aliases_is_bounded():
    nested = "[" * 60 + "]" * 60
    with pytest.raises(documents.DocumentError, match="by an alias"):
        documents.load_all(f"a: &a {nested}\nb: {'[' * 60}*a {']' * 60}\n", "file")


def test_a_text_beyond_the_limit_is_refused():
    with pytest.raises(documents.DocumentError, match=r"the text has 4194\d\d\d bytes; at most 4194304 are read"):
        documents.load_all("a: " + "x" * documents.MAX_BYTES, "file")


NEAREST = [
    ("alocate", "allocate"),
    ("Gang", "gang"),
    ("zzz", None),
    ("enableOverused", "enabledOverused"),
    ("x" * 100_000, None),
]


@pytest.mark.parametrize(("word", "meant"), NEAREST, ids=lambda value: str(value)[:20])
def test_the_nearest_name_is_suggested(word, meant):
    assert documents.nearest(word, ("allocate", "backfill", "gang", "enabledOverused")) == meant


def test_messages_stay_short():
    assert len(documents.described("x" * 10_000)) < 100
    assert documents.described({"a": 1}) == "a map of 1"


@given(st.text(max_size=200))
@settings(max_examples=drawn(150), deadline=None)
def test_any_text_is_read_or_refused(text):
    line = 1
    try:
        documents.load_all(text, "file")
    except documents.DocumentError as error:
        line = error.line
    assert line >= 1
