"""Claims for devices, slices and classes that no API server takes, what may be said of a claim, and that both servers say the same."""

from __future__ import annotations

import pytest

RESOURCES = "/apis/resource.k8s.io/v1"
MERGE = {"content_type": "application/merge-patch+json"}
STRATEGIC = {"content_type": "application/strategic-merge-patch+json"}
EXACTLY = {"deviceClassName": "c"}
SLICE = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n1"}
SELECTED = {key: value for key, value in SLICE.items() if key != "nodeName"}
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
OPAQUE = {"opaque": {"driver": "d.e", "parameters": {"a": 1}}}
ALWAYS = {"cel": {"expression": "true"}}
TAINT = {"key": "a", "effect": "NoSchedule"}
COUNTERS = {"m": {"value": "1"}}


def cel(expression):
    return {"cel": {"expression": expression}}


def claim(**devices):
    return {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}], **devices}}


def exact(**fields):
    return claim(requests=[{"name": "r", "exactly": {**EXACTLY, **fields}}])


def device(**fields):
    return {**SLICE, "devices": [{"name": "x", **fields}]}


TAKEN = [
    ("resourceclaims", claim()),
    ("resourceclaims", exact(tolerations=[{"operator": "Equal", "value": "x"}])),
    ("resourceclaims", claim(requests=[{"name": "r", "firstAvailable": [{"name": "s", **EXACTLY}]}], constraints=[{"requests": ["r/s"], "matchAttribute": "d.e/a"}])),
    ("resourceclaimtemplates", {"metadata": {"labels": {"a": "b"}}, "spec": claim()}),
    ("resourceclaims", exact(selectors=[cel('device.attributes["d"].x.find("a") == "b" && 1 < 1.5')])),
    ("resourceclaims", exact(selectors=[cel("[1, 2].transformList(i, e, i + e).indexOf(3) == 1")])),
    ("resourceslices", SLICE),
    ("resourceslices", device(attributes={"a": {"int": 1}, "e.com/b": {"version": "1.2.3"}}, capacity={"m": {"value": "1Gi"}})),
    ("resourceslices", {**SLICE, "sharedCounters": [{"name": "s", "counters": COUNTERS}]}),
    ("deviceclasses", {"selectors": [ALWAYS], "extendedResourceName": "example.com/gpu"}),
]  # fmt: skip
REFUSED = [
    ("resourceclaims", claim(requests=[{"name": "r"}]), "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"),
    ("resourceclaims", claim(requests=[{"name": "r", "exactly": EXACTLY, "firstAvailable": [{"name": "s", **EXACTLY}]}]), "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"),
    ("resourceclaims", claim(requests=[{"name": "r", "exactly": EXACTLY}] * 2), 'spec.devices.requests[1]: Duplicate value: "r"'),
    ("resourceclaims", claim(requests=[{"name": "R_", "exactly": EXACTLY}]), 'spec.devices.requests[0].name: Invalid value: "R_": a lowercase RFC 1123 label must consist of'),
    ("resourceclaims", claim(requests=[{"name": f"r{i}", "exactly": EXACTLY} for i in range(33)]), "spec.devices.requests: Too many: 33: must have at most 32 items"),
    ("resourceclaims", claim(requests=[{"name": "r", "exactly": {}}]), "spec.devices.requests[0].exactly.deviceClassName: Required value"),
    ("resourceclaims", exact(allocationMode="Some"), 'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"'),
    ("resourceclaims", exact(allocationMode="All", count=2), "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"),
    ("resourceclaims", exact(count=-1), "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"),
    ("resourceclaims", exact(selectors=[ALWAYS] * 33), "spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 items"),
    ("resourceclaims", exact(selectors=[{}]), "spec.devices.requests[0].exactly.selectors[0].cel: Required value"),
    ("resourceclaims", exact(selectors=[{"cel": {"expression": ""}}]), 'spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "": compilation failed'),
    ("resourceclaims", exact(selectors=[{"cel": {"expression": "true" + " " * 10240}}]), "spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be more than 10240 bytes"),
    ("resourceclaims", exact(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]), 'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "x": must be empty for operator `Exists`'),
    ("resourceclaims", exact(tolerations=[{"operator": "Exists", "effect": "Bad"}]), 'spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "Bad": supported values: "NoExecute", "NoSchedule", "None"'),
    ("resourceclaims", exact(adminAccess=True), "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"),
    ("resourceclaims", claim(requests=[{"name": "r", "firstAvailable": [{"name": f"s{i}", **EXACTLY} for i in range(9)]}]), "spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items"),
    ("resourceclaims", claim(requests=[{"name": "r", "firstAvailable": [{"name": "s", **EXACTLY}] * 2}]), 'spec.devices.requests[0].firstAvailable[1]: Duplicate value: "s"'),
    ("resourceclaims", claim(constraints=[{"matchAttribute": "d.e/a"}] * 33), "spec.devices.constraints: Too many: 33: must have at most 32 items"),
    ("resourceclaims", claim(constraints=[{"requests": ["q"], "matchAttribute": "d.e/a"}]), "spec.devices.constraints[0].requests[0]: Invalid value: \"q\": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"),
    ("resourceclaims", claim(constraints=[{}]), 'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required'),
    ("resourceclaims", claim(constraints=[{"matchAttribute": "numa"}]), 'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified name must be a domain and a name separated by a slash'),
    ("resourceclaims", claim(config=[{}]), "spec.devices.config[0].opaque: Required value"),
    ("resourceclaims", claim(config=[OPAQUE] * 33), "spec.devices.config: Too many: 33: must have at most 32 items"),
    ("resourceclaims", claim(config=[{"requests": ["q"], **OPAQUE}]), 'spec.devices.config[0].requests[0]: Invalid value: "q": must be the name of a request in the claim'),
    ("resourceclaimtemplates", {"spec": claim(requests=[{"name": "r"}])}, "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"),
    ("resourceslices", {**SLICE, "driver": ""}, "spec.driver: Required value"),
    ("resourceslices", {**SLICE, "driver": "D!"}, 'spec.driver: Invalid value: "D!": a lowercase RFC 1123 subdomain must consist of'),
    ("resourceslices", {**SLICE, "pool": {"name": "", "generation": -1, "resourceSliceCount": 0}}, "[spec.pool.name: Required value, spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero, spec.pool.generation: Invalid value: -1: must be greater than or equal to zero]"),
    ("resourceslices", SELECTED, "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"),
    ("resourceslices", {**SLICE, "allNodes": True}, 'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set'),
    ("resourceslices", {**SLICE, "allNodes": False}, "spec.allNodes: Invalid value: false: must be either unset or set to true"),
    ("resourceslices", {**SELECTED, "nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}}, "spec.nodeSelector.nodeSelectorTerms: Invalid value:"),
    ("resourceslices", {**SLICE, "devices": [{"name": f"x{i}"} for i in range(129)]}, "spec.devices: Too many: 129: must have at most 128 items"),
    ("resourceslices", {**SLICE, "devices": [{"name": f"x{i}", "taints": [TAINT]} for i in range(65)]}, "spec.devices: Too many: 65: must have at most 64 items"),
    ("resourceslices", {**SLICE, "devices": [{"name": "x"}, {"name": "x"}]}, 'spec.devices[1]: Duplicate value: "x"'),
    ("resourceslices", {**device(), "sharedCounters": [{"name": "s", "counters": COUNTERS}]}, 'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'),
    ("resourceslices", {**SLICE, "sharedCounters": [{"name": f"s{i}", "counters": COUNTERS} for i in range(9)]}, "spec.sharedCounters: Too many: 9: must have at most 8 items"),
    ("resourceslices", {**SLICE, "sharedCounters": [{"name": "s", "counters": {f"m{i}": {"value": "1"} for i in range(33)}}]}, "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items"),
    ("resourceslices", {**SLICE, "sharedCounters": [{"name": "s", "counters": COUNTERS}] * 2}, 'spec.sharedCounters[1]: Duplicate value: "s"'),
    ("resourceslices", device(attributes={f"a{i}": {"int": 1} for i in range(33)}), "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32"),
    ("resourceslices", device(attributes={"a": {}}), 'spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified'),
    ("resourceslices", device(attributes={"a": {"int": 1, "string": "x"}}), "spec.devices[0].attributes[a]: Invalid value:"),
    ("resourceslices", device(attributes={"a": {"version": "1"}}), 'spec.devices[0].attributes[a].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0'),
    ("resourceslices", device(attributes={"a b": {"int": 1}}), 'spec.devices[0].attributes: Invalid value: "a b": a valid C identifier must start with'),
    ("resourceslices", device(attributes={"a": {"string": "x" * 65}}), "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"),
    ("resourceslices", device(taints=[TAINT] * 17), "spec.devices[0].taints: Too many: 17: must have at most 16 items"),
    ("resourceslices", device(taints=[{"key": "a", "effect": "Bad"}]), 'spec.devices[0].taints[0].effect: Unsupported value: "Bad": supported values: "NoExecute", "NoSchedule", "None"'),
    ("resourceslices", device(taints=[{"key": "a"}]), "spec.devices[0].taints[0].effect: Required value"),
    ("resourceslices", device(bindingConditions=["a"]), "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"),
    ("resourceslices", device(bindingConditions=[f"a{i}" for i in range(5)], bindingFailureConditions=["f"]), "spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items"),
    ("resourceslices", device(nodeName="n"), "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true"),
    ("resourceslices", device(consumesCounters=[{"counterSet": f"s{i}", "counters": COUNTERS} for i in range(3)]), "spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"),
    ("resourceslices", device(capacity={"a": {"value": "1", "requestPolicy": {"default": "1"}}}), "spec.devices[0].capacity[a].requestPolicy: Forbidden: allowMultipleAllocations must be true"),
    ("deviceclasses", {"selectors": [ALWAYS] * 33}, "spec.selectors: Too many: 33: must have at most 32 items"),
    ("deviceclasses", {"selectors": [{}]}, "spec.selectors[0].cel: Required value"),
    ("deviceclasses", {"extendedResourceName": "cpu"}, 'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name'),
    ("deviceclasses", {"config": [OPAQUE] * 33}, "spec.config: Too many: 33: must have at most 32 items"),
    ("resourceclaims", exact(selectors=[cel("foo(device)")]), """spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "foo(device)": compilation failed: ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')"""),
    ("resourceclaims", exact(selectors=[cel("1 == 1.0")]), """spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "1 == 1.0": compilation failed: ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, double)'"""),
    ("resourceclaims", exact(selectors=[cel("1 + 1")]), 'spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "1 + 1": must evaluate to bool or the unknown type, not int'),
    ("resourceclaims", exact(selectors=[cel("device.attributes[")]), 'spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "device.attributes[": compilation failed: ERROR: <input>:1:19: Syntax error: mismatched input'),
    ("deviceclasses", {"selectors": [cel("math.greatest(1, 2) == 2")]}, """spec.selectors[0].cel.expression: Invalid value: "math.greatest(1, 2) == 2": compilation failed: ERROR: <input>:1:1: undeclared reference to 'math' (in container '')"""),
]  # fmt: skip


def path(plural, namespace="default", name="", subresource=""):
    home = f"/namespaces/{namespace}" if plural.startswith("resourceclaim") else ""
    return f"{RESOURCES}{home}/{plural}" + (f"/{name}" if name else "") + (f"/{subresource}" if subresource else "")


def sent(server, plural, spec):
    body = {"metadata": {"name": "wrong"}, "spec": spec}
    code, found = server.answer("POST", f"{path(plural)}?dryRun=All", body)
    return code, found.get("message", "")


@pytest.mark.parametrize(("plural", "spec"), TAKEN)
def test_what_is_right_is_taken(server, plural, spec):
    assert sent(server, plural, spec) == (201, "")


@pytest.mark.parametrize(("plural", "spec", "words"), REFUSED)
def test_what_is_wrong_is_named_in_the_words_of_kubernetes(server, plural, spec, words):
    code, message = sent(server, plural, spec)
    assert code == 422
    assert message.partition(" is invalid: ")[2].startswith(words)


def test_what_is_left_out_is_filled_in(server):
    first = {"name": "q", "firstAvailable": [{"name": "s", **EXACTLY, "allocationMode": "All"}]}
    body = {"metadata": {"name": "filled"}, "spec": claim(requests=[{"name": "r", "exactly": EXACTLY}, first])}
    _, found = server.answer("POST", f"{path('resourceclaims')}?dryRun=All", body)
    one, other = found["spec"]["devices"]["requests"]
    assert one["exactly"] == {**EXACTLY, "allocationMode": "ExactCount", "count": 1}
    assert other["firstAvailable"] == [{"name": "s", **EXACTLY, "allocationMode": "All"}]


def test_a_taint_is_dated_unless_it_says_since_when_it_is_there(server):
    since = "2020-01-01T00:00:00Z"
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute", "timeAdded": since}]
    body = {"metadata": {"name": "dated"}, "spec": device(taints=taints)}
    found = server.call("POST", f"{path('resourceslices')}?dryRun=All", body)
    first, second = found["spec"]["devices"][0]["taints"]
    assert second == taints[1]
    assert first["timeAdded"] > "2026-01-01"


def test_admin_access_is_for_namespaces_that_are_meant_for_it(server):
    namespace = server.new_namespace()
    labels = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    server.call("PATCH", f"/api/v1/namespaces/{namespace}", labels, **MERGE)
    body = {"metadata": {"name": "a"}, "spec": exact(adminAccess=True)}
    assert server.answer("POST", path("resourceclaims", namespace), body)[0] == 201


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"driver": "e.com"}, 'spec.driver: Invalid value: "e.com": field is immutable'),
        ({"pool": {"name": "q"}}, 'spec.pool.name: Invalid value: "q": field is immutable'),
        ({"nodeName": "n2"}, 'spec.nodeName: Invalid value: "n2": field is immutable'),
        ({"pool": {"generation": 2}}, ""),
    ],
)
def test_driver_pool_and_node_of_a_slice_never_change(server, change, words):
    name = f"s-{server.new_namespace()}"
    server.call("POST", path("resourceslices"), {"metadata": {"name": name}, "spec": device()})
    code, found = server.answer("PATCH", path("resourceslices", name=name), {"spec": change}, **MERGE)
    assert found.get("message", "").partition(" is invalid: ")[2] == words
    assert code == (422 if words else 200)


