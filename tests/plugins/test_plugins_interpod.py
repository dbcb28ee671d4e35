"""Inter-pod affinity and anti-affinity: against the plain reference, and the worked cases."""

from __future__ import annotations

import numpy as np
import pods_reference as reference
import pods_world
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_reference import AFFINITY, ANTI, EXISTING, PREFERRED, REQUIRED

import builders
from drawing import drawn
from pumice.plugins.sharing import interpod

TEXTS = {AFFINITY, ANTI, EXISTING}
ZONE = reference.ZONE


@settings(max_examples=drawn(250), deadline=None)
@given(seed=pods_world.SEEDS, released=st.booleans())
def test_verdicts_are_those_of_the_plain_rule(seed, released):
    draw = pods_world.Draw(seed)
    world = draw.world(draw.pod("looking", affinity=draw.affinity()))
    desk, session, placed = pods_world.enact(world)
    nodes, _, about, looking = world
    seen = [other for other in placed if not (released and other.terminating)]
    expected = reference.judge_affinity(looking, nodes, seen, about)
    subject = pods_world.subject(desk, looking)
    assert pods_world.verdicts(desk, session, subject, TEXTS, released=released) == expected
    with pytest.MonkeyPatch.context() as patch:
        # Many rules are judged in another way, with the same result.
        patch.setattr(interpod, "MANY", 0)
        assert pods_world.verdicts(desk, session, subject, TEXTS, released=released) == expected


@settings(max_examples=drawn(250), deadline=None)
@given(seed=pods_world.SEEDS)
def test_scores_are_those_of_the_plain_rule(seed):
    draw = pods_world.Draw(seed)
    world = draw.world(draw.pod("looking", affinity=draw.affinity() if draw.odds(2) else None))
    desk, session, placed = pods_world.enact(world, affinity=1)
    nodes, _, about, looking = world
    candidates = draw.candidates(world)
    expected = reference.affinity_points(looking, nodes, placed, about, candidates)
    found = pods_world.points(desk, session, pods_world.subject(desk, looking), candidates)
    # A score to which nothing contributes may be left out or be 0 for everybody.
    assert (found or dict.fromkeys(candidates, 0)) == (expected or dict.fromkeys(candidates, 0))


@settings(max_examples=drawn(60), deadline=None)
@given(seed=pods_world.SEEDS)
def test_a_label_that_no_selector_names_changes_nobodys_verdict(seed):
    draw = pods_world.Draw(seed)
    world = draw.world(draw.pod("looking", affinity=draw.affinity()))
    nodes, others, _, looking = world
    answers = []
    for _ in range(2):
        desk, session, _ = pods_world.enact(world, affinity=1)
        subject = pods_world.subject(desk, looking)
        judged = pods_world.verdicts(desk, session, subject, TEXTS, released=False)
        points = pods_world.points(desk, session, subject, [node["metadata"]["name"] for node in nodes])
        answers.append((judged, points, len(desk.cluster.kinship.kins)))
        for pod in [looking, *(pod for pod, _, _ in others)]:
            more = {key: draw.choose("xy") for key in ("app.kubernetes.io/name", "uid", "index") if draw.odds(2)}
            pod["metadata"]["labels"] = {**reference.labels_of(pod), **more}
    assert answers[0] == answers[1]


@settings(max_examples=drawn(60), deadline=None)
@given(seed=pods_world.SEEDS)
def test_a_steady_subject_is_judged_and_scored_alike_after_its_equals_are_placed(seed):
    draw = pods_world.Draw(seed)
    world = draw.world(draw.pod("looking", affinity=draw.affinity()))
    looking = world[3]
    desk, session, _ = pods_world.enact(world, affinity=1, more=[pods_world.twin(looking)])
    subject = pods_world.subject(desk, looking)

    def answers():
        judged = pods_world.verdicts(desk, session, subject, TEXTS, released=False)
        raw = interpod.attraction(subject, desk.cluster.nodes.view())
        return judged, np.zeros(desk.cluster.nodes.count).tolist() if raw is None else raw.tolist()

    before = answers()
    session.statement().allocate([desk.task("twin", looking["metadata"]["namespace"])], [desk.node("n0")])
    after = answers()
    assert not interpod.steady(subject) or before[0] == after[0]
    assert not interpod.indifferent(subject) or before[1] == after[1]


@pytest.mark.parametrize(
    ("raw", "points"),
    [([30, -10, 0], [100, 0, 25]), ([5, 5], [0, 0]), ([0, 0, 0], [0, 0, 0]), ([-3, -1], [0, 100]), ([], [])],
)
def test_raw_scores_are_scaled_between_the_lowest_and_the_highest_candidate(raw, points):
    scaled = interpod.normaliser(1)(np.array(raw, dtype=np.float64))
    assert scaled.tolist() == points
    assert interpod.normaliser(2)(np.array(raw, dtype=np.float64)).tolist() == [2 * p for p in points]


