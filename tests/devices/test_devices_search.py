"""The worked cases of the search."""

import pytest

from devices.stage import STEPS, Devices, cel, exactly, first
from pumice.plugins.predicates.devices import answers, search
from pumice.plugins.predicates.devices.answers import Answers

BASE = 'device.attributes["d"].model == "a100" && device.capacity["d"].memory.compareTo(quantity("10Gi")) >= 0'


def model(name, kind, **more):
    return {"name": name, "attributes": {"model": {"string": kind}}, **more}


def numa(name, number):
    return {"name": name, "attributes": {"numa": {"int": number}}}


def of(kind):
    return cel(f'device.attributes["d"].model == "{kind}"')


def test_a_pool_of_which_a_slice_is_still_of_an_older_generation_gives_nothing():
    stage = Devices()
    stage.slice("s1", ["g0"], generation=3, count=2)
    stage.slice("s2", ["g1"], generation=2, count=2)
    assert stage.names(stage.claim(exactly())) is None
    assert "resource pool d/p is currently being updated" in stage.error(stage.claim(exactly(allocationMode="All")))


def test_slices_of_other_nodes_make_a_pool_whole_and_a_newer_one_makes_it_obsolete():
    stage = Devices(["n1", "n2"])
    stage.slice("s1", ["g0"], generation=3, count=2, nodeName="n1")
    stage.slice("s2", ["g1"], generation=3, count=2, nodeName="n2")
    assert stage.names(stage.claim(exactly())) == ["g0"]
    stage.slice("s2", ["g1"], generation=4, count=2, nodeName="n2")
    assert stage.names(stage.claim(exactly())) is None
    assert stage.error(stage.claim(exactly(allocationMode="All"))) == ""  # it is ignored, not an error


@pytest.mark.parametrize(
    "spoilt",
    [
        {"devices": ["g0", "g0"]},
        {"devices": [{"name": "g0", "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": 1}}}]}]},
    ],
)
def test_an_invalid_pool_gives_nothing_and_others_do(spoilt):
    stage = Devices()
    stage.slice("s1", **spoilt)
    assert stage.names(stage.claim(exactly())) is None
    assert "is invalid" in stage.error(stage.claim(exactly(allocationMode="All")))
    stage.slice("s2", ["h0"], pool="q")
    assert stage.names(stage.claim(exactly())) == ["h0"]


def test_selectors_see_attributes_and_capacities():
    stage = Devices()
    stage.slice(
        "s1",
        [
            model("g0", "a100", capacity={"memory": {"value": "40Gi"}}),
            model("g1", "t4", capacity={"memory": {"value": "40Gi"}}),
        ],
    )
    assert stage.names(stage.claim(exactly(selectors=cel(BASE)))) == ["g0"]
    assert stage.names(stage.claim(exactly(count=2, selectors=cel(BASE)))) is None


def test_a_missing_id_is_an_error_a_missing_domain_is_empty():
    stage = Devices()
    stage.slice("s1", [model("g0", "a100")])
    error = stage.error(stage.claim(exactly(selectors=cel('device.attributes["d"].nvlink == 1'))))
    assert error.startswith("request r: selector #0: CEL runtime error: ")
    assert "nvlink" in error
    assert "device d/p/g0" in error
    guarded = 'has(device.attributes["d"].nvlink) && device.attributes["d"].nvlink == 1'
    assert stage.names(stage.claim(exactly(selectors=cel(guarded)))) is None
    assert stage.names(stage.claim(exactly(selectors=cel('"a" in device.attributes["x"]')))) is None
    assert stage.names(stage.claim(exactly(selectors=cel('!("x" in device.attributes)')))) == ["g0"]


def test_a_class_is_asked_before_the_request_and_named_in_its_errors():
    stage = Devices()
    stage.slice("s1", [model("g0", "a100")])
    stage.slice("s2", ["other"], driver="e", pool="q")
    stage.device_class("gpu", selectors=cel('device.driver == "d"'))
    assert stage.names(stage.claim(exactly(device_class="gpu", selectors=of("a100")))) == ["g0"]
    stage.device_class("bad", selectors=cel("device."))
    assert stage.error(stage.claim(exactly(device_class="bad"))).startswith(
        "class bad: selector #0: CEL compile error: "
    )
    assert "not bool" in stage.error(stage.claim(exactly(selectors=cel("1 + 1"))))
    assert stage.names(stage.claim(exactly())) == ["g0"]


