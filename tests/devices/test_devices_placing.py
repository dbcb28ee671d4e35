"""Pods with claims are placed where their devices are, and what one gets is nobody else's."""

import numpy as np
import pytest

import builders
from pumice.cel import language
from pumice.framework.explaining import placements
from pumice.framework.subject import Subject
from pumice.model.statuses import Status
from pumice.plugins.predicates.devices import rules

SELECTED = 'device.attributes["d"].model == "a100"'
PREEMPT = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def manifest(kind, name, namespace="", version="v1", **body):
    metadata = builders.metadata(name, namespace, **body.pop("metadata", {}))
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": metadata, **body}


def slice_of(node, devices=8, **more):
    listed = [{"name": f"g{index}", "attributes": {"model": {"string": "a100"}}} for index in range(devices)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "nodeName": node, "devices": listed, **more}
    return manifest("ResourceSlice", f"slice-{node}", spec=spec)


def device_class(name="gpu", expression='device.driver == "d"'):
    return manifest("DeviceClass", name, spec={"selectors": [{"cel": {"expression": expression}}]})


def claim(name, owner="", *, requests=None, status=None, expression=SELECTED, count=1, **more):
    selectors = [{"cel": {"expression": expression}}] if expression else []
    asked = requests or [{"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors, "count": count}}]
    metadata = (
        {"ownerReferences": [{"kind": "Pod", "name": owner, "uid": f"a.{owner}", "controller": True}]} if owner else {}
    )
    return manifest(
        "ResourceClaim", name, "a", metadata=metadata | more, spec={"devices": {"requests": asked}}, status=status or {}
    )


def pod(name, group="", *, shared="", cpu="1", **more):
    if shared:
        return builders.pod(name, group, cpu=cpu, resourceClaims=[{"name": "gpu", "resourceClaimName": shared}], **more)
    made = builders.pod(
        name, group, cpu=cpu, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}], **more
    )
    made["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"c-{name}"}]
    return made


def own(name, group="", **more):
    """A pod with a claim made for it, and the claim."""
    return [pod(name, group), claim(f"c-{name}", name, **more)]


def held(node, *devices, reserved=()):
    results = [{"request": "r", "driver": "d", "pool": node, "device": each} for each in devices]
    named = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [named]}]},
        },
        "reservedFor": [{"resource": "pods", "name": each, "uid": f"a.{each}"} for each in reserved],
    }


def desk(text=builders.GANG, nodes=("n1",), devices=8):
    made = builders.Desk(text).feed(device_class())
    for name in nodes:
        made.feed(builders.node(name), slice_of(name, devices))
    return made


def bound(found):
    """Return by pod the node that it is being bound to: claims are written first."""
    return {task.name: task.node.name for task in found.cluster.tasks.values() if task.status is Status.BINDING}


def given(found):
    """Return by pod which devices its claims are to have when it is bound."""
    return {
        task.name: [
            (decision.claim, result.pool, result.device)
            for decision in reservation.decisions
            for result in decision.allocation.devices.results
        ]
        for task in found.cluster.tasks.values()
        if (reservation := found.cluster.devices.reservations.get(task.uid)) is not None
    }


def test_a_pod_goes_where_its_claim_can_be_satisfied():
    found = desk(nodes=("n1", "n2"), devices=1).feed(builders.node("n3"))
    found.feed(builders.group("j", 2), *own("p1", "j"), *own("p2", "j"))
    found.cycle()
    assert sorted(bound(found).values()) == ["n1", "n2"]
    assert sorted(given(found)["p1"] + given(found)["p2"]) == [
        (f"c-{pod}", node, "g0") for pod, node in sorted(bound(found).items())
    ]


def test_devices_of_one_node_are_given_once_in_a_cycle():
    found = desk(devices=3)
    for index in range(5):
        found.feed(builders.group(f"j{index}"), *own(f"p{index}", f"j{index}"))
    found.cycle()
    assert len(bound(found)) == 3
    assert sorted(device for ((_, _, device),) in given(found).values()) == ["g0", "g1", "g2"]


