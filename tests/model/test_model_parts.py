"""The parts of the model, one rule at a time: names, vocabulary, rows, logs, shapes, selectors."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.api import core, meta
from pumice.model import (
    attributes,
    change_log,
    nodes,
    reading,
    resources,
    selectors,
    shape,
    subgroups,
    sums,
    tolerations,
)
from pumice.model.job import INT32_MAX

# ---- resources


COUNTED = {
    "cpu": True,
    "memory": True,
    "pods": True,
    "ephemeral-storage": True,
    "nvidia.com/gpu": True,
    "hugepages-2Mi": True,
    "attachable-volumes-csi-x": True,
    "count/jobs.batch": False,
    "requests.cpu": False,
    "requests.nvidia.com/gpu": False,
    "storage": False,
    "services": False,
}


@pytest.mark.parametrize(("name", "counted"), COUNTED.items())
def test_only_some_names_take_part_in_scheduling(name, counted):
    assert resources.is_counted(name) == counted
    assert bool(resources.parse({name: "1"}, "spec")) == counted


BAD = ["-1", "abc", "1e30", "", "1 Gi", "9007199254740993"]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_quantity_names_the_field(text):
    with pytest.raises(resources.BadValueError, match=r"^spec\.x\.memory: ") as refused:
        resources.parse({"cpu": "1", "memory": text}, "spec.x")
    assert refused.value.field == "spec.x.memory"


def test_at_most_64_names_are_accepted_in_one_object():
    listed = {f"example.com/{i}": "1" for i in range(65)}
    with pytest.raises(resources.BadValueError, match="names 65 resources; at most 64 are accepted"):
        resources.parse(listed, "spec")


def test_the_vocabulary_only_grows_and_gives_new_names_columns_in_order():
    vocabulary = resources.Vocabulary()
    assert not vocabulary.offer(["memory", "cpu"])
    assert vocabulary.offer(["z/z", "a/a"])
    assert vocabulary.names == ["cpu", "memory", "pods", "a/a", "z/z"]
    assert not vocabulary.offer(["a/a"])
    row = vocabulary.vector({"cpu": 5, "z/z": 7, "unknown/x": 9})
    assert row.tolist() == [5, 0, 0, 0, 7]
    assert vocabulary.amounts(row) == {"cpu": 5, "z/z": 7}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "a/a", "unknown/x"]), st.integers(0, 2**53))


@given(different=st.lists(AMOUNTS, min_size=1, max_size=4), chosen=st.lists(st.integers(0, 3), max_size=8))
def test_many_amounts_are_laid_out_as_each_whether_or_not_they_are_the_same_object(different, chosen):
    vocabulary = resources.Vocabulary()
    vocabulary.offer(["a/a"])
    listed = [different[number % len(different)] for number in chosen]
    assert vocabulary.matrix(listed).tolist() == [vocabulary.vector(amounts).tolist() for amounts in listed]


def test_groups_that_list_the_same_share_what_was_read():
    first, second = (resources.parse_shared({"cpu": "1", "memory": "1Gi"}, "spec.minResources") for _ in range(2))
    assert first is second
    assert first == resources.parse({"cpu": "1", "memory": "1Gi"}, "spec.minResources")
    with pytest.raises(resources.BadValueError, match="cpu"):
        resources.parse_shared({"cpu": "-1"}, "spec.minResources")


def test_a_long_list_is_read_anew_and_not_remembered():
    listed = {f"example.com/{'x' * 100}-{number}": "1" for number in range(20)}
    first, second = (resources.parse_shared(listed, "spec.minResources") for _ in range(2))
    assert first == second == resources.parse(listed, "spec.minResources")
    assert first is not second


def test_a_request_follows_a_growing_vocabulary():
    vocabulary = resources.Vocabulary()
    request = resources.Request({"cpu": 1, "a/a": 2, "pods": 1, "b/b": 0})
    request.lay(vocabulary)
    assert (request.unoffered, request.asked.tolist(), request.vector.tolist()) == (("a/a",), [0, 1, 2], [1, 0, 1])
    vocabulary.offer(["a/a", "b/b"])
    request.lay(vocabulary)
    assert (request.unoffered, request.asked.tolist(), request.needed.tolist()) == ((), [0, 1, 2, 3], [1, 0, 1, 2])


BEST_EFFORT = [
    ({"pods": 1}, True),
    ({"pods": 1, "cpu": 0}, True),
    ({"pods": 1, "a/a": 1}, False),
    ({"memory": 1}, False),
]


@pytest.mark.parametrize(("amounts", "best_effort"), BEST_EFFORT)
def test_pods_alone_do_not_make_a_request(amounts, best_effort):
    assert resources.Request(amounts).best_effort == best_effort


def test_rows_of_sums_are_reused_once_nothing_is_left_in_them():
    made = sums.Sums(resources.Vocabulary())
    rows = [made.take() for _ in range(70)]
    assert rows == list(range(70))
    asked = np.array([1, 2, 1])
    sums.add_times(made.pending[3], asked, 2)
    sums.add_times(made.pending[3], asked, -2)
    made.give_back(3)
    assert made.take() == 3
    assert not any(matrix[3].any() for matrix in (made.allocated, made.pending, made.pipelined))


# ---- nodes


def table(*names):
    return Desk().feed(*(node(name) for name in names)).apply().cluster.nodes


def test_rows_are_in_the_order_of_names_with_missing_nodes_behind():
    desk = Desk().feed(node("c"), pod("p", "g", node="b"), node("a"), node("0")).apply()
    made = desk.cluster.nodes
    assert [(r.name, r.row) for r in made.records] == [("0", 0), ("a", 1), ("c", 2), ("b", 3)]
    assert (made.count, made.rows.tolist()) == (3, [0, 1, 2])


def test_a_missing_node_without_tasks_is_forgotten():
    desk = Desk().feed(node("a"), node("b")).apply()
    desk.delete(node("a"), node("never-seen")).apply()
    assert [record.name for record in desk.cluster.nodes.records] == ["b"]
    assert "a" not in desk.cluster.nodes.by_name


def test_the_log_tells_which_rows_changed_since_a_position():
    made = table("a", "b", "c")
    start = made.position
    made.touch(2)
    made.touch_all([0, 2])
    assert made.changed_since(start).tolist() == [0, 2]
    assert made.changed_since(start + 2).tolist() == [2]
    assert made.changed_since(made.position).tolist() == []


@pytest.mark.parametrize("log", [lambda made: made.touch(0), lambda made: made.touch_all([0, 1])])
def test_a_log_that_grows_too_long_is_forgotten_and_says_so(log, monkeypatch):
    monkeypatch.setattr(nodes, "LOG_LIMIT", 10)
    made = table("a", "b")
    start = made.position
    for _ in range(30):
        log(made)
        assert len(made._changes) <= 12  # noqa: SLF001  how much memory it takes shows nowhere else
    assert made.changed_since(start) is None
    assert made.changed_since(made.position).tolist() == []


def test_a_view_that_runs_ahead_shows_more_pods_of_a_shape():
    desk = Desk().feed(node("n1"), node("n2"), group("g"), pod("p", "g", cpu="2")).apply()
    made, subject = desk.cluster.nodes, desk.task("p").shape
    rows, steps = np.array([1, 1, 0]), np.array([0, 2, 1])
    placed = made.ahead(rows, steps, subject, waiting=False)
    assert placed.used[:, 0].tolist() == [0, 4000, 2000]
    assert placed.non_zero[:, 1].tolist() == [0, 2 * 200 * 2**20, 200 * 2**20]
    waiting = made.ahead(rows, steps, subject, waiting=True)
    assert (waiting.used[:, 0].tolist(), waiting.pipelined[:, 0].tolist()) == ([0, 0, 0], [0, 4000, 2000])
    assert waiting.released


# ---- shapes


def test_equal_pods_share_one_shape_and_the_last_one_takes_it_away():
    desk = Desk().feed(
        *(pod(f"x-{i}", f"g{i}", cpu="1", labels={"i": str(i)}) for i in range(3)), pod("y", "g", cpu="2")
    )
    desk.apply()
    shapes = {desk.task(f"x-{i}").shape for i in range(3)}
    assert len(shapes) == 1
    assert len(desk.cluster.shapes) == 2
    desk.delete(*(pod(f"x-{i}", f"g{i}") for i in range(3))).apply()
    assert len(desk.cluster.shapes) == 1
    desk.delete(pod("y", "g")).apply()
    assert (len(desk.cluster.shapes), desk.cluster.jobs, desk.cluster.tasks) == (0, {}, {})


DIFFERENT = [
    {"nodeSelector": {"a": "b"}},
    {"tolerations": [{"operator": "Exists"}]},
    {"ports": [{"hostPort": 80}]},
    {"memory": "1Gi"},
    {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
]


@pytest.mark.parametrize("fields", DIFFERENT, ids=[next(iter(fields)) for fields in DIFFERENT])
def test_whatever_a_filter_or_score_reads_makes_another_shape(fields):
    desk = Desk().feed(pod("x", "g", cpu="1"), pod("y", "g", cpu="1", **fields)).apply()
    assert desk.task("x").shape is not desk.task("y").shape


PORTS = [
    (("TCP", "0.0.0.0", 80), ("TCP", "10.0.0.1", 80), True),  # noqa: S104  compared, not bound
    (("TCP", "10.0.0.2", 80), ("TCP", "10.0.0.1", 80), False),
    (("UDP", "10.0.0.1", 80), ("TCP", "10.0.0.1", 80), False),
    (("TCP", "10.0.0.1", 81), ("TCP", "10.0.0.1", 80), False),
    (("TCP", "10.0.0.1", 80), ("TCP", "10.0.0.1", 80), True),
]


@pytest.mark.parametrize(("want", "have", "conflict"), PORTS)
def test_host_ports_conflict_both_ways_alike(want, have, conflict):
    left, right = shape.HostPort(*want), shape.HostPort(*have)
    assert left.conflicts(right) == right.conflicts(left) == conflict


# ---- tasks


INDEX = {"mpi-worker-10": 10, "a-b-007": 7, "solo-1": None, "a-b-c": None, "a-b-1x": None, "a-b-": None, "a-b--3": 3}


@pytest.mark.parametrize(("name", "index"), INDEX.items())
def test_the_index_is_the_number_at_the_end_of_a_name_of_three_parts(name, index):
    assert reading.name_index(name) == index


PRIORITY = [(None, None, 1), (None, 7, 7), ("3", 7, 3), ("x", 7, 7), ("99999999999", 7, 7), ("-4", None, -4)]


@pytest.mark.parametrize(("annotation", "spec", "expected"), PRIORITY)
def test_the_priority_of_a_task_is_the_annotation_else_the_pods_else_one(annotation, spec, expected):
    notes = {} if annotation is None else {"volcano.sh/task-priority": annotation}
    fields = {} if spec is None else {"priority": spec}
    desk = Desk().feed(pod("p", "g", annotations=notes, **fields)).apply()
    assert desk.task("p").priority == expected


GATES = [([], (False, False)), (["q"], (True, False)), (["x"], (True, True)), (["q", "x"], (True, True))]


@pytest.mark.parametrize(("gates", "expected"), GATES)
def test_only_the_queue_gate_alone_is_not_external(gates, expected):
    named = {"q": "scheduling.volcano.sh/queue-allocation-gate", "x": "example.com/x"}
    desk = Desk().feed(pod("p", "g", schedulingGates=[{"name": named[gate]} for gate in gates])).apply()
    assert (desk.task("p").gated, desk.task("p").externally_gated) == expected


# ---- groups


BAD_GROUPS = [
    ({"minMember": -3}, "spec.minMember: -3 is outside 0..2147483647"),
    ({"minMember": 2**40}, f"spec.minMember: {2**40} is outside 0..{INT32_MAX}"),
    ({"minTaskMember": {"w": -1}}, "spec.minTaskMember.w: -1 is outside"),
    ({"minResources": {"cpu": "-1"}}, "spec.minResources.cpu: -1 is negative"),
    ({"subGroupPolicy": [{"name": "x", "subGroupSize": 0}]}, "spec.subGroupPolicy[0].subGroupSize: 0 is outside"),
]


@pytest.mark.parametrize(("spec", "problem"), BAD_GROUPS, ids=[problem for _, problem in BAD_GROUPS])
def test_a_bad_value_disables_the_group_and_names_the_field(spec, problem):
    manifest = group("g", 1)
    manifest["spec"] |= spec
    desk = Desk().feed(node("n1"), manifest, pod("p", "g", cpu="1"), group("h"), pod("q", "h", cpu="1"))
    desk.cycle()
    assert desk.cluster.jobs["a/g"].bad.startswith(problem)
    assert desk.world.binds == {"q": "n1"}
    desk.modify(group("g", 1))
    desk.cycle()
    assert desk.world.binds == {"q": "n1", "p": "n1"}


def test_long_match_values_are_hashed():
    policy = subgroups.Policy(name="p", size=1, min_sub_groups=0, selector=None, keys=("k", "l"), topology=None)
    assert subgroups.match([policy], {"k": "7", "l": "x"}) == subgroups.Match(policy, "7-x", 7)
    assert subgroups.match([policy], {"k": "7"}) is None
    long = subgroups.match([policy], {"k": "v" * 100, "l": "w" * 100})
    assert (long.suffix, long.index) == (str(subgroups.fnv32a("v" * 100 + "-" + "w" * 100)), 0)


@pytest.mark.parametrize(("text", "expected"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_fnv32a_gives_the_published_values(text, expected):
    assert subgroups.fnv32a(text) == expected


# ---- selectors and tolerations


def requirement(operator, *values, key="k"):
    return meta.LabelSelectorRequirement(key=key, operator=operator, values=values)


MATCHES = [
    ("none matches nothing", None, {}, False),
    ("empty matches everything", meta.LabelSelector(), {"k": "v"}, True),
    ("labels", meta.LabelSelector(match_labels={"k": "v"}), {"k": "v", "x": "y"}, True),
    ("a missing label", meta.LabelSelector(match_labels={"k": "v"}), {}, False),
    ("In", meta.LabelSelector(match_expressions=(requirement("In", "a", "v"),)), {"k": "v"}, True),
    ("In, missing", meta.LabelSelector(match_expressions=(requirement("In", "a"),)), {}, False),
    ("NotIn, missing", meta.LabelSelector(match_expressions=(requirement("NotIn", "a"),)), {}, True),
    ("NotIn, listed", meta.LabelSelector(match_expressions=(requirement("NotIn", "v"),)), {"k": "v"}, False),
    ("Exists", meta.LabelSelector(match_expressions=(requirement("Exists"),)), {"k": ""}, True),
    ("DoesNotExist", meta.LabelSelector(match_expressions=(requirement("DoesNotExist"),)), {"k": ""}, False),
    (
        "all must hold",
        meta.LabelSelector(match_labels={"k": "v"}, match_expressions=(requirement("Exists", key="x"),)),
        {"k": "v"},
        False,
    ),
    ("an operator nobody knows", meta.LabelSelector(match_expressions=(requirement("Is", "v"),)), {"k": "v"}, False),
]


@pytest.mark.parametrize(("case", "selector", "labels", "expected"), MATCHES, ids=[row[0] for row in MATCHES])
def test_label_selectors(case, selector, labels, expected):
    assert selectors.matches(selector, labels) == expected


TOLERATED = [
    ("KP1: one key", {"key": "k", "operator": "Exists"}, ("k", "a", "NoSchedule"), True),
    ("KP1: another key", {"key": "k", "operator": "Exists"}, ("m", "b", "NoExecute"), False),
    ("KP1: everything", {"operator": "Exists"}, ("m", "b", "NoExecute"), True),
    ("equal value", {"key": "k", "value": "a"}, ("k", "a", "NoSchedule"), True),
    ("other value", {"key": "k", "value": "b", "operator": "Equal"}, ("k", "a", "NoSchedule"), False),
    ("other effect", {"key": "k", "operator": "Exists", "effect": "NoExecute"}, ("k", "a", "NoSchedule"), False),
    ("an empty key with Equal matches any key", {"value": "a"}, ("k", "a", "NoSchedule"), True),
    ("a larger number", {"key": "k", "operator": "Gt", "value": "1"}, ("k", "2", "NoSchedule"), True),
    ("the same number", {"key": "k", "operator": "Gt", "value": "2"}, ("k", "2", "NoSchedule"), False),
    ("a smaller number", {"key": "k", "operator": "Lt", "value": "-1"}, ("k", "-2", "NoSchedule"), True),
    ("no number", {"key": "k", "operator": "Gt", "value": "1"}, ("k", "2k", "NoSchedule"), False),
    ("beyond 64 bits", {"key": "k", "operator": "Lt", "value": str(2**63)}, ("k", "2", "NoSchedule"), False),
]


@pytest.mark.parametrize(("case", "toleration", "taint", "expected"), TOLERATED, ids=[row[0] for row in TOLERATED])
def test_tolerations(case, toleration, taint, expected):
    key, value, effect = taint
    assert (
        tolerations.matches(core.Toleration(**toleration), core.Taint(key=key, value=value, effect=effect)) == expected
    )


def term(*expressions, fields=()):
    return core.NodeSelectorTerm(
        match_expressions=tuple(core.NodeSelectorRequirement(key=k, operator=o, values=v) for k, o, v in expressions),
        match_fields=tuple(core.NodeSelectorRequirement(key=k, operator=o, values=v) for k, o, v in fields),
    )


TERMS = [
    ("no requirement matches nothing", term(), False),
    ("a field alone", term(fields=[("metadata.name", "In", ("n1",))]), True),
    ("a field that excludes", term(fields=[("metadata.name", "NotIn", ("n1",))]), False),
    ("a field with two values", term(fields=[("metadata.name", "In", ("n1", "n2"))]), False),
    ("another field", term(fields=[("metadata.uid", "NotIn", ("x",))]), False),
    ("In with nothing listed", term(("gen", "In", ())), False),
    ("NotIn with nothing listed", term(("gen", "NotIn", ())), False),
    ("NotIn of a missing label", term(("none", "NotIn", ("x",))), True),
    ("Exists with a value", term(("gen", "Exists", ("5",))), False),
    ("DoesNotExist of a missing label", term(("none", "DoesNotExist", ())), True),
    ("Gt", term(("gen", "Gt", ("4",))), True),
    ("Gt is strict", term(("gen", "Gt", ("5",))), False),
    ("Lt with a sign", term(("gen", "Lt", ("+6",))), True),
    ("Gt of a missing label", term(("none", "Gt", ("-9",))), False),
    ("Gt with two values", term(("gen", "Gt", ("1", "2"))), False),
    ("Gt with a value that is no number", term(("gen", "Gt", ("x",))), False),
    ("Gt with a number beyond 64 bits", term(("gen", "Lt", ("9223372036854775808",))), False),
    ("Gt of a label that is no number", term(("zone", "Gt", ("1",))), False),
    ("one requirement that cannot be read", term(("gen", "Exists", ()), ("zone", "Is", ("a",))), False),
    ("all requirements and fields", term(("gen", "Exists", ()), fields=[("metadata.name", "In", ("n2",))]), False),
]


@pytest.mark.parametrize(("case", "written", "expected"), TERMS, ids=[row[0] for row in TERMS])
def test_node_selector_terms_for_one_node_and_for_all(case, written, expected):
    labels = {"gen": "5", "zone": "a"}
    assert selectors.term_matches(written, labels, "n1") == expected
    columns = Desk().feed(node("n1", labels=labels)).apply().cluster.nodes.attributes
    assert selectors.term_mask(written, columns).tolist() == [expected]


# ---- attributes

STATED = st.fixed_dictionaries(
    {
        "row": st.integers(0, 19),
        "zone": st.sampled_from([None, "a", "b", "c"]),
        "image": st.sampled_from([None, "x:1", "y:1"]),
        "taint": st.booleans(),
        "ready": st.booleans(),
        "cordoned": st.booleans(),
    }
)


def stated(desk, each):
    made = node(f"n-{each['row']:02}", labels={} if each["zone"] is None else {"zone": each["zone"]})
    made["spec"] = {"unschedulable": each["cordoned"]}
    made["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}] if each["taint"] else []
    made["status"]["conditions"] = [{"type": "Ready", "status": "True" if each["ready"] else "False"}]
    made["status"]["images"] = [] if each["image"] is None else [{"names": [each["image"]], "sizeBytes": 7}]
    desk.feed(made, event="MODIFIED").apply()


def shown(columns):
    sets, numbers = columns.taints
    zones, values = columns.codes("zone")
    images = [None if (found := columns.image(name)) is None else found.tolist() for name in ("x:1", "y:1", "z:1")]
    return (
        (columns.not_ready.tolist(), columns.cordoned.tolist()),
        (sets, numbers.tolist()),
        (zones.tolist(), values),
        images,
        columns.derived,
    )


@settings(max_examples=drawn(60), deadline=None)
@given(batches=st.lists(st.lists(STATED, max_size=3), max_size=6))
def test_columns_that_are_patched_are_those_that_would_be_made_anew(batches):
    desk = Desk().feed(*(node(f"n-{number:02}") for number in range(20))).apply()
    table = desk.cluster.nodes
    for batch in batches:
        shown(table.attributes)
        table.attributes.derived["x"] = 1
        before = table.static
        for each in batch:
            stated(desk, each)
        if table.static != before:
            assert shown(table.attributes) == shown(attributes.Attributes(table.records, table.count))


def test_a_log_tells_what_changed_since_or_that_it_does_not_reach_back_so_far(monkeypatch):
    monkeypatch.setattr(change_log, "LIMIT", 4)
    log, changes = change_log.ChangeLog(), []
    for number in range(20):
        log.append(number % 3)
        changes.append(number % 3)
        assert log.position == len(changes)
        assert list(log.since(log.position)) == []
        for position in range(-1, log.position):
            found = log.since(position)
            assert found is None or list(found) == list(dict.fromkeys(changes[position:]))
        assert log.since(log.position - 2) is not None or number < 1
    assert log.since(0) is None


@given(st.lists(st.lists(st.integers(0, 9), max_size=15), max_size=8))
def test_a_log_remembers_many_changes_as_it_does_one_after_the_other(batches):
    one, many = change_log.ChangeLog(), change_log.ChangeLog()
    with mock.patch.object(change_log, "LIMIT", 4):
        for batch in batches:
            many.extend(batch)
            for row in batch:
                one.append(row)
            found = [[log.since(position) for position in range(-1, log.position + 1)] for log in (one, many)]
            assert found[0] == found[1]


def test_a_log_gives_rows_in_the_order_of_their_last_changes_and_none_once_they_are_forgotten():
    log = change_log.ChangeLog()
    log.extend([3, 1, 3, 2, 1])
    assert list(log.latest(0)) == [3, 2, 1]
    assert list(log.latest(3)) == [2, 1]
    before = log.position
    log.forget()
    assert (log.latest(before), log.since(before)) == (None, None)
    assert list(log.latest(log.position)) == []
    log.append(7)
    assert list(log.latest(log.position - 1)) == [7]
