"""Writes are patches of exactly our fields (ours.md 9): what others put into an object is still there afterwards."""

from __future__ import annotations

from builders import GANG, Desk, group, node, pod, settings
from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.cache.effects import Bind
from pumice.scheduler import Scheduler
from pumice.sim.cluster import SimulatedCluster

SECOND = 1_000_000


def played(*objects, cycles=4):
    cluster = SimulatedCluster()
    cluster.apply(objects)
    cache = Cache(cluster)
    scheduler = Scheduler(cache, settings(GANG)[0], cluster.clock.now)
    cluster.connect(cache)
    for _ in range(cycles):
        cluster.pump()
        scheduler.cycle()
        cluster.advance(SECOND)
    return cluster


def stored(cluster, kind, name):
    return next(each for each in cluster.store.scan(kind) if each["metadata"]["name"] == name)


def test_unknown_fields_owners_and_finalizers_of_a_group_survive():
    made = group("g", 1, minResources={"cpu": "1"}, someday={"a": [1, 2]})
    made["metadata"]["finalizers"] = ["example.com/keep"]
    made["metadata"]["annotations"] = {"mine": "yes"}
    made["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "a.p"}]
    made["status"] = {"note": "from somebody else"}
    cluster = played(node("n"), made, pod("p", "g", cpu="1"))
    found = stored(cluster, kinds.POD_GROUP, "g")
    assert found["status"]["phase"] == "Running"
    assert found["status"]["note"] == "from somebody else"
    assert found["spec"]["someday"] == {"a": [1, 2]}
    assert found["spec"]["minResources"] == {"cpu": "1"}
    for field in ("finalizers", "annotations", "ownerReferences"):
        assert found["metadata"][field] == made["metadata"][field]


def test_unknown_fields_and_conditions_of_a_pod_survive():
    made = pod("p", "g", cpu="64", someday=True)
    made["status"]["conditions"] = [{"type": "example.com/Ready", "status": "True"}]
    cluster = played(node("n"), group("g"), made)
    found = stored(cluster, kinds.POD, "p")
    assert found["spec"]["someday"] is True
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "example.com/Ready": "True",
        "PodScheduled": "False",
    }


def test_only_the_status_of_a_queue_is_written():
    cluster = played(node("n"), group("g"), pod("p", "g", cpu="1"))
    found = stored(cluster, kinds.QUEUE, "default")
    assert found["status"]["allocated"]["cpu"] == "1"
    assert found["status"].get("state") in (None, "", "Open")


def test_no_annotation_of_the_pod_travels_with_its_bind():
    desk = Desk().feed(node("n"), group("g"), pod("p", "g", cpu="1", annotations={"mine": "yes"}))
    desk.cycle()
    (bind,) = desk.world.of(Bind)
    assert (bind.uid, bind.node, dict(bind.annotations)) == ("a.p", "n", {})


def test_a2_a_group_has_no_status_subresource_and_a_queue_has_one():
    desk = Desk().feed(node("n"), group("g"), pod("p", "g", cpu="1"))
    desk.cycle()
    assert {patch.subresource for patch in desk.world.patches("PodGroup")} == {""}
    assert {patch.subresource for patch in desk.world.patches("Queue")} == {"status"}


def test_a_patch_of_a_group_names_its_status_and_nothing_else():
    desk = Desk().feed(node("n"), group("g"), pod("p", "g", cpu="64"))
    desk.cycle()
    (patch,) = desk.world.patches("PodGroup")
    assert set(patch.body) == {"status"}
    assert set(patch.body["status"]) == {"phase", "conditions", "running", "succeeded", "failed"}
    (patch,) = desk.world.patches("Pod")
    assert (patch.subresource, patch.strategic, set(patch.body["status"])) == ("status", True, {"conditions"})