@pytest.mark.parametrize(("numbers", "expected"), [((0, 1, 0), ["g0", "g2"]), ((0, 1, 2), None)])
def test_devices_are_alike_in_an_attribute(numbers, expected):
    stage = Devices()
    stage.slice("s1", [numa(f"g{index}", number) for index, number in enumerate(numbers)])
    claim = stage.claim(exactly(count=2), constraints=[{"matchAttribute": "d/numa"}])
    assert stage.names(claim) == expected


def test_devices_differ_in_an_attribute_from_all_others():
    stage = Devices()
    stage.slice("s1", [numa("g0", 0), numa("g1", 1), numa("g2", 0), numa("g3", 2)])
    constraint = [{"distinctAttribute": "d/numa"}]
    assert stage.names(stage.claim(exactly(count=3), constraints=constraint)) == ["g0", "g1", "g3"]
    assert stage.names(stage.claim(exactly(count=4), constraints=constraint)) is None


def test_a_device_without_the_attribute_is_refused_and_other_requests_are_not_concerned():
    stage = Devices()
    stage.slice("s1", ["g0", numa("g1", 1)])
    constraint = [{"requests": ["b"], "matchAttribute": "d/numa"}]
    assert stage.names(stage.claim(exactly("a"), exactly("b"), constraints=constraint)) == ["g0", "g1"]


def test_an_earlier_request_makes_room_for_a_later_one():
    stage = Devices()
    stage.slice("s1", [model("d0", "h100"), model("d1", "a100")])
    assert stage.names(stage.claim(exactly("a"), exactly("b", selectors=of("h100")))) == ["d1", "d0"]
    assert stage.names(stage.claim(exactly("a")), stage.claim(exactly("b", selectors=of("h100")))) == ["d1", "d0"]


def test_all_devices_are_had_only_if_none_is_in_use_unless_by_an_administrator():
    stage = Devices()
    stage.slice("s1", ["g0", "g1", "g2", "g3"])
    stage.hold("other", "g1")
    assert stage.names(stage.claim(exactly(allocationMode="All"))) is None
    assert stage.names(stage.claim(exactly(allocationMode="All", adminAccess=True))) == ["g0", "g1", "g2", "g3"]
    results = stage.allocation(stage.claim(exactly(allocationMode="All", adminAccess=True))).devices.results
    assert all(each.admin_access for each in results)


def test_all_of_nothing_is_no_solution():
    stage = Devices()
    stage.slice("s1", ["g0"])
    assert stage.names(stage.claim(exactly(allocationMode="All", selectors=cel("false")))) is None


def test_tainted_devices_are_passed_over_and_fail_a_request_for_all():
    stage = Devices()
    stage.slice("s1", ["d0", {"name": "d1", "taints": [{"key": "k", "effect": "NoSchedule"}]}, "d2"])
    exists = [{"operator": "Exists"}]
    assert stage.names(stage.claim(exactly(count=2))) == ["d0", "d2"]
    assert stage.names(stage.claim(exactly(allocationMode="All"))) is None
    assert stage.names(stage.claim(exactly(allocationMode="All", tolerations=exists))) == ["d0", "d1", "d2"]
    stage.slice("s1", ["d0", {"name": "d1", "taints": [{"key": "k", "effect": "None"}]}, "d2"])
    assert stage.names(stage.claim(exactly(allocationMode="All"))) == ["d0", "d1", "d2"]


def test_rules_taint_the_devices_they_select():
    stage = Devices()
    stage.slice("s1", ["d0", "d1"])
    stage.taint("rule", deviceSelector={"driver": "d", "device": "d0"}, taint={"key": "k", "effect": "NoExecute"})
    assert stage.names(stage.claim(exactly())) == ["d1"]
    stage.taint("rule", taint={"key": "k", "effect": "NoExecute"})
    assert stage.names(stage.claim(exactly())) is None


