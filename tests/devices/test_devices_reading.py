"""Objects of the group are read into plain data, and what is wrong with one is told with its field."""

import pytest

from pumice.api import decoding, kinds, meta
from pumice.api import resource as api
from pumice.model.cluster import Cluster
from pumice.model.devices import amounts, decisions, offers, registry, wanted

GI = 2**30 * 10**9


def decoded(kind, **body):
    manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x", "namespace": "a"}}
    return decoding.decode(manifest | body)


def piece(devices=(), counters=(), **spec):
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    body = {"driver": "d", "pool": pool, "nodeName": "n1", "devices": list(devices), "sharedCounters": list(counters)}
    return decoded(kinds.RESOURCE_SLICE, spec=body | spec)


def claim(requests, **status):
    return decoded(kinds.RESOURCE_CLAIM, spec={"devices": {"requests": requests}}, status=status)


def test_a_device_is_read_with_exact_amounts():
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "0.5Gi"}}
    found = offers.read(
        piece(
            [
                {
                    "name": "g0",
                    "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
                    "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "250m"}}}],
                }
            ],
            [{"name": "s", "counters": {"m": {"value": 2}}}],
        )
    )
    device = found.devices[0]
    assert device.id == ("d", "p", "g0")
    assert device.capacity["memory"] == offers.Capacity(40 * GI, "40Gi", GI, (), offers.Steps(GI, 8 * GI, GI // 2))
    assert device.counters == (("s", "m", 250_000_000),)
    assert found.counters == {"s": {"m": 2 * 10**9}}


def test_equal_devices_have_equal_content_whatever_their_names_taints_and_order_of_attributes():
    left = {"name": "a", "attributes": {"x": {"int": 1}, "y": {"bool": True}}, "taints": [{"key": "k"}]}
    right = {"name": "b", "attributes": {"y": {"bool": True}, "x": {"int": 1}}}
    other = {"name": "c", "attributes": {"y": {"bool": True}, "x": {"int": 2}}}
    contents = [device.content for device in offers.read(piece([left, right, other])).devices]
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize(
    ("device", "field"),
    [
        ({"name": ""}, "spec.devices[0].name"),
        ({"name": "a", "attributes": {"x": {}}}, "spec.devices[0].attributes[x]"),
        ({"name": "a", "attributes": {"x": {"int": 1, "bool": True}}}, "spec.devices[0].attributes[x]"),
        ({"name": "a", "capacity": {"m": {"value": "much"}}}, "spec.devices[0].capacity[m].value"),
        ({"name": "a", "capacity": {"m": {"value": "-1"}}}, "spec.devices[0].capacity[m].value"),
        (
            {"name": "a", "capacity": {"m": {"value": 1, "requestPolicy": {"validRange": {"min": 0, "step": 0}}}}},
            "spec.devices[0].capacity[m].requestPolicy.validRange.step",
        ),
        (
            {"name": "a", "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "x"}}}]},
            "spec.devices[0].consumesCounters[0].counters[m].value",
        ),
    ],
)
def test_a_slice_that_makes_no_sense_is_told_with_its_field(device, field):
    assert registry.problem(piece([device])).startswith(f"{field}: ")


def test_a_slice_is_bounded():
    many = [{"name": f"g{index}"} for index in range(129)]
    assert registry.problem(piece(many)) == "spec.devices: has 129 entries; at most 128 are read"
    assert registry.problem(piece(many[:128])) == ""


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"name": ""}, "spec.devices.requests[0].name: must be set, but is absent or empty"),
        (
            {"name": "r"},
            "spec.devices.requests[0]: has neither exactly nor firstAvailable, or a form that is not known",
        ),
        (
            {"name": "r", "exactly": {"count": -1}},
            "spec.devices.requests[0].exactly.count: is -1; it must be 1 or more",
        ),
        (
            {"name": "r", "exactly": {"capacity": {"requests": {"m": "x"}}}},
            "spec.devices.requests[0].exactly.capacity.requests[m]: 'x' is no quantity: write a number with an optional suffix, such as 500m, 2, 4Gi or 1e3",
        ),
    ],
)
def test_a_claim_that_makes_no_sense_is_told_with_its_field(request_, problem):
    assert registry.problem(claim([request_])) == problem


def test_equal_specs_of_claims_are_read_into_one_object():
    request_ = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    assert wanted.read(claim([request_]).spec) is wanted.read(claim([request_]).spec)


def test_defaults_of_a_request_are_one_device_of_the_class():
    need = wanted.read(claim([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]).spec).requests[0].options[0]
    assert (need.name, need.mode, need.count, need.admin) == ("r", "ExactCount", 1, False)


def test_a_constraint_covers_a_request_with_its_options_or_one_option_or_everything():
    names = ["r", "r/s", "r/t", "q"]
    cases = {("r",): ["r", "r/s", "r/t"], ("r/s",): ["r/s"], (): names}
    for requests, covered in cases.items():
        constraint = wanted.Constraint(frozenset(requests), "a", distinct=False)
        assert [name for name in names if constraint.covers(name)] == covered


