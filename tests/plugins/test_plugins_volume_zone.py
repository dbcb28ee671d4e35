"""A pod goes only to the zones and regions of its volumes; and which nodes a selector reaches is found the same way fast and slow."""

from __future__ import annotations

import numpy as np
import volumes_world as world
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes_world import claim, rules, uses, volume, words

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.api import affinity, meta
from pumice.framework.subject import Subject
from pumice.model import selectors
from pumice.plugins.predicates import selected_rows

NO_ZONE = "node(s) had no available volume zone"
KEYS = (world.ZONE, world.REGION, world.OLD_ZONE, world.OLD_REGION)

places = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["x", "y", "z"]), max_size=3)
stretched = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["x", "y", "x__y", "y__z__w", ""]), max_size=3)


@settings(max_examples=drawn(80), deadline=None)
@given(nodes=st.lists(places, min_size=1, max_size=6), pvs=st.lists(stretched, min_size=1, max_size=3))
def test_every_node_gets_the_verdict_of_the_plain_rule(nodes, pvs):
    desk = Desk().feed(*(node(f"n{i}", labels=labels) for i, labels in enumerate(nodes)))
    made = [volume(f"v{i}", for_claim=f"c{i}", labels=labels) for i, labels in enumerate(pvs)]
    desk.feed(*made, *(claim(f"c{i}", volume=f"v{i}") for i in range(len(pvs))))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses(*(f"c{i}" for i in range(len(pvs))))))
    desk.session()
    found = words(desk, rules(desk).zone.fits(Subject(desk.task("g-0")), desk.cluster.nodes.view()))
    assert found == {f"n{i}": "" if world.in_zone(labels, made) else NO_ZONE for i, labels in enumerate(nodes)}


def test_a_claim_that_waits_for_its_pod_and_one_made_for_it_have_no_zone():
    desk = Desk().feed(node("n0", labels={world.ZONE: "x"}), world.storage_class("local"), claim("c0"))
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "g-0", "uid": "a.g-0", "controller": True}]
    desk.feed(volume("v1", labels={world.ZONE: "y"}), claim("g-0-tmp", volume="v1", ownerReferences=owner), group("g"))
    own = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    desk.feed(pod("g-0", "g", cpu="1", volumes=[*uses("c0"), own]))
    desk.session()
    assert rules(desk).zone.fits(Subject(desk.task("g-0")), desk.cluster.nodes.view()) is None


# ---- which nodes a selector reaches

operators = st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"])


@st.composite
def requirements(draw):
    operator = draw(operators)
    values = tuple(draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3))) if operator.endswith("In") else ()
    return affinity.NodeSelectorRequirement(key=draw(st.sampled_from("ab")), operator=operator, values=values)


terms = st.builds(affinity.NodeSelectorTerm, match_expressions=st.lists(requirements(), max_size=2).map(tuple))
chosen = st.none() | st.builds(affinity.NodeSelector, node_selector_terms=st.lists(terms, max_size=3).map(tuple))
labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))


@settings(max_examples=drawn(80), deadline=None)
@given(nodes=st.lists(labels, min_size=1, max_size=6), wanted=st.lists(chosen, min_size=1, max_size=4), data=st.data())
def test_many_selectors_reach_the_nodes_that_each_of_them_matches(nodes, wanted, data):
    desk = Desk().feed(*(node(f"n{i}", labels=each) for i, each in enumerate(nodes))).apply()
    together = selected_rows.SelectedRows(wanted, desk.cluster.nodes.attributes)
    numbers = np.array(data.draw(st.lists(st.integers(0, len(wanted) - 1), max_size=5)), dtype=np.int64)
    found = sorted(zip(*(each.tolist() for each in together.expand(numbers)), strict=True))
    expected = [
        (position, row)
        for position, number in enumerate(numbers.tolist())
        for row, each in enumerate(nodes)
        if wanted[number] is None
        or any(selectors.term_matches(term, each, f"n{row}") for term in wanted[number].node_selector_terms)
    ]
    assert found == expected


@settings(max_examples=drawn(50), deadline=None)
@given(
    each=labels,
    wanted=st.none()
    | st.builds(
        meta.LabelSelector,
        match_labels=labels,
        match_expressions=st.lists(
            requirements().map(
                lambda r: meta.LabelSelectorRequirement(key=r.key, operator=r.operator, values=r.values)
            ),
            max_size=2,
        ).map(tuple),
    ),
)
def test_a_label_selector_reaches_the_nodes_it_matches(each, wanted):
    desk = Desk().feed(node("n0", labels=each)).apply()
    found = selected_rows.rows(selected_rows.of_labels(wanted), desk.cluster.nodes.attributes)
    assert bool(len(found)) is selectors.matches(wanted, each)
