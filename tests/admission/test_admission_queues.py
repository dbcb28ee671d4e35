"""Rules about queues: what they promise, their place in the tree, and who may be deleted."""

from __future__ import annotations

import pytest
from admission_objects import edited, judged, known, queue, refusals, warnings

from pumice.admission.queues import completing
from pumice.admission.requests import Request, RuleSettings

HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def chain(*names: str) -> list[dict]:
    """Make queues, each below the one before."""
    return [queue(name, parent=above) for above, name in zip(("root", *names), names, strict=False)]


BROKEN = [
    (queue(capability={"cpu": "many"}), (), "spec.capability.cpu", "no quantity"),
    (queue(deserved={"cpu": -1}), (), "spec.deserved.cpu", "at least 0"),
    (queue(guarantee={"resource": {"cpu": "2"}}), (), "spec.guarantee.resource.cpu", "deserved does not list cpu"),  # I16
    (queue(guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": 1}), (), "spec.guarantee.resource.cpu", "is 2, above deserved (1)"),
    (queue(deserved={"cpu": "3000m"}, capability={"cpu": 2}), (), "spec.deserved.cpu", "is 3000m, above capability (2)"),
    (queue(weight=-1), (), "spec.weight", "is -1"),
    (queue(weight=70000), (), "spec.weight", "at most 65535"),
    (queue(priority=-1), (), "spec.priority", "is -1"),
    (queue(dequeueStrategy="lifo"), (), "spec.dequeueStrategy", "one of traverse, fifo"),
    (queue(state="Closing"), (), "status.state", "may only be set to Open or Closed"),
    (queue(parent="q"), (), "spec.parent", "the queue itself"),
    (queue(parent="nope"), (), "spec.parent", "there is no such queue"),
    (queue("root", parent="x"), (), "spec.parent", "root has no parent"),
    (queue(parent="e"), chain(*"abcde"), "spec.parent", "6 queues deep below root; at most 5"),
    (queue(parent="busy"), [edited(queue("busy"), ("status",), {"allocated": {"pods": "3"}})], "spec.parent", "a leaf with 3 pods"),
    (queue(parent="p", capability={"cpu": 9}), [queue("p", capability={"cpu": 8})], "spec.capability.cpu", "is 9, above that of queue p above it (8)"),
    (queue(parent="c", capability={"cpu": 9}), [queue("p", capability={"cpu": 8}), queue("c", parent="p")], "spec.capability.cpu", "above that of queue p"),
    (queue(parent="p", deserved={"cpu": 1}), [queue("p")], "spec.deserved.cpu", "none, which counts as 0"),
    (queue(parent="p", deserved={"cpu": 2}), [queue("p", deserved={"cpu": 4}), queue("s", parent="p", deserved={"cpu": "2500m"})], "spec.deserved.cpu", "is 2, and with 2500m of its siblings above that of its parent p (4)"),
    (queue(annotations={HIERARCHY: "root/a", WEIGHTS: "1/2/3"}), (), f"metadata.annotations[{WEIGHTS}]", "2 names and 3 weights"),
    (queue(annotations={HIERARCHY: "root/a"}), (), f"metadata.annotations[{WEIGHTS}]", "2 names and 0 weights"),
    (queue(annotations={HIERARCHY: "root/a", WEIGHTS: "1/0"}), (), f"metadata.annotations[{WEIGHTS}]", 'holds "0"'),
    (queue(annotations={HIERARCHY: "root/a", WEIGHTS: "1/x"}), (), f"metadata.annotations[{WEIGHTS}]", 'holds "x"'),
    (queue(annotations={HIERARCHY: "root/a", WEIGHTS: "1/2"}), [queue("deep", annotations={HIERARCHY: "root/a/b", WEIGHTS: "1/1/1"})], f"metadata.annotations[{HIERARCHY}]", "queue deep lies below that"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "others", "field", "message"), BROKEN, ids=[f"{case[2]}-{case[3][:24]}" for case in BROKEN]
)
def test_a_queue_is_refused_at_the_field_that_is_wrong(manifest, others, field, message):
    found = refusals(manifest, around=known(*others))

    assert [(where, message in text) for where, text in found] == [(field, True)], found


VALID = [
    (queue(), ()),
    (queue(capability={"cpu": 4, "nvidia.com/gpu": "500m"}, deserved={"cpu": 2}, guarantee={"resource": {"cpu": 1}}), ()),
    (queue(deserved={"memory": "1Gi"}, capability={"cpu": 1}), ()),  # unlisted is unlimited
    (queue(state="Closed"), ()),
    (queue(parent="d"), chain(*"abcd")),
    (queue(parent="root"), ()),
    (queue(parent="p", deserved={"cpu": 2}), [queue("p", deserved={"cpu": 4}), queue("s", parent="p", deserved={"cpu": 2})]),
    (queue(parent="busy"), [edited(queue("busy"), ("status",), {"allocated": {"pods": "3"}}), queue("other", parent="busy")]),
    (queue(annotations={HIERARCHY: "root/sci", WEIGHTS: "1/2.5"}), [queue("dev", annotations={HIERARCHY: "root/scidev", WEIGHTS: "1/1"})]),
    (queue("root"), ()),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "others"), VALID)
def test_a_queue_that_breaks_no_rule_is_let_in(manifest, others):
    assert refusals(manifest, around=known(*others)) == []


@pytest.mark.parametrize(
    "weight",
    [
        "a",
        "ff",
        "0x10",
        "1_0",
        "1e400",
        "1e999999999",
        "1e-999999999",
        "-inf",
        "+nan",
        "\u0661",
        "1 ",
        "0x1p-2000",
        "-0x1p2",
    ],
)
def test_a_weight_that_is_no_number_above_zero_for_volcano_either_is_refused(weight):
    manifest = queue(annotations={HIERARCHY: "root/a", WEIGHTS: f"1/{weight}"})

    assert [field for field, _ in refusals(manifest, settings=RuleSettings())] == [f"metadata.annotations[{WEIGHTS}]"]


@pytest.mark.parametrize("weight", ["inf", "+Infinity", "NaN", "0x1p-2", "0X.8P+1", "1e300"])
def test_a_weight_that_only_volcano_can_use_is_warned_of_at_most(weight):
    manifest = queue(annotations={HIERARCHY: "root/a", WEIGHTS: f"1/{weight}"})

    assert refusals(manifest, settings=RuleSettings()) == []


def test_promises_to_a_child_of_root_need_nothing_of_root():
    assert refusals(queue(deserved={"cpu": 100}, parent="root")) == []


def test_a_parent_cannot_be_made_smaller_than_its_children():
    old = queue("p", deserved={"cpu": 4}, capability={"cpu": 8})
    around = known(old, queue("a", parent="p", deserved={"cpu": 2}), queue("b", parent="p", deserved={"cpu": 2}, capability={"cpu": 6}))  # fmt: skip

    assert refusals(edited(old, ("spec", "weight"), 2), old=old, around=around) == []
    [(field, text)] = refusals(edited(old, ("spec", "deserved", "cpu"), 3), old=old, around=around)
    assert (field, "2 children have together (4)" in text) == ("spec.deserved.cpu", True)
    small = edited(old, ("spec", "capability", "cpu"), 5)
    [(field, text)] = refusals(small, old=old, around=around)
    assert (field, "below that of queue b below it (6)" in text) == ("spec.capability.cpu", True)


def test_a_queue_cannot_move_below_itself():
    queues = chain("a", "b")
    around = known(*queues)

    [(field, text)] = refusals(edited(queues[0], ("spec", "parent"), "b"), old=queues[0], around=around)

    assert (field, "lies below a itself" in text) == ("spec.parent", True)


def test_a_subtree_that_moves_counts_with_its_whole_depth():
    queues = chain("a", "b", "c")
    moving = [queue("x"), queue("y", parent="x"), queue("z", parent="y")]
    around = known(*queues, *moving)

    [(_, text)] = refusals(edited(moving[0], ("spec", "parent"), "c"), old=moving[0], around=around)

    assert "6 queues deep" in text
    assert refusals(edited(moving[0], ("spec", "parent"), "b"), old=moving[0], around=around) == []


def test_a_state_that_somebody_else_set_stops_no_other_change():
    old = queue(state="Closing")

    assert refusals(edited(old, ("spec", "weight"), 2), old=old) == []
    assert [field for field, _ in refusals(edited(old, ("status", "state"), "Unknown"), old=old)] == ["status.state"]


def test_root_keeps_its_amounts_unless_the_protection_is_off():
    old = queue("root")
    new = edited(old, ("spec", "capability"), {"cpu": 1})

    assert [field for field, _ in refusals(new, old=old)] == ["spec.capability"]
    assert refusals(new, old=old, settings=RuleSettings(root_protected=False)) == []
    assert refusals(edited(old, ("spec", "weight"), 3), old=old) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("metadata", "annotations"), {"pumice.dev/order": "CloseQueue 2026-01-01T00:00:00Z u"}),
        (("metadata", "annotations"), {"volcano.sh/closed-by-parent": "true"}),
        (("spec", "parent"), "root"),
    ],
)
def test_what_the_controller_notes_on_a_queue_is_let_through_though_the_queue_breaks_rules(place, value):
    old = queue(guarantee={"resource": {"cpu": 2}})
    assert refusals(old) != []
    assert refusals(edited(old, place, value), old=old) == []


