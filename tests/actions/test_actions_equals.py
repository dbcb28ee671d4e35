"""Jobs that are equal fail together, each with words of its own; those that others mind differently are not equal."""

from __future__ import annotations

import pytest

from builders import Desk, group, metadata, node, pod, queue
from choosy import Choosy, is_labelled
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL
from pumice.framework.reasons import Code

HOST = "kubernetes.io/hostname"


def keeps_away(app):
    """An affinity that bears no pod of an app beside it."""
    rule = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}


def test_a_job_whom_running_pods_bear_is_placed_though_one_of_its_shape_was_refused():
    made = Desk().feed(node("n1", labels={HOST: "n1"}), group("old", phase="Running"))
    made.feed(pod("old-0", "old", cpu="1", node="n1", affinity=keeps_away("x")))
    for name, app in (("first", "x"), ("second", "y")):
        made.feed(group(name, phase="Inqueue"), pod(name, name, cpu="1", labels={"app": app}))
    made.cycle()
    assert made.world.binds == {"second": "n1"}
    assert "existing pods anti-affinity" in made.cache.record.explain("a/first")


def test_every_one_of_many_equal_jobs_is_told_why_with_its_own_pod_and_its_own_minimum():
    made = Desk().feed(node("n1", cpu="1"))
    for i in range(12):
        size = 1 + i % 3
        made.feed(group(f"g{i:02}", size, phase="Inqueue"))
        made.feed(*(pod(f"g{i:02}-w-{k}", f"g{i:02}", cpu="2") for k in range(size)))
    trace = made.cycle().trace()
    assert [line for line in trace if line.startswith("allocate: ")] == [
        f"allocate: a/g{i:02}: 0 of the {1 + i % 3} members it still needs could be placed; "
        f"g{i:02}-w-0: 0/1 nodes are unavailable: 1 Insufficient cpu."
        for i in range(12)
    ]
    for i in range(12):
        assert f"g{i:02}-w-0: 0/1 nodes are unavailable" in made.cache.record.explain(f"a/g{i:02}")


def test_equals_of_a_failed_job_are_tried_once_somebody_has_left_room():
    """In one cycle: `big` is too large, `small` is placed, and only then is it known that no `big` fits."""
    made = Desk().feed(node("n1", cpu="3"), queue("q"))
    sizes = {"a-big": "4", "b-small": "1", "c-fits": "2", "d-fits": "2", "e-big": "4"}
    for name, cpu in sizes.items():
        made.feed(group(name, phase="Inqueue"), pod(name, name, cpu=cpu))
    made.cycle()
    assert made.world.binds == {"b-small": "n1", "c-fits": "n1"}
    for name in ("a-big", "d-fits", "e-big"):
        assert f"{name}: 0/1 nodes are unavailable: 1 Insufficient cpu." in made.cache.record.explain(f"a/{name}")


@pytest.mark.parametrize(("cpus", "bound"), [(("4", "1"), ["b-1"]), (("4", "4"), [])])
def test_a_job_that_needs_fewer_than_it_has_is_tried_though_the_first_of_them_is_known_to_fit_nowhere(cpus, bound):
    made = Desk().feed(node("n1", cpu="3"), group("a", phase="Inqueue"), pod("a-0", "a", cpu="4"))
    made.feed(group("b", phase="Inqueue", created=1))
    made.feed(*(pod(f"b-{i}", "b", cpu=cpu, created=i) for i, cpu in enumerate(cpus)))
    made.cycle()
    assert sorted(made.world.binds) == bound
    told = {name for name, reason, _ in made.world.notes if reason == "FailedScheduling"}
    assert told == {"a-0", "b-0", "b-1"} - set(bound)


def test_a_gang_that_has_its_minimum_is_told_so_though_an_equal_was_refused_before():
    made = Desk().feed(node("n1", cpu="3"), group("a", phase="Inqueue"), pod("a-0", "a", cpu="4"))
    made.feed(group("b", 2, phase="Running", created=1))
    made.feed(*(pod(f"b-old-{i}", "b", cpu="1", node="n1") for i in range(2)))
    made.feed(*(pod(f"b-{i}", "b", cpu="4", created=i) for i in (1, 2)))
    (said,) = [line for line in made.cycle().trace() if line.startswith("allocate: a/b")]
    assert said.startswith("allocate: a/b: has its minimum of 2; 2 more pods wait; b-1: 0/1 nodes are unavailable")


def test_a_job_one_of_whose_pods_found_no_node_before_is_told_of_that_one_and_that_none_could_be_placed():
    """Here by backfill, which comes first; the other is refused like its equal before."""
    text = 'actions: "backfill, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
    made = Desk(text).feed(node("n1", cpu="3"), group("a", phase="Inqueue"), pod("a-0", "a", cpu="4"))
    made.feed(group("b", 1, phase="Inqueue", created=1), pod("b-0", "b", cpu="4"))
    made.feed(pod("b-1", "b", nodeSelector={"is": "nowhere"}))
    (said,) = (line for line in made.cycle().trace() if line.startswith("allocate: a/b"))
    assert said.startswith("allocate: a/b: 0 of the 1 members it still needs could be placed; b-1: ")