def test_a_gang_that_finds_too_few_devices_takes_none():
    found = desk(devices=3).feed(builders.group("j", 4))
    for index in range(4):
        found.feed(*own(f"p{index}", "j"))
    found.cycle()
    assert bound(found) == {}
    assert found.cluster.devices.uses == {}
    found.feed(builders.group("k"), *own("q", "k"))
    found.cycle()
    assert bound(found) == {"q": "n1"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "no node has a free device for request r of claim gpu: the freest of 1, n1, has 2 match, 2 in use, 0 tainted"),
        ({"count": 3}, "no node has 3 free devices for request r of claim gpu: the freest of 1, n1, has 2 match, 2 in use, 0 tainted"),
        ({"expression": "false"}, "no node has a device for request r of claim gpu"),
    ],
)  # fmt: skip
def test_why_a_pod_waits_is_told_with_the_numbers_of_devices(asked, told):
    found = desk(devices=2).feed(claim("other", status=held("n1", "g0", "g1")))
    found.feed(builders.group("j"), *own("p", "j", **asked))
    found.cycle()
    assert bound(found) == {}
    assert "cannot allocate all claims" in found.cache.record.explain("a/j")
    session = found.session()
    (cause,) = {each(Subject(found.task("p")), [rules.NONE_FREE]) for each in session.announced.pod_causes} - {""}
    assert cause == told
    assert not any(
        each(Subject(found.task("p")), [rules.NONE_FREE, "Insufficient cpu"]) for each in session.announced.pod_causes
    )


def test_devices_that_the_pod_itself_takes_for_another_request_are_told_apart_from_those_of_others():
    """One of the four is somebody else's, two go to the pod's first claim: one is left for its second, which wants two."""
    stand = "4 match, 3 in use (2 for other requests of the pod), 0 tainted"
    found = desk(devices=4).feed(claim("other", status=held("n1", "g3")), builders.group("j"))
    asking = [{"name": each, "resourceClaimName": each} for each in ("c1", "c2")]
    found.feed(builders.pod("p", "j", cpu="1", resourceClaims=asking), claim("c1", count=2), claim("c2", count=2))
    found.cycle()
    assert bound(found) == {}
    session = found.session()
    (cause,) = {each(Subject(found.task("p")), [rules.NONE_FREE]) for each in session.announced.pod_causes} - {""}
    assert cause == f"no node has 2 free devices for request r of claim c2: the freest of 1, n1, has {stand}"
    (group,) = placements.explain(session, [found.task("p")]).groups
    assert [each.text for each in group.details] == [f"no free device for request r ({stand})"]


def test_an_explanation_says_how_the_devices_of_a_request_stand():
    found = desk(nodes=("n1", "n2"), devices=2).feed(claim("other", status=held("n1", "g0")))
    tainted = slice_of("n2", 2)
    for device in tainted["spec"]["devices"]:
        device["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    found.modify(tainted).feed(builders.group("j"), *own("p", "j", count=2))
    session = found.session()
    (group,) = placements.explain(session, [found.task("p")]).groups
    assert group.reason == "cannot allocate all claims"
    assert sorted(each.text for each in group.details) == [
        "no free device for request r (2 match, 0 in use, 2 tainted)",
        "no free device for request r (2 match, 1 in use, 0 tainted)",
    ]


def test_a_claim_whose_devices_several_nodes_reach_leaves_its_pods_the_choice():
    status = held("n1", "g0")
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    found = builders.Desk().feed(device_class(), claim("c", status=status))
    found.feed(builders.node("n1", labels={"zone": "a"}), builders.node("n2", cpu="64", labels={"zone": "b"}))
    found.feed(builders.node("n3", cpu="32", labels={"zone": "a"}), slice_of("n1"))
    found.feed(builders.group("j"), pod("p", "j", shared="c"))
    found.cycle()
    assert bound(found) == {"p": "n3"}


def test_scores_are_brought_to_a_hundred():
    assert rules.scaled(np.array([8.0, 7.0, 0.0])).tolist() == [100.0, 87.0, 0.0]
    assert rules.scaled(np.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"claims": []}, 'resourceclaim "c-p" not found'),
        ({"claims": [claim("c-p", "somebody")]}, "the pod is not its owner"),
        ({"claims": [claim("c-p", "p", deletionTimestamp="2026-01-01T00:00:00Z")]}, "is being deleted"),
        (
            {"claims": [claim("c-p", "p", requests=[{"name": "r", "exactly": {"deviceClassName": "no"}}])]},
            "device class no does not exist",
        ),
        ({"claims": [claim("c-p", "p", expression='device.attributes["d"].nvlink')]}, "nvlink"),
        ({"claims": [claim("c-p", "p", expression="device.")]}, "CEL compile error"),
        ({"claims": [claim("c-p", "p", count=40)]}, "exceeds the claim limit of 32"),
    ],
)
def test_what_is_wrong_with_a_claim_is_told_and_others_are_placed(change, said):
    found = desk().feed(builders.group("j"), pod("p", "j"), *change["claims"])
    found.feed(builders.group("k"), *own("q", "k"))
    found.cycle()
    assert bound(found) == {"q": "n1"}
    assert said in found.cache.record.explain("a/j")
    assert any(name == "p" and said in text for name, _, text in found.world.notes)
    found.cycle()
    assert said in found.cache.record.explain("a/j")