@pytest.mark.parametrize(
    ("text", "like", "expected"),
    [
        ("2560Mi", "1Gi", "2560Mi"),
        ("3G", "1G", "3G"),
        ("0.5", "1", "500m"),
        ("0", "1Gi", "0"),
        ("1536", "1Ki", "1536"),
        ("1.5", "1Gi", "1500m"),
        ("2Ki", "1Ki", "2Ki"),
    ],
)
def test_amounts_are_written_in_the_form_they_come_in(text, like, expected):
    assert amounts.written(amounts.nanos(text), like) == expected


# -- the claims of a pod ---------------------------------------------------------------------------------------


def pod(claims, statuses=()):
    return decoded(kinds.POD, spec={"resourceClaims": list(claims)}, status={"resourceClaimStatuses": list(statuses)})


def test_claims_of_a_pod_are_found_by_name_or_by_what_was_made_from_the_template():
    found = wanted.uses_of(
        pod(
            [
                {"name": "own", "resourceClaimName": "c1"},
                {"name": "made", "resourceClaimTemplateName": "t"},
                {"name": "later", "resourceClaimTemplateName": "t"},
                {"name": "none", "resourceClaimTemplateName": "t"},
            ],
            [{"name": "made", "resourceClaimName": "c2"}, {"name": "none"}],
        )
    )
    assert [(use.name, use.key) for use in found] == [("own", "a/c1"), ("made", "a/c2"), ("later", "")]


# -- who has what ----------------------------------------------------------------------------------------------


def result(device, **more):
    return {"request": "r", "driver": "d", "pool": "p", "device": device, **more}


def allocated(*results, reserved=()):
    return claim([], allocation={"devices": {"results": list(results)}}, reservedFor=[{"uid": uid} for uid in reserved])


@pytest.fixture
def devices():
    return Cluster().devices


def decision(name="c1", device="g0"):
    found = api.Allocation(
        devices=api.DeviceAllocation(results=(api.DeviceResult(driver="d", pool="p", device=device),))
    )
    return decisions.ClaimDecision(
        namespace="a", claim=name, uid="u", allocation=found, consumer=api.Consumer(resource="pods", name="x", uid="1")
    )


def test_a_device_is_in_use_while_a_claim_shows_it(devices):
    devices.changed("ResourceClaim", "a/c1", allocated(result("g0")))
    assert list(devices.uses[("d", "p", "g0")].owners) == ["a/c1"]
    devices.changed("ResourceClaim", "a/c1", claim([]))
    assert devices.uses == {}


def test_changes_that_nobody_reads_do_not_pile_up(devices, monkeypatch):
    monkeypatch.setattr(registry, "MOST_CHANGES", 3)
    for index in range(8):
        devices.changed("ResourceClaim", "a/c1", allocated(result(f"g{index}")))
        assert len(devices.changes) <= 3
    assert devices.overflows > 0


def test_administrators_use_no_device_and_shares_only_what_they_take(devices):
    shares = [result("g1", shareID="s", consumedCapacity={"m": "1Gi"}), result("g1", shareID="t")]
    devices.changed("ResourceClaim", "a/c1", allocated(result("g0", adminAccess=True), *shares))
    assert ("d", "p", "g0") not in devices.uses
    assert devices.uses[("d", "p", "g1")].shares == {("a/c1", "s"): {"m": GI}, ("a/c1", "t"): {}}


def test_what_is_decided_counts_until_the_claim_shows_it_or_nobody_relies_on_it(devices):
    reservation = decisions.ClaimReservation("n1", (decision(),))
    devices.reserve("1", reservation)
    devices.reserve("2", reservation)
    devices.release("1")
    assert list(devices.uses) == [("d", "p", "g0")]
    devices.release("2")
    assert devices.uses == {}
    assert devices.allocation("a/c1") is None
    devices.reserve("1", reservation)
    devices.changed("ResourceClaim", "a/c1", allocated(result("g0")))
    devices.release("1")
    assert list(devices.uses) == [("d", "p", "g0")]


def test_a_claim_that_speaks_for_itself_is_believed(devices):
    devices.reserve("1", decisions.ClaimReservation("n1", (decision(),)))
    devices.changed("ResourceClaim", "a/c1", allocated(result("g7")))
    assert list(devices.uses) == [("d", "p", "g7")]


def test_a_claim_has_what_was_decided_if_its_devices_are_the_same():
    bare = {"driver": "d", "pool": "p", "device": "g0"}
    assert decisions.has(allocated(bare), decision())
    assert not decisions.has(allocated(bare | {"device": "g1"}), decision())
    assert not decisions.has(claim([]), decision())


def test_conditions_are_looked_for_on_the_device_that_has_them():
    results = [
        result("g0", bindingConditions=["Attached"], bindingFailureConditions=["Failed"]),
        result("g1", bindingConditions=["Attached"]),
    ]
    told = [{"driver": "d", "pool": "p", "device": "g0", "conditions": [{"type": "Attached", "status": "True"}]}]
    found = claim([], allocation={"devices": {"results": results}}, devices=told)
    assert decisions.unmet_conditions(found) == (["g1: Attached"], [])
    told[0]["conditions"] = [{"type": "Failed", "status": "True"}, {"type": "Attached", "status": "False"}]
    found = claim([], allocation={"devices": {"results": results}}, devices=told)
    assert decisions.unmet_conditions(found) == (["g0: Attached", "g1: Attached"], ["g0: Failed"])


def test_metadata_alone_makes_no_problem():
    assert registry.problem(meta.KubeObject()) == ""