def partition(name, memory):
    return {"name": name, "consumesCounters": [{"counterSet": "s", "counters": {"memory": {"value": memory}}}]}


def partitions(stage, total):
    stage.slice("s0", counters=[{"name": "s", "counters": {"memory": {"value": total}}}], count=2)
    stage.slice("s1", [partition("full", "80Gi"), partition("p0", "40Gi"), partition("p1", "40Gi"), "plain"], count=2)


def test_counters_are_shared_by_the_devices_of_a_pool():
    stage = Devices()
    partitions(stage, "80Gi")
    assert stage.names(stage.claim(exactly())) == ["full"]
    stage.hold("other", "p0")
    assert stage.names(stage.claim(exactly())) == ["p1"]
    assert stage.names(stage.claim(exactly(count=2))) == ["p1", "plain"]
    partitions(stage, "30Gi")
    assert stage.names(stage.claim(exactly())) == ["plain"]
    assert stage.names(stage.claim(exactly(count=2))) is None


def test_counters_of_equally_named_pools_of_two_drivers_are_two():
    stage = Devices()
    partitions(stage, "80Gi")
    stage.hold("other", {"request": "r", "driver": "e", "pool": "p", "device": "full"})
    assert stage.names(stage.claim(exactly())) == ["full"]


POLICY = {"default": "1G", "validRange": {"min": "1G", "max": "5G", "step": "1G"}}


def network(policy=POLICY):
    capacity = {"value": "10G"} | ({"requestPolicy": policy} if policy else {})
    return {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": capacity}}


def share(amount, identity="s"):
    return {
        "request": "r",
        "driver": "d",
        "pool": "p",
        "device": "nic",
        "shareID": identity,
        "consumedCapacity": {"bandwidth": amount},
    }


@pytest.mark.parametrize(
    ("asked", "consumed"), [("2.5G", None), (None, "1G"), ("6G", None), ("0.2G", "1G"), ("2G", "2G"), ("1500M", "2G")]
)
def test_shares_of_a_device_are_rounded_and_must_fit(asked, consumed):
    stage = Devices()
    stage.slice("s1", [network()])
    stage.hold("other", share("8G"))
    claim = stage.claim(exactly(**({"capacity": {"requests": {"bandwidth": asked}}} if asked else {})))
    if consumed is None:
        assert stage.names(claim) is None
    else:
        (result,) = stage.allocation(claim).devices.results
        assert result.consumed_capacity == {"bandwidth": consumed}
        assert len(result.share_id) == 36


@pytest.mark.parametrize(("asked", "consumed"), [("15Gi", "20Gi"), ("50Gi", None), ("10Gi", "10Gi")])
def test_valid_values_are_the_smallest_that_suffice(asked, consumed):
    stage = Devices()
    policy = {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]}
    stage.slice(
        "s1",
        [
            {
                "name": "g",
                "allowMultipleAllocations": True,
                "capacity": {"m": {"value": "80Gi", "requestPolicy": policy}},
            }
        ],
    )
    claim = stage.claim(exactly(capacity={"requests": {"m": asked}}))
    if consumed is None:
        assert stage.names(claim) is None
    else:
        assert stage.allocation(claim).devices.results[0].consumed_capacity == {"m": consumed}


def test_without_policy_and_request_a_share_is_everything():
    stage = Devices()
    stage.slice("s1", [network(policy=None)])
    assert stage.allocation(stage.claim(exactly())).devices.results[0].consumed_capacity == {"bandwidth": "10G"}
    stage.hold("other", share("10G"))
    assert stage.names(stage.claim(exactly())) is None


def test_a_shared_device_is_given_to_several_requests_and_ids_follow_from_the_claim():
    stage = Devices()
    stage.slice("s1", [network()])
    claim = stage.claim(exactly("a"), exactly("b"))
    results = stage.allocation(claim).devices.results
    assert [each.device for each in results] == ["nic", "nic"]
    assert results[0].share_id != results[1].share_id
    assert results == stage.allocation(claim).devices.results