def test_what_a_claim_or_a_template_asks_for_never_changes(server):
    namespace = server.new_namespace()
    other = claim(requests=[{"name": "q", "exactly": EXACTLY}])
    for plural, spec, change in (
        ("resourceclaims", claim(), other),
        ("resourceclaimtemplates", {"spec": claim()}, {"spec": other}),
    ):
        server.call("POST", path(plural, namespace), {"metadata": {"name": "c"}, "spec": spec})
        code, found = server.answer("PATCH", path(plural, namespace, "c"), {"spec": change}, **MERGE)
        assert code == 422
        assert found["message"].endswith("field is immutable")


class Said:
    """A claim, and what the server answers to what is said of it."""

    def __init__(self, server):
        self.server, self.namespace = server, server.new_namespace()
        server.call("POST", path("resourceclaims", self.namespace), {"metadata": {"name": "c"}, "spec": claim()})

    def says(self, how=STRATEGIC, **status):
        where = path("resourceclaims", self.namespace, "c", "status")
        code, found = self.server.answer("PATCH", where, {"status": status}, **how)
        return code, found.get("message", "").partition(" is invalid: ")[2] if code >= 300 else found.get("status", {})


def consumer(number=1):
    return {"resource": "pods", "name": f"p{number}", "uid": f"u{number}"}


