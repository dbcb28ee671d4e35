"""resource-strategy-fit: scores by strategies, scarce resources, and what is kept for idle devices."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import configuration, registry
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject

ACC, RDMA = "example.com/acc", "example.com/rdma"
TYPE, WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
BP1 = ({"cpu": "8", "memory": "16Gi"}, {"cpu": "2", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"})
BP2 = (
    {"cpu": "32", "memory": "128Gi", ACC: "8"},
    {"cpu": "12", "memory": "40Gi", ACC: "2"},
    {"cpu": "4", "memory": "8Gi", ACC: "2"},
)


def config(**arguments):
    plugins = [{"name": "resource-strategy-fit", "arguments": arguments}]
    return json.dumps({"actions": "allocate", "tiers": [{"plugins": plugins}]})


def offering(name, amounts):
    return node(
        name, **{key.replace("/", "__"): value for key, value in {"memory": None, "pods": None, **amounts}.items()}
    )


def opened(arguments, nodes, asked, annotations=None):
    """A session with a waiting pod; each node is what it offers and what is held there."""
    desk = Desk(config(**arguments))
    for i, (offered, held) in enumerate(nodes):
        desk.feed(offering(f"n{i}", offered))
        if held:
            desk.feed(pod(f"held{i}", requests=held, node=f"n{i}", scheduler="other"))
    desk.feed(group("g"), pod("p", "g", requests=asked, annotations=annotations))
    return desk, desk.session(), Subject(desk.task("p"))


def scores(arguments, nodes, asked, annotations=None):
    desk, session, subject = opened(arguments, nodes, asked, annotations)
    total = np.zeros(len(nodes))
    for function in session.score:
        answer = function.function(subject, desk.cluster.nodes.view())
        total += 0 if answer is None else answer
    return [round(points, 3) for points in total.tolist()]


def strategies(**listed):
    return {
        "resources": {
            name.replace("__", "/"): {"type": kind, "weight": weight} for name, (kind, weight) in listed.items()
        }
    }


LEAST, MOST = "LeastAllocated", "MostAllocated"
RF1 = strategies(example_com_acc=(MOST, 2), cpu=(LEAST, 1))
RF1["resources"][ACC] = RF1["resources"].pop("example_com_acc")


@pytest.mark.parametrize(
    ("arguments", "case", "annotations", "expected"),
    [
        pytest.param(RF1, BP2, None, 500, id="RF1"),
        pytest.param({}, BP1, None, 500, id="RF2"),
        pytest.param({"resources": {}}, BP1, None, 500, id="RF2: an empty map is the default"),
        pytest.param({"resourceStrategyFitWeight": 0}, BP1, None, 0, id="weight 0 switches it off"),
        pytest.param(
            {"resourceStrategyFitWeight": 1, **strategies(cpu=(MOST, 1))}, BP1, None, 50, id="only cpu counts"
        ),
        pytest.param(
            {}, (BP1[0], {"cpu": "7", "memory": "4Gi"}, BP1[2]), None, 0, id="one that overflows makes all of it 0"
        ),
        pytest.param(
            RF1, (BP1[0], BP1[1], {**BP1[2], ACC: "1"}), None, round(500 / 3, 3), id="one the node lacks counts 0"
        ),
        pytest.param({}, BP1, {TYPE: MOST, WEIGHT: '{"cpu": 1}'}, 500, id="a pod that packs cpu"),
        pytest.param({}, BP2, {TYPE: MOST, WEIGHT: f'{{"{ACC}": 3, "cpu": 1}}'}, 500, id="a pod that lists a device"),
        pytest.param({}, BP1, {TYPE: MOST}, 0, id="a pod without weights"),
        pytest.param({}, BP1, {TYPE: MOST, WEIGHT: '{"cpu": "1"}'}, 0, id="weights that are no integers"),
        pytest.param({}, BP1, {TYPE: MOST, WEIGHT: '{"cpu": -1}'}, 0, id="a negative weight"),
        pytest.param({}, BP1, {TYPE: MOST, WEIGHT: '{"cpu": 0}'}, 0, id="weight 0"),
        pytest.param({}, BP1, {TYPE: "Balanced", WEIGHT: '{"cpu": 1}'}, 0, id="an unknown type adds nothing"),
        pytest.param({}, BP1, {WEIGHT: '{"cpu": 1}'}, 500, id="weights without a type say nothing"),
    ],
)
def test_the_used_or_free_part_of_each_resource_counts(arguments, case, annotations, expected):
    offered, held, asked = case
    assert scores(arguments, [(offered, held)], asked, annotations) == [expected]


@pytest.mark.parametrize(
    ("listed", "name", "packs"),
    [
        pytest.param({"example.com/*": MOST, ACC: LEAST}, ACC, False, id="the exact name first"),
        pytest.param({"example.com/*": LEAST, "example.com/a*": MOST}, ACC, True, id="then the longest beginning"),
        pytest.param({"example.com/*": MOST}, RDMA, True, id="any name with it"),
        pytest.param({"example.com/a*": MOST}, RDMA, None, id="no name without it"),
        pytest.param({"example.com/acc*": MOST}, ACC, True, id="also the beginning itself"),
    ],
)
def test_a_name_may_end_in_a_star(listed, name, packs):
    arguments = {"resources": {key: {"type": kind} for key, kind in listed.items()}, "resourceStrategyFitWeight": 1}
    found = scores(arguments, [({"cpu": "8", name: "4"}, {name: "2"})], {name: "1"})
    assert found == [0 if packs is None else 75 if packs else 25]


@pytest.mark.parametrize(
    ("offered", "asked", "expected"),
    [
        pytest.param({ACC: "4"}, {"cpu": "1"}, 250, id="RF3: one of two"),
        pytest.param({}, {"cpu": "1"}, 1000, id="RF3: neither"),
        pytest.param({ACC: "4", RDMA: "1"}, {"cpu": "1"}, 0, id="RF3: both"),
        pytest.param({ACC: "4"}, {"cpu": "1", ACC: "1"}, 250, id="also for a pod that asks for it"),
        pytest.param({ACC: "4"}, {"cpu": "1", RDMA: "1"}, 0, id="the node lacks what is asked for"),
    ],
)
def test_rf3_nodes_with_scarce_resources_are_left_to_those_who_need_them(offered, asked, expected):
    sra = {"enable": True, "resources": f"{ACC}, {RDMA}", "weight": 10, "resourceWeight": {ACC: 3}}
    other = {"cpu": "8", RDMA: "1"}
    found = scores({"resourceStrategyFitWeight": 0, "sra": sra}, [({"cpu": "8", **offered}, {}), (other, {})], asked)
    assert found[0] == expected


def test_both_scores_add_up():
    sra = {"enable": True, "resources": ACC, "weight": 2}
    assert scores({"sra": sra}, [BP1[:2]], BP1[2]) == [700]


PROPORTIONAL = {
    "enable": True,
    "resources": ACC,
    "resourceProportion": {f"{ACC}.cpu": 4, f"{ACC}.memory": 8},
}


@pytest.mark.parametrize(
    ("asked", "rates", "fits"),
    [
        pytest.param({"cpu": "4", "memory": "4G"}, None, True, id="RF4: just enough is left"),
        pytest.param({"cpu": "4100m", "memory": "4G"}, None, False, id="RF4: too little cpu"),
        pytest.param({"cpu": "4", "memory": "4000000001"}, None, False, id="too little memory"),
        pytest.param({"cpu": "5", ACC: "1"}, None, True, id="a pod that asks for the device"),
        pytest.param({"cpu": "10", "memory": "18G"}, {}, True, id="one core and one GB each by default"),
        pytest.param({"cpu": "10001m", "memory": "18G"}, {}, False, id="and no less"),
        pytest.param({"cpu": "11800m", "memory": "1G"}, {f"{ACC}.cpu": 0.1}, True, id="parts of a core, exactly"),
        pytest.param({"cpu": "12", "memory": "20G"}, {f"{ACC}.cpu": 0, f"{ACC}.memory": 0}, True, id="nothing is kept"),
    ],
)
def test_rf4_idle_devices_keep_their_cpu_and_memory(asked, rates, fits):
    settings = PROPORTIONAL if rates is None else {**PROPORTIONAL, "resourceProportion": rates}
    nodes = [({"cpu": "20", "memory": "30G", ACC: "4"}, {"cpu": "8", "memory": "10G", ACC: "2"})]
    desk, session, subject = opened({"proportional": settings}, nodes, asked)
    (filter_,) = session.predicate
    answer = filter_.function(subject, desk.cluster.nodes.view())
    number = 0 if answer is None else int(answer[0])
    assert (number == 0) is fits
    if not fits:
        reason = session.evaluator.reasons.table[number]
        assert reason.code == Code.UNRESOLVABLE
        assert reason.text.startswith(f"proportional of resource {ACC} check failed (each idle one keeps ")


def test_room_that_somebody_waits_for_is_not_idle():
    desk, session, subject = opened(
        {"proportional": PROPORTIONAL}, [({"cpu": "12", "memory": "64G", ACC: "2"}, {})], {"cpu": "4"}
    )
    desk.feed(group("other"), pod("o", "other", cpu="1"))
    desk.apply()
    (filter_,) = session.predicate
    assert filter_.function(subject, desk.cluster.nodes.view()).tolist() == [0]
    session.statement().pipeline([desk.task("o")], [desk.node("n0")])
    assert filter_.function(subject, desk.cluster.nodes.view()).tolist() != [0]
    assert filter_.function(subject, desk.cluster.nodes.view(released=True)).tolist() != [0]


def test_a_gang_leaves_the_room_of_idle_devices_and_waits_for_more():
    desk = Desk(config(proportional=PROPORTIONAL)).feed(
        offering("n0", {"cpu": "12", "memory": "64G", "pods": "9", ACC: "2"})
    )
    desk.feed(group("g", 4), *(pod(f"p-{i}", "g", cpu="1") for i in range(6))).cycle()
    assert len(desk.world.binds) == 4


# ---- configuration


def problems(**arguments):
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(config(**arguments), registry.catalog())
    return [(p.key.removeprefix("tiers[0].plugins[0].arguments."), p.message) for p in caught.value.problems]


@pytest.mark.parametrize(
    ("arguments", "key", "message"),
    [
        ({"resourceStrategyFitWeight": "10"}, "resourceStrategyFitWeight", "expected an integer"),
        ({"resources": "cpu"}, "resources", "expected a map"),
        ({"resources": {"cpu": 3}}, "resources.cpu", "expected a map, found the integer 3"),
        ({"resources": {"cpu": {"wieght": 3}}}, "resources.cpu.wieght", 'did you mean "weight"?'),
        ({"resources": {"cpu": {"weight": 1.5}}}, "resources.cpu.weight", "expected an integer"),
        ({"resources": {"*": {}}}, "resources.*", "a `*` stands only at the end of a name"),
        ({"resources": {"a*b": {}}}, "resources.a*b", "a `*` stands only at the end of a name"),
        ({"resources": {"a**": {}}}, "resources.a**", "a `*` stands only at the end of a name"),
        ({"sra": True}, "sra", "expected a map, found the boolean true"),
        ({"sra": {"enable": 1}}, "sra.enable", "expected true or false"),
        ({"sra": {"enable": True}}, "sra.enable", "sra.resources names no resource"),
        ({"sra": {"resources": [ACC]}}, "sra.resources", "one string of names separated by commas"),
        ({"sra": {"resourceWeight": {ACC: 1}}}, f"sra.resourceWeight.{ACC}", f"sra.resources does not list {ACC}"),
        ({"proportional": {"enable": True}}, "proportional.enable", "names no resource"),
        ({"proportional": {"resources": "cpu"}}, "proportional.resources", "cpu is what is kept for others"),
        (
            {"proportional": {"resources": ACC, "resourceProportion": {ACC: 4}}},
            f"proportional.resourceProportion.{ACC}",
            "has no argument",
        ),
        (
            {"proportional": {"resources": ACC, "resourceProportion": {f"{RDMA}.cpu": 4}}},
            f"proportional.resourceProportion.{RDMA}.cpu",
            f"proportional.resources does not list {RDMA}",
        ),
    ],
)
def test_what_could_have_no_effect_is_refused(arguments, key, message):
    ((found, told),) = problems(**arguments)
    assert found == key
    assert message in told


def test_values_out_of_range_are_replaced_with_a_warning():
    written = {
        "resourceStrategyFitWeight": -1,
        "resources": {"cpu": {"type": "Balanced", "weight": 0}},
        "sra": {"resources": ACC, "weight": -3, "resourceWeight": {ACC: -1}},
        "proportional": {"resources": ACC, "resourceProportion": {f"{ACC}.cpu": -2}},
    }
    loaded = configuration.load(config(**written), registry.catalog())
    assert loaded.plugin("resource-strategy-fit").arguments == {
        "resourceStrategyFitWeight": 10,
        "resources": {"cpu": {"type": LEAST, "weight": 1}},
        "sra": {"enable": False, "resources": (ACC,), "weight": 0, "resourceWeight": {ACC: 1}},
        "proportional": {"enable": False, "resources": (ACC,), "resourceProportion": {f"{ACC}.cpu": Fraction(1)}},
    }
    assert sum("is used instead" in warning.message for warning in loaded.warnings) == 6


# ---- properties

amounts = st.fixed_dictionaries({"cpu": st.integers(0, 12), "memory": st.integers(0, 12), ACC: st.integers(0, 4)})
kinds = st.fixed_dictionaries(
    {}, optional={n: st.tuples(st.sampled_from([LEAST, MOST]), st.integers(1, 5)) for n in ("cpu", "memory", ACC)}
)


def plain(listed, offered, held, asked, weight):
    """The rule for one node, written out."""
    total = points = Fraction(0)
    for name, (kind, times) in listed.items():
        if not asked[name]:
            continue
        total += times
        full, room = held[name] + asked[name], offered[name]
        if room == 0:
            continue
        if full > room:
            return 0.0
        points += Fraction(full if kind == MOST else room - full, room) * times
    return float(points * 100 * weight / total) if total else 0.0


@settings(max_examples=drawn(100), deadline=None)
@given(kinds, st.lists(st.tuples(amounts, amounts), min_size=1, max_size=4), amounts, st.integers(1, 20))
def test_every_node_gets_the_score_of_the_plain_rule_within_its_bounds(listed, nodes, asked, weight):
    chosen = listed or {"cpu": (LEAST, 1), "memory": (LEAST, 1)}
    arguments = {"resources": {n: {"type": k, "weight": w} for n, (k, w) in listed.items()}}
    written = [tuple({n: str(u) for n, u in each.items()} for each in pair) for pair in nodes]
    found = scores({**arguments, "resourceStrategyFitWeight": weight}, written, {n: str(u) for n, u in asked.items()})
    assert found == [round(plain(chosen, offered, held, asked, weight), 3) for offered, held in nodes]
    assert all(0 <= score <= 100 * weight for score in found)