BROKEN = (
    ({"spec": {"devices": "all"}}, "spec.devices must be"),
    ({"status": {**held("n1", "g0", "g1", reserved=["o"]), "devices": 7}}, "status.devices must be"),
)


@pytest.mark.parametrize(("part", "said"), BROKEN)
def test_what_an_unreadable_claim_has_is_nobody_elses_and_its_pods_say_what_is_wrong(part, said):
    found = desk(devices=3)
    broken = claim("old", status=held("n1", "g0", "g1", reserved=["o"])) | part
    found.feed(builders.group("old", phase="Running"), pod("o", "old", node="n1", shared="old"), broken)
    found.feed(builders.group("j"), pod("p", "j", shared="old"))
    found.feed(builders.group("k", 2), *own("q", "k"), *own("r", "k"), builders.group("l"), *own("s", "l"))
    found.cycle()
    assert bound(found) == {"s": "n1"}
    assert [device for _, _, device in given(found)["s"]] == ["g2"]
    assert said in found.cache.record.explain("a/j")
    found.delete(broken).cycle()
    assert sorted(bound(found)) == ["q", "r", "s"]


def test_of_a_device_whose_entry_is_broken_everything_is_taken_and_an_entry_without_a_name_costs_nobody():
    found = desk(devices=2)
    status = held("n1", "g0", "g1")
    status["allocation"]["devices"]["results"][0] |= {"shareID": "s", "consumedCapacity": ["none"]}
    status["allocation"]["devices"]["results"][1]["device"] = 1
    found.feed(claim("old", status=status), builders.group("j"), *own("p", "j"), builders.group("k"), *own("q", "k"))
    found.cycle()
    assert [device for devices in given(found).values() for _, _, device in devices] == ["g1"]


def test_a_claim_that_is_not_made_yet_is_waited_for():
    waiting = pod("p", "j")
    waiting["status"].pop("resourceClaimStatuses")
    found = desk().feed(builders.group("j"), waiting)
    found.cycle()
    assert "ResourceClaim not created yet" in found.cache.record.explain("a/j")
    found.feed(claim("c-p", "p")).modify(pod("p", "j"))
    found.cycle()
    assert bound(found) == {"p": "n1"}


def test_without_the_extra_claims_with_selectors_wait_for_it(monkeypatch):
    def missing():
        raise language.MissingError(language.MISSING)

    language.over.cache_clear()
    monkeypatch.setattr(language, "evaluator", missing)
    found = desk()
    found.delete(device_class()).feed(manifest("DeviceClass", "gpu", spec={}))
    found.feed(builders.group("j"), *own("p", "j"), builders.group("k"), *own("q", "k", expression=""))
    found.cycle()
    assert bound(found) == {"q": "n1"}
    assert "pumice[cel]" in found.cache.record.explain("a/j")
    language.over.cache_clear()


def test_members_of_a_gang_that_share_a_claim_follow_the_first():
    found = desk(nodes=("n1", "n2", "n3"))
    found.feed(builders.group("j", 3), claim("c"), *(pod(f"p{index}", "j", shared="c") for index in range(3)))
    found.cycle()
    assert len(set(bound(found).values())) == 1
    assert len(bound(found)) == 3
    assert len({tuple(each) for each in given(found).values()}) == 1