def given(name="x", request="r"):
    return {"devices": {"results": [{"request": request, "driver": "d.example.com", "pool": "p", "device": name}]}}


def test_devices_are_given_once_and_reserved_only_then(server):
    said = Said(server)
    forbidden = "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    assert said.says(reservedFor=[consumer()]) == (422, forbidden)
    code, words = said.says(allocation=given(request="zz"))
    assert (code, words[:70]) == (422, 'status.allocation.devices.results[0].request: Invalid value: "zz": mus')
    assert said.says(allocation=given(), reservedFor=[consumer()])[0] == 200
    code, words = said.says(allocation=given("y"))
    assert (code, words.startswith("status.allocation: Invalid value:"), words.endswith("field is immutable")) == (
        422,
        True,
        True,
    )
    code, status = said.says(reservedFor=[consumer(2)])
    assert (code, sorted(each["uid"] for each in status["reservedFor"])) == (200, ["u1", "u2"])
    code, status = said.says(reservedFor=[{"$patch": "delete", "uid": "u1"}])
    assert [each["uid"] for each in status["reservedFor"]] == ["u2"]
    code, status = said.says(allocation=None, reservedFor=None)
    assert (code, status.get("allocation")) == (200, None)
    assert said.says(allocation=given("y"))[0] == 200


