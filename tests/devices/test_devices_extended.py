"""Extended resources that a device class stands for are had by a claim that is made for the pod."""

import os
import random

import pytest

import builders
from devices.test_devices_placing import bound, claim, desk, device_class, given, held, manifest, slice_of
from pumice.api import decoding
from pumice.cache.effects import TakeBack
from pumice.model.devices import extended

CLASSES = {"v/gpu": "gpu"}


def container(name, **requests):
    return {"name": name, "resources": {"requests": {key.replace("__", "/"): units for key, units in requests.items()}}}


def pod(name="p", group="", init=(), containers=()):
    made = builders.pod(name, group)
    made["spec"]["initContainers"], made["spec"]["containers"] = list(init), list(containers)
    return made


def special(**parts):
    return extended.special_claim(decoding.decode(pod(**parts)), CLASSES)


def asked(found):
    return {each.name: each.exactly.count for each in found.spec.devices.requests}


def test_init_containers_use_what_later_ones_hold_and_one_more_request_has_the_rest():
    found = special(init=[container("i", v__gpu=2)], containers=[container("c", cpu="1", memory="1Gi", v__gpu=1)])
    assert asked(found) == {"container-1-request-2": 1, "container-0-request-0": 1}
    assert [(each["containerName"], each["requestName"]) for each in found.mappings] == [
        ("c", "container-1-request-2"),
        ("i", "container-1-request-2"),
        ("i", "container-0-request-0"),
    ]


def test_the_largest_shortfall_counts_once_and_sidecars_hold_their_own():
    sidecar = {**container("s", v__gpu=1), "restartPolicy": "Always"}
    found = special(
        init=[container("i", v__gpu=3), sidecar, container("k", v__gpu=4)], containers=[container("c", v__gpu=2)]
    )
    assert asked(found) == {"container-1-request-0": 1, "container-3-request-0": 2, "container-2-request-0": 2}


def test_a_pod_that_asks_for_nothing_of_the_kind_has_no_claim():
    assert special(containers=[container("c", cpu="1")]) is None
    assert special(containers=[container("c", v__gpu=0)]) is None


def test_of_two_classes_the_newer_stands_for_a_resource_then_the_smaller_name():
    def made(name, created):
        found = manifest("DeviceClass", name, spec={"extendedResourceName": "v/gpu"})
        found["metadata"]["creationTimestamp"] = created
        return decoding.decode(found)

    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    found = extended.classes_by_resource([made("b", new), made("a", old), made("c", new)])
    assert found["v/gpu"] == "b"
    assert found["deviceclass.resource.kubernetes.io/a"] == "a"


def with_class(found, name="v/gpu"):
    return found.modify(manifest("DeviceClass", "gpu", spec={"extendedResourceName": name}))


def test_a_pod_gets_devices_for_the_resource_and_they_run_out():
    found = with_class(desk(devices=2))
    for index in range(3):
        found.feed(
            builders.group(f"j{index}"), pod(f"p{index}", f"j{index}", containers=[container("c", cpu="1", v__gpu=1)])
        )
    found.cycle()
    assert sorted(bound(found)) == ["p0", "p1"]
    assert sorted(device for devices in given(found).values() for _, _, device in devices) == ["g0", "g1"]
    (decision,) = found.cluster.devices.reservations.get("a.p0").decisions
    assert decision.made["metadata"]["generateName"] == "p0-extended-resources-"
    assert decision.made["spec"]["devices"]["requests"][0]["name"] == "container-0-request-1"
    assert decision.mappings == (
        {"containerName": "c", "resourceName": "v/gpu", "requestName": "container-0-request-1"},
    )


def test_a_class_that_comes_later_or_goes_is_noticed():
    found = desk().feed(builders.group("j"), pod("p", "j", containers=[container("c", cpu="1", v__gpu=1)]))
    found.cycle()
    assert bound(found) == {}
    with_class(found)
    found.cycle()
    assert bound(found) == {"p": "n1"}
    found.feed(builders.group("k"), pod("q", "k", containers=[container("c", cpu="1", v__gpu=1)]))
    with_class(found, "w/gpu")
    found.cycle()
    assert bound(found) == {"p": "n1"}