@pytest.mark.parametrize(
    ("place", "value"), [(("metadata", "annotations"), {"volcano.sh/hierarchy": "root/a"}), (("spec", "weight"), 2)]
)
def test_a_change_that_rules_look_at_has_the_whole_queue_judged(place, value):
    old = queue(guarantee={"resource": {"cpu": 2}})
    assert "spec.guarantee.resource.cpu" in [field for field, _ in refusals(edited(old, place, value), old=old)]


def test_a_change_of_metadata_is_let_through_though_the_queue_breaks_rules():
    old = queue(parent="nope", guarantee={"resource": {"cpu": 1}})

    assert refusals(edited(old, ("metadata", "finalizers"), []), old=old) == []


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("default", RuleSettings(), "is default, which every cluster has"),  # I15
        ("root", RuleSettings(), "is root, which every cluster has"),
        ("p", RuleSettings(), "1 queues below it (c)"),
        ("busy", RuleSettings(allocated_pods_checked=True), "is 3: wait for the pods of busy"),
        ("busy", RuleSettings(), ""),
        ("c", RuleSettings(), ""),
    ],
)
def test_who_may_be_deleted(name, settings, message):
    busy = edited(queue("busy"), ("status",), {"allocated": {"pods": "3"}})
    around = known(queue("p"), queue("c", parent="p"), busy)
    old = dict(around.queue(name) or {})

    found = judged(old, old=old, around=around, settings=settings, operation="DELETE").refusals

    assert [message in each.message for each in found] == ([True] if message else [])


