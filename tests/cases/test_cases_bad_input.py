"""Bad input too large for a scenario file: the object is named and disabled, the rest is scheduled as if it were not there."""

from __future__ import annotations

from builders import Desk, group, node, pod

NAMES = 10_000


def good(desk):
    """Feed a node and a gang of two that just fits."""
    return desk.feed(
        node("n", cpu="2"), group("good", 2), *(pod(f"good-{index}", "good", cpu="1") for index in range(2))
    )


def complaints(desk, name):
    return [message for about, reason, message in desk.world.notes if (about, reason) == (name, "InvalidObject")]


def test_ten_thousand_resource_names_in_one_pod_disable_that_pod_only():
    desk = good(Desk())
    many = {f"example.com/r{index}": "1" for index in range(NAMES)}
    desk.feed(group("bad"), pod("bad-0", "bad", requests=many))
    record = desk.cycle()
    assert desk.world.binds == {"good-0": "n", "good-1": "n"}
    assert any("10000" in message and "64" in message for message in complaints(desk, "bad-0"))
    assert "Pod a/bad-0" in record.explain("a/bad")
    assert len(desk.cluster.vocabulary) == 3  # only names that some node offers cost memory


def test_ten_thousand_pods_with_a_name_each_wait_and_cost_no_memory():
    desk = good(Desk())
    desk.feed(group("odd", 0))
    desk.feed(*(pod(f"odd-{index}", "odd", requests={f"example.com/r{index}": "1"}) for index in range(NAMES)))
    record = desk.cycle()
    assert desk.world.binds == {"good-0": "n", "good-1": "n"}
    assert "Insufficient example.com/r" in record.explain("a/odd")
    assert len(desk.cluster.vocabulary) == 3


def test_a_huge_annotation_disables_its_pod_only():
    desk = good(Desk())
    desk.feed(group("bad"), pod("bad-0", "bad", cpu="1", annotations={"note": "x" * (3 << 20)}))
    record = desk.cycle()
    assert desk.world.binds == {"good-0": "n", "good-1": "n"}
    assert any(
        "annotations" in message and "262144" in message.replace(",", "") for message in complaints(desk, "bad-0")
    )
    assert "Pod a/bad-0" in record.explain("a/bad")


def test_a_huge_annotation_disables_its_group_only():
    desk = good(Desk())
    desk.feed(group("bad", annotations={"note": "x" * (3 << 20)}), pod("bad-0", "bad", cpu="1"))
    record = desk.cycle()
    assert desk.world.binds == {"good-0": "n", "good-1": "n"}
    assert any("annotations" in message for message in complaints(desk, "bad"))
    assert "annotations" in record.explain("a/bad")


def test_what_is_bad_is_said_once():
    desk = good(Desk()).feed(pod("bad-0", "good", cpu="-1"))
    for _ in range(3):
        desk.cycle()
        desk.modify(pod("bad-0", "good", cpu="-1"))
    assert len(complaints(desk, "bad-0")) == 1