def test_a_claim_has_at_most_256_consumers_each_once(server):
    said = Said(server)
    said.says(allocation=given())
    assert said.says(MERGE, reservedFor=[consumer(), consumer()]) == (
        422,
        'status.reservedFor[1]: Duplicate value: "u1"',
    )
    many = [consumer(number) for number in range(257)]
    assert said.says(MERGE, reservedFor=many) == (422, "status.reservedFor: Too many: 257: must have at most 256 items")
    assert said.says(MERGE, reservedFor=many[:256])[0] == 200


def test_a_claim_that_is_going_takes_no_new_consumer(server):
    said = Said(server)
    where = path("resourceclaims", said.namespace, "c")
    server.call("PATCH", where, {"metadata": {"finalizers": ["example.com/keep"]}}, **MERGE)
    said.says(allocation=given(), reservedFor=[consumer()])
    server.call("DELETE", where)
    code, words = said.says(reservedFor=[consumer(2)])
    assert (code, words) == (
        422,
        "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
    )
    server.call("PATCH", where, {"metadata": {"finalizers": None}}, **MERGE)


def test_claims_of_a_pod_are_named_once_and_in_one_way(server):
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "q"}]}}
    claims = [{"name": "g"}, {"name": "g", "resourceClaimName": "a"}]
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resourceClaims": claims}}
    code, found = server.answer("POST", "/api/v1/namespaces/default/pods?dryRun=All", body)
    assert code == 422
    for words in (
        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        'spec.resourceClaims[1].name: Duplicate value: "g"',
        'spec.containers[0].resources.claims[0]: Not found: "q": must be one of the names in pod.spec.resourceClaims: g',
    ):
        assert words in found["message"]