def test_another_job_waits_until_an_allocation_is_shown_and_then_follows_it():
    found = desk(nodes=("n1", "n2"))
    found.feed(
        builders.group("j"),
        builders.group("k", created=1),
        claim("c"),
        pod("p", "j", shared="c"),
        pod("q", "k", shared="c", created=1),
    )
    found.cycle()
    assert list(bound(found)) == ["p"]
    assert "in the process of being allocated" in found.cache.record.explain("a/k")
    node = bound(found)["p"]
    found.modify(claim("c", status=held(node, "g0", reserved=["p"])))
    found.cycle()
    assert bound(found) == {"p": node, "q": node}


def test_a_claim_that_has_devices_keeps_its_pods_to_their_node():
    found = desk(nodes=("n1", "n2")).feed(claim("c", status=held("n2", "g3")))
    found.feed(builders.group("j"), pod("p", "j", shared="c"))
    found.cycle()
    assert bound(found) == {"p": "n2"}
    assert given(found) == {"p": [("c", "n2", "g3")]}


def test_a_claim_on_a_full_node_that_nobody_else_uses_is_to_be_freed():
    found = desk(nodes=("n1", "n2")).feed(claim("c", status=held("n1", "g3", reserved=["p"])))
    found.feed(builders.pod("full", cpu="8", node="n1"), builders.group("j"), pod("p", "j", shared="c"))
    found.cycle()
    assert bound(found) == {}
    assert list(found.cluster.devices.to_free) == ["a/c"] or any("c" in str(effect) for effect in found.world.effects)
    found.modify(claim("c"))
    found.cycle()
    assert bound(found) == {"p": "n2"}


def test_options_that_come_first_are_preferred():
    a100, t4 = (f'device.attributes["d"].model == "{kind}"' for kind in ("a100", "t4"))
    options = [
        {"name": name, "deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}], "count": count}
        for name, expression, count in (("big", a100, 1), ("small", t4, 2))
    ]
    found = builders.Desk().feed(device_class())
    for name, kind in (("n1", "t4"), ("n2", "a100")):
        devices = [{"name": f"g{index}", "attributes": {"model": {"string": kind}}} for index in range(2)]
        offered = slice_of(name)
        offered["spec"]["devices"] = devices
        found.feed(builders.node(name), offered)
    found.feed(builders.group("j"), *own("p", "j", requests=[{"name": "r", "firstAvailable": options}]))
    found.cycle()
    assert bound(found) == {"p": "n2"}


def test_a_pod_that_leaves_its_node_gives_its_devices_back():
    found = desk(devices=1).feed(builders.group("j"), *own("p", "j"))
    found.cycle()
    assert list(found.cluster.devices.uses) == [("d", "n1", "g0")]
    found.cluster.apply([found.task("p")], [None], Status.PENDING)
    assert found.cluster.devices.uses == {}


def test_devices_of_victims_count_as_free_and_the_claimant_waits_for_them():
    low, high = builders.priority_class("low", 1), builders.priority_class("high", 9)
    found = desk(PREEMPT, devices=1).feed(low, high, builders.group("j", 0, priorityClassName="low", phase="Running"))
    found.feed(pod("p", "j", node="n1", shared="c", priority=1), claim("c", status=held("n1", "g0", reserved=["p"])))
    found.feed(builders.group("k", priorityClassName="high"), pod("q", "k", priority=9), claim("c-q", "q"))
    found.cycle()
    assert found.world.evictions == ["p"]
    assert bound(found) == {}
    found.delete(pod("p", "j", node="n1", shared="c", priority=1))
    found.cycle()
    assert bound(found) == {}  # the claim still has the device
    found.modify(claim("c"))
    found.cycle()
    assert bound(found) == {"q": "n1"}


def test_clusters_without_claims_have_no_rule_about_them():
    found = builders.Desk().feed(builders.node("n1"), builders.group("j"), builders.pod("p", "j", cpu="1"))
    session = found.session()
    assert not [each for each in session.predicate if "devices" in each.function.__module__]
    assert not session.announced.divisions
