"""A gang that was left incomplete comes first, wherever Volcano's own order is not asked for."""

from __future__ import annotations

import pytest

import builders

SHARED = """
{compatibility}
actions: "enqueue, allocate"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: drf}}, {{name: predicates}}]
"""


def interrupted(compatibility="", **rival):
    """Two of three members run, and there is room for one pod more: the third, or that of another job with a smaller share."""
    desk = builders.Desk(SHARED.format(compatibility=compatibility))
    desk.feed(builders.priority_class("high", 9), builders.node("n1", cpu="3"), builders.group("gang", 3))
    desk.feed(*(builders.pod(f"gang-{index}", "gang", cpu="1", node="n1" if index < 2 else "") for index in range(3)))
    return desk.feed(builders.group("rival", **rival), builders.pod("rival-0", "rival", cpu="1"))


def test_room_goes_to_the_gang_that_lacks_a_member():
    desk = interrupted()
    desk.cycle()
    assert desk.world.binds == {"gang-2": "n1"}


@pytest.mark.parametrize(
    "desk",
    [interrupted("compatibility: volcano"), interrupted("compatibility: kube-batch")],
    ids=["volcano", "kube-batch"],
)
def test_by_the_rules_of_others_it_goes_to_the_smaller_share(desk):
    desk.cycle()
    assert desk.world.binds == {"rival-0": "n1"}


def test_priority_comes_before_completion():
    desk = interrupted(priorityClassName="high")
    desk.cycle()
    assert desk.world.binds == {"rival-0": "n1"}
