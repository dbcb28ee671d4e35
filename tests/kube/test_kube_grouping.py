from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from kube_fakes import FakeApi, conflict, until

from pumice.api import decoding, kinds, names
from pumice.kube import errors, grouping, slimming

GROUP = names.GROUP_NAME


def pod(name="p", scheduler="volcano", uid=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "uid": uid or f"uid-{name}", **metadata},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Pending"},
    }


def replica_set(replicas=2, name="r"):
    metadata = {"name": name, "namespace": "a", "uid": f"uid-{name}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": replicas, "template": {"spec": {"containers": []}}},
    }


def owned(name, by="r", **metadata):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": by, "uid": f"uid-{by}", "controller": True}
    return pod(name, ownerReferences=[owner], **metadata)


class Stage:
    def __init__(self):
        self.api = FakeApi()
        self.wanted = True
        self.told = []
        self.grouping = grouping.Grouping(self.api, wanted=lambda: self.wanted, tell=self.told.append)

    def feed(self, manifest, event_type="ADDED"):
        kind = kinds.find(manifest["apiVersion"], manifest["kind"])
        if kind.plural == "pods" and event_type == "ADDED":
            self.api.add(kind, manifest)
        manifest["metadata"].setdefault("resourceVersion", str(next(self.api.versions)))
        raw = msgspec.json.encode(manifest)
        self.grouping.feed(kind, event_type, decoding.decode_json(kind, raw), raw)

    def writes(self):
        return [verb for verb in self.api.verbs() if verb != "get"]

    def groups(self):
        return {name: m for (plural, _, name), m in self.api.objects.items() if plural == "podgroups"}

    def group_of(self, name):
        return self.api.find(kinds.POD, "a", name)["metadata"].get("annotations", {}).get(GROUP)


def play(scene):
    async def performance():
        stage = Stage()
        task = asyncio.create_task(stage.grouping.run())
        try:
            await scene(stage)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    asyncio.run(performance())


def test_a_pod_without_a_group_gets_one_and_is_told_its_name():
    async def scene(stage):
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert stage.group_of("p") == "podgroup-uid-p"
        group = stage.groups()["podgroup-uid-p"]
        assert group["spec"]["minMember"] == 1
        assert group["spec"]["minResources"]["cpu"] == "1"
        assert stage.api.verbs() == ["create", "patch"]

    play(scene)


def test_a_pod_that_is_left_alone_for_a_while_is_told_its_group_by_the_time_it_was_created_at():
    async def scene(stage):
        now = [1_000_500_000]
        stage.grouping = grouping.Grouping(stage.api, patience=grouping.LEFT_ALONE, now=lambda: now[0])
        working = asyncio.create_task(stage.grouping.run())
        stage.feed(pod("old", creationTimestamp="1970-01-01T00:16:30Z"))
        stage.feed(pod("new", creationTimestamp="1970-01-01T00:16:40Z"))
        await until(lambda: stage.group_of("old"))
        await until(lambda: len(stage.groups()) == 2)
        assert stage.group_of("new") is None
        now[0] += grouping.LEFT_ALONE
        stage.grouping.reconciler.runner.stir()
        await until(lambda: stage.group_of("new"))
        working.cancel()

    play(scene)


def test_pods_of_one_owner_share_its_group():
    async def scene(stage):
        stage.feed(replica_set())
        for n in range(5):
            stage.feed(owned(f"p{n}"))
        await until(lambda: all(stage.group_of(f"p{n}") for n in range(5)))
        assert list(stage.groups()) == ["podgroup-uid-r"]

    play(scene)


def test_pods_of_others_and_pods_with_a_group_are_left_alone():
    async def scene(stage):
        stage.feed(pod("x", scheduler="default-scheduler"))
        stage.feed(pod("y", annotations={GROUP: "g"}))
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert stage.api.verbs() == ["create", "patch"]

    play(scene)


def test_a_workload_scaled_to_nothing_loses_its_group():
    async def scene(stage):
        stage.feed(replica_set())
        stage.feed(owned("p"))
        await until(lambda: stage.group_of("p"))
        stage.feed(stage.groups()["podgroup-uid-r"])
        stage.feed(replica_set(0), "MODIFIED")
        await until(lambda: not stage.groups())

    play(scene)


@pytest.mark.parametrize("verb", ["create", "patch"])
@pytest.mark.parametrize("error", [errors.UnreachableError("x"), conflict(), errors.ApiError(403, "", "no")])
def test_a_write_that_fails_is_repeated(verb, error):
    async def scene(stage):
        stage.api.fail[verb] = [error] * 3
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert len(stage.groups()) == 1
        assert not stage.api.fail[verb]

    play(scene)


def test_no_pod_names_a_group_that_could_not_be_created():
    async def scene(stage):
        stage.api.fail["create"] = [errors.UnreachableError("x")] * 3
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert stage.writes() == ["create", "create", "create", "create", "patch"]

    play(scene)


def test_a_group_that_exists_is_used():
    async def scene(stage):
        stage.api.add(kinds.POD_GROUP, {"metadata": {"name": "podgroup-uid-p", "namespace": "a"}, "spec": {"x": 1}})
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert stage.groups()["podgroup-uid-p"]["spec"] == {"x": 1}

    play(scene)


