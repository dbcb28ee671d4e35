"""Where a watch may begin, and what it is told when that is forgotten."""

from __future__ import annotations

import asyncio
import json

import pytest

from pumice.api import kinds
from pumice.apiserver import cluster, requests, statuses, watching
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore


def made(count):
    store = ObjectStore(lambda: 0, limit=20)
    serving = cluster.Cluster(store, lambda: 0)
    for number in range(count):
        name = f"m{number}"
        store.adopt({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, Key(kinds.NODE, "", name))
    return serving, requests.Target(resource=serving.registry.of_kind("v1", "Node"))


def test_a_version_that_is_forgotten_is_expired_and_one_to_come_too_large():
    serving, target = made(100)
    now = int(serving.store.resource_version)
    with pytest.raises(statuses.Problem) as forgotten:
        serving.watching.start(watching.asked(target, {"resourceVersion": "3"}, "object", now))
    assert (forgotten.value.code, forgotten.value.reason) == (410, "Expired")
    with pytest.raises(statuses.Problem) as future:
        watching.asked(target, {"resourceVersion": str(now + 1)}, "object", now)
    assert (future.value.code, future.value.details["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


def test_a_watch_that_falls_behind_the_history_is_told_so_and_ends():
    serving, target = made(1)
    now = int(serving.store.resource_version)
    ask = watching.asked(target, {"resourceVersion": str(now), "timeoutSeconds": "5"}, "object", now)
    watch, first = serving.watching.start(ask)
    for number in range(100):
        name = f"late{number}"
        serving.store.adopt({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, Key(kinds.NODE, "", name))

    async def follow():
        return [batch async for batch in serving.watching.stream(ask, watch, first)]

    (batch,) = asyncio.run(follow())
    event = json.loads(batch)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert serving.watching.open == 0
