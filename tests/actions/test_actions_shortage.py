"""Why no hyper-node holds a gang, in the words that its owner reads, and which room is looked at."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from test_actions_small_rules import rack

from builders import Desk, group, node, pod
from pumice.actions.placing import telling, turns
from pumice.framework.reasons import FitSummary

TEXT = """
actions: "allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"""
HARD = {"mode": "hard", "highestTierAllowed": 1}
PAIRS = ("n0", "n1"), ("n2", "n3")


def going(name, cpu):
    return pod(f"old-{name}", scheduler="other", cpu=cpu, node=name, deleting=3600)


def why(cpus, racks, asked, *more, least=None, tier=1, **spec):
    """Give why a gang waits that must stay in one rack."""
    desk = Desk(TEXT).feed(*(node(f"n{i}", cpu) for i, cpu in enumerate(cpus)))
    for number, members in enumerate(racks):
        made = rack(f"r{number}", *members)
        desk.feed({**made, "spec": {**made["spec"], "tier": tier}})
    desk.feed(*more, group("g", least or len(asked), phase="Inqueue", networkTopology=HARD, **spec))
    record = desk.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(asked))).cycle()
    return record.explain("a/g").splitlines()[-1].partition("; g-0: ")[2]


NEEDED = "0/2 hyper-nodes of tier <= 1 can hold the {} members that are needed"


@pytest.mark.parametrize(
    ("said", "arguments", "spec"),
    [
        (f"{NEEDED.format(2)}: r0 can hold the most, 1", ("4111", PAIRS, "44"), {}),
        # What is being released counts, as one could wait for it.
        (f"{NEEDED.format(3)}: r1 can hold the most, 2", ("4144", PAIRS, "444", going("n2", "4")), {}),
        (f"{NEEDED.format(2)}. 0/4 nodes are unavailable: 4 Insufficient cpu", ("4444", PAIRS, "99"), {}),
        (
            "none of the 2 hyper-nodes of tier <= 1 has the minResources of the group free",
            ("4444", PAIRS, "44"),
            {"minResources": {"cpu": "9"}},
        ),
        (
            f"{NEEDED.format(3)}: r0 can hold the most, 2",
            ("4444", PAIRS, "444"),
            {"minResources": {"cpu": "9"}},
        ),
        ("there is no hyper-node of tier <= 1; the lowest is of tier 2", ("4444", PAIRS, "44"), {"tier": 2}),
    ],
)
def test_why_no_hyper_node_holds_a_gang_is_said_in_numbers(said, arguments, spec):
    assert why(*arguments, **spec) == said


@pytest.mark.parametrize(("count", "named"), [(2, "n0, n1"), (3, "n0, n1, n2"), (4, "n0, n1, n2 and 1 more")])
def test_some_of_the_nodes_are_named_that_no_hyper_node_holds_together(count, named):
    runs = [pod(f"g-x{i}", "g", cpu="1", node=f"n{i}") for i in range(count)]
    said = why("4" * count, [(f"n{i}",) for i in range(count)], "1", *runs, least=count + 1)
    assert said == f"no hyper-node of tier <= 1 holds all {count} nodes that its members run on: {named}"


@pytest.mark.parametrize(
    ("scope", "room"),
    [
        (turns.Scope(), (False, True)),
        (turns.Scope(now=True), (False,)),
        (turns.Scope(waits=True), (True,)),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_why_no_node_takes_a_task_is_said_of_the_last_room_that_was_looked_at(scope, room, inside):
    asked = []
    evaluation = SimpleNamespace(failure=lambda **options: asked.append(options) or FitSummary(2, ()))
    domain = SimpleNamespace(name="r0", rows=[0, 1])
    looked = turns.Scope(domain if inside else None, scope.waits, scope.now)
    assert looked.room == room
    assert ("In hyperNode r0" in str(looked.failure(evaluation))) is inside
    assert asked == [{"released": room[-1], **({"within": [0, 1]} if inside else {})}]


def test_of_a_gang_some_of_which_run_it_is_said_how_many_more_it_needs():
    desk = Desk(TEXT).feed(node("n", "4"), group("g", 3), pod("g-0", "g", cpu="1", node="n"))
    session = desk.feed(pod("g-1", "g", cpu="1")).session()
    said = telling.shortfall(session, desk.task("g-1").job, 1)
    assert (said.placed, said.lacking, said.minimum, said.pending) == (1, 2, 3, 1)
