import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.sim import structure

SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


def merge_as_the_standard_writes_it(target, patch):
    """The pseudo-code of RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_as_the_standard_writes_it(result.get(name), value)
    return result


@settings(max_examples=drawn(200), deadline=None)
@given(MAPS, MAPS)
def test_merge_follows_the_standard_and_changes_neither_side(target, patch):
    before = copy.deepcopy((target, patch))
    result = structure.merged(target, patch)
    assert structure.same(result, merge_as_the_standard_writes_it(target, patch))
    assert (target, patch) == before


@settings(max_examples=drawn(100), deadline=None)
@given(MAPS, MAPS)
def test_merging_twice_changes_nothing_and_gives_the_same_object(target, patch):
    once = structure.merged(target, patch)
    assert structure.merged(once, patch) is once


@settings(max_examples=drawn(100), deadline=None)
@given(JSON)
def test_a_copy_is_equal_and_shares_no_container(value):
    def containers(item):
        if isinstance(item, dict | list):
            yield id(item)
            for inner in item.values() if isinstance(item, dict) else item:
                yield from containers(inner)

    twin = structure.copied(value)
    assert structure.same(twin, value)
    assert not set(containers(twin)) & set(containers(value))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, True, False),
        (0, False, False),
        ({"a": [1]}, {"a": [True]}, False),
        (1, 1.0, True),
        ([1, 2], [1], False),
        ({}, None, False),
    ],
)
def test_true_is_not_one(left, right, same):
    assert structure.same(left, right) is same


@pytest.mark.parametrize(
    ("present", "changes", "whole"),
    [
        ([], [{"type": "A", "status": "True"}], [{"type": "A", "status": "True"}]),
        (
            [{"type": "A", "status": "True", "reason": "r"}],
            [{"type": "A", "status": "False"}],
            [{"type": "A", "status": "False", "reason": "r"}],
        ),
        (
            [{"type": "A"}, {"type": "B"}],
            [{"type": "B", "status": "x"}, {"type": "C"}],
            [{"type": "A"}, {"type": "B", "status": "x"}, {"type": "C"}],
        ),
        ([{"type": "A", "reason": "r"}], [{"type": "A", "reason": None}], [{"type": "A"}]),
        (["junk"], [{"type": "A"}], ["junk", {"type": "A"}]),
    ],
)
def test_strategic_conditions_are_merged_by_type(present, changes, whole):
    body = structure.strategic({"status": {"conditions": present}}, {"status": {"conditions": changes}})
    assert body == {"status": {"conditions": whole}}


@pytest.mark.parametrize(
    "body", [{}, {"status": None}, {"status": 3}, {"status": {"phase": "x"}}, {"status": {"conditions": "x"}}]
)
def test_a_strategic_patch_without_a_list_of_conditions_is_a_merge_patch(body):
    assert structure.strategic({}, body) is body