def test_a_pod_that_is_gone_is_forgotten():
    async def scene(stage):
        stage.api.fail["create"] = [errors.UnreachableError("x")]
        stage.api.hold["create"] = asyncio.Event()
        stage.feed(pod())
        await until(lambda: stage.api.verbs() == ["create"])
        stage.feed(pod(), "DELETED")
        stage.api.hold.pop("create").set()
        stage.feed(pod("another"))
        await until(lambda: stage.group_of("another") and is_idle(stage))
        assert list(stage.groups()) == ["podgroup-uid-another"]

    play(scene)


def is_idle(stage):
    """Tell whether nothing is done and nothing waits, not even for the end of a pause."""
    engine = stage.grouping.reconciler.engine
    return engine.queue.load == 0 and engine.queue.next_due(0) is None


def test_failures_of_what_is_wanted_no_longer_are_forgotten():
    async def scene(stage):
        stage.api.fail["create"] = [errors.UnreachableError("x")] * 100
        for number in range(5):
            stage.feed(pod(f"p{number}"))
        await until(lambda: stage.grouping.failures.count >= 5)
        for number in range(5):
            stage.feed(pod(f"p{number}"), "DELETED")
        await until(lambda: is_idle(stage))

    play(scene)


def test_while_groups_are_not_wanted_nothing_is_written_and_nobody_complains():
    async def scene(stage):
        stage.wanted = False
        stage.feed(pod())
        await until(lambda: stage.grouping.reconciler.runner.held_back > 1)
        assert stage.api.calls == []
        assert stage.told == []
        stage.wanted = True
        await until(lambda: stage.group_of("p"))

    play(scene)


def test_without_the_lease_nothing_is_written():
    async def scene(stage):
        stage.api.leading = False
        stage.feed(pod())
        await until(lambda: stage.grouping.failures.count > 2)
        assert stage.writes() == []
        stage.api.leading = True
        await until(lambda: stage.group_of("p"))

    play(scene)


def test_a_write_that_takes_long_holds_up_its_own_group_alone():
    async def scene(stage):
        stage.api.hold["create"] = asyncio.Event()
        stage.feed(pod("slow"))
        await until(lambda: stage.api.verbs() == ["create"])
        release = stage.api.hold.pop("create")
        stage.feed(pod("quick"))
        await until(lambda: stage.group_of("quick"))
        assert stage.group_of("slow") is None
        release.set()
        await until(lambda: stage.group_of("slow"))

    play(scene)


@pytest.mark.parametrize("error", [errors.UnreachableError("x"), errors.ApiError(404, "NotFound", "no such kind")])
def test_no_pod_names_a_group_that_could_not_be_created_yet(error):
    """The second pod comes when the first one's write has failed; its owner is of a kind that is not followed."""

    async def scene(stage):
        stage.api.fail["create"] = [error]
        stage.feed(owned("first"))
        await until(lambda: not stage.api.fail["create"])
        for label in ("", "again", "once more"):
            stage.feed(owned("second", labels={"x": label}))
        await until(lambda: stage.group_of("first") and stage.group_of("second"))
        assert stage.writes()[0] == "create"
        assert stage.writes().index("patch") > stage.writes().index("create", 1)
        assert list(stage.groups()) == ["podgroup-uid-r"]

    play(scene)


def test_failures_are_told_of_now_and_then_with_their_number(monkeypatch):
    async def scene(stage):
        stage.api.fail["create"] = [errors.UnreachableError("nobody listens")] * 8
        for number in range(4):
            stage.feed(pod(f"p{number}"))
        await until(lambda: len(stage.groups()) == 4)
        assert stage.told == ["podgroups a/podgroup-uid-p0: nobody listens"]
        monkeypatch.setattr(grouping, "TELLING", 0.0)
        stage.api.fail["create"] = [errors.UnreachableError("nobody listens")]
        stage.feed(pod("p4"))
        await until(lambda: len(stage.told) > 1)
        assert stage.told[1].startswith("podgroups a/podgroup-uid-p4: nobody listens; ")
        assert "writes failed since this was last told" in stage.told[1]

    play(scene)


def test_a_pod_that_cannot_be_read_holds_nobody_up():
    async def scene(stage):
        broken = pod("broken")
        broken["spec"]["containers"] = "many"
        stage.feed(broken)
        stage.feed(pod())
        await until(lambda: stage.group_of("p"))
        assert not stage.group_of("broken")

    play(scene)


def test_only_what_is_read_is_kept():
    kept = slimming.slim(kinds.POD, msgspec.json.encode(pod()))
    assert "status" not in kept
    assert kept["spec"] == {
        "schedulerName": "volcano",
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
    }
    assert slimming.slim(kinds.REPLICA_SET, msgspec.json.encode(replica_set(3)))["spec"] == {"replicas": 3}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "a"},
        "spec": {"activeDeadlineSeconds": 90, "backoffLimit": 3},
        "status": {"startTime": "2026-01-01T00:00:00Z", "active": 1},
    }
    kept = slimming.slim(kinds.BATCH_JOB, msgspec.json.encode(job))
    assert (kept["spec"], kept["status"]) == ({"activeDeadlineSeconds": 90}, {"startTime": "2026-01-01T00:00:00Z"})


def test_a_grouped_pod_of_another_controller_is_not_kept():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    manifest = pod(ownerReferences=[owner], annotations={GROUP: "g"})
    found = decoding.decode(manifest)
    assert not slimming.matters(kinds.POD, found, ("volcano",), prefix="podgroup-")
