"""How much of a gang could start, held against trying every arrangement."""

from __future__ import annotations

import pytest
from explaining_worlds import GPU, asked, nodes, requests
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.api import quantity
from pumice.framework.explaining import text

RESOURCES = ("cpu", "memory", GPU)


def milli(amount):
    return quantity.scaled(amount, 1000)


def most_that_fit(members, rooms):
    """Try every node for every member, and leaving it out; members and rooms are tuples of amounts, the pod's slot last."""
    if not members:
        return 0
    first, *rest = members
    best = most_that_fit(rest, rooms)
    for i, room in enumerate(rooms):
        if best < len(members) and all(a <= b for a, b in zip(first, room, strict=True)):
            left = tuple(b - a for a, b in zip(first, room, strict=True))
            best = max(best, 1 + most_that_fit(rest, [*rooms[:i], left, *rooms[i + 1 :]]))
    return best


def open_rooms(described):
    """What the nodes offer that take a pod which tolerates nothing."""
    return [
        (
            *(milli(each["status"]["allocatable"][name]) for name in RESOURCES),
            int(each["status"]["allocatable"]["pods"]),
        )
        for each in described
        if not each["spec"]["unschedulable"] and not each["spec"]["taints"]
    ]


def amounts(wish):
    asked_for = {"cpu": wish["cpu"], "memory": wish["memory"], **wish["requests"]}
    return (*(milli(asked_for.get(name, "0")) for name in RESOURCES), 1)


@settings(max_examples=drawn(100))
@given(nodes(4), st.data())
def test_of_equal_members_as_many_fit_as_the_best_arrangement_holds(described, data):
    wish, size = requests(data.draw), data.draw(st.integers(1, 4))
    made = Desk().feed(*described, group("g", 9), *(pod(f"g-w-{i}", "g", **wish) for i in range(size)))
    made.feed(*(pod(f"g-x-{i}", "g", cpu="900") for i in range(9 - size)))  # the gang itself never starts
    (explained,) = asked(made, ("job", "a/g"))
    best = most_that_fit([amounts(wish)] * size, open_rooms(described))
    assert (explained.gang.placed, explained.gang.fit, explained.gang.enough) == (0, best, False)
    assert explained.gang.fit + sum(each.count for each in explained.gang.missing) == 9


@settings(max_examples=drawn(100))
@given(nodes(3), st.data())
def test_of_unequal_members_never_more_fit_than_the_best_arrangement_holds(described, data):
    wishes = [requests(data.draw) for _ in range(data.draw(st.integers(1, 4)))]
    made = Desk().feed(*described, group("g", 9), pod("g-x-0", "g", cpu="900"))
    made.feed(*(pod(f"g-w-{i}", "g", **wish) for i, wish in enumerate(wishes)))
    made.feed(*(pod(f"g-y-{i}", "g", cpu="900") for i in range(8 - len(wishes))))
    (explained,) = asked(made, ("job", "a/g"))
    best = most_that_fit([amounts(wish) for wish in wishes], open_rooms(described))
    assert explained.gang.fit <= best
    assert (explained.gang.fit == 0) == (best == 0)


def test_the_member_that_is_missing_says_what_it_lacks_everywhere():
    made = Desk().feed(*(node(f"n{i}", memory="8Gi") for i in range(2)), group("g", 4))
    made.feed(*(pod(f"g-{i}", "g", memory="2Gi") for i in range(3)), pod("g-3", "g", memory="12Gi"))
    (explained,) = asked(made, ("job", "a/g"))
    assert "  gang: 3 of 4 members fit; g-3 lacks 12Gi memory everywhere, closest n1 by 6Gi" in text(explained)


def test_why_a_member_is_missing_is_said_with_the_others_in_their_places():
    made = Desk().feed(node("n", cpu="4"), group("g", 3), *(pod(f"g-{i}", "g", cpu="2") for i in range(3)))
    (explained,) = asked(made, ("job", "a/g"))
    assert "  gang: 2 of 3 members fit; g-2 lacks 2 cpu everywhere, closest n by 2" in text(explained)
    assert explained.placements[0].fitting == 1  # as things are the node takes any of them


@pytest.mark.parametrize("running", [0, 1])
def test_members_that_have_their_places_are_counted_apart(running):
    made = Desk().feed(node("n", cpu="2"), group("g", 3))
    made.feed(*(pod(f"g-{i}", "g", cpu="1", node="n" if i < running else "") for i in range(3)))
    (explained,) = asked(made, ("job", "a/g"))
    assert (explained.gang.placed, explained.gang.fit) == (running, 2 - running)


def test_a_gang_that_was_not_let_in_is_told_whether_it_would_fit():
    text_ = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: overcommit}, {name: predicates}]\n'
    made = Desk(text_).feed(node("n", cpu="2"), group("g", 2, minResources={"cpu": "40"}))
    made.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    (explained,) = asked(made, ("job", "a/g"))
    assert explained.state == "not let in"
    assert (explained.gang.fit, explained.gang.enough) == (2, True)
    assert explained.queue_verdict.refusals[0].startswith("overcommit: ")
