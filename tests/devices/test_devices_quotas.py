"""Quotas of device classes: what claims of a queue may have in all."""

import builders
from devices.test_devices_placing import bound, claim, desk, device_class, held, manifest, own, pod

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
