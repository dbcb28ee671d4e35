"""HyperNodes: how many nodes they have, and how they are made from labels of nodes and from what a fabric manager says."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from volcano_worlds import VolcanoWorld, killed_anywhere

from drawing import drawn
from pumice.api import duration, kinds, names
from pumice.controllers.queueing import running
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.hyper_nodes import aligning, counting, ufm
from pumice.controllers.volcano.hyper_nodes import labels as labelling
from pumice.controllers.volcano.hyper_nodes import settings as reading
from pumice.controllers.volcano.hyper_nodes.controlling import Discovery
from pumice.controllers.volcano.hyper_nodes.counting import HyperNodeCounts

LIVELY = settings(max_examples=drawn(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
PLACE = ("volcano-system", "volcano-controller-configmap")
ENDPOINT = "https://ufm.example"


def node(name, **labels):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def hyper_node(name, *members, tier=1, labels=None):
    metadata = {"name": name, "labels": labels or {}}
    spec = {"tier": tier, "members": list(members)}
    return {"apiVersion": kinds.HYPER_NODE.api_version, "kind": "HyperNode", "metadata": metadata, "spec": spec}


def member(kind="Node", **selector):
    return {"type": kind, "selector": selector}


def config_map(*sources):
    text = json.dumps({"networkTopologyDiscovery": list(sources)})
    metadata = {"namespace": PLACE[0], "name": PLACE[1]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {reading.KEY: text}}


def by_labels(**types):
    kinds_of = {name: [{"nodeLabel": key} for key in (*keys, "kubernetes.io/hostname")] for name, keys in types.items()}
    return {"source": "label", "enabled": True, "config": {"networkTopologyTypes": kinds_of}}


def types_of(entries):
    return {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"t": entries}}}


BY_UFM = {
    "source": "ufm",
    "enabled": True,
    "interval": "10m",
    "credentials": {"secretRef": {"name": "s", "namespace": "n"}},
    "config": {"endpoint": f"{ENDPOINT}/", "insecureSkipVerify": True},
}


def shown(world):
    """Give HyperNodes as plain values, by name."""
    found = {}
    for each in world.store.scan(kinds.HYPER_NODE):
        listed = [entry["selector"]["exactMatch"]["name"] for entry in each["spec"]["members"]]
        found[each["metadata"]["name"]] = (each["spec"]["tier"], each["spec"]["members"][0]["type"], sorted(listed))
    return found


def begun(*manifests, links=lambda: None):
    world = VolcanoWorld(lambda: [HyperNodeCounts(), Discovery(links=links)])
    for each in manifests:
        world.create(each)
    return world


def settled(world):
    """Let the controllers do everything but wait for a fabric manager."""
    for kind, waiting in world.late.items():
        while waiting:
            world.engine.feed(kind, *waiting.popleft())
    before = None
    while before != world.store.resource_version:
        before = world.store.resource_version
        world.clock.advance(2 * duration.SECOND)
        for kind, waiting in world.late.items():
            while waiting:
                world.engine.feed(kind, *waiting.popleft())
        _run(world)
    return world


def _run(world):
    running.run_due(world.engine, world, world.moment)


# ---- counting


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ([], 0),
        ([member(exactMatch={"name": "n1"}), member(exactMatch={"name": "nobody"})], 2),
        ([member(exactMatch={"name": "n1"}), member(regexMatch={"pattern": "^n[12]$"})], 2),
        ([member(regexMatch={"pattern": "n"})], 3),
        ([member(regexMatch={"pattern": "("})], 0),
        ([member(labelMatch={"matchLabels": {"rack": "r1"}})], 2),
        ([member(labelMatch={"matchExpressions": [{"key": "rack", "operator": "Exists"}]})], 3),
        ([member(labelMatch={})], 0),
        ([member("HyperNode", exactMatch={"name": "h"}), member("HyperNode", exactMatch={"name": "h"})], 1),
        ([member("HyperNode", exactMatch={"name": "n1"}), member(exactMatch={"name": "n1"})], 2),
        ([member("HyperNode", regexMatch={"pattern": "."})], 0),
        ([member(regexMatch={"pattern": ""}), member(regexMatch={"pattern": 5})], 0),
        ([member(exactMatch={"name": ""}), member(exactMatch={"name": 5})], 0),
        ([member(exactMatch={"name": ""}, labelMatch={"matchLabels": {"rack": "r1"}})], 2),
        ([None, 3, {"selector": 4}], 0),
    ],
)
def test_distinct_nodes_that_members_select_are_counted(members, wanted):
    observed = Observed()
    for each in (node("n1", rack="r1"), node("n2", rack="r1"), node("n3", rack="r2")):
        observed.feed(kinds.NODE, "ADDED", each)
    assert counting.count(hyper_node("h", *members), observed) == wanted


def test_the_count_is_written_when_a_hyper_node_changes():
    world = settled(begun(node("n1"), hyper_node("h", member(regexMatch={"pattern": "^n"}))))
    assert world.get(kinds.HYPER_NODE, "h")["status"] == {"nodeCount": 1}
    world.create(node("n2"))
    settled(world)
    assert world.get(kinds.HYPER_NODE, "h")["status"] == {"nodeCount": 1}
    world.patch(kinds.HYPER_NODE, "h", {"spec": {"tier": 2}}, namespace="")
    settled(world)
    assert world.get(kinds.HYPER_NODE, "h")["status"] == {"nodeCount": 2}


# ---- settings


def test_sources_are_read():
    found = reading.read(config_map(by_labels(Rack=["zone", "rack"]), BY_UFM))
    assert found.labels == reading.LabelSource(types={"Rack": ("rack", "zone")})
    assert (found.ufm.secret_namespace, found.ufm.secret_name) == ("n", "s")
    assert (found.ufm.endpoint, found.ufm.interval, found.ufm.insecure) == (ENDPOINT, 10 * duration.MINUTE, True)
    assert found.problems == ()
    assert reading.read(config_map({**BY_UFM, "enabled": False})) == reading.DiscoverySettings()
    assert reading.read(None) == reading.read({"data": 3}) == reading.read(config_map()) == reading.DiscoverySettings()
    assert reading.place({"HELM_RELEASE_NAME": "v", "KUBE_POD_NAMESPACE": "ns"}) == ("ns", "v-controller-configmap")
    assert reading.place({}) == PLACE


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"source": "guess", "enabled": True}, "'guess' is none of label, ufm"),
        ({"source": "label", "enabled": True}, "name at least one type"),
        (by_labels(**{"t" * 21: ["a"]}), "1 to 20 characters, not 21"),
        (by_labels(t=["a", "a"]), "stands there twice"),
        (
            {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"t": []}}},
            "write a list of nodeLabel",
        ),
        (
            {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"t": [{"x": 1}]}}},
            "write a list of nodeLabel",
        ),
        ({**BY_UFM, "config": {}}, "endpoint: write a URL"),
        ({**BY_UFM, "config": {"endpoint": "ufm"}}, "endpoint: write a URL"),
        ({**BY_UFM, "credentials": {}}, "name the Secret"),
        ({**BY_UFM, "credentials": {"secretRef": {"name": ""}}}, "name the Secret"),
        ({**BY_UFM, "credentials": {"secretRef": {"name": 5}}}, "name the Secret"),
        (types_of([{"nodeLabel": ""}, {"nodeLabel": "b"}]), "write a list of nodeLabel"),
        (types_of([{"nodeLabel": 5}, {"nodeLabel": "b"}]), "write a list of nodeLabel"),
        ({**BY_UFM, "interval": "often"}, "interval"),
        ({**BY_UFM, "interval": "1ms"}, "shorter than a second"),
    ],
)
def test_what_is_wrong_with_a_source_is_said_and_costs_the_others_nothing(source, says):
    found = reading.read(config_map(source, by_labels(fine=["rack"])))
    assert len(found.problems) == 1
    assert says in found.problems[0]
    assert found.labels is not None


def test_a_fabric_manager_may_be_asked_once_a_second():
    found = reading.read(config_map({**BY_UFM, "interval": "1s"}))
    assert (found.ufm.interval, found.problems) == (duration.SECOND, ())


def test_a_text_that_is_no_yaml_is_said_with_its_line():
    broken = config_map()
    broken["data"][reading.KEY] = "networkTopologyDiscovery:\n- {a"
    assert "volcano-controller.conf:" in reading.read(broken).problems[0]


# ---- labels


def test_names_labels_and_members():
    nodes = [
        node("n1", rack="r1", zone="z"),
        node("n2", rack="r1", zone="z"),
        node("n3", rack="r2"),
        node("n4", zone="z"),
    ]
    world = settled(begun(*nodes, config_map(by_labels(My_Type=["zone", "rack"]))))
    found = {
        tuple(each["spec"]["members"][0]["selector"]["exactMatch"].values()): each
        for each in world.store.scan(kinds.HYPER_NODE)
    }
    racks = [each for each in found.values() if each["spec"]["tier"] == 1]
    assert {each["metadata"]["labels"]["rack"] for each in racks} == {"r1", "r2"}
    (zone,) = [each for each in found.values() if each["spec"]["tier"] == 2]
    first = next(each for each in racks if each["metadata"]["labels"]["rack"] == "r1")["metadata"]["name"]
    assert zone["spec"] == {"tier": 2, "tierName": "zone", "members": [member("HyperNode", exactMatch={"name": first})]}
    assert zone["metadata"]["labels"] == {"zone": "z", names.NETWORK_TOPOLOGY_SOURCE: "label"}
    assert first.startswith("hypernode-my-type-tier1-")
    assert len(first) == len("hypernode-my-type-tier1-") + 5


def test_a_hyper_node_that_is_there_with_the_value_keeps_its_name_whoever_made_it():
    labels = {"rack": "r1", names.NETWORK_TOPOLOGY_SOURCE: "label"}
    old = hyper_node("hypernode-t-tier1-abcde", member(exactMatch={"name": "gone"}), labels=labels)
    world = settled(begun(node("n1", rack="r1"), old, config_map(by_labels(t=["rack"]))))
    assert shown(world) == {"hypernode-t-tier1-abcde": (1, "Node", ["n1"])}


def test_hyper_nodes_of_others_are_left_alone_and_a_name_that_is_taken_is_told_of():
    other = hyper_node("mine", member(exactMatch={"name": "n1"}))
    world = settled(begun(node("n1", rack="r1"), other, config_map(by_labels(t=["rack"]))))
    (made,) = [name for name in shown(world) if name != "mine"]
    world = begun(node("n1", rack="r1"), other, hyper_node(made, member(exactMatch={"name": "x"})))
    world.create(config_map(by_labels(t=["rack"])))
    settled(world)
    assert shown(world) == {"mine": (1, "Node", ["n1"]), made: (1, "Node", ["x"])}
    assert [note.reason for note in world.notes] == ["HyperNodeExists"]


def test_a_source_that_is_switched_off_leaves_what_it_made():
    world = settled(begun(node("n1", rack="r1"), config_map(by_labels(t=["rack"]))))
    before = shown(world)
    world.patch(kinds.CONFIG_MAP, PLACE[1], {"data": {reading.KEY: "{}"}}, namespace=PLACE[0])
    settled(world)
    assert shown(world) == before != {}


def test_a_group_with_two_parents_counts_for_one_and_that_is_told():
    nodes = [node("n1", rack="r", zone="z1"), node("n2", rack="r", zone="z2")]
    world = settled(begun(*nodes, config_map(by_labels(t=["zone", "rack"]))))
    assert sorted(each[0] for each in shown(world).values()) == [1, 2]
    (note,) = [each for each in world.notes if each.reason == "AmbiguousTopology"]
    assert "rack=r lies in both zone=z1 and zone=z2; it counts for z1" in note.message


@LIVELY
@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_whatever_labels_become_hyper_nodes_equal_a_plain_grouping(number, depth, restarts):
    rng = random.Random(number)  # noqa: S311  tells a life again
    keys = [f"k{level}" for level in range(depth)]  # widest first
    world = begun(config_map(by_labels(t=keys)))
    placed = {}
    for _ in range(12):
        name = f"n{rng.randrange(8)}"
        if name in placed and rng.random() < 0.3:
            del placed[name]
            world.delete(kinds.NODE, name)
        else:
            path = [str(rng.randrange(2)) for _ in keys][: rng.randrange(depth + 1)]
            # A value names its whole path, so that every group has one parent; the walk begins at the narrowest, which may be missing.
            labels = {key: "-".join(path[: level + 1]) for level, key in enumerate(keys) if level < len(path)}
            if name in placed:
                empty = dict.fromkeys(keys)
                world.patch(kinds.NODE, name, {"metadata": {"labels": {**empty, **labels}}}, namespace="")
            else:
                world.create(node(name, **labels))
            placed[name] = labels
        if restarts:
            world.restart()
        settled(world)
    assert not world.complaints
    _check_groups(world, keys, placed)


def _check_groups(world, keys, placed):
    wanted = {}
    for name, labels in placed.items():
        inside = name
        for tier, key in enumerate(reversed(keys), 1):
            if key not in labels:
                break
            wanted.setdefault((tier, key, labels[key]), set()).add(inside)
            inside = labels[key]
    found = {}
    values = {}
    for each in world.store.scan(kinds.HYPER_NODE):
        key = each["spec"]["tierName"]
        values[each["metadata"]["name"]] = each["metadata"]["labels"][key]
    for each in world.store.scan(kinds.HYPER_NODE):
        key, tier = each["spec"]["tierName"], each["spec"]["tier"]
        listed = {entry["selector"]["exactMatch"]["name"] for entry in each["spec"]["members"]}
        found[tier, key, each["metadata"]["labels"][key]] = listed if tier == 1 else {values[name] for name in listed}
    assert found == wanted


# ---- fabric managers


def port(host, leaf, description="Computer IB Port"):
    return {"description": description, "system_name": host, "peer_node_name": leaf, "other": 1}


def links(*pairs):
    return ufm.parse(ENDPOINT, json.dumps([port(*pair) for pair in pairs]).encode())


def test_ports_of_computers_link_hosts_to_leaf_switches():
    entries = [
        port("n1", "l1"),
        port("n1", "l1"),
        port("l1", "s1", "Switch IB Port"),
        port(None, "l1"),
        port("n2", None),
    ]
    found = ufm.parse(ENDPOINT, json.dumps([*entries, {}, port("Bad_Name", "l1"), port("n" * 254, "l1")]).encode())
    assert found == ufm.Links(endpoint=ENDPOINT, pairs=(("n1", "l1"),), left_out=2)


@pytest.mark.parametrize("answer", [b"", b"{}", b"[3]", b'[{"system_name": 3}]', b"\xff", b"[" * 5000])
def test_an_answer_that_is_no_list_of_ports_is_refused(answer):
    with pytest.raises(ufm.UfmError, match="is no list of ports"):
        ufm.parse(ENDPOINT, answer)


def test_leaves_that_share_hosts_are_one_and_the_spine_is_above_them():
    told = links(("a", "l1"), ("a", "l2"), ("b", "l2"), ("c", "l3"), ("d", "l3"))
    world = settled(begun(config_map(BY_UFM), links=lambda: told))
    assert shown(world) == {
        "leaf-hn-0": (1, "Node", ["a", "b"]),
        "leaf-hn-1": (1, "Node", ["c", "d"]),
        "spine-hn": (2, "HyperNode", ["leaf-hn-0", "leaf-hn-1"]),
    }
    labels = [each["metadata"]["labels"] for each in world.store.scan(kinds.HYPER_NODE)]
    assert labels == [{names.NETWORK_TOPOLOGY_SOURCE: "ufm"}] * 3


def test_a_leaf_keeps_its_name_when_hosts_come_and_go_and_nothing_happens_without_an_answer():
    answers = [links(("a", "l1"), ("c", "l2"), ("d", "l2"))]
    world = settled(begun(config_map(BY_UFM), links=lambda: answers[-1]))
    answers.append(links(("c", "l2"), ("d", "l2"), ("e", "l3")))
    world.clock.advance(10 * duration.SECOND)
    settled(world)
    assert shown(world) == {
        "leaf-hn-0": (1, "Node", ["e"]),
        "leaf-hn-1": (1, "Node", ["c", "d"]),
        "spine-hn": (2, "HyperNode", ["leaf-hn-0", "leaf-hn-1"]),
    }
    before = shown(world)
    for silent in (None, ufm.Links(endpoint="https://other", pairs=())):
        answers.append(silent)
        world.clock.advance(10 * duration.SECOND)
        settled(world)
        assert shown(world) == before
    answers.append(links())
    world.clock.advance(10 * duration.SECOND)
    settled(world)
    assert shown(world) == {}


@LIVELY
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("123456")), max_size=14),
    st.randoms(use_true_random=False),
)
def test_groups_of_hosts_equal_a_plain_search(pairs, rng):
    world = settled(begun(config_map(BY_UFM), links=lambda: links(*pairs)))
    reached = {}
    for host, _ in pairs:
        seen, todo = {host}, [host]
        while todo:
            leaves = {leaf for one, leaf in pairs if one == todo[-1]}
            todo.pop()
            more = {other for other, leaf in pairs if leaf in leaves} - seen
            seen |= more
            todo += sorted(more)
        reached[host] = sorted(seen)
    found = sorted(members for tier, _, members in shown(world).values() if tier == 1)
    assert found == sorted({tuple(each): each for each in reached.values()}.values())
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    assert shown(settled(begun(config_map(BY_UFM), links=lambda: links(*shuffled)))) == shown(world)


def test_a_controller_that_is_killed_between_any_two_requests_is_replaced_without_harm():
    def happen(world):
        for change in ({"rack": "r2"}, {"zone": "z2"}, {"rack": None}):
            world.patch(kinds.NODE, "n1", {"metadata": {"labels": change}}, namespace="")
            try:
                settled(world)
            except world.killed:
                world.restart()
                settled(world)

    def begin():
        nodes = [node("n1", rack="r1", zone="z1"), node("n2", rack="r3", zone="z1")]
        world = settled(begun(*nodes, config_map(by_labels(t=["zone", "rack"]))))
        world.requests = 0
        return world

    world, ends = killed_anywhere(begin, happen)
    assert len(ends) >= 16
    for number, performed, other in ends:
        assert shown(other) == shown(world), (number, performed)


def test_what_is_no_longer_there_goes_from_the_top():
    known = Observed()
    for name, tier in (("leaf-b", 1), ("spine", 3), ("leaf-a", 1), ("middle", 2)):
        manifest = aligning.Wanted(name=name, tier=tier, members=(), members_are="Node").manifest("label")
        known.feed(kinds.HYPER_NODE, "ADDED", manifest)
    steps, _ = aligning.steps("label", [], known)
    assert [each.request.name for each in steps] == ["spine", "middle", "leaf-a", "leaf-b"]


def test_another_config_map_that_names_sources_is_none():
    known = Observed()
    other = config_map(by_labels(t=["zone"]))
    other["metadata"]["name"] = "other"
    known.feed(kinds.NODE, "ADDED", node("n1", zone="z"))
    known.feed(kinds.CONFIG_MAP, "ADDED", other)
    found = Discovery(PLACE)
    assert found.reconcile(PLACE[0], "other", known, Moment(0)).steps == []
    assert list(found.concerns(kinds.NODE, node("n1"), known)) == []
    known.feed(kinds.CONFIG_MAP, "ADDED", config_map(by_labels(t=["zone"])))
    assert len(found.reconcile(*PLACE, known, Moment(0)).steps) == 1
    assert list(found.concerns(kinds.NODE, node("n1"), known)) == [PLACE]


# ---- names


def named_by_labels(*nodes, present=(), keys=("rack",)):
    """Give the members of each HyperNode by its name."""
    known = Observed()
    for each in nodes:
        known.feed(kinds.NODE, "ADDED", each)
    for each in present:
        known.feed(kinds.HYPER_NODE, "ADDED", each)
    found, problems = labelling.wanted(reading.LabelSource(types={"t": keys}), known)
    assert problems == []
    return {each.name: list(each.members) for each in found}


def from_labels(name, value, key="rack"):
    return hyper_node(name, labels={key: value, names.NETWORK_TOPOLOGY_SOURCE: "label"})


def test_a_new_name_follows_from_type_tier_and_value_and_stays_the_same_from_version_to_version():
    assert named_by_labels(node("n1", rack="b")) == {"hypernode-t-tier1-4g99x": ["n1"]}


def test_two_values_whose_names_would_be_one_have_two():
    found = named_by_labels(node("n1", rack="v1371"), node("n2", rack="v2119"))
    assert sorted(found.values()) == [["n1"], ["n2"]]
    assert found["hypernode-t-tier1-82885"] == ["n1"]


@pytest.mark.parametrize("value", ["", 5, None])
def test_a_node_whose_label_says_nothing_is_in_no_hyper_node(value):
    nodes = node("n1", rack=value, zone="z"), node("n2", rack="b")
    assert named_by_labels(*nodes, keys=("rack", "zone")) == {"hypernode-t-tier1-4g99x": ["n2"]}


@pytest.mark.parametrize(
    ("present", "kept"),
    [
        (from_labels("hypernode-t-tier1-mine", "b"), True),
        (from_labels("hypernode-u-tier1-mine", "b"), False),  # of another type
        (from_labels("hypernode-t-tier2-mine", "b"), False),
        (from_labels("hypernode-t-tier1-mine", "c"), False),
        (from_labels("hypernode-t-tier1-mine", 5), False),
        (from_labels("hypernode-t-tier1-mine", "b", "zone"), False),
    ],
)
def test_a_hyper_node_of_this_type_tier_and_value_keeps_its_name(present, kept):
    found = named_by_labels(node("n1", rack="b"), present=[present])
    assert list(found) == ["hypernode-t-tier1-mine" if kept else "hypernode-t-tier1-4g99x"]


@pytest.mark.parametrize(("there", "name"), [("a", "r6v59"), ("gone", "4g99x")])
def test_a_name_that_another_value_keeps_is_given_to_no_new_one(there, name):
    """Somebody has given the name that follows from the value b to another one."""
    present = from_labels("hypernode-t-tier1-4g99x", there)
    found = named_by_labels(node("n1", rack="b"), node("n2", rack="a"), present=[present])
    assert found[f"hypernode-t-tier1-{name}"] == ["n1"]
    assert len(found) == 2


def leaves(told, **present):
    known = Observed()
    for name, members in present.items():
        listed = [member(exactMatch={"name": each}) for each in members]
        made = hyper_node(name.replace("_", "-"), *listed, labels={names.NETWORK_TOPOLOGY_SOURCE: "ufm"})
        known.feed(kinds.HYPER_NODE, "ADDED", made)
    return {each.name: "".join(each.members) for each in ufm.wanted(told, known) if each.tier == 1}


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        (("abc", "d"), {"leaf-hn-0": "abc", "leaf-hn-1": "d"}),
        (("a", "bc", "d"), {"leaf-hn-0": "bc", "leaf-hn-1": "d", "leaf-hn-2": "a"}),  # most of its hosts
        (("abcd",), {"leaf-hn-0": "abcd"}),
        (("ad", "x"), {"leaf-hn-0": "ad", "leaf-hn-1": "x"}),  # of two that are equally much in it the first
        (("a", "b", "x"), {"leaf-hn-0": "a", "leaf-hn-1": "b", "leaf-hn-2": "x"}),
        (("da", "xy"), {"leaf-hn-0": "ad", "leaf-hn-1": "xy"}),
    ],
)
def test_a_leaf_goes_on_as_the_group_that_has_most_of_its_hosts(groups, named):
    told = links(*((host, f"l{place}") for place, group in enumerate(groups) for host in group))
    assert leaves(told, leaf_hn_0="abc", leaf_hn_1="d") == named
    assert leaves(told, leaf_hn_0="abc", leaf_hn_1="d", other="xyz") == named


def test_of_two_leaves_that_become_one_the_first_by_name_goes_on():
    assert leaves(links(("a", "l"), ("b", "l")), leaf_hn_0="b", leaf_hn_1="a") == {"leaf-hn-0": "ab"}


@pytest.mark.parametrize(("length", "left_out"), [(253, 0), (254, 1)])
def test_a_host_has_a_name_that_a_node_can_have(length, left_out):
    assert links(("n" * length, "l")).left_out == left_out


@pytest.mark.parametrize(("source", "again"), [(BY_UFM, 10), (by_labels(t=["zone"]), None)])
def test_a_fabric_managers_answer_is_looked_for_every_ten_seconds(source, again):
    known = Observed()
    known.feed(kinds.CONFIG_MAP, "ADDED", config_map(source))
    plan = Discovery(PLACE).reconcile(*PLACE, known, Moment(duration.HOUR))
    assert plan.again == (None if again is None else duration.HOUR + again * duration.SECOND)
