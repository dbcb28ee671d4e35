"""Quotas of device classes: what claims of a queue may have in all."""

import random

import pytest

import builders
from devices.test_devices_placing import bound, claim, desk, device_class, held, manifest, own, pod
from pumice.cache.effects import Evict
from pumice.plugins.capacity.claim_counts import ClaimCounts

CAPACITY = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def limited(capability, **more):
    found = desk(CAPACITY)
    found.modify(builders.queue("default", capability=capability, **more))
    return found


def used(found, count):
    """Let pods of the queue have devices already."""
    names = [f"g{7 - index}" for index in range(count)]
    found.feed(builders.group("old", phase="Running"), pod("o", "old", node="n1", shared="old"))
    return found.feed(claim("old", status=held("n1", *names, reserved=["o"])))


def test_a_claim_beyond_the_number_of_devices_of_a_class_waits():
    found = used(limited({"deviceclass/gpu": 4}), 3)
    found.feed(builders.group("j"), *own("p", "j", count=2))
    found.cycle()
    assert bound(found) == {}
    assert "deviceclass/gpu 3 held, 2 asked for, 4 allowed" in found.cache.record.explain("a/j")
    found.feed(builders.group("k"), *own("q", "k", count=1))
    found.cycle()
    assert bound(found) == {"q": "n1"}


def test_a_claim_that_is_counted_is_free_to_share():
    found = used(limited({"deviceclass/gpu": 3}), 3)
    found.feed(builders.group("j"), pod("p", "j", shared="old"))
    found.cycle()
    assert bound(found) == {"p": "n1"}


def test_placements_of_one_cycle_count_and_no_number_is_no_limit():
    found = limited({"deviceclass/gpu": 2})
    for index in range(4):
        found.feed(builders.group(f"j{index}"), *own(f"p{index}", f"j{index}"))
    found.cycle()
    assert len(bound(found)) == 2
    unlimited = limited({"deviceclass/gpu": 0})
    for index in range(4):
        unlimited.feed(builders.group(f"j{index}"), *own(f"p{index}", f"j{index}"))
    unlimited.cycle()
    assert len(bound(unlimited)) == 4


def asking(**capacity):
    return [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "capacity": {"requests": capacity}}}]


def test_dimensions_are_added_up_and_must_be_listed():
    found = builders.Desk(CAPACITY).feed(device_class(), builders.node("n1"))
    room = {name: {"value": "80Gi"} for name in ("memory", "cores")}
    listed = [{"name": f"g{index}", "capacity": room} for index in range(8)]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    found.feed(manifest("ResourceSlice", "s", spec={"driver": "d", "pool": pool, "nodeName": "n1", "devices": listed}))
    found.modify(builders.queue("default", capability={"memory.deviceclass/gpu": "80Gi"}))
    found.feed(builders.group("j"), *own("p", "j", requests=asking(memory="30Gi")))
    found.cycle()
    assert bound(found) == {"p": "n1"}
    found.feed(builders.group("k"), *own("q", "k", requests=asking(memory="15Gi")))
    found.feed(builders.group("l"), *own("r", "l", requests=asking(cores="1")))
    found.cycle()
    assert bound(found) == {"p": "n1"}
    assert "memory.deviceclass/gpu 60Gi held, 30Gi asked for, 80Gi allowed" in found.cache.record.explain("a/k")
    assert "cores.deviceclass/gpu, of which the queue's capability says nothing" in found.cache.record.explain("a/l")


# -- letting in, and evicting ----------------------------------------------------------------------------------

EVICTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
CPU = {"minResources": {"cpu": "1"}}


def phases(found):
    return {job.name: job.status.phase for job in found.cluster.jobs.values()}


def test_a_group_is_let_in_only_if_its_claims_fit_beside_those_that_were():
    found = limited({"deviceclass/gpu": 4})
    found.feed(builders.group("a", 2, **CPU, created=1), *own("a1", "a"), *own("a2", "a"), *own("a3", "a"))
    found.feed(builders.group("b", 1, **CPU, created=2), *own("b1", "b", count=3))
    found.feed(builders.group("c", 1, **CPU, created=3), *own("c1", "c", count=2))
    found.cycle()
    assert phases(found) == {"a": "Inqueue", "b": "Pending", "c": "Inqueue"}
    said = "claims exceed its room: deviceclass/gpu 2 held, 3 asked for, 4 allowed"
    assert said in found.cache.record.explain("a/b")
    assert sorted(bound(found)) == ["a1", "a2", "c1"]


def test_a_group_without_minimum_of_resources_is_let_in_and_waits_for_its_quota():
    found = used(limited({"deviceclass/gpu": 3}), 3)
    found.feed(builders.group("b"), *own("b1", "b"))
    found.cycle()
    assert phases(found)["b"] == "Inqueue"
    assert "beyond the limit: deviceclass/gpu 3 held, 1 asked for, 3 allowed" in found.cache.record.explain("a/b")


SHARES = CAPACITY.replace("capacity", "proportion")
PLAIN = [builders.pod("a-plain", "big", cpu="1")]
ABSENT = [pod("p", "big", shared="absent")]
TWO = [*own("p", "big"), *own("q", "big")]
LARGE = [pod("p", "big", cpu="5"), claim("c-p", "p"), pod("q", "big", cpu="5"), claim("c-q", "q")]
YET_TO_BE_MADE = [builders.pod("p", "big", cpu="1", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])]
HAS_RUN = builders.pod("done", "big", phase="Succeeded")


