"""What is written before a bind, through a server that forgets to answer, is overtaken by others, or refuses."""

from __future__ import annotations

import asyncio
import copy

import pytest

from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import performing, preparing
from pumice.model.preparations import ClaimGrant, NodeLock

NOW = 1_767_225_600_000_000
STAMP = "2026-01-01T00:00:00.000001Z"


class FakeApi:
    """One object, and what is to happen to the next writes: "lost" is done without an answer, "dropped" is not done, "overtaken" is somebody else's turn."""

    def __init__(self, manifest, *events):
        self.manifest = copy.deepcopy(manifest)
        self.manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        self.events = list(events)
        self.writes = []
        self.reads = 0
        self.at_once = 0
        self.most = 0

    async def get(self, kind, namespace, name):
        self.reads += 1
        await asyncio.sleep(0)
        if self.manifest is None:
            raise errors.ApiError(404, "NotFound", f"{name} not found")
        return copy.deepcopy(self.manifest)

    async def patch(self, kind, namespace, name, body, *, subresource="", strategic=False):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        event = self.events.pop(0) if self.events else ""
        if event == "overtaken":
            self._bump()
        if isinstance(event, Exception):
            raise event
        if event != "dropped":
            self._check(body)
            self._merge(body, subresource)
            self.writes.append(body)
        if event in ("lost", "dropped"):
            raise errors.UnknownOutcomeError("no answer")
        return copy.deepcopy(self.manifest)

    def _check(self, body):
        if body["metadata"].get("resourceVersion") not in (None, self.manifest["metadata"]["resourceVersion"]):
            raise errors.ApiError(409, "Conflict", "the object has been modified")

    def _bump(self):
        metadata = self.manifest["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def _merge(self, body, subresource):
        metadata = {key: value for key, value in body["metadata"].items() if key not in ("uid", "resourceVersion")}
        for key, value in metadata.items():
            self.manifest["metadata"][key] = (
                {**self.manifest["metadata"].get(key, {}), **value} if isinstance(value, dict) else value
            )
        status = self.manifest.setdefault("status", {})
        for key, value in body.get("status", {}).items():
            status[key] = [*status.get(key, []), *value] if isinstance(value, list) else value
        self._bump()


NODE = {"metadata": {"name": "n1"}}
CLAIM = {"metadata": {"name": "c", "namespace": "a"}, "spec": {}}
GIVEN = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}


def lock():
    return NodeLock(node="n1", annotation="gpu", stamp=STAMP)


def reservation(pod="p"):
    return ClaimGrant(namespace="a", claim="c", uid="u", pod=pod, pod_uid=f"uid-{pod}", allocation=GIVEN)


def effect(*preparations, name="p"):
    return effects.Prepare(namespace="a", name=name, uid=f"uid-{name}", node="n1", preparations=preparations)


def perform(api, *wanted):
    async def run():
        writer = preparing.ApiPreparer(api, lambda: NOW)
        outcomes = await asyncio.gather(*(writer.prepare(each) for each in wanted))
        assert writer._busy == {}  # noqa: SLF001  memory that is given back shows nowhere else
        return outcomes

    return asyncio.run(run())


@pytest.mark.parametrize("event", ["lost", "dropped", "overtaken"])
def test_a_write_nobody_knows_of_or_that_was_overtaken_is_decided_anew_and_done_once(event):
    api = FakeApi(NODE, event)
    (outcome,) = perform(api, effect(lock()))
    assert outcome.failure is None
    assert api.manifest["metadata"]["annotations"] == {"gpu": STAMP}
    assert len(api.writes) == 1
    api = FakeApi(CLAIM, "", event)
    (outcome,) = perform(api, effect(reservation()))
    assert outcome.failure is None
    assert [each["uid"] for each in api.manifest["status"]["reservedFor"]] == ["uid-p"]
    assert outcome.object["claims"] == [api.manifest]


def test_after_five_times_it_is_given_up_with_what_stood_in_the_way():
    api = FakeApi(NODE, *["overtaken"] * 9)
    (outcome,) = perform(api, effect(lock()))
    assert outcome.failure.code == "conflict"
    assert api.writes == []
    api = FakeApi(NODE, *["dropped"] * 9)
    (outcome,) = perform(api, effect(lock()))
    assert outcome.failure.code == "unknown"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ApiError(403, "Forbidden", "no"), "refused"),
        (errors.ApiError(500, "InternalError", "no"), "unavailable"),
        (errors.UnreachableError("no"), "unavailable"),
    ],
)
def test_what_the_server_refuses_is_not_tried_again_here(error, code):
    api = FakeApi(CLAIM, error)
    (outcome,) = perform(api, effect(reservation()))
    assert outcome.failure.code == code
    assert api.reads == 1
    # What is known of the claim is told all the same.
    assert outcome.object["claims"] == [api.manifest]


def test_writes_to_one_object_are_made_one_after_the_other():
    api = FakeApi(CLAIM)
    pods = [f"p{number}" for number in range(20)]
    outcomes = perform(api, *(effect(reservation(name), name=name) for name in pods))
    assert [each.failure for each in outcomes] == [None] * len(pods)
    assert api.most == 1
    assert sorted(each["name"] for each in api.manifest["status"]["reservedFor"]) == sorted(pods)
    assert len(api.writes) == len(pods) + 1  # and the finalizer, once


def test_a_part_may_be_replaced():
    seen = []

    class Mine:
        async def prepare(self, wanted):
            seen.append(wanted)
            return effects.Outcome(effect=wanted)

        async def take_back(self, wanted):
            return effects.Outcome(effect=wanted)

    performer = performing.Performer(FakeApi(NODE), now=lambda: NOW, preparer=Mine())
    asyncio.run(performer.perform(effect(lock())))
    assert [each.preparations for each in seen] == [(lock(),)]