@pytest.mark.parametrize("placed", [False, True])
def test_nothing_is_remembered_of_pods_that_left_after_their_class(placed):
    found = desk(devices=1 if placed else 0)
    with_class(found)
    found.feed(builders.group("j"), pod("p", "j", containers=[container("c", cpu="1", v__gpu=1)]))
    found.cycle()
    assert bool(bound(found)) == placed
    found.delete(device_class()).cycle()
    found.delete(pod("p", "j")).cycle()
    for effect in found.world.of(TakeBack):
        found.settle(effect)
    found.cycle()
    kept = {name for name, listed in vars(found.cluster.devices).items() if isinstance(listed, dict) and listed}
    assert kept <= {"slices", "changes", "withdrawn"}


def left_behind(kind, count=1):
    """The claim that an attempt made before it broke off, with a device on n1."""
    task = decoding.decode(pod("p", "j", containers=[container("c", cpu="1", v__gpu=1)]))
    name = extended.special_claim(task, CLASSES).name
    asked = {"deviceClassName": kind, "allocationMode": "ExactCount", "count": count}
    requests = [{"name": "container-0-request-1", "exactly": asked}]
    return claim(name, "p", requests=requests, status=held("n1", "g1", reserved=["p"]))


def after_a_crash(made):
    found = with_class(desk(devices=2, nodes=("n1", "n2")))
    found.feed(made, builders.group("j"), pod("p", "j", containers=[container("c", cpu="1", v__gpu=1)]))
    found.cycle()
    return found


def test_what_an_attempt_made_before_it_broke_off_is_used_if_it_asks_for_the_same():
    found = after_a_crash(left_behind("gpu"))
    assert (bound(found), [device for _, _, device in given(found)["p"]]) == ({"p": "n1"}, ["g1"])


@pytest.mark.parametrize("other", [("old", 1), ("gpu", 2)])
def test_a_claim_left_behind_that_asks_for_something_else_is_deleted_first(other):
    made = left_behind(*other)
    found = after_a_crash(made)
    assert bound(found) == {}
    (back,) = found.world.of(TakeBack)
    assert [each.claim for each in back.preparations] == [made["metadata"]["name"]]
    assert "asks for something else; it is deleted first" in found.cache.record.explain("a/j")
    found.settle(back, "unavailable")
    found.cycle()
    (_, again) = found.world.of(TakeBack)
    assert again == back
    found.settle(again)
    found.cycle()
    assert len(found.world.of(TakeBack)) == 2
    found.delete(made).cycle()
    assert list(bound(found)) == ["p"]


def asking(name, units, group="", **more):
    return pod(name, group or f"j-{name}", containers=[container("c", cpu="1", v__gpu=units)], **more)


def test_where_a_node_offers_the_resource_it_is_the_nodes_and_elsewhere_it_is_had_by_a_claim():
    found = with_class(desk(devices=2).feed(builders.node("n2", v__gpu="4")))
    for name, units in (("a", 3), ("b", 2), ("c", 1), ("d", 1)):
        found.feed(builders.group(f"j-{name}"), asking(name, units))
    found.cycle()
    assert bound(found) == {"a": "n2", "b": "n1", "c": "n2"}
    assert {name: len(devices) for name, devices in given(found).items()} == {"b": 2}
    column = found.cluster.vocabulary.columns["v/gpu"]
    assert found.cluster.nodes.allocatable[: found.cluster.nodes.count, column].tolist() == [2000, 4000]
    assert found.cluster.nodes.used[: found.cluster.nodes.count, column].tolist() == [2000, 4000]