@pytest.mark.parametrize(
    ("minimum", "devices", "pods", "keeps_out"),
    [
        (1, 0, own("p", "big"), False),
        (1, 1, own("p", "big"), True),
        (2, 1, TWO, False),
        (2, 2, TWO, True),
        (1, 1, TWO, True),  # more pods than it needs
        (3, 0, TWO, True),  # it has yet to come
        (0, 0, TWO, True),  # nothing is needed
        (1, 0, [*own("p", "big"), HAS_RUN], True),  # what was needed has run
        (2, 0, [*own("p", "big"), HAS_RUN], False),
        (1, 0, [*own("p", "big"), *PLAIN], True),  # one that claims nothing is enough
        (2, 0, [*own("p", "big"), *PLAIN], False),
        (2, 2, [*LARGE], False),  # only one of them has room where the devices are
        (1, 0, ABSENT, False),
        (1, 1, [*ABSENT, claim("other")], False),
        (1, 0, YET_TO_BE_MADE, True),
        (1, 0, [*YET_TO_BE_MADE, claim("other")], True),
        (1, 0, PLAIN, True),
    ],
)
def test_who_was_let_in_takes_no_room_from_others_as_long_as_no_node_would_have_devices_for_what_it_needs(
    minimum, devices, pods, keeps_out
):
    """Nor does who can never run, of which `test_framework_never_running` tells."""
    found = desk(SHARES, devices=devices)
    found.feed(builders.group("big", minimum, phase="Inqueue", minResources={"cpu": "8"}), *pods)
    found.feed(builders.group("small", 1, minResources={"cpu": "8"})).cycle()
    assert phases(found)["small"] == ("Pending" if keeps_out else "Inqueue")


@pytest.mark.parametrize(
    "policy",
    ["compatibility: volcano\n" + SHARES, SHARES.replace("predicates", "binpack")],
    ids=["volcano", "unserved"],
)
def test_by_the_rules_of_volcano_and_where_nobody_looks_at_claims_it_takes_room_though_no_node_has_devices_for_it(
    policy,
):
    found = desk(policy, devices=0)
    found.feed(builders.group("big", 1, phase="Inqueue", minResources={"cpu": "8"}), *own("p", "big"))
    found.feed(builders.group("small", 1, minResources={"cpu": "8"})).cycle()
    assert not found.scheduler.failures
    assert phases(found)["small"] == "Pending"


def preempting(text=EVICTING):
    """A queue whose quota a pod of low priority has used up, and one of high priority that waits for it."""
    found = desk(text)
    found.modify(builders.queue("default", capability={"deviceclass/gpu": 1}))
    found.feed(builders.priority_class("low", 1), builders.priority_class("high", 9))
    found.feed(builders.group("j", 0, priorityClassName="low", phase="Running"))
    found.feed(pod("p", "j", node="n1", shared="c", priority=1, phase="Running"))
    found.feed(claim("c", status=held("n1", "g0", reserved=["p"])))
    found.feed(builders.group("k", priorityClassName="high", **CPU), pod("q", "k", priority=9), claim("c-q", "q"))
    return found


def test_room_in_a_quota_is_made_by_eviction_and_used_when_the_victim_is_gone():
    found = preempting()
    found.cycle()
    assert phases(found)["k"] == "Inqueue"
    (eviction,) = found.world.of(Evict)
    assert eviction.name == "p"
    found.settle(eviction)
    found.modify(pod("p", "j", node="n1", shared="c", priority=1, phase="Running", deleting=True))
    found.cycle()
    assert (bound(found), len(found.world.of(Evict))) == ({}, 1)
    found.delete(pod("p", "j")).delete(claim("c"))
    found.cycle()
    assert bound(found) == {"q": "n1"}


def test_where_nobody_evicts_the_group_stays_out():
    found = preempting(CAPACITY)
    found.cycle()
    assert phases(found)["k"] == "Pending"


def test_sums_of_claims_are_what_counting_them_anew_gives():
    draw = random.Random(5)  # noqa: S311  cases, no secrets
    counts, tasks = ClaimCounts(), [builders.Desk().feed(builders.pod(f"p{n}")).apply().task(f"p{n}") for n in range(3)]
    amounts = {key: {("gpu", ""): draw.randint(1, 4)} for key in "abc"}
    users, promised = {key: (set(), set()) for key in "abc"}, set()
    for _ in range(300):
        key, task, going = draw.choice("abc"), draw.choice(tasks), draw.random() < 0.4
        if draw.random() < 0.3:
            (promised.discard if key in promised else promised.add)(key)
            counts.promise(key, amounts[key], kept=key in promised)
        else:
            mine = users[key][going]
            sign = -1 if task.uid in mine else 1
            (mine.discard if sign < 0 else mine.add)(task.uid)
            counts.change(key, amounts[key], task, sign, going=going)
        for total, listed in (
            (counts.staying, [key for key in "abc" if users[key][0]]),
            (counts.there, [key for key in "abc" if users[key][0] or users[key][1]]),
            (counts.with_promised, [key for key in "abc" if users[key][0] or users[key][1] or key in promised]),
        ):
            assert total.get(("gpu", ""), 0) == sum(amounts[key]["gpu", ""] for key in listed)