def test_a_parent_that_was_not_read_is_only_noted():
    around = known(complete=False)

    assert refusals(queue(parent="p"), around=around) == []
    assert [field for field, _ in warnings(queue(parent="p"), around=around)] == ["spec.parent"]


def test_a_parent_that_is_read_after_its_child_is_compared_with_all_the_same():
    around = known(complete=False)
    assert around.children("p") == []
    for each in (queue("c", parent="p"), queue("p")):
        around.put(_kind(), each)

    assert around.children("p") == ["c"]
    around.put(_kind(), queue("c", parent="default"))
    assert (around.children("p"), around.children("default")) == ([], ["c"])
    around.drop(_kind(), "c")
    assert around.children("default") == []


def _kind():
    from pumice.api import kinds

    return kinds.QUEUE


def test_what_is_left_out_is_filled_in():
    bare = {"metadata": {"name": "q", "annotations": {HIERARCHY: "a/b", WEIGHTS: "2/8"}}, "spec": {"weight": 0}}

    made = completing.complete(Request(operation="CREATE", object=bare), known(), RuleSettings())

    assert made["spec"] == {"weight": 1, "reclaimable": True}
    assert made["metadata"]["annotations"] == {HIERARCHY: "root/a/b", WEIGHTS: "1/2/8"}
    assert completing.complete(Request(operation="CREATE", object=made), known(), RuleSettings()) == made
    kept = completing.complete(
        Request(operation="CREATE", object=queue(reclaimable=False, weight=7)), known(), RuleSettings()
    )
    assert kept["spec"] == {"weight": 7, "reclaimable": False}