def test_a_device_that_is_not_shared_must_only_have_enough():
    stage = Devices()
    stage.slice(
        "s1",
        [
            {"name": "g0", "capacity": {"m": {"value": "10Gi"}}},
            {"name": "g1", "capacity": {"m": {"value": "40Gi"}}},
            "g2",
        ],
    )
    claim = stage.claim(exactly(capacity={"requests": {"m": "20Gi"}}))
    assert stage.names(claim) == ["g1"]
    assert stage.allocation(claim).devices.results[0].consumed_capacity == {}


def test_the_first_option_that_can_be_had_is_taken_and_scored():
    stage = Devices(["n1", "n2", "n3"])
    stage.slice("s1", [model("a", "a100")], pool="n1", nodeName="n1")
    stage.slice("s2", [model("b", "t4"), model("c", "t4")], pool="n2", nodeName="n2")
    stage.slice("s3", [model("e", "t4")], pool="n3", nodeName="n3")
    claim = stage.claim(first("r", {"selectors": of("a100")}, {"selectors": of("t4"), "count": 2}))
    assert (stage.names(claim, node="n1"), stage.answer(claim, node="n1").score) == (["a"], 8)
    assert (stage.names(claim, node="n2"), stage.answer(claim, node="n2").score) == (["b", "c"], 7)
    assert stage.names(claim, node="n3") is None
    assert stage.allocation(claim, node="n2").devices.results[0].request == "r/s1"


def test_a_claim_has_at_most_32_devices():
    stage = Devices()
    stage.slice("s1", [f"g{index}" for index in range(40)])
    claim = stage.claim(exactly("a", count=30), first("b", {"count": 4}, {"count": 2}))
    assert len(stage.names(claim)) == 32
    error = stage.error(stage.claim(exactly("a", count=30), exactly("b", count=4)))
    assert error == "number of requested devices 34 exceeds the claim limit of 32"


ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


def test_a_claim_is_tied_to_the_node_or_to_what_its_devices_select():
    stage = Devices(["n1", "n2"], {"n1": {"zone": "a"}, "n2": {"zone": "b"}})
    stage.slice("s1", [model("g0", "gpu")])
    stage.slice("s2", [model("v0", "volume")], pool="q", nodeSelector=ZONE)
    stage.slice("s3", [model("w0", "world")], pool="w", allNodes=True)
    volume, gpu, world = (exactly(kind, selectors=of(kind)) for kind in ("volume", "gpu", "world"))
    (term,) = stage.allocation(stage.claim(volume, gpu)).node_selector.node_selector_terms
    assert [(each.key, each.operator, each.values) for each in term.match_fields] == [("metadata.name", "In", ("n1",))]
    assert not term.match_expressions
    (term,) = stage.allocation(stage.claim(volume, world)).node_selector.node_selector_terms
    assert [(each.key, each.operator, each.values) for each in term.match_expressions] == [("zone", "In", ("a",))]
    assert stage.allocation(stage.claim(world)).node_selector is None
    assert stage.names(stage.claim(volume), node="n2") is None


def test_devices_that_choose_their_nodes_themselves_are_had_there_only():
    stage = Devices(["n1", "n2"])
    stage.slice(
        "s1",
        [{"name": "x", "nodeName": "n2"}, {"name": "y", "nodeName": "n1"}, {"name": "z", "allNodes": True}],
        perDeviceNodeSelection=True,
    )
    assert stage.names(stage.claim(exactly(allocationMode="All"))) == ["y", "z"]
    assert stage.names(stage.claim(exactly(allocationMode="All")), node="n2") == ["x", "z"]


def test_two_claims_of_a_pod_are_satisfied_together_or_not_at_all():
    stage = Devices()
    stage.slice("s1", ["g0", "g1", "g2", "g3"])
    stage.hold("other", "g0", "g1", "g2")
    assert stage.names(stage.claim(exactly()), stage.claim(exactly())) is None
    refusal = stage.answer(stage.claim(exactly()), stage.claim(exactly()))
    assert (refusal.request, refusal.claim, refusal.matching, refusal.in_use) == ("r", 1, 4, 4)