class Fragile(Plugin):
    """Breaks down about one pod."""

    name = "fragile"
    points = frozenset({"Predicate"})

    def open(self, session):
        session.predicate.add(self.fits, reads=NODE_LOCAL)

    def fits(self, subject, _nodes):
        if subject.task.name == "a-0":
            raise ValueError("about this one")


def test_a_filter_that_breaks_down_about_a_pod_keeps_out_none_of_its_equals():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: fragile}]\n'
    made = Desk(text, Fragile).feed(node("n1", cpu="3"))
    for name in "ab":
        made.feed(group(name, phase="Inqueue"), pod(f"{name}-0", name, cpu="1"))
    made.cycle()
    assert sorted(made.world.binds) == ["b-0"]


# -- whom filters tell apart -----------------------------------------------------------------------------------


class ByName(Choosy):
    """Names what it tells pods of one shape apart by."""

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNRESOLVABLE, "kept away")
        session.predicate.add(self.fits, reads=NODE_LOCAL, apart=lambda subject: is_labelled(subject.task))


KEPT_AWAY = {"app": "x"}
CHOOSY = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: network-topology-aware}, {name: choosy}]
"""
QUOTA = """
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - name: crossquota
    arguments: {gpu-resource-names: "example/gpu", quota-resources: cpu, quota.cpu: "0", label-selector: {matchLabels: {app: x}}}
"""


@pytest.mark.parametrize(("text", "plugins"), [(CHOOSY, [Choosy]), (CHOOSY, [ByName]), (QUOTA, [])])
def test_a_job_is_placed_though_a_filter_that_tells_them_apart_keeps_one_of_its_shape_away(text, plugins):
    made = Desk(text, *plugins).feed(node("n", "8", example__gpu="1"))
    for name, labels in (("first", KEPT_AWAY), ("second", {})):
        made.feed(group(name, phase="Inqueue"), pod(name, name, cpu="1", labels=labels))
    made.cycle()
    assert made.world.binds == {"second": "n"}


def rack(*nodes):
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata("rack")}
    return {**made, "spec": {"tier": 1, "members": members}}


@pytest.mark.parametrize("placed", [0, 1])
def test_a_member_is_placed_inside_a_hyper_node_though_a_filter_keeps_one_of_its_shape_away(placed):
    limit = {"mode": "hard", "highestTierAllowed": 1}
    made = Desk(CHOOSY, Choosy).feed(node("n", "8"), rack("n"), group("g", 1, phase="Inqueue", networkTopology=limit))
    made.feed(*(pod(f"g-{i}", "g", cpu="1", node="n") for i in range(placed)))
    made.feed(*(pod(f"g-{i}", "g", cpu="1", labels=KEPT_AWAY if i < 3 else {}) for i in range(2, 4)))
    made.cycle()
    assert made.world.binds == {"g-3": "n"}


def test_equal_members_that_find_no_room_inside_a_hyper_node_are_told_the_same_and_others_are_tried():
    limit = {"mode": "hard", "highestTierAllowed": 1}
    made = Desk(CHOOSY.replace(", {name: choosy}", "")).feed(node("n", "8"), rack("n"))
    made.feed(group("g", 1, phase="Inqueue", networkTopology=limit))
    made.feed(pod("g-0", "g", cpu="1", node="n"), *(pod(f"g-{i}", "g", cpu="9") for i in (1, 2)))
    made.feed(pod("g-3", "g", cpu="1"))
    session = made.session()
    (allocate,) = made.scheduler.engine.actions
    allocate.execute(session)
    told = session.findings.errors(made.task("g-0").job)
    assert sorted(told) == ["a.g-1", "a.g-2"]
    assert told["a.g-1"] is told["a.g-2"]
    assert made.task("g-3").node is made.node("n")


def test_who_would_fit_on_room_that_is_released_waits_for_the_due_of_its_queue_alone_and_for_that_room_beyond_it():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n'
    made = Desk(text).feed(node("n", "4"), queue("a"), queue("b"), group("old", 0, queue="a", phase="Running"))
    made.feed(pod("old-0", "old", cpu="1", node="n"), group("goes", 0, queue="b", phase="Running"))
    made.feed(pod("goes-0", "goes", cpu="3", node="n", deleting=5))
    for name, owner, cpu in (("large", "b", "9"), ("asks", "a", "2")):
        made.feed(group(name, 1, queue=owner, phase="Inqueue"), pod(f"{name}-0", name, cpu=cpu))
    trace = [line for line in made.cycle().trace() if "a/asks" in line]
    assert "goes beyond its share" in trace[0]
    assert trace[-1].endswith("holds room: 0 of 1 members placed, 1 wait for pods being released")
