"""Writes that fail, or whose answers are lost: the end is as if nothing had happened.

Every fault befalls a gang, pod or victim of its own, all at the same time in one cluster.
"""

from __future__ import annotations

import pytest
from rig import Rig

from pumice.api import kinds
from testbed import faults, waiting

TIMES = 2
PASSING = {
    "none": faults.Pass,
    "429": lambda: faults.Answer(429, retry_after=0),
    "429-later": lambda: faults.Answer(429, retry_after=1),
    "500": lambda: faults.Answer(500),
    "503": lambda: faults.Answer(503),
    "503-later": lambda: faults.Answer(503, retry_after=1),
    "409": lambda: faults.Answer(409),
    "404": lambda: faults.Answer(404),
    "cut": faults.Cut,
    "lost": faults.Lose,
    "slow": lambda: faults.Slow(1.5),
    "late": lambda: faults.Late(1.3),
}
GANGS = {f"gang-{name}": fault for name, fault in PASSING.items()}


@pytest.fixture
def rig(view, proxy):
    """A scheduler that waits a second for an answer."""
    with Rig(view, proxy, timeout=1.0) as running:
        yield running


def disturb(rig, method, pattern):
    """Let each fault befall the writes whose path has its name; say how often each did."""
    return {
        name: rig.proxy.disturb(fault(), method, pattern.format(name), times=TIMES) for name, fault in GANGS.items()
    }


@pytest.mark.parametrize(
    ("method", "pattern"),
    [("POST", r"/pods/{}-1/binding$"), ("PATCH", r"/podgroups/{}(/status)?$")],
    ids=["bind", "group status"],
)
def test_a_gang_is_bound_whatever_befalls_its_writes_in_passing(rig, method, pattern):
    rules = disturb(rig, method, pattern)
    for index in range(len(GANGS)):
        rig.view.node(f"n{index}", 3)
    for gang in GANGS:
        rig.view.gang(gang, 3)
    waiting.until(lambda: set(rig.view.phases().values()) == {"Running"}, tell=rig.view.story)
    rig.check()
    members = {f"{gang}-{index}" for gang in GANGS for index in range(3)}
    assert all(rule.hits for rule in rules.values()), rules
    assert rig.view.end_state() == {"bound": members, "pods": members, "phases": dict.fromkeys(GANGS, "Running")}


def test_a_pod_is_told_why_it_waits_whatever_befalls_that_write(rig):
    rules = disturb(rig, "PATCH", r"/pods/{}-0/status$")
    rig.view.node("n0", len(GANGS))
    for gang in GANGS:
        rig.view.group(gang, 1)
        rig.view.pod(f"{gang}-0", gang, spec={"nodeSelector": {"pool": "batch"}})

    def told():
        return {tuple(reasons(pod)) for pod in rig.view.list(kinds.POD)}

    why = "Unschedulable: no node has the label pool=batch that its nodeSelector asks for; 0/1 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector."
    waiting.until(lambda: told() == {(why,)}, tell=rig.view.story)
    rig.check()
    assert all(rule.hits for rule in rules.values()), rules
    rig.view.call("PATCH", kinds.NODE, "n0", {"metadata": {"labels": {"pool": "batch"}}})
    waiting.until(lambda: set(rig.view.phases().values()) == {"Running"}, tell=rig.view.story)
    rig.check()


def reasons(pod):
    """Say why a pod has no node, as far as it was told."""
    return [
        f"{condition['reason']}: {condition['message']}"
        for condition in pod["status"].get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]


PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: conformance
- plugins:
  - name: predicates
"""


@pytest.mark.parametrize(
    ("method", "pattern"),
    [("DELETE", r"/pods/{}-0$"), ("PATCH", r"/pods/{}-0/status$")],
    ids=["delete", "condition"],
)
def test_an_eviction_is_finished_whatever_befalls_it(view, proxy, method, pattern):
    for name, value in (("low", 1), ("high", 1000)):
        view.create(kinds.PRIORITY_CLASS, name, value=value)
    nodes = [f"n{index}" for index in range(len(GANGS))]
    for index, gang in enumerate(GANGS):
        view.node(nodes[index], 1)
        view.gang(gang, 1, priorityClassName="low")
    with Rig(view, proxy, policy=PREEMPTING, timeout=1.0) as rig:
        rig.start_kubelets(*nodes)
        waiting.until(lambda: len(running(view)) == len(GANGS), tell=view.story)
        rig.check()
        rules = disturb(rig, method, pattern)
        view.gang("high", len(GANGS), priorityClassName="high")
        waiting.until(lambda: len(view.bound("high")) == len(GANGS), tell=view.story)
        rig.check()
    assert all(rule.hits for rule in rules.values()), rules
    assert view.bound() == {f"high-{index}" for index in range(len(GANGS))}


def running(view):
    return [pod for pod in view.list(kinds.POD) if pod["status"].get("phase") == "Running"]
