"""What a pod asks for, counted from its manifest."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.scenario import requests


def container(name="c", restart=None, **asked):
    return {"name": name, "resources": {"requests": asked}, **({"restartPolicy": restart} if restart else {})}


def asked(spec, status=None):
    return requests.of_pod({"spec": spec, "status": status or {}})


CASES = [
    ("containers are summed", {"containers": [container(cpu="1"), container(cpu="500m")]}, {"cpu": "3/2"}),
    (
        "an init container counts where it is larger",
        {"containers": [container(cpu=1)], "initContainers": [container(cpu=3, memory="1Ki")]},
        {"cpu": 3, "memory": 1024},
    ),
    (
        "init containers run one by one",
        {"containers": [container(cpu=1)], "initContainers": [container(cpu=2), container(cpu=2)]},
        {"cpu": 2},
    ),
    (
        "a sidecar stays",
        {"containers": [container(cpu=1)], "initContainers": [container(restart="Always", cpu=2)]},
        {"cpu": 3},
    ),
    (
        "an init container after a sidecar runs beside it",
        {"containers": [container(cpu=1)], "initContainers": [container(restart="Always", cpu=2), container(cpu=5)]},
        {"cpu": 7},
    ),
    (
        "one before a sidecar does not",
        {"containers": [container(cpu=1)], "initContainers": [container(cpu=5), container(restart="Always", cpu=2)]},
        {"cpu": 5},
    ),
    (
        "pod-level requests replace cpu, memory and huge pages",
        {"containers": [container(cpu=4, **{"x.io/gpu": 1})], "resources": {"requests": {"cpu": 2, "x.io/gpu": 9}}},
        {"cpu": 2, "x.io/gpu": 1},
    ),
    ("overhead comes on top", {"containers": [container(cpu=1)], "overhead": {"cpu": "250m"}}, {"cpu": "5/4"}),
    (
        "overhead comes on top of pod-level requests",
        {"containers": [], "resources": {"requests": {"cpu": 1}}, "overhead": {"cpu": 1}},
        {"cpu": 2},
    ),
]


@pytest.mark.parametrize(("rule", "spec", "expected"), CASES, ids=[case[0] for case in CASES])
def test_request(rule, spec, expected):
    assert asked(spec) == {**{name: Fraction(amount) for name, amount in expected.items()}, "pods": 1}


def test_while_a_container_is_resized_the_larger_counts():
    held = {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "1"}}
    spec = {"containers": [container(cpu="4")], "nodeName": "n1"}
    assert asked(spec, {"containerStatuses": [held]})["cpu"] == 4
    infeasible = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    assert asked(spec, {"containerStatuses": [held], "conditions": infeasible})["cpu"] == 3
    waiting = {key: value for key, value in spec.items() if key != "nodeName"}
    assert asked(waiting, {"containerStatuses": [held], "conditions": infeasible})["cpu"] == 4


@pytest.mark.parametrize("bad", ["-1", "abc", "1e30", True, "", None, ["1"]])
def test_pod_with_a_bad_quantity_counts_for_nothing(bad):
    assert asked({"containers": [container(cpu="1"), container(cpu=bad)]}) == {}


def test_pod_with_too_many_resources_counts_for_nothing():
    assert asked({"containers": [container(**{f"x.io/r{index}": 1 for index in range(65)})]}) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["containers", "resources", "requests", "cpu", "name"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=drawn(150), deadline=None)
@given(spec=JSON, status=JSON)
def test_no_manifest_breaks_the_count(spec, status):
    assert all(amount >= 0 for amount in requests.of_pod({"spec": spec, "status": status}).values())
