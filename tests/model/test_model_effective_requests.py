"""What a pod takes on a node, held against the rules of Kubernetes written out one by one: sidecars, the whole pod, resizes in place."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import decoding
from pumice.model import requests
from pumice.scenario import requests as second

SUMMED = ("cpu", "memory", "hugepages-2Mi", "example.com/gpu")
LEVEL = ("cpu", "memory", "hugepages-2Mi")
UNIT = {"cpu": 1000, "memory": 1, "hugepages-2Mi": 1, "example.com/gpu": 1000}


def slow(pod):
    """Give cpu and the others, each in whole units, by the sentences of the specification; nothing is shared between the steps."""
    spec, status = pod["spec"], pod["status"]
    bound = "nodeName" in spec
    infeasible = any(c["type"] == "PodResizePending" and c["reason"] == "Infeasible" for c in status["conditions"])

    def one(name, asked, told):
        if not bound or told is None or "resources" not in told:
            return asked.get(name, 0)
        known = [told["resources"].get("requests", {}).get(name, 0), told.get("allocatedResources", {}).get(name, 0)]
        return max(known) if infeasible else max(asked.get(name, 0), *known)

    def container(entry, kind, name):
        listed = {each["name"]: each for each in status[kind]}
        ordinary = kind == "initContainerStatuses" and entry.get("restartPolicy") != "Always"
        return one(name, entry["resources"]["requests"], None if ordinary else listed.get(entry["name"]))

    total = {}
    for name in SUMMED:
        running = sum(container(each, "containerStatuses", name) for each in spec["containers"])
        sidecars = [each for each in spec["initContainers"] if each.get("restartPolicy") == "Always"]
        running += sum(container(each, "initContainerStatuses", name) for each in sidecars)
        starting = 0
        for place, each in enumerate(spec["initContainers"]):
            before = [e for e in spec["initContainers"][:place] if e.get("restartPolicy") == "Always"]
            beside = sum(container(e, "initContainerStatuses", name) for e in before)
            starting = max(starting, beside + container(each, "initContainerStatuses", name))
        amount = max(running, starting)
        whole = spec["resources"]["requests"]
        if name in LEVEL and name in whole:
            amount = one(name, whole, status)
        total[name] = amount + spec["overhead"].get(name, 0)
    return {name: amount for name, amount in total.items() if amount}


amounts = st.dictionaries(st.sampled_from(SUMMED), st.integers(0, 9), max_size=4)
level = st.dictionaries(st.sampled_from(LEVEL), st.integers(0, 20), max_size=3)


@st.composite
def containers(draw, kind, most):
    made = []
    for number in range(draw(st.integers(0 if kind == "i" else 1, most))):
        entry = {"name": f"{kind}{number}", "resources": {"requests": draw(amounts)}}
        if kind == "i" and draw(st.booleans()):
            entry["restartPolicy"] = "Always"
        made.append(entry)
    return made


@st.composite
def reports(draw, listed):
    told = []
    for each in listed:
        if draw(st.booleans()):
            entry = {"name": each["name"], "allocatedResources": draw(amounts)}
            if draw(st.booleans()):
                entry["resources"] = {"requests": draw(amounts)}
            told.append(entry)
    return told


@st.composite
def pods(draw):
    inits, mains = draw(containers("i", 4)), draw(containers("c", 3))
    spec = {
        "containers": mains,
        "initContainers": inits,
        "overhead": draw(amounts),
        "resources": {"requests": draw(level)},
    }
    if draw(st.booleans()):
        spec["nodeName"] = "n1"
    reason = draw(st.sampled_from([None, "Deferred", "Infeasible"]))
    status = {
        "containerStatuses": draw(reports(mains)),
        "initContainerStatuses": draw(reports(inits)),
        "conditions": [] if reason is None else [{"type": "PodResizePending", "status": "True", "reason": reason}],
        "resize": draw(st.sampled_from(["", "Infeasible", "Deferred"])),
    }
    if draw(st.booleans()):
        status |= {"resources": {"requests": draw(level)}, "allocatedResources": draw(level)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": status}


@given(pods())
@settings(max_examples=drawn(400), deadline=None)
def test_a_pod_takes_what_the_rules_say_one_by_one(pod):
    expected = slow(pod)
    counted = requests.of_pod(decoding.decode(pod))
    assert counted.pop("pods") == 1
    assert {name: units for name, units in counted.items() if units} == {
        name: amount * UNIT[name] for name, amount in expected.items()
    }
    listed = second.of_pod(pod)
    assert listed.pop("pods") == 1
    assert {name: amount for name, amount in listed.items() if amount} == {
        name: Fraction(amount) for name, amount in expected.items()
    }


def _pod(containers, status=None, *, bound=True, **spec):
    made = {"containers": containers, **({"nodeName": "n1"} if bound else {}), **spec}
    return decoding.decode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": made, "status": status or {}}
    )


def _asks(**listed):
    return {"name": "c", "resources": {"requests": listed}}


def test_case_16_the_whole_pod_takes_the_place_of_its_containers():
    pair = [_asks(cpu="500m"), {**_asks(cpu="700m"), "name": "d"}]
    overhead = {"cpu": "100m"}
    whole = requests.of_pod(_pod(pair, overhead=overhead, resources={"requests": {"cpu": "2"}}))
    assert whole["cpu"] == 2100
    memory = requests.of_pod(_pod(pair, overhead=overhead, resources={"requests": {"memory": "1Gi"}}))
    assert (memory["cpu"], memory["memory"]) == (1300, 1 << 30)


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


@pytest.mark.parametrize(
    ("spec", "used", "granted", "conditions", "cpu"),
    [("4", "2", "2", DEFERRED, 4000), ("4", "2", "2", INFEASIBLE, 2000), ("1", "2", "1", [], 2000)],
    ids=["deferred", "infeasible", "until it is actuated"],
)
def test_case_17_a_resize_counts_what_is_larger(spec, used, granted, conditions, cpu):
    told = {"name": "c", "resources": {"requests": {"cpu": used}}, "allocatedResources": {"cpu": granted}}
    status = {"containerStatuses": [told], "conditions": conditions}
    assert requests.of_pod(_pod([_asks(cpu=spec)], status))["cpu"] == cpu
    assert requests.of_pod(_pod([_asks(cpu=spec)], status, bound=False))["cpu"] == int(spec) * 1000


def test_stand_ins_for_scores_are_for_what_neither_level_asks_for():
    bare = {"name": "d", "resources": {}}
    pod = _pod([_asks(cpu="500m"), bare], resources={"requests": {"hugepages-2Mi": "2Mi"}})
    assert requests.non_zero(pod, requests.of_pod(pod)) == (500, 2 * requests.DEFAULT_MEMORY)
    pod = _pod([_asks(cpu="500m"), bare])
    assert requests.non_zero(pod, requests.of_pod(pod)) == (600, 2 * requests.DEFAULT_MEMORY)
    pod = _pod([_asks(cpu="500m"), bare], resources={"requests": {"memory": "1Gi"}})
    assert requests.non_zero(pod, requests.of_pod(pod)) == (500, 1 << 30)
