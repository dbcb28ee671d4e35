"""Watches that squeeze: what is kept of an object is decided before it is kept, and nothing but its metadata is decoded."""

from __future__ import annotations

import json

import msgspec
import pytest

from pumice.api import core, kinds
from pumice.kube.watches import arrivals


def raw(**fields):
    metadata = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    whole = {"metadata": {**metadata, "annotations": {"k": "v"}}, "spec": {"nodeName": "x"}, **fields}
    return msgspec.Raw(json.dumps(whole).encode())


def squeeze(data):
    found = json.loads(data)
    return json.dumps({"metadata": found["metadata"]}).encode()


def test_a_squeezed_object_is_known_by_its_metadata_and_keeps_what_was_made_of_it():
    arrived = arrivals.arrival(kinds.POD, raw(), keep=True, squeeze=squeeze)
    assert not isinstance(arrived.object, core.Pod)
    assert arrivals.identify(arrived) == (("n", "p"), ("u", "7"))
    assert json.loads(arrived.raw) == {"metadata": json.loads(bytes(raw()))["metadata"]}
    assert arrived.object.metadata.annotations == {}


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), msgspec.DecodeError("x")])
def test_an_object_that_cannot_be_squeezed_is_taken_whole(error):
    def broken(_):
        raise error

    arrived = arrivals.arrival(kinds.POD, raw(), keep=True, squeeze=broken)
    assert isinstance(arrived.object, core.Pod)
    assert arrived.raw == bytes(raw())
