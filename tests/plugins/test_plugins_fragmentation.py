"""fragmentation: the worked cases, whole points, typical kinds, and what pods may ask for."""

import math
from collections import Counter
from fractions import Fraction

import fragmentation_reference as reference
import pytest
from fragmentation_reference import kind
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.api.decoding import decode
from pumice.cache.effects import Note
from pumice.framework.subject import Subject
from pumice.model import requests, resources
from pumice.model.shape import Shapes
from pumice.model.task import build
from pumice.plugins.fragmentation import asked, typical
from pumice.plugins.fragmentation.fragments import Fragments
from pumice.plugins.fragmentation.points import Points

MILLI, COUNT, INDEX = "pumice.dev/gpu-milli", "pumice.dev/gpu-count", "pumice.dev/gpu-index"
MODEL = "nvidia.com/gpu.product"
KINDS = [(kind(4000, 500, 1), 5), (kind(4000, 1000, 1), 3), (kind(4000, 1000, 2), 1), (kind(4000, 0, 0), 1)]
TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: fragmentation
    arguments: {%s}
"""


def counted(found, cpu, left, model=None):
    return Fraction(found.of(tuple(left), found.model_class(model), found.level(cpu)), found.total)


# ---- F and points


def test_case_12_what_each_kind_cannot_use_is_lost_to_it():
    assert counted(Fragments(KINDS), 8000, (1000, 400)) == 600


@pytest.mark.parametrize(
    ("cpu", "before", "then_cpu", "after", "worth"),
    [
        (8000, (1000, 400), 6000, (1000, 0), 59),
        (8000, (1000, 400), 6000, (600, 400), 47),
        (8000, (1000, 400), 6000, (1000, 400), 50),
        (4000, (1000,), 2000, (1000,), 31),
    ],
)
def test_cases_13_and_14_are_worth_whole_points(cpu, before, then_cpu, after, worth):
    found = Fragments(KINDS)
    models = found.model_class(None)
    difference = found.of(before, models, found.level(cpu)) - found.of(after, models, found.level(then_cpu))
    assert found.points.of(difference) == worth


def test_points_are_those_of_the_formula_and_never_a_hundred():
    exact = Points(1)
    for difference in range(-12_000, 12_001, 7):
        assert exact.of(difference) == math.floor(100 / (1 + math.exp(-difference / 1000)))
    assert exact.of(0) == 50
    assert exact.of(-1) == 49
    assert (exact.of(10**9), exact.of(-(10**9))) == (99, 0)


nodes = st.tuples(
    st.integers(0, 16).map(lambda cpus: cpus * 1000),
    st.lists(st.sampled_from([0, 100, 250, 400, 500, 750, 1000]), max_size=5),
    st.sampled_from([None, "A", "B"]),
)
shares = st.one_of(
    st.just((0, 0)),
    st.tuples(st.sampled_from([100, 250, 500, 900]), st.just(1)),
    st.tuples(st.just(1000), st.integers(1, 4)),
)
typicals = st.lists(
    st.tuples(
        st.builds(
            lambda cpu, share, models: kind(cpu * 1000, *share, *models),
            st.integers(0, 12),
            shares,
            st.sampled_from([(), ("A",), ("A", "B"), ("C",)]),
        ),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda each: each[0],
)


@settings(max_examples=drawn(150), deadline=None)
@given(kinds=typicals, before=nodes, after=nodes)
def test_fragments_and_points_are_those_of_the_rules(kinds, before, after):
    found = Fragments(kinds)
    (cpu, left, model), (less, rest, _) = before, after
    assert counted(found, cpu, left, model) == reference.fragments(kinds, cpu, left, model)
    difference = found.of(tuple(left), 0, found.level(cpu)) - found.of(tuple(rest), 0, found.level(less))
    slow = [reference.fragments(kinds, *each, model) for each in ((cpu, left), (less, rest))]
    assert found.points.of(difference) == reference.score(*slow)


# ---- typical kinds


def test_typical_kinds_are_the_most_frequent_until_enough_is_covered():
    small, large, rare = kind(1000, 500, 1), kind(2000, 500, 1), kind(4000, 1000, 1)
    counts = Counter({small: 45, large: 45, rare: 10})
    assert typical.learn(counts, 95) == ((large, 45), (small, 45), (rare, 10))
    assert typical.learn(counts, 90) == ((large, 45), (small, 45))
    assert typical.learn(counts, 45) == ((large, 45),)
    assert typical.learn(Counter(), 95) == ()


def shape_of(limits=None, annotations=None, **spec):
    made = pod("p", requests=limits or {}, annotations=annotations, **spec)
    if limits:
        made["spec"]["containers"][0]["resources"]["limits"] = dict(limits)
    return build(decode(made), Shapes()).shape


@pytest.mark.parametrize(
    ("limits", "cards", "milli"),
    [
        ({"cpu": "2"}, 0, 0),
        ({"nvidia.com/gpu": "2"}, 2, 1000),
        ({"amd.com/gpu": "1"}, 1, 1000),
        ({"example.com/accelerator": "3"}, 3, 1000),
        ({"other.com/gpu": "3"}, 0, 0),
        ({MILLI: "400"}, 1, 400),
        ({MILLI: "1000"}, 1, 1000),
        ({MILLI: "1000", COUNT: "4"}, 4, 1000),
        ({"volcano.sh/gpu-memory": "1000"}, 1, 334),
        ({"volcano.sh/gpu-number": "2"}, 2, 1000),
        ({"volcano.sh/vgpu-number": "2"}, 2, 1000),
        ({"volcano.sh/vgpu-memory": "1500"}, 1, 375),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000", "volcano.sh/vgpu-cores": "30"}, 1, 300),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "30"}, 1, 300),
    ],
)
def test_cards_are_read_in_every_way_they_are_written(limits, cards, milli):
    whole = ("nvidia.com/gpu", "amd.com/gpu", "example.com/accelerator")
    assert asked.of_shape(shape_of(limits), whole, asked.Sizes(3000, 4000)) == (cards, milli)


def required(*terms):
    listed = [
        {
            "matchExpressions": [
                {"key": key, "operator": operator, "values": list(values)} for key, operator, values in term
            ]
        }
        for term in terms
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({}, {"A", "B", None}),
        ({"nodeSelector": {MODEL: "A"}}, {"A"}),
        ({"nodeSelector": {"zone": "z"}}, {"A", "B", None}),
        ({"affinity": required([(MODEL, "In", ("A", "B"))])}, {"A", "B"}),
        ({"affinity": required([(MODEL, "NotIn", ("A",))])}, {"B", None}),
        ({"affinity": required([(MODEL, "Exists", ()), ("zone", "In", ("z",))])}, {"A", "B"}),
        ({"affinity": required([(MODEL, "In", ("A",))], [("zone", "In", ("z",))])}, {"A", "B", None}),
        ({"affinity": required([(MODEL, "In", ("A",))], [(MODEL, "In", ("B",))])}, {"A", "B"}),
        ({"nodeSelector": {MODEL: "A"}, "affinity": required([(MODEL, "In", ("B",))])}, set()),
        ({"affinity": required([(MODEL, "In", ())])}, set()),
    ],
)
def test_models_are_what_selector_and_affinity_say(spec, allowed):
    models = typical.models_of(shape_of(**spec).constraints, MODEL)
    assert {model for model in ("A", "B", None) if typical.allows(models, model)} == allowed


def test_the_usual_size_of_cards_is_the_most_frequent_the_larger_of_equals():
    def sized(name, memory, number):
        made = node(name)
        made["status"]["allocatable"] |= {"volcano.sh/gpu-memory": memory, "volcano.sh/gpu-number": number}
        return made

    desk = Desk().feed(sized("n1", "8000", "1"), sized("n2", "16000", "1"), sized("n3", "4000", "1")).apply()
    assert asked.usual_sizes(desk.cluster.nodes.records) == asked.Sizes(16000, 0)
    desk.feed(sized("n4", "8000", "2")).apply()
    assert asked.usual_sizes(desk.cluster.nodes.records) == asked.Sizes(4000, 0)


# ---- what pods may ask for


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (
            {MILLI: "1500"},
            "ask for 1500 of pumice.dev/gpu-milli; it is a whole number of thousandths of one card, from 1 to 1000",
        ),
        ({MILLI: "0.5"}, "ask for 500m of pumice.dev/gpu-milli"),
        ({MILLI: "500", COUNT: "2"}, "more than one card is given out whole, with 1000 of each"),
        ({MILLI: "500", COUNT: "0"}, "it is a whole number of cards, 1 or more"),
        ({MILLI: "1000", COUNT: "1500m"}, "it is a whole number of cards, 1 or more"),
        ({COUNT: "2"}, "ask for 2 of pumice.dev/gpu-count and no pumice.dev/gpu-milli"),
        ({MILLI: "500", "nvidia.com/gpu": "1"}, "in two ways, by pumice.dev/gpu-milli and nvidia.com/gpu"),
        ({MILLI: "-5"}, "is negative"),
        ({MILLI: "much"}, "much"),
    ],
)
def test_what_cannot_be_given_out_is_refused_by_name(limits, says):
    desk = Desk(TEXT % "").feed(card_node("n1"), group("g"), pod("p", "g", cpu="1", requests=limits))
    desk.cycle()
    assert not desk.world.binds
    said = [effect.message for effect in desk.world.effects if isinstance(effect, Note)]
    assert any(says in each and "spec.containers" in each for each in said), said


@pytest.mark.parametrize(
    ("limits", "units"),
    [
        ({MILLI: "400"}, 400),
        ({MILLI: "1000", COUNT: "3"}, 3000),
        ({MILLI: "400", COUNT: "1"}, 400),
        ({MILLI: "0"}, None),
    ],
)
def test_the_thousandths_of_all_cards_are_counted(limits, units):
    amounts = requests.of_pod(decode(pod("p", requests=limits)))
    assert COUNT not in amounts
    assert amounts.get(MILLI) == (None if units is None else units * 1000)


def card_node(name, cards=2, cpu="8", model=None, **more):
    made = node(name, cpu=cpu, memory="64Gi", labels={MODEL: model} if model else None, **more)
    made["status"]["allocatable"][MILLI] = str(1000 * cards)
    return made


def share(name, milli="400", cpu="2", *, count=None, **more):
    limits = {MILLI: milli, **({COUNT: count} if count else {})} if milli else {}
    return [group(name), pod(name, name, cpu=cpu, requests=limits, **more)]


def taught(desk, *kinds_and_counts):
    """Tell a scheduler from which pods it is to learn."""
    shapes = Shapes()
    desk.cluster.arrivals.given = [
        build(decode(pod("past", cpu=cpu, requests=limits)), shapes).shape
        for cpu, limits, count in kinds_and_counts
        for _ in range(count)
    ]
    return desk


WORKED = [("4", {MILLI: "500"}, 5), ("4", {MILLI: "1000"}, 3), ("4", {MILLI: "1000", COUNT: "2"}, 1), ("4", {}, 1)]


def bind_of(desk, name):
    return next(effect for effect in desk.world.effects if getattr(effect, "node", None) and effect.name == name)


def scores(desk, name):
    """The score of every node for a pod, by the name of the node."""
    session = desk.session()
    evaluation = session.evaluate(Subject(desk.task(name)))
    evaluation.refresh_scores()
    return dict(zip([record.name for record in desk.cluster.nodes.records], evaluation.plain.tolist(), strict=False))


def test_a_share_takes_the_card_of_the_best_score_and_carries_its_index():
    desk = taught(Desk(TEXT % ""), *WORKED).feed(
        card_node("n1"),
        *share("there", "600", "0", node="n1", annotations={INDEX: "1"}),
        *share("asks"),
    )
    desk.cycle()
    assert bind_of(desk, "asks").annotations == {INDEX: "1"}


def test_pods_without_gpu_keep_off_the_cpu_that_cards_need():
    desk = taught(Desk(TEXT % ""), *WORKED).feed(
        card_node("n1"),
        *share("there", "600", "0", node="n1", annotations={INDEX: "1"}),
        card_node("n2", cards=1, cpu="4"),
        node("n3"),
        *share("asks", None),
    )
    assert scores(desk, "asks") == {"n1": 50, "n2": 31, "n3": 50}


def test_no_gpu_pod_seen_every_score_is_even_and_the_first_gpu_pod_is_learnt_from_at_once():
    desk = Desk(TEXT % "").feed(card_node("n1"), card_node("n2", cards=1, cpu="4"), *share("plain", None))
    assert scores(desk, "plain") == {"n1": 50, "n2": 50}
    desk.feed(*share("first", "500", "4"))
    assert scores(desk, "plain") != {"n1": 50, "n2": 50}


def test_the_weight_multiplies_whole_points_and_none_leaves_the_choice_of_cards():
    desk = Desk(TEXT % "fragmentation.weight: 3").feed(card_node("n1"), *share("plain", None))
    assert scores(desk, "plain") == {"n1": 150}
    desk = taught(Desk(TEXT % "fragmentation.weight: 0"), *WORKED).feed(
        card_node("n1"),
        *share("there", "600", "0", node="n1", annotations={INDEX: "1"}),
        *share("asks"),
    )
    desk.cycle()
    assert bind_of(desk, "asks").annotations == {INDEX: "1"}


def test_equal_scores_go_to_the_first_node():
    desk = taught(Desk(TEXT % ""), *WORKED).feed(*(card_node(f"n{at}") for at in (3, 1, 2)), *share("asks", "1000"))
    desk.cycle()
    assert bind_of(desk, "asks").node == "n1"


def test_kinds_are_learnt_again_after_ten_minutes_and_old_pods_are_forgotten():
    desk = Desk(TEXT % "fragmentation.history: 1h").feed(card_node("n1"), *share("old", "300"))
    desk.cycle(seconds=599)
    first = desk.cluster.arrivals.learnt["fragmentation"]
    desk.feed(*share("later", "700", created=599))
    desk.cycle(seconds=1)
    assert desk.cluster.arrivals.learnt["fragmentation"] is first
    desk.feed(*share("more", "100", created=599))
    desk.cycle(seconds=3600)
    assert [kind[1] for kind, _ in desk.cluster.arrivals.learnt["fragmentation"][4]] == [700, 300, 100]
    desk.feed(*share("new", "200", created=4200))
    desk.cycle()
    assert [kind[1] for kind, _ in desk.cluster.arrivals.learnt["fragmentation"][4]] == [200]


def test_pods_that_are_gone_are_learnt_from_and_the_latest_ten_thousand_alone(monkeypatch):
    monkeypatch.setattr("pumice.model.arrivals.MOST", 3)
    desk = Desk(TEXT % "").feed(card_node("n1"))
    desk.cycle()
    for at, milli in enumerate(["100", "200", "300", "400"]):
        made = share(f"p{at}", milli, created=at)
        desk.feed(*made).cycle()
        desk.delete(*made)
    desk.cycle(seconds=600)
    desk.feed(*share("p4", "500", created=5)).cycle()
    assert sorted(kind[1] for kind, _ in desk.cluster.arrivals.learnt["fragmentation"][4]) == [300, 400, 500]


# ---- nodes


def test_a_node_with_a_part_of_a_card_is_named_and_takes_no_shares():
    bad = node("n1", cpu="8")
    bad["status"]["allocatable"][MILLI] = "1500"
    desk = Desk(TEXT % "").feed(bad, card_node("n2"), *share("asks"))
    record = desk.cycle()
    assert any("Node n1: pumice.dev/gpu-milli: 1500 is no multiple of 1000" in line for line in record.trace())
    assert bind_of(desk, "asks").node == "n2"


def test_cards_that_are_not_well_take_nobody_and_are_named():
    ill = card_node("n1", annotations={"pumice.dev/gpu-unhealthy-ids": "0"})
    desk = Desk(TEXT % "").feed(ill, *share("two", "1000", count="2"))
    assert "1 node(s) had GPU cards for the pod that are not well" in desk.cycle().explain("a/two")
    desk.feed(*share("asks", "1000")).cycle()
    assert bind_of(desk, "asks").annotations == {INDEX: "1"}


def test_a_card_that_is_gone_holds_nothing_and_is_told_of():
    desk = Desk(TEXT % "").feed(
        card_node("n1"), *share("there", "600", node="n1", annotations={INDEX: "7"}), *share("asks", "1000", count="2")
    )
    record = desk.cycle()
    assert any("card 7 is gone, and a/there holds it" in line for line in record.trace())


@pytest.mark.parametrize("index", ["", "x", "0,0", ",", "-1", "1e3", "0;1", "9" * 400])
def test_an_index_that_says_nothing_costs_nobody_anything(index):
    desk = Desk(TEXT % "").feed(
        card_node("n1"), *share("there", "600", node="n1", annotations={INDEX: index}), *share("asks")
    )
    desk.cycle()
    assert bind_of(desk, "asks").node == "n1"


def test_resources_that_are_whole_gpus_are_counted_by_their_columns():
    def whole(name, count, cpu="8"):
        made = node(name, cpu=cpu)
        made["status"]["allocatable"]["example.com/gpu"] = str(count)
        return made

    one, four = {"example.com/gpu": "1"}, {"example.com/gpu": "4"}
    desk = taught(Desk(TEXT % "fragmentation.resources: example.com/gpu"), ("1", four, 3), ("1", one, 2))
    desk.feed(whole("n1", 4), whole("n2", 1), group("g"), pod("asks", "g", cpu="1", requests=one))
    learnt = [(kind(1000, 1000, 4), 3), (kind(1000, 1000, 1), 2)]
    expected = {
        name: reference.best(learnt, 8000, [1000] * count, None, (1000, 1000, 1))[0]
        for name, count in (("n1", 4), ("n2", 1))
    }
    assert scores(desk, "asks") == expected
    desk.cycle()
    assert bind_of(desk, "asks").node == "n2"


def test_bad_values_name_the_field():
    with pytest.raises(resources.BadValueError, match=r"spec\.containers: ask for 1001 of pumice\.dev/gpu-milli"):
        requests.of_pod(decode(pod("p", requests={MILLI: "1001"})))
