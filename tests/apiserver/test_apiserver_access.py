"""Who may do what: a request is judged by what is then served, and no role costs more to check than it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.apiserver import requests, resources, selectors, statuses
from pumice.apiserver.access import attributes, roles

REGISTRY = resources.Registry(resources.describe())
_WORDS = ["api", "apis", "v1", "apps", "namespaces", "a", "pods", "secrets", "deployments", "p", "status", "finalize"]
PARTS = st.sampled_from(["", *_WORDS, "rbac.authorization.k8s.io", "roles", "log", ".", "%2F"])
PATHS = st.lists(PARTS, max_size=8).map(lambda parts: "/" + "/".join(parts)) | st.lists(PARTS, max_size=6).map(
    lambda parts: "/apis//v1/" + "/".join(parts)
)


@given(PATHS, st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]))
def test_what_is_served_of_a_path_is_what_the_right_was_asked_for(path, method):
    parts = path.strip("/").split("/")
    if not ((parts[0] == "api" and len(parts) > 2) or (parts[0] == "apis" and len(parts) > 3)):
        return  # a page, which names no object
    wanted = attributes.of_request(method, path, {})
    assert not wanted.path, "an object was taken for a page"
    try:
        served = requests.target(REGISTRY, path)
    except statuses.Problem:
        return
    assert (wanted.group, wanted.resource) == (served.resource.group, served.resource.plural)
    assert (wanted.name, wanted.subresource) == (served.name, served.subresource)
    assert served.namespace in ("", wanted.namespace)


@pytest.mark.parametrize("path", ["/apis//v1/secrets", "/apis//v1/namespaces/a/secrets", "/apis//v1/pods"])
def test_the_core_group_is_not_served_below_apis(path):
    with pytest.raises(statuses.Problem) as refused:
        requests.target(REGISTRY, path)
    assert refused.value.code == 404
    assert attributes.of_request("GET", path, {}).resource in ("secrets", "pods")


def test_a_long_field_selector_is_read_in_one_go():
    blanks = " " * 200_000
    assert selectors.named(f"{blanks}metadata.name{blanks}={blanks}x\ny{blanks}") == "x\ny"


def test_a_role_of_more_than_can_be_checked_is_refused_before_it_is_taken_apart():
    many = tuple(f"x{n}" for n in range(400))
    wanted = roles.Rule(verbs=many, groups=many, resources=many, names=many)
    with pytest.raises(statuses.Problem, match="allow 25600000000 single things; at most 100000"):
        roles.missing((), [wanted])
    everything = roles.Rule(verbs=("*",), groups=("*",), resources=("*",))
    assert roles.missing((everything,), [wanted]) == []


NAMES = st.lists(st.sampled_from(["a", "b", "*", "pods/log", "*/log"]), max_size=3).map(tuple)
RULES = st.builds(roles.Rule, verbs=NAMES, groups=NAMES, resources=NAMES, names=NAMES, paths=NAMES)


@given(st.lists(RULES, max_size=4).map(tuple), st.lists(RULES, max_size=3))
def test_what_is_missing_is_each_single_thing_that_no_rule_allows(held, wanted):
    parts = {part for rule in wanted for part in rule.parts()}
    assert set(roles.missing(held, wanted)) == {part for part in parts if not any(each.covers(part) for each in held)}
