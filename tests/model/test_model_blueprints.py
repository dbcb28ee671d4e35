"""Pods that are written alike get their shape without its being worked out; the shapes are the same as if it had been."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from drawing import drawn
from pumice.api import decoding
from pumice.model import requests, resources, shape, task


def pods():
    container = st.fixed_dictionaries(
        {"name": st.sampled_from(["c", "d"])},
        optional={
            "image": st.sampled_from(["x", "x:latest", "y"]),
            "resources": st.fixed_dictionaries(
                {"requests": st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1000m", "2"]))}
            ),
            "ports": st.just([{"containerPort": 1, "hostPort": 80}]),
        },
    )
    spec = st.fixed_dictionaries(
        {"containers": st.lists(container, min_size=1, max_size=2)},
        optional={
            "initContainers": st.lists(container, max_size=1),
            "nodeSelector": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
            "tolerations": st.just([{"operator": "Exists"}]),
            "nodeName": st.just("n1"),
            "overhead": st.just({"cpu": "1"}),
            "resources": st.just({"requests": {"cpu": "3"}}),
            "volumes": st.sampled_from(
                [
                    [{"name": "v", "persistentVolumeClaim": {"claimName": "one"}}],
                    [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}],
                    [{"name": "token-x7k2p"}],
                ]
            ),
        },
    )
    status = st.sampled_from(
        [
            {},
            {"containerStatuses": [{"name": "c", "resources": {}, "allocatedResources": {"cpu": "4"}}]},
            {
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
                "containerStatuses": [{"name": "c", "resources": {}, "allocatedResources": {"cpu": "1"}}],
            },
            {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}},
        ]
    )
    return st.builds(_pod, st.sampled_from(["p", "q"]), spec, status)


def _pod(name, spec, status):
    return {**builders.pod(name), "spec": spec, "status": status}


@given(st.lists(pods(), min_size=2, max_size=8))
@settings(max_examples=drawn(300), deadline=None)
def test_shapes_are_the_same_as_if_each_was_worked_out(manifests):
    kept, plain = shape.Shapes(), shape.Shapes()
    decoded = [decoding.decode(manifest) for manifest in manifests]
    made = [task.build(pod, kept).shape for pod in decoded]
    worked_out = []
    for pod in decoded:
        amounts = requests.of_pod(pod)
        worked_out.append(plain.intern(shape.constraints_of(pod), amounts, requests.non_zero(pod, amounts)))
    assert [each.key for each in made] == [each.key for each in worked_out]
    assert [made.index(each) for each in made] == [worked_out.index(each) for each in worked_out]
    for each in made:
        kept.release(each)
    assert len(kept) == 0
    assert all(kept.recall(blueprint) is None for pod in decoded if (blueprint := shape.blueprint_of(pod)))


def test_a_bad_pod_is_refused_each_time():
    shapes = shape.Shapes()
    for _ in range(2):
        with pytest.raises(resources.BadValueError):
            task.build(decoding.decode(builders.pod("p", cpu="-1")), shapes)
