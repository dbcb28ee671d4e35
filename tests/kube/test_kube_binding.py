from __future__ import annotations

import asyncio

import pytest
from kube_fakes import FakeApi, conflict, not_found, pod

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import binding

EFFECT = effects.Bind(namespace="a", name="p", uid="uid-p", node="n1", annotations={"x": "1"})


def cluster(node=""):
    api = FakeApi()
    manifest = api.add(kinds.POD, pod())
    if node:
        manifest["spec"]["nodeName"] = node
    return api


def bind(api, effect=EFFECT):
    return asyncio.run(binding.ApiBinder(api).bind(effect))


def test_a_bind_is_one_request():
    api = cluster()
    assert bind(api).failure is None
    assert api.verbs() == ["bind"]


def test_a_conflict_with_our_own_bind_is_a_success():
    assert bind(cluster("n1")).failure is None


@pytest.mark.parametrize(
    ("node", "effect"),
    [("n2", EFFECT), ("n1", effects.Bind(namespace="a", name="p", uid="other", node="n1"))],
)
def test_a_pod_that_is_elsewhere_or_another_one_is_a_conflict_in_the_servers_words(node, effect):
    with pytest.raises(errors.ApiError, match=r"already assigned to node n2|uid") as caught:
        bind(cluster(node), effect)
    assert caught.value.failure.code == "conflict"


def test_a_conflict_that_cannot_be_looked_into_stands():
    api = cluster("n1")
    api.fail = {"bind": [conflict("first")], "get": [errors.UnreachableError("away")]}
    with pytest.raises(errors.ApiError, match="first"):
        bind(api)


@pytest.mark.parametrize("error", [not_found(), errors.UnknownOutcomeError("cut"), errors.ApiError(403, "", "no")])
def test_other_failures_are_not_looked_into(error):
    api = cluster()
    api.fail["bind"] = [error]
    with pytest.raises(type(error)):
        bind(api)
    assert api.verbs() == ["bind"]
