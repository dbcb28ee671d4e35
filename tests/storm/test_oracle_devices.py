"""Who looks on at pods without Volcano's groups, at amounts and at devices must see: each rule, broken on purpose, is told."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.sim.identity import Key
from tests.storm import amounts, device_objects, extended, objects, oracle, workloads, world
from tests.storm.test_oracle import bind, rules

NODE_SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]}


@pytest.fixture
def made():
    made = world.World(1)
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    made.create(objects.node("n0", 4, 4, 2))
    for each in (*device_objects.standing("a"), *device_objects.slices("n0", ("small", "large"), 1, 1)):
        made.create(each)
    return made


def pod(
    made, name, *, cpu=1, memory=0, gpus=0, devices=0, claims=(), owner=None, annotations=None, labels=None, **more
):
    manifest = objects.pod(name, 3, {**objects.pod_spec(cpu, memory, claims, gpus, devices), **more})
    manifest["metadata"]["labels"] = labels or {}
    manifest["metadata"]["annotations"] |= annotations or {}
    if owner is not None:
        metadata = owner["metadata"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        manifest["metadata"]["ownerReferences"] = [{**reference, "name": metadata["name"], "uid": metadata["uid"]}]
    made.create(manifest)
    return made.store.find(Key(kinds.POD, "a", name))


def claim(made, name, wanted="one", owner=None):
    manifest = device_objects.claim("a", name, wanted)
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "controller": True}
        manifest["metadata"]["ownerReferences"] = [
            {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    made.create(manifest)


def give(made, name, *devices, to=(), pool="n0"):
    results = [{"request": "r", "driver": device_objects.DRIVER, "pool": pool, "device": each} for each in devices]
    allocation = {"devices": {"results": results}, "nodeSelector": NODE_SELECTOR}
    users = [{"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]} for each in to]
    made.store.patch_status(
        Key(kinds.RESOURCE_CLAIM, "a", name), {"status": {"allocation": allocation, "reservedFor": users}}
    )


def waiting(made):
    """Judge who waits, and nothing else."""
    made.oracle.broken.clear()
    made.oracle.judge_gangs()
    return rules(made)


# -- amounts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "told"), [({"memory": 3}, ["room"]), ({"memory": 1}, [])])
def test_too_much_memory_on_a_node_is_seen(made, asked, told):
    for name in ("p", "q"):
        pod(made, name, **asked)
        bind(made, name)
    assert rules(made) == told


def test_too_many_pods_on_a_node_are_seen(made):
    for name in ("p", "q"):
        pod(made, name)
        bind(made, name)
    assert rules(made) == []
    pod(made, "r")
    bind(made, "r")
    assert rules(made) == ["room"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [({}, ["fits"]), ({"cpu": 5}, []), ({"memory": 5}, []), ({"claims": [{"resourceClaimName": "missing"}]}, [])],
)
def test_a_pod_for_itself_that_waits_and_fits_is_seen(made, asked, told):
    pod(made, "p", **asked)
    assert waiting(made) == told


def test_no_pod_fits_where_every_place_is_taken(made):
    for name in ("p", "q"):
        pod(made, name)
        bind(made, name)
    pod(made, "r")
    assert waiting(made) == []


def test_pods_that_need_the_same_room_do_not_both_fit():
    free = {"n0": {"cpu": 4000, "memory": 4, "pods": 2, "class any": 2, "class large": 1}}
    one, large = ("", {"cpu": 1, "class any": 1}), ("", {"cpu": 1, "class large": 1})
    assert amounts.fit([one], free)
    assert not amounts.fit([large, one], free)  # the one may have been given the only large device
    assert amounts.fit([one, one], free)
    assert not amounts.fit([large, large], free)
    assert amounts.fit([("n0", {"memory": 3}), ("", {"memory": 1})], free)
    assert not amounts.fit([("", {"memory": 3}), ("", {"memory": 2})], free)
    assert not amounts.fit([("n1", {"cpu": 1})], free)


def report(made, gpus):
    made.store.patch_status(Key(kinds.NODE, "", "n0"), {"status": {"allocatable": {extended.GPU: gpus, "pods": "9"}}})


@pytest.mark.parametrize(
    ("reported", "told"), [("4", []), ("3", []), ("1", ["room"]), ("0", ["room"]), (None, ["room"])]
)
def test_more_gpus_than_a_node_has_are_seen(made, reported, told):
    """That of two pods which came when there were four is no fault; who asks for none comes when there are none left."""
    report(made, "4")
    pod(made, "p", cpu=0, gpus=2)
    bind(made, "p")
    report(made, reported)
    made.loop.now += oracle.VIEW + 1.0
    pod(made, "other", cpu=0)
    bind(made, "other")
    assert rules(made) == []
    made.store.delete(Key(kinds.POD, "a", "other"))
    pod(made, "q", cpu=0, gpus=1)
    bind(made, "q")
    assert rules(made) == told


def test_in_fair_weather_nobody_goes_long_by_what_a_node_had(made):
    report(made, "1")
    made.loop.now += 1.0
    report(made, "0")
    made.oracle.economy.fair_since = made.loop.now
    made.loop.now += oracle.economy.SETTLED + 1.0
    for name, silent, told in (("p", True, []), ("q", False, ["room"])):
        made.oracle.silent = silent
        pod(made, name, cpu=0, gpus=1)
        bind(made, name)
        assert rules(made) == told
        made.store.delete(Key(kinds.POD, "a", name))


def test_a_pod_that_waits_for_gpus_that_are_there_is_seen(made):
    pod(made, "p", gpus=2)
    assert waiting(made) == []
    report(made, "2")
    assert waiting(made) == ["fits"]
    bind(made, "p")
    report(made, "0")
    pod(made, "q")
    assert waiting(made) == ["fits"]  # who asks for none is not kept away where there are too few


def give_extended(made, name, device, pool="n0"):
    """Let a pod have a device by a claim that was made for it."""
    user = made.store.find(Key(kinds.POD, "a", name))
    claim(made, f"{name}-extended", owner=user)
    give(made, f"{name}-extended", device, to=[user], pool=pool)
    told = {"extendedResourceClaimStatus": {"resourceClaimName": f"{name}-extended", "requestMappings": []}}
    made.store.patch_status(Key(kinds.POD, "a", name), {"status": told})


@pytest.mark.parametrize("pool", ["n0", "n1"])
def test_a_pod_that_gets_by_name_what_its_node_does_not_offer_has_a_claim_of_that_node(made, pool):
    made.create(next(device_objects.slices("n1", ("small",), 1, 1)))
    pod(made, "p", devices=1)
    give_extended(made, "p", "dev0", pool)
    bind(made, "p")
    assert rules(made) == (["room"] if pool == "n1" else [])


def test_what_a_node_offers_itself_is_had_without_a_claim_and_by_no_more_than_it_has(made):
    made.store.patch_status(Key(kinds.NODE, "", "n0"), {"status": {"allocatable": {extended.DEVICE: "1", "pods": "9"}}})
    pod(made, "p", cpu=0, devices=1)
    give_extended(made, "p", "dev0")
    for name, told in (("p", []), ("q", []), ("r", ["room"])):
        if name != "p":
            pod(made, name, cpu=0, devices=1)
        bind(made, name)
        assert rules(made) == told


def test_a_pod_that_waits_by_name_for_devices_that_are_there_is_seen(made):
    pod(made, "p", devices=2)
    assert waiting(made) == ["fits"]
    taint(made, "t", SICK, device="dev1")
    assert waiting(made) == []
    made.store.patch_status(Key(kinds.NODE, "", "n0"), {"status": {"allocatable": {extended.DEVICE: "1"}}})
    assert waiting(made) == []
    made.store.patch_status(Key(kinds.NODE, "", "n0"), {"status": {"allocatable": {extended.DEVICE: "2"}}})
    assert waiting(made) == ["fits"]
    claim(made, "c")
    pod(made, "q", devices=1, claims=[{"resourceClaimName": "c"}])
    made.store.delete(Key(kinds.POD, "a", "p"))
    assert waiting(made) == []  # nobody can tell which devices are left for the claim


# -- gangs and Jobs of Kubernetes ------------------------------------------------------------------------------------


def member(made, name, group="g"):
    return pod(made, name, schedulingGroup={"podGroupName": group})


def test_a_gang_of_kubernetes_that_fits_and_waits_and_one_in_part_are_seen(made):
    made.create(objects.native_group("g", 2))
    member(made, "p")
    assert waiting(made) == []
    member(made, "q")
    assert waiting(made) == ["fits"]
    bind(made, "p")
    assert waiting(made) == ["part", "fits"]


def test_a_gang_of_kubernetes_that_lost_a_pod_may_run_in_part(made):
    made.create(objects.native_group("g", 2))
    for name in ("p", "q"):
        member(made, name)
        bind(made, name)
    made.store.delete(Key(kinds.POD, "a", "q"))
    pod(made, "other", cpu=3)
    bind(made, "other")
    member(made, "r")
    assert waiting(made) == []


@pytest.mark.parametrize(("indexes", "told"), [((0, 1), []), ((0, 0), ["twice"]), ((0, 1, 2), ["twice"])])
def test_a_pod_of_a_job_of_kubernetes_too_many_is_seen(made, indexes, told):
    made.create(objects.batch_job("b", 4, 2, 3, objects.pod_spec(1), indexed=True))
    job = made.store.find(Key(kinds.BATCH_JOB, "a", "b"))
    for number, index in enumerate(indexes):
        pod(made, f"p{number}", owner=job, annotations={"batch.kubernetes.io/job-completion-index": str(index)})
    assert rules(made) == told


def test_what_is_left_of_a_job_of_kubernetes_is_seen(made):
    gone = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b", "uid": "gone"}}
    pod(made, "p", owner=gone)
    made.oracle.judge_owners()
    assert rules(made) == ["orphan"]


@pytest.mark.parametrize(
    ("kept", "phase", "told"),
    [(5, "Completed", True), (5, "Running", False), (None, "Completed", False), (3600, "Completed", False)],
)
def test_a_job_that_stays_longer_than_it_said_is_seen(made, kept, phase, told):
    made.create(objects.job("j", [(1, 1, 3)], 1, kept=kept))
    key = Key(kinds.JOB, "a", "j")
    for each in ("Completed", phase):
        made.store.patch_status(key, {"status": {"state": {"phase": each}}})
    made.oracle.workloads.judge()
    assert rules(made) == []
    made.loop.now += 5.0 + workloads.PATIENCE + 1.0
    made.oracle.workloads.judge()
    assert rules(made) == ["expired"] * told


@pytest.mark.parametrize(
    ("kept", "phase", "told"), [(5, "Completed", []), (5, "Running", ["quiet"]), (None, "Completed", ["quiet"])]
)
def test_that_a_job_goes_when_it_said_so_is_no_unrest(made, kept, phase, told):
    made.create(objects.job("j", [(1, 1, 3)], 1, kept=kept))
    made.store.patch_status(Key(kinds.JOB, "a", "j"), {"status": {"state": {"phase": phase}}})
    made.loop.now = 1000.0
    made.oracle.sent("ctrl-a#1", b"DELETE /apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs/j HTTP/1.1\r\n", "")
    made.oracle.judge(900.0)
    assert [rule for rule in rules(made) if rule == "quiet"] == told


def test_a_job_that_miscounts_its_pods_is_seen(made):
    made.create(objects.job("j", [(1, 1, 3)], 1))
    job = made.store.find(Key(kinds.JOB, "a", "j"))
    pod(made, "p", owner=job, labels={"volcano.sh/job-name": "j", "volcano.sh/task-spec": "t0"})
    made.oracle.workloads.judge()
    assert rules(made) == ["counts"]
    made.oracle.broken.clear()
    made.store.patch_status(Key(kinds.JOB, "a", "j"), {"status": {"pending": 1}})
    made.oracle.workloads.judge()
    assert rules(made) == []


# -- devices ---------------------------------------------------------------------------------------------------------


def test_a_device_that_two_claims_have_is_seen(made):
    for name in ("c", "d"):
        claim(made, name)
    give(made, "c", "dev0")
    assert rules(made) == []
    give(made, "d", "dev0")
    assert rules(made) == ["device"]


@pytest.mark.parametrize(
    ("wanted", "devices", "told"),
    [
        ("one", ("dev0",), []),
        ("one-large", ("dev1",), []),
        ("one-large", ("dev0",), ["wrong device"]),
        ("two", ("dev0", "dev1"), []),
        ("two", ("dev0",), ["wrong device"]),
        ("one", ("dev7",), ["wrong device"]),
        ("two", ("dev0", "dev0"), ["device"]),
    ],
)
def test_another_device_than_was_claimed_is_seen(made, wanted, devices, told):
    claim(made, "c", wanted)
    give(made, "c", *devices)
    assert rules(made) == told


@pytest.mark.parametrize(("reserved", "pool", "told"), [(True, "n0", 0), (False, "n0", 1), (True, "n1", 1)])
def test_a_pod_that_is_bound_before_it_has_what_it_claims_is_seen(made, reserved, pool, told):
    made.create(next(device_objects.slices("n1", ("small",), 1, 1)))
    claim(made, "c")
    user = pod(made, "p", claims=[{"resourceClaimName": "c"}])
    give(made, "c", "dev0", to=[user] if reserved else [], pool=pool)
    bind(made, "p")
    assert rules(made) == ["unclaimed"] * told


def test_a_claim_that_is_kept_for_who_is_gone_is_seen(made):
    claim(made, "c")
    user = pod(made, "p", claims=[{"resourceClaimName": "c"}])
    give(made, "c", "dev0", to=[user])
    claim(made, "made", owner=user)
    made.oracle.claims.judge()
    assert rules(made) == []
    made.store.patch_status(Key(kinds.POD, "a", "p"), {"status": {"phase": "Succeeded"}})
    made.oracle.claims.judge()
    assert rules(made) == ["kept", "kept"]


def test_a_pod_that_waits_though_there_are_devices_for_it_is_seen(made):
    claim(made, "c", "two")
    pod(made, "p", claims=[{"resourceClaimName": "c"}])
    assert waiting(made) == ["fits"]
    claim(made, "d", "one-large")
    give(made, "d", "dev1")
    assert waiting(made) == []


SICK, BUSY = ({"key": key, "effect": "NoSchedule"} for key in ("sick", "busy"))


def taint(made, name, given, **selector):
    made.create(device_objects.taint_rule(name, selector, given))


def long_after(made):
    made.loop.now += oracle.VIEW + 1.0


@pytest.mark.parametrize(
    ("wanted", "given", "selector", "told"),
    [
        ("one", SICK, {}, ["tainted"]),
        ("one", SICK, {"pool": "n0", "device": "dev0"}, ["tainted"]),
        ("one", SICK, {"device": "dev1"}, []),
        ("one", SICK, {"pool": "n1"}, []),
        ("one", {**SICK, "effect": "NoExecute"}, {}, ["tainted"]),
        ("one", {**SICK, "effect": "None"}, {}, []),
        ("one-busy", SICK, {}, ["tainted"]),
        ("one-busy", BUSY, {}, []),
    ],
)
def test_a_device_that_a_rule_taints_is_given_to_who_tolerates_it(made, wanted, given, selector, told):
    taint(made, "t", given, **selector)
    long_after(made)
    claim(made, "c", wanted)
    give(made, "c", "dev0")
    assert rules(made) == told


@pytest.mark.parametrize(("device", "told"), [("dev0", ["tainted"]), ("dev1", [])])
def test_a_device_that_its_driver_taints_is_given_to_nobody_else_either(made, device, told):
    made.store.delete(Key(kinds.RESOURCE_SLICE, "", "n0-0"))
    for each in device_objects.slices("n0", ("small", "large"), 2, 1, [[SICK]]):
        made.create(each)
    long_after(made)
    claim(made, "c")
    give(made, "c", device)
    assert rules(made) == told


@pytest.mark.parametrize("event", ["came", "went", "changed"])
def test_by_what_was_of_late_a_device_may_be_given(made, event):
    if event != "came":
        taint(made, "t", SICK)
        long_after(made)
    key = Key(kinds.DEVICE_TAINT_RULE, "", "t")
    if event == "came":
        taint(made, "t", SICK)
    elif event == "went":
        made.store.delete(key)
    else:
        made.store.patch(key, {"spec": {"taint": BUSY}})
        made.loop.now += 1.0
        made.store.patch(key, {"spec": {"taint": SICK}})
    made.loop.now += 1.0
    for name, wanted, device, told in (("c", "one-busy", "dev0", []), ("d", "one", "dev1", ["tainted"])):
        claim(made, name, wanted)
        give(made, name, device)
        assert rules(made) == (told if event == "changed" else [])


def test_who_has_a_device_that_is_tainted_later_keeps_it_and_leaves_only_what_it_must(made):
    claim(made, "c")
    user = pod(made, "p", claims=[{"resourceClaimName": "c"}])
    give(made, "c", "dev0", to=[user])
    taint(made, "t", SICK)
    long_after(made)
    made.store.patch(Key(kinds.RESOURCE_CLAIM, "a", "c"), {"metadata": {"labels": {"x": "y"}}})
    made.oracle.claims.judge()
    assert rules(made) == []
    made.store.patch(Key(kinds.DEVICE_TAINT_RULE, "", "t"), {"spec": {"taint": {**SICK, "effect": "NoExecute"}}})
    made.oracle.claims.judge()
    assert rules(made) == ["stays"]


def test_a_pod_that_waits_for_devices_whose_taints_it_tolerates_is_seen(made):
    for name, wanted in (("c", "one"), ("d", "one-busy")):
        claim(made, name, wanted)
        pod(made, f"of-{name}", claims=[{"resourceClaimName": name}])
    assert waiting(made) == ["fits", "fits"]
    taint(made, "t", BUSY)
    assert waiting(made) == ["fits"]
    taint(made, "u", SICK)
    assert waiting(made) == []


def test_devices_of_a_pool_that_is_being_changed_are_nobodys(made):
    claim(made, "c")
    pod(made, "p", claims=[{"resourceClaimName": "c"}])
    key = Key(kinds.RESOURCE_SLICE, "", "n0-0")
    made.store.patch(key, {"spec": {"pool": {"name": "n0", "generation": 2, "resourceSliceCount": 2}}})
    assert waiting(made) == []
    made.store.patch(key, {"spec": {"pool": {"name": "n0", "generation": 2, "resourceSliceCount": 1}}})
    assert waiting(made) == ["fits"]


def test_a_claim_that_others_use_ties_its_pods_to_its_node_and_one_that_nobody_uses_does_not(made):
    made.create(objects.node("n1", 4))
    for each in device_objects.slices("n1", ("small",), 1, 1):
        made.create(each)
    claim(made, "c")
    user = pod(made, "p", claims=[{"resourceClaimName": "c"}])
    give(made, "c", "dev0", to=[user])
    bind(made, "p")
    pod(made, "other", cpu=3)
    bind(made, "other")
    pod(made, "q", claims=[{"resourceClaimName": "c"}])
    assert waiting(made) == []
    give(made, "c", "dev0")
    assert waiting(made) == ["fits"]
