"""What containers have said: at once, followed to the end, before a restart, and since a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from pumice.api import duration, kinds
from pumice.apiserver import logs, requests, resources, statuses
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

KEY = Key(kinds.POD, "a", "p")
RUNNING, ENDED = {"running": {}}, {"terminated": {"exitCode": 0}}


class World:
    """A pod whose container says a line each second, by a clock that the test moves."""

    def __init__(self, restarts=0):
        self.clock = VirtualClock()
        self.start = self.clock.now()
        self.store = ObjectStore(self.clock.now)
        spec = {"nodeName": "n", "containers": [{"name": "c"}]}
        metadata = {"name": "p", "namespace": "a"}
        status = {"phase": "Running", "containerStatuses": [{"name": "c", "state": RUNNING, "restartCount": restarts}]}
        self.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
        self.logs = logs.Logs(self.store, self.clock.now)
        self.logs.said = self.said
        self.target = requests.Target(resource=resources.Registry(resources.describe()).of_kind("v1", "Pod"), namespace="a", name="p", subresource="log")  # fmt: skip

    def said(self, pod, container, previous):
        if previous:
            return [(self.start, "before")]
        passed = (self.clock.now() - self.start) // duration.SECOND
        return [(self.start + each * duration.SECOND, f"{container}{each}") for each in range(passed + 1)]

    def end(self):
        pod = self.store.get(KEY)
        pod["status"]["containerStatuses"][0]["state"] = ENDED
        self.store.overwrite(KEY, pod)

    def read(self, **query):
        return self.logs.read(self.target, query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "c0\nc1\nc2\nc3\n"),
        ({"tailLines": "2"}, "c2\nc3\n"),
        ({"tailLines": "0"}, ""),
        ({"tailLines": "9"}, "c0\nc1\nc2\nc3\n"),
        ({"limitBytes": "4"}, "c0\nc"),
        ({"sinceSeconds": "1"}, "c2\nc3\n"),
        ({"sinceTime": "2026-01-01T00:00:03Z"}, "c3\n"),
        ({"timestamps": "true", "tailLines": "1"}, "2026-01-01T00:00:03Z c3\n"),
    ],
)
def test_a_request_gets_the_lines_that_it_asks_for(query, expected):
    world = World()
    world.clock.advance(3 * duration.SECOND)
    assert world.read(**query) == expected


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"tailLines": "-1"}, {"sinceSeconds": "1e9"}, {"sinceTime": "now"}])  # fmt: skip
def test_a_number_that_is_none_is_refused_by_name(query):
    with pytest.raises(statuses.Problem, match=next(iter(query))):
        World().read(**query)


def test_what_was_said_before_a_restart_is_there_only_after_one():
    assert World(restarts=1).read(previous="true") == "before\n"
    with pytest.raises(statuses.Problem, match='previous terminated container "c" in pod "p" not found'):
        World().read(previous="true")


@pytest.mark.parametrize("ending", ["ends", "deleted", "replaced"])
def test_a_log_is_followed_until_its_container_is_gone(monkeypatch, ending):
    world = World()
    passed = []

    async def sleep(seconds):
        passed.append(seconds)
        world.clock.advance(duration.SECOND)
        if len(passed) == 3:
            world.end() if ending == "ends" else world.store.delete(KEY, grace=0)
        if len(passed) == 3 and ending == "replaced":
            metadata = {"name": "p", "namespace": "a"}
            world.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})

    monkeypatch.setattr(logs, "asyncio", SimpleNamespace(sleep=sleep))  # servers of other tests sleep in this process

    async def follow():
        return [text async for text in world.logs.follow(world.target, {"tailLines": "5"})]

    told = asyncio.run(follow())
    assert "".join(told) == ("c0\nc1\nc2\nc3\n" if ending == "ends" else "c0\nc1\nc2\n")
    assert len(passed) == 3
