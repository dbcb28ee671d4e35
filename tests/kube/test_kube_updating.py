from __future__ import annotations

import asyncio

import pytest
from kube_fakes import FakeApi, not_found, pod

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import updating


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def patch(kind=kinds.POD_GROUP, body=None, subresource="", uid="uid-g", name="g"):
    body = {"status": {"running": 0}} if body is None else body
    return effects.Patch(kind=kind, namespace="a", name=name, uid=uid, body=body, subresource=subresource)


def cluster(*served):
    api = FakeApi(served)
    for kind in (kinds.POD_GROUP, kinds.QUEUE, kinds.POD):
        api.add(kind, {**pod("g"), "status": {"running": 3}})
    return api


def send(api, *wanted, clock=None):
    async def run():
        updater = updating.ApiUpdater(api, clock or Clock())
        return await asyncio.gather(*(updater.patch(effect) for effect in wanted))

    return asyncio.run(run())


def doors(api):
    return [call[3] for call in api.calls if call[0] == "patch"]


@pytest.mark.parametrize(
    ("served", "effect", "door"),
    [
        ((), patch(), ""),
        (("podgroups", "podgroups/status"), patch(), "status"),
        (("queues",), patch(kinds.QUEUE, subresource="status"), ""),
        (("queues", "queues/status"), patch(kinds.QUEUE, subresource="status"), "status"),
        (("podgroups/status",), patch(body={"spec": {"minMember": 2}}), ""),
        ((), patch(kinds.POD, subresource="status"), "status"),
        (("pods/status",), patch(kinds.POD), ""),
    ],
)
def test_a_status_goes_through_the_door_that_the_server_has(served, effect, door):
    api = cluster(*served)
    (outcome,) = send(api, effect)
    assert outcome.failure is None
    assert doors(api) == [door]


def test_the_server_is_asked_once_for_many():
    api = cluster("podgroups/status")
    send(api, *(patch() for _ in range(20)))
    assert api.verbs().count("request") == 1


def test_what_the_server_has_is_asked_again_after_a_while():
    api, clock = cluster(), Clock()

    async def run():
        updater = updating.ApiUpdater(api, clock)
        await updater.patch(patch())
        api.served = ["podgroups/status"]
        clock.now = 3600.0
        await updater.patch(patch())

    asyncio.run(run())
    assert doors(api) == ["", "status"]


def test_a_door_that_is_gone_is_looked_for_again():
    api = cluster("podgroups/status")
    api.fail["patch"] = [None, not_found()]

    async def run():
        updater = updating.ApiUpdater(api, Clock())
        await updater.patch(patch())
        api.served = []
        return await updater.patch(patch())

    assert asyncio.run(run()).failure is None
    assert doors(api) == ["status", "status", ""]


def test_an_object_that_is_gone_is_not_found():
    with pytest.raises(errors.ApiError) as caught:
        send(cluster(), patch(name="gone", uid=""))
    assert caught.value.failure.code == "notfound"


def test_a_patch_is_for_one_uid_and_the_answer_carries_the_object():
    api = cluster()
    (outcome,) = send(api, patch(body={"metadata": {"labels": {"x": "1"}}}))
    assert outcome.object["metadata"]["labels"] == {"x": "1"}
    with pytest.raises(errors.ApiError) as caught:
        send(api, patch(uid="other"))
    assert caught.value.failure.code == "conflict"
    assert "uid" not in patch().body.get("metadata", {})


def test_creating_what_exists_is_a_success_that_gives_it():
    api = cluster()
    manifest = {"metadata": {"name": "g", "namespace": "a"}}
    effect = effects.Create(kind=kinds.POD_GROUP, manifest=manifest)
    outcome = asyncio.run(updating.ApiObjects(api).create(effect))
    assert outcome.object["status"] == {"running": 3}


def test_creating_in_vain_is_a_failure():
    api = cluster()
    api.fail["create"] = [errors.ApiError(409, "Conflict", "no")]
    with pytest.raises(errors.ApiError):
        asyncio.run(updating.ApiObjects(api).create(effects.Create(kind=kinds.POD_GROUP, manifest=pod("new"))))


def test_reading_gives_the_object_or_says_that_it_is_gone():
    reader = updating.ApiObjects(cluster())
    found = asyncio.run(reader.read(effects.Read(kind=kinds.POD, namespace="a", name="g")))
    assert found.object["metadata"]["name"] == "g"
    with pytest.raises(errors.ApiError):
        asyncio.run(reader.read(effects.Read(kind=kinds.POD, namespace="a", name="x")))