def test_a_claim_left_behind_goes_when_its_pod_goes_where_the_node_offers_the_resource_itself():
    found = with_class(desk(devices=2).modify(builders.node("n1", cordoned=True)).feed(builders.node("n2", v__gpu="1")))
    made = left_behind("gpu")
    found.feed(made, builders.group("j"), asking("p", 1, "j"))
    found.cycle()
    assert bound(found) == {"p": "n2"}
    (back,) = found.world.of(TakeBack)
    assert [each.claim for each in back.preparations] == [made["metadata"]["name"]]
    found.settle(back)
    found.delete(made).cycle()
    assert found.cluster.devices.uses == {}
    assert len(found.world.of(TakeBack)) == 1


def test_a_node_that_begins_or_ends_to_offer_the_resource_is_noticed_and_so_are_slices_and_classes():
    found = with_class(desk(devices=1))
    found.feed(builders.group("j-a"), asking("a", 1)).cycle()
    assert list(given(found)) == ["a"]
    found.feed(builders.node("n2", v__gpu="1"), builders.group("j-b"), asking("b", 1)).cycle()
    assert (bound(found)["b"], list(given(found))) == ("n2", ["a"])
    found.feed(builders.group("j-c"), asking("c", 1)).cycle()
    assert "c" not in bound(found)
    found.modify(slice_of("n1", 2)).cycle()
    assert bound(found)["c"] == "n1"
    found.delete(device_class())
    found.feed(builders.group("j-d"), asking("d", 1)).cycle()
    assert "d" not in bound(found)
    column = found.cluster.vocabulary.columns["v/gpu"]
    assert found.cluster.nodes.allocatable[: found.cluster.nodes.count, column].tolist() == [0, 1000]


def test_a_gang_is_spread_over_nodes_of_both_sorts_and_shortcuts_change_nothing():
    placed = []
    for plain in (False, True):
        found = builders.Desk(plain=plain).feed(device_class(), builders.node("n1"), slice_of("n1", 2))
        with_class(found.feed(builders.node("n2", v__gpu="2")))
        found.feed(builders.group("j", 4), *(asking(f"p{index}", 1, "j") for index in range(4)))
        found.cycle()
        placed.append((bound(found), given(found)))
    assert placed[0] == placed[1]
    assert sorted(placed[0][0].values()) == ["n1", "n1", "n2", "n2"]
    assert len(placed[0][1]) == 2


@pytest.mark.parametrize("seed", range(200 if os.environ.get("PUMICE_FUZZ") else 12))
def test_whoever_is_placed_has_what_it_asks_for_of_its_node_or_as_many_devices_and_nobody_is_left_out(seed):
    draw = random.Random(seed)  # noqa: S311  cases, no secrets
    found = with_class(builders.Desk().feed(device_class()))
    native, listed = {}, {}
    for name in (f"n{index}" for index in range(draw.randint(2, 4))):
        if draw.random() < 0.5:
            native[name] = draw.randint(1, 4)
            found.feed(builders.node(name, v__gpu=str(native[name])))
        else:
            listed[name] = draw.randint(0, 4)
            found.feed(builders.node(name), slice_of(name, listed[name]))
    units = {}
    for wave in range(2):
        for name in (f"p{wave}{index}" for index in range(draw.randint(2, 5))):
            units[name] = draw.randint(1, 2)
            found.feed(builders.group(f"j-{name}"), asking(name, units[name]))
        found.cycle()
        taken = dict.fromkeys((*native, *listed), 0)
        for name, node in bound(found).items():
            taken[node] += units[name]
            devices = given(found).get(name, [])
            assert len(devices) == (0 if node in native else units[name])
            assert {pool for _, pool, _ in devices} <= {node}
        every = [device[1:] for devices in given(found).values() for device in devices]
        assert len(every) == len(set(every))
        room = {node: size - taken[node] for node, size in {**native, **listed}.items()}
        assert min(room.values()) >= 0
        left = [units[name] for name in units if name not in bound(found)]
        assert not left or min(left) > max(room.values())
