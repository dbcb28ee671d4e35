"""Topology spread: against the plain reference, and the worked cases."""

from __future__ import annotations

import pods_reference as reference
import pods_world
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_reference import HOSTNAME, MISSING, SKEW, ZONE

import builders
import drawing
from pumice.plugins.sharing import spread as rules

TEXTS = {MISSING, SKEW}


def drawn(seed, action=None):
    draw = pods_world.Draw(seed)
    spread = draw.some(lambda: draw.constraint(action), 1, 3)
    return draw, draw.world(draw.pod("looking", spread=spread))


@settings(max_examples=drawing.drawn(250), deadline=None)
@given(seed=pods_world.SEEDS, released=st.booleans())
def test_verdicts_are_those_of_the_plain_rule(seed, released):
    _, world = drawn(seed, "DoNotSchedule" if seed % 3 else None)
    desk, session, placed = pods_world.enact(world)
    nodes, _, _, looking = world
    expected = reference.judge_spread(looking, nodes, placed)
    subject = pods_world.subject(desk, looking)
    assert pods_world.verdicts(desk, session, subject, TEXTS, released=released) == expected


@settings(max_examples=drawing.drawn(250), deadline=None)
@given(seed=pods_world.SEEDS)
def test_scores_are_those_of_the_plain_rule(seed):
    draw, world = drawn(seed, "ScheduleAnyway" if seed % 3 else None)
    desk, session, placed = pods_world.enact(world, spread=1)
    nodes, _, _, looking = world
    candidates = draw.candidates(world)
    expected = reference.spread_points(looking, nodes, placed, candidates)
    assert pods_world.points(desk, session, pods_world.subject(desk, looking), candidates) == expected


def service(name, selector, namespace="a"):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": builders.metadata(name, namespace),
        "spec": {"selector": selector},
    }


def owner(kind, name, selector, namespace="a"):
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    made = {"apiVersion": version, "kind": kind, "metadata": builders.metadata(name, namespace)}
    return {**made, "spec": {"selector": selector if version == "v1" else {"matchLabels": selector}}}


@settings(max_examples=drawing.drawn(150), deadline=None)
@given(seed=pods_world.SEEDS)
def test_pods_without_constraints_are_spread_among_those_of_their_services_and_owner(seed):
    draw = pods_world.Draw(seed)
    kind, version = draw.choose(
        [("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicationController", "v1"), ("Job", "batch/v1")]
    )
    looking = draw.pod("looking")
    labels = reference.labels_of(looking)
    looking["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": "o", "controller": True}]
    home = looking["metadata"]["namespace"]
    selectors = draw.some(lambda: {key: draw.choose("xy") for key in ("app", "tier") if draw.odds(2)}, 0, 3)
    services = [service(f"s{i}", selector, draw.choose([home, home, "other"])) for i, selector in enumerate(selectors)]
    # An owner selects its own pods.
    owned = {key: value for key, value in labels.items() if draw.odds(2)} if kind != "Job" else {}
    owners = [owner(kind, "o", owned, home)] if kind != "Job" else []
    world = draw.world(looking)
    desk, session, placed = pods_world.enact(world, spread=1, more=[*services, *owners])
    wanted = dict(owned)
    for each in services:
        selector = each["spec"]["selector"]
        if each["metadata"]["namespace"] == home and reference.selects({"matchLabels": selector}, labels):
            wanted |= selector
    candidates = draw.candidates(world)
    defaults = {"matchLabels": wanted} if wanted else None
    expected = reference.spread_points(looking, world[0], placed, candidates, defaults)
    assert pods_world.points(desk, session, pods_world.subject(desk, looking), candidates) == expected


@settings(max_examples=drawing.drawn(60), deadline=None)
@given(seed=pods_world.SEEDS)
def test_a_steady_subject_is_judged_alike_after_its_equals_are_placed(seed):
    _, world = drawn(seed, "DoNotSchedule")
    looking = world[3]
    desk, session, _ = pods_world.enact(world, more=[pods_world.twin(looking)])
    subject = pods_world.subject(desk, looking)
    before = pods_world.verdicts(desk, session, subject, TEXTS, released=False)
    session.statement().allocate([desk.task("twin", looking["metadata"]["namespace"])], [desk.node("n0")])
    assert not rules.steady(subject) or pods_world.verdicts(desk, session, subject, TEXTS, released=False) == before


# ---- worked cases


def zoned(name, zone):
    return builders.node(name, labels={HOSTNAME: name, ZONE: zone})