def near(group, key=ZONE, **labels):
    return {group: {REQUIRED: [{"labelSelector": {"matchLabels": labels}, "topologyKey": key}]}}


def placed_by(desk):
    desk.cycle()
    return desk.world.binds


def zoned(name, zone=None, **fields):
    return builders.node(name, labels={**({ZONE: zone} if zone else {}), reference.HOSTNAME: name}, **fields)


def test_the_first_pod_of_a_set_that_wants_to_be_together_goes_anywhere_that_has_the_label():
    desk = builders.Desk()
    group = builders.group("g", 1)
    pod = builders.pod("g-0", "g", cpu="1", labels={"app": "x"}, affinity=near("podAffinity", app="x"))
    desk.feed(zoned("n1"), group, pod)
    assert placed_by(desk) == {}
    explanation = desk.cache.record.explain("a/g")
    assert AFFINITY in explanation
    desk.feed(zoned("n2", "z"))
    assert placed_by(desk) == {"g-0": "n2"}


def test_pods_of_one_gang_see_each_other_while_they_are_placed():
    desk = builders.Desk()
    desk.feed(*(zoned(f"n{i}", "z") for i in range(3)), builders.group("g", 4))
    apart = near("podAntiAffinity", key=reference.HOSTNAME, app="x")
    desk.feed(*(builders.pod(f"g-{i}", "g", cpu="1", labels={"app": "x"}, affinity=apart) for i in range(4)))
    assert placed_by(desk) == {}
    desk.feed(zoned("n3", "z"))
    assert sorted(placed_by(desk).values()) == ["n0", "n1", "n2", "n3"]


def test_a_pod_keeps_away_from_pods_placed_earlier_in_the_cycle_that_avoid_it():
    desk = builders.Desk()
    desk.feed(zoned("n0"), builders.group("shy", 1, created=0), builders.group("plain", 1, created=1))
    shy = near("podAntiAffinity", key=reference.HOSTNAME, app="x")
    desk.feed(
        builders.pod("shy-0", "shy", cpu="1", affinity=shy),
        builders.pod("plain-0", "plain", cpu="1", labels={"app": "x"}),
    )
    assert placed_by(desk) == {"shy-0": "n0"}
    assert EXISTING in desk.cache.record.explain("a/plain")


def test_namespace_labels_that_change_decide_anew_whom_a_rule_means():
    desk = builders.Desk()
    term = {
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
        "topologyKey": reference.HOSTNAME,
    }
    shy = {"podAntiAffinity": {REQUIRED: [term]}}
    desk.feed(zoned("n0"), builders.pod("there", namespace="b", node="n0"), pods_world.namespace("b", {"team": "red"}))
    desk.feed(builders.group("g", 1), builders.pod("g-0", "g", cpu="1", affinity=shy))
    assert placed_by(desk) == {}
    desk.modify(pods_world.namespace("b", {"team": "blue"}))
    assert placed_by(desk) == {"g-0": "n0"}


def test_a_namespace_without_an_object_is_known_by_its_name():
    desk = builders.Desk()
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": "b"}}
    term = {"labelSelector": {}, "namespaceSelector": chosen, "topologyKey": reference.HOSTNAME}
    desk.feed(zoned("n0"), zoned("n1"), builders.pod("there", namespace="b", node="n0"))
    desk.feed(
        builders.group("g", 1), builders.pod("g-0", "g", cpu="1", affinity={"podAntiAffinity": {REQUIRED: [term]}})
    )
    assert placed_by(desk) == {"g-0": "n1"}


@pytest.mark.parametrize("weight", [-1, 101, 10**30])
def test_a_preference_with_an_impossible_weight_disables_its_pod_only(weight):
    desk = builders.Desk()
    term = {"labelSelector": {}, "topologyKey": ZONE}
    bad = {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}
    desk.feed(zoned("n0"), builders.group("g", 1), builders.group("h", 1))
    desk.feed(builders.pod("g-0", "g", cpu="1", affinity=bad), builders.pod("h-0", "h", cpu="1"))
    assert placed_by(desk) == {"h-0": "n0"}
    assert any("podAffinity" in message and "weight" in message for _, _, message in desk.world.notes)


def test_switched_off_rules_refuse_nobody():
    off = builders.GANG.replace(
        "{name: predicates}", "{name: predicates, arguments: {predicate.PodAffinityEnable: false}}"
    )
    desk = builders.Desk(off)
    apart = near("podAntiAffinity", key=reference.HOSTNAME, app="x")
    desk.feed(zoned("n0"), builders.group("g", 2))
    desk.feed(*(builders.pod(f"g-{i}", "g", cpu="1", labels={"app": "x"}, affinity=apart) for i in range(2)))
    assert len(placed_by(desk)) == 2
