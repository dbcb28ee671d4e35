"""YAML and JSON from anybody: a value or an error with its line, and never more work than the limits say."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api import documents, json_depth
from tests import mutations

MANIFEST = """\
# a Job
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: &m {name: a, labels: {"k": 'v'}, annotations: {text: "x\\ty"}}
spec:
  minAvailable: 3
  tasks:
  - &t
    replicas: 1
    name: w
    template: {spec: {containers: [{name: c, image: "x:1", command: [sh, -c, "sleep 1"]}]}}
  - <<: *t
    name: b
  text: |
    %TAG is no directive here
    - nor a list
  folded: >-
    a
    b
---
kind: Queue
metadata: *m
""".replace("metadata: *m", "metadata: {name: q}")

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8)
)
REFUSED = {
    "lists": ("[" * 100_000, "line 1: nested deeper than 100 levels"),
    "maps": ("{a: " * 100_000, "line 1: nested deeper than 100 levels"),
    "keys": ("? " * 100_000, "line 1: nested deeper than 100 levels"),
    "items": ("- " * 100_000, "line 1: nested deeper than 100 levels"),
    "indents": ("".join(" " * n + "a:\n" for n in range(200)), "line 101: nested deeper than 100 levels"),
    "laughs": (LAUGHS, "line 5: aliases stand for more than 100000 values"),
    "merged laughs": ("a: &a {" + ", ".join(f"k{n}: 1" for n in range(1_000)) + "}\n" + "".join(f"b{n}: {{<<: *a}}\n" for n in range(200)), "line 101: aliases stand for more than 100000"),
    "aliases in aliases": ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300)), "by an alias"),
    "a value in itself": ("&a [*a]", "stands inside the value"),
    "directives": ("".join(f"%TAG !a{n}! tag:x\n" for n in range(50_000)) + "--- a\n", "50000 lines begin with %"),
    **{f"directives after {end!a}": ("".join(f"%TAG !a{n}! tag:x{end}" for n in range(50_000)) + "--- a\n", "50000 lines begin with %") for end in ("\r", "\x85", "\u2028", "\u2029")},
    "values": ("- \n" * 20_001, "line 20000: there are more than 20000 values"),
    "documents": ("--- a\n" * 20_001, "line 20001: there are more than 20000 values"),
    "bytes": ("a" * (documents.MAX_BYTES + 1), "at most 4194304 are read"),
    "python": ("!!python/object/apply:os.system ['true']", 'tag "tag:yaml.org,2002:python/object/apply:os.system" is not'),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_what_would_take_long_or_grow_is_refused_with_its_line(text, said):
    with pytest.raises(documents.DocumentError) as refused:
        documents.load_all(text, "x", 20_000)
    assert said in str(refused.value)
    assert refused.value.line >= 1


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, LAUGHS], ids=["lists", "maps", "laughs"])
def test_no_more_events_are_taken_from_the_parser_than_the_limits_allow(text, monkeypatch):
    """The work is counted, not timed: what is refused is refused while it is read."""
    taken = []
    parse = yaml.parse

    def counted(*args, **rest):
        for event in parse(*args, **rest):
            taken.append(event)
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    with pytest.raises(documents.DocumentError):
        documents.load_all(text, "x")
    assert len(taken) < 500


def test_the_parser_below_neither_crashes_nor_grows_on_what_is_refused():
    """In a process of its own with half a gigabyte: a crash of the parser would end it."""
    program = """
        import resource, sys
        resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
        from pumice.api import documents
        from pumice.apiserver import bodies, protobuf, statuses
        texts = [b"[" * 1_000_000, b"{" * 1_000_000, b"- " * 1_000_000, b"? " * 500_000, b"{a: " * 500_000, b"[" * 90 + b"]" * 90,
                 b"a: " * 500_000, b"&a [*a, " * 100_000, b"!!seq [" * 100_000, b"'" * 1_000_001, b"%YAML 1.1\\n" * 200_000]
        for text in texts:
            for media in ("application/yaml", "application/json", "application/apply-patch+yaml"):
                try:
                    bodies.Body(text, media, protobuf.Decoder({})).decoded()
                except statuses.Problem as problem:
                    assert problem.code == 400, problem
            try:
                documents.load_one(text, "x")
            except documents.DocumentError:
                pass
        print("alive")
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "alive\n"), run.stderr


@settings(max_examples=10 * mutations.EXAMPLES)
@given(mutations.changed_bytes(MANIFEST.encode()))
def test_a_manifest_with_other_bytes_is_read_or_refused_with_a_line(data):
    refused = None
    try:
        found = documents.load_one(data, "x", 2_000)
    except documents.DocumentError as error:
        refused = error
    else:
        msgspec.json.encode(found)  # plain data, not nested deeper than others can walk
    if refused is not None:
        assert 1 <= refused.line <= data.count(b"\n") + data.count(b"\r") + 2
        assert len(str(refused)) < 1_000


@settings(max_examples=5 * mutations.EXAMPLES)
@given(
    st.recursive(
        st.none() | st.text('ab[]{}"\\', max_size=5) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a[]{}"\\', max_size=3), inner, max_size=3),
        max_leaves=20,
    ),
    st.integers(0, 12),
)
def test_depth_is_told_as_walking_tells_it(value, most):
    def depth(found):
        below = found.values() if isinstance(found, dict) else found if isinstance(found, list) else None
        return 0 if below is None else 1 + max(map(depth, below), default=0)

    for written in (msgspec.json.encode(value), msgspec.json.format(msgspec.json.encode(value))):
        assert json_depth.exceeds(written, most) == (depth(value) > most)


@given(mutations.changed_bytes(b'{"a": ["x\\"y", {"b": [1, 2]}], "c": "\\\\"}'))
def test_depth_of_anything_is_told_without_an_error(data):
    assert json_depth.exceeds(data, 2_000) in (True, False)


def test_yaml_is_read_in_one_place_alone():
    """Whoever reads YAML in another place reads it without the bounds: use `documents.load_all` or `load_one`."""
    source = Path(documents.__file__).parents[1]
    readers = re.compile(
        r"yaml\.(safe_load|load|parse|compose|scan|full_load|unsafe_load)|msgspec\.yaml\.decode|yaml\.decode"
    )
    found = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if readers.search(path.read_text())}
    assert found == {"api/documents.py"}


@pytest.mark.parametrize("tail", ["x", "e", ".x", "e+x", "..", ""])
def test_a_scalar_of_endless_digits_is_looked_through_once(tail):
    text = "1" * 300_000 + tail
    assert str(documents.plain_scalar(text)) == text
