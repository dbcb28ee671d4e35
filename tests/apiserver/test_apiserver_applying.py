"""Server-side apply: who owns what, who is in whose way, and what goes when nobody wants it any more."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.apiserver import resources, statuses
from pumice.apiserver.ownership import applying, managed

REGISTRY = resources.Registry(resources.describe())
NODE = REGISTRY.of_kind("v1", "ConfigMap").node
DATA = st.dictionaries(st.sampled_from("abcde"), st.sampled_from("xyz"), max_size=4)


def writer(name):
    return managed.Writer(manager=name, api_version="v1", time="2026-01-01T00:00:00Z")


def config_map(data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, **({"data": data} if data else {})}


def first(data, name):
    made = config_map(dict(data))
    applying.created(made, NODE, writer(name))
    return made


def apply(live, data, name, *, force=False):
    return applying.apply(live, config_map(dict(data)), NODE, writer(name), force=force)


@given(DATA)
def test_applying_the_same_again_changes_nothing(data):
    live = first(data, "me")
    assert apply(live, data, "me") == live


@given(DATA, DATA)
def test_what_only_i_wanted_and_want_no_more_goes(before, after):
    live = apply(first(before, "me"), after, "me")
    assert live.get("data", {}) == after


@given(DATA, DATA)
def test_others_keep_what_they_have_and_a_conflict_is_a_different_value(mine, yours):
    live = first(mine, "me")
    differ = {key for key in mine.keys() & yours.keys() if mine[key] != yours[key]}
    if differ:
        with pytest.raises(statuses.Problem) as refused:
            apply(live, yours, "you")
        fields = {cause["field"] for cause in refused.value.details["causes"]}
        assert fields == {f".data.{key}" for key in differ}
        assert refused.value.code == 409
        live = apply(live, yours, "you", force=True)
    else:
        live = apply(live, yours, "you")
    assert live.get("data", {}) == {**mine, **yours}


@given(DATA, DATA)
def test_what_is_shared_stays_until_the_last_one_gives_it_up(mine, more):
    live = first(mine, "me")
    yours = {**more, **{key: value for key, value in mine.items() if key in "ab"}}
    live = apply(live, yours, "you", force=True)
    left = apply(live, {}, "you", force=True)
    kept = {key: yours.get(key, value) for key, value in mine.items() if yours.get(key, value) == value}
    assert all(left.get("data", {}).get(key) == value for key, value in kept.items())
    assert set(left.get("data", {})) <= set(mine)


@given(DATA, DATA)
def test_whoever_changes_a_field_owns_it_and_nobody_owns_what_is_gone(before, after):
    old = config_map(dict(before))
    managed.after_create(old, NODE, writer("maker"))
    new = copy.deepcopy(config_map(dict(after)))
    managed.after_update(old, new, NODE, writer("changer"))
    owners = {}
    for entry in managed.entries(new):
        for key in entry["fieldsV1"].get("f:data", {}):
            if key != ".":
                owners.setdefault(key[2:], set()).add(entry["manager"])
    changed = {key for key in after if before.get(key) != after[key]}
    assert owners == {key: {"changer"} if key in changed else {"maker"} for key in after}