def test_pools_with_conditions_are_tried_last_and_conditions_are_copied():
    stage = Devices()
    stage.slice(
        "s1", [{"name": "late", "bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}], pool="a"
    )
    stage.slice("s2", ["soon"], pool="b")
    assert stage.names(stage.claim(exactly(count=2))) == ["soon", "late"]
    result = stage.allocation(stage.claim(exactly(count=2))).devices.results[1]
    assert (result.binding_conditions, result.binding_failure_conditions) == (("Attached",), ("Failed",))


def test_drivers_are_told_what_classes_say_and_then_what_the_claim_says():
    stage = Devices()
    stage.slice("s1", ["g0", "g1", "g2"])
    told = [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]
    stage.device_class("gpu", config=told)
    own = [
        {"requests": ["b"], "opaque": {"driver": "d", "parameters": {"b": 2}}},
        {"requests": ["z"], "opaque": {"driver": "d"}},
    ]
    claim = stage.claim(exactly("a", "gpu"), first("b", {"deviceClassName": "gpu"}), exactly("c"), config=own)
    config = stage.allocation(claim).devices.config
    assert [(each.source, each.requests, each.opaque.parameters) for each in config] == [
        ("FromClass", ("a", "b/s0"), {"a": 1}),
        ("FromClaim", ("b",), {"b": 2}),
    ]


def test_a_search_gives_up_after_its_steps():
    stage = Devices()
    stage.slice("s1", [numa(f"g{index}", index % 13) for index in range(64)])
    claim = stage.claim(exactly("a", count=7), constraints=[{"matchAttribute": "d/numa"}])
    assert stage.answer(claim).gave_up is False
    stage.answers = Answers(stage.cluster, 20)
    assert stage.answer(claim).gave_up is True
    assert STEPS > 20


def test_a_request_that_nothing_is_left_for_ends_the_search_at_once():
    stage = Devices()
    stage.slice("s1", [*(model(f"g{index}", "a100") for index in range(24)), model("t", "t4")])
    stage.hold("other", "t")
    stage.answers = Answers(stage.cluster, 20)
    refusal = stage.answer(stage.claim(exactly("a", count=12, selectors=of("a100")), exactly("b", selectors=of("t4"))))
    assert (refusal.request, refusal.matching, refusal.in_use, refusal.gave_up) == ("b", 1, 1, False)


@pytest.fixture
def searches(monkeypatch):
    """The searches that are made, one after the other."""
    made = []

    class Noted(search.Search):
        def run(self):
            made.append(self)
            return super().run()

    monkeypatch.setattr(answers, "Search", Noted)
    return made


def test_after_some_searches_without_an_end_other_nodes_are_not_searched(searches):
    names = [f"n{index}" for index in range(16)]
    stage = Devices(names)
    for number, name in enumerate(names):
        devices = [numa(f"g{index}", index % 13) for index in range(40 + number)]
        stage.slice(f"s-{name}", devices, pool=name, nodeName=name)
    stage.answers = Answers(stage.cluster, 20)
    claim = stage.claim(exactly("a", count=7), constraints=[{"matchAttribute": "d/numa"}])
    assert all(stage.answer(claim, node=name).gave_up for name in names)
    assert len(searches) == 10
    stage.answers.begin()
    stage.answer(claim, node=names[-1])
    assert len(searches) == 11


def test_unknown_forms_are_errors():
    stage = Devices()
    stage.slice("s1", ["g0"])
    assert "allocation mode Some is not known" in stage.error(stage.claim(exactly(allocationMode="Some")))
    assert "form that is not known" in stage.error(stage.claim(exactly(), constraints=[{"requests": ["r"]}]))
    assert "form that is not known" in stage.error(stage.claim(exactly(selectors=[{"other": {}}])))


def test_nodes_in_the_same_state_are_searched_once(searches):
    names = [f"n{index}" for index in range(20)]
    stage = Devices(names)
    for name in names:
        stage.slice(f"s-{name}", [model(f"g{index}", "a100") for index in range(8)], pool=name, nodeName=name)
    claim = stage.claim(exactly(selectors=of("a100")))
    for name in names:
        assert stage.names(claim, node=name) == ["g0"]
    assert len(searches) == 1
    stage.hold("other", {"request": "r", "driver": "d", "pool": "n3", "device": "g0"})
    assert [stage.names(claim, node=name) for name in ("n3", "n4")] == [["g1"], ["g0"]]
    assert len(searches) == 2
