"""Sets of fields against sets of paths, which are slow and obvious."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.apiserver.ownership import fieldsets

NAMES = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.sets(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=8)


def made(paths):
    """Build the set of some paths, one by one."""
    result = {}
    for path in sorted(paths):
        nested = {}
        for element in reversed(path):
            nested = {element: nested}
        result = fieldsets.union(result, nested) if result else nested
    return result


def members(fields):
    return set(fieldsets.leaves(fields))


@given(PATHS)
def test_a_set_has_the_members_it_was_made_of(paths):
    assert members(made(paths)) == paths


@given(PATHS, PATHS)
def test_a_union_has_the_members_of_both(left, right):
    assert members(fieldsets.union(made(left), made(right))) == left | right


@given(PATHS, PATHS)
def test_an_exact_difference_has_the_members_of_the_first_alone(left, right):
    assert members(fieldsets.exact_difference(made(left), made(right))) == left - right


@given(PATHS, PATHS)
def test_an_intersection_has_the_members_of_both_at_once(left, right):
    assert members(fieldsets.intersection(made(left), made(right))) == left & right


@given(PATHS, PATHS)
def test_a_difference_takes_along_what_is_below(left, right):
    tops = {path for path in right if not any(other != path and path[: len(other)] == other for other in right)}
    gone = fieldsets.difference(made(left), made(tops))
    below = {path for path in left if any(path[: len(top)] == top for top in tops)}
    assert members(gone) == left - below


@given(PATHS, PATHS)
def test_sets_are_never_changed_in_place(left, right):
    first, second = made(left), made(right)
    fieldsets.union(first, second)
    fieldsets.exact_difference(first, second)
    fieldsets.difference(first, second)
    assert (members(first), members(second)) == (left, right)
