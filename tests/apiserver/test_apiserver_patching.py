"""Patches: JSON and strategic ones, with their directives."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.apiserver import resources
from pumice.apiserver.patching import json_patch, strategic

REGISTRY = resources.Registry(resources.describe())
POD = REGISTRY.of_kind("v1", "Pod").node
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab~/", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/0", max_size=2), inner, max_size=3),
    max_leaves=8,
)


def places(value, path=""):
    """Give every pointer into a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


@given(VALUES, st.data())
def test_what_was_added_is_found_there_and_removed_again(document, data):
    holder = {"root": document, "new": 1}
    where = data.draw(st.sampled_from([place for place in places(holder) if place.startswith("/root")]))
    value = {"marker": 1}
    added = json_patch.apply(holder, [{"op": "replace", "path": where, "value": value}])
    assert json_patch.apply(added, [{"op": "test", "path": where, "value": value}]) == added
    assert holder == {"root": document, "new": 1}


@given(VALUES, st.data())
def test_a_copy_is_equal_and_a_move_leaves_nothing(document, data):
    holder = {"root": document}
    where = data.draw(st.sampled_from([place for place in places(holder) if place.startswith("/root")]))
    copied = json_patch.apply(holder, [{"op": "copy", "from": where, "path": "/other"}])
    moved = json_patch.apply(holder, [{"op": "move", "from": where, "path": "/other"}])
    assert copied["other"] == moved["other"]
    gone = json_patch.apply(holder, [{"op": "remove", "path": where}])
    assert {key: each for key, each in moved.items() if key != "other"} == gone


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"op": "add"}, "a list of operations"),
        ([{"op": "explode", "path": "/a"}], "no operation"),
        ([{"op": "add", "path": "a"}], "no JSON pointer"),
        ([{"op": "add", "path": "/a"}], "states no value"),
        ([{"op": "remove", "path": "/nope"}], "nothing at /nope"),
        ([{"op": "test", "path": "/a", "value": True}], "test failed"),
        ([{"op": "add", "path": "/l/7", "value": 1}], "no index of a list of 2"),
        ([{"op": "move", "from": "/l", "path": "/l/0"}], "into itself"),
    ],
)
def test_a_patch_that_cannot_be_applied_says_which_operation(patch, words):
    with pytest.raises(json_patch.PatchError, match=words):
        json_patch.apply({"a": 1, "l": [1, 2]}, patch)


def pod(*names):
    return {"spec": {"containers": [{"name": name, "image": name, "ports": [{"containerPort": 80}]} for name in names]}}


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        ([{"name": "b", "image": "new"}], [("a", "a"), ("b", "new")]),
        ([{"name": "c", "image": "c"}], [("a", "a"), ("b", "b"), ("c", "c")]),
        ([{"name": "a", "$patch": "delete"}], [("b", "b")]),
        ([{"$patch": "replace"}, {"name": "z", "image": "z"}], [("z", "z")]),
    ],
)
def test_a_strategic_patch_merges_containers_by_name(patch, wanted):
    target = pod("a", "b")
    before = copy.deepcopy(target)
    found = strategic.apply(target, {"spec": {"containers": patch}}, POD)["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in found] == wanted
    assert target == before


def test_a_strategic_patch_orders_deletes_primitives_and_retains_keys():
    target = {
        "metadata": {"finalizers": ["a", "b"]},
        **pod("a", "b"),
        "spec": {**pod("a", "b")["spec"], "volumes": [{"name": "v", "emptyDir": {}}]},
    }
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
        "spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}],
            "nodeName": None,
        },
    }
    found = strategic.apply(target, patch, POD)
    assert found["metadata"]["finalizers"] == ["b", "c"]
    assert [each["name"] for each in found["spec"]["containers"]] == ["b", "a"]
    assert found["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/"}}]


def test_an_item_without_its_key_is_refused():
    with pytest.raises(strategic.PatchError, match="merge key: name"):
        strategic.apply(pod("a"), {"spec": {"containers": [{"image": "x"}]}}, POD)