def running(counts):
    """Pods labelled app=x: so many per node."""
    return [
        (builders.pod(f"{node}-{i}", node=node, labels={"app": "x"}), pods_world.RUNNING, node)
        for node, count in counts.items()
        for i in range(count)
    ]


def constrained(action, **more):
    selector = {"matchLabels": {"app": "x"}}
    made = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": selector, **more}
    return builders.pod("looking", labels={"app": "x"}, topologySpreadConstraints=[made])


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({}, {"a1"}),
        ({"minDomains": 3}, {"a1"}),
        ({"minDomains": 4}, {"a1", "b1", "c1"}),
        ({"maxSkew": 3}, set()),
        ({"labelSelector": {}}, set()),
        ({"topologyKey": "rack"}, {"a1", "b1", "c1"}),
    ],
)
def test_a_domain_may_have_only_so_many_more_pods_than_the_emptiest(more, refused):
    nodes = [zoned("a1", "a"), zoned("b1", "b"), zoned("c1", "c")]
    looking = constrained("DoNotSchedule", **more)
    desk, session, _ = pods_world.enact((nodes, running({"a1": 3, "b1": 1, "c1": 1}), {}, looking))
    found = pods_world.verdicts(desk, session, pods_world.subject(desk, looking), TEXTS, released=False)
    assert {name for name, reason in found.items() if reason} == refused


CROWD = {"a1": 2, "a2": 1, "b1": 1}


@pytest.mark.parametrize(
    ("looking", "services", "points"),
    [
        (constrained("ScheduleAnyway"), [], {"a1": 25, "a2": 25, "b1": 100}),
        (builders.pod("looking", labels={"app": "x"}), [service("s", {"app": "x"})], {"a1": 69, "a2": 76, "b1": 100}),
        (builders.pod("looking", labels={"app": "x"}), [service("s", {"app": "y"})], None),
        (builders.pod("looking", labels={"app": "x"}), [service("s", {})], None),
        (builders.pod("looking", labels={"app": "x"}), [], None),
        (constrained("DoNotSchedule"), [service("s", {"app": "x"})], None),
    ],
)
def test_crowded_domains_score_less(looking, services, points):
    nodes = [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b")]
    desk, session, _ = pods_world.enact((nodes, running(CROWD), {}, looking), spread=1, more=services)
    assert pods_world.points(desk, session, pods_world.subject(desk, looking), ["a1", "a2", "b1"]) == points


def test_a_service_that_comes_later_spreads_the_pods_that_wait():
    desk, session, _ = pods_world.enact(
        ([zoned("a1", "a"), zoned("b1", "b")], running({"a1": 1}), {}, builders.pod("looking", labels={"app": "x"})),
        spread=1,
    )
    session.rollback()
    desk.feed(service("s", {"app": "x"}))
    session = desk.session()
    about = pods_world.subject(desk, builders.pod("looking"))
    assert pods_world.points(desk, session, about, ["a1", "b1"])["b1"] == 100
    desk.delete(service("s", {"app": "x"}))
    session = desk.session()
    assert pods_world.points(desk, session, about, ["a1", "b1"]) is None


def test_a_gang_is_spread_evenly_over_zones_while_it_is_placed():
    desk = builders.Desk()
    desk.feed(*(zoned(f"{zone}{i}", zone) for zone in "abc" for i in range(2)), builders.group("g", 7))
    constraint = constrained("DoNotSchedule")["spec"]["topologySpreadConstraints"]
    desk.feed(
        *(
            builders.pod(f"g-{i}", "g", cpu="1", labels={"app": "x"}, topologySpreadConstraints=constraint)
            for i in range(7)
        )
    )
    desk.cycle()
    zones = [node[0] for node in desk.world.binds.values()]
    assert sorted(zones.count(zone) for zone in "abc") == [2, 2, 3]


@pytest.mark.parametrize("bad", [{"maxSkew": 0}, {"maxSkew": -1}, {"minDomains": 0}, {"maxSkew": 10**30}])
def test_a_constraint_with_an_impossible_number_disables_its_pod_only(bad):
    desk = builders.Desk()
    constraint = {**constrained("DoNotSchedule")["spec"]["topologySpreadConstraints"][0], **bad}
    desk.feed(zoned("n0", "z"), builders.group("g", 1), builders.group("h", 1))
    desk.feed(
        builders.pod("g-0", "g", cpu="1", topologySpreadConstraints=[constraint]), builders.pod("h-0", "h", cpu="1")
    )
    desk.cycle()
    assert desk.world.binds == {"h-0": "n0"}
    assert any("spec.topologySpreadConstraints[0]" in message for _, _, message in desk.world.notes)
