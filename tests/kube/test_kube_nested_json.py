"""JSON that is nested too deeply is taken apart in one walk, whatever it looks like."""

from __future__ import annotations

import time

import pytest

from pumice.kube.watches import nested_json


def test_a_field_is_cut_out_whatever_its_texts_hold():
    text = b'{"a":"}\\"]","metadata":{"name":"x","deep":[["\\\\"]]},"z":1}'
    assert nested_json.cut(text, "metadata") == (
        b'{"a":"}\\"]","metadata":null,"z":1}',
        b'{"name":"x","deep":[["\\\\"]]}',
    )


def test_elements_are_told_apart():
    assert nested_json.elements(b'[{"a":"],["},[1,[2]],{}]') == [b'{"a":"],["}', b"[1,[2]]", b"{}"]


@pytest.mark.parametrize("text", [b'{"' + b"a" * 100_000, b'{"' + b'\\"' * 50_000, b'{"' + b'\\"' * 50_000 + b"\\"])
def test_a_text_without_its_end_takes_no_longer_than_others(text):
    started = time.thread_time()
    assert nested_json.cut(text, "items") == (text, b"")
    assert time.thread_time() - started < 10
