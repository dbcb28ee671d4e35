"""Gangs whose members differ in size, on small trees, beside a search that tries every arrangement."""

from __future__ import annotations

import random

import pytest
from topology_world import Life, Tiers

from drawing import drawn

WORLDS = drawn(200, 80)


def packs(sizes, room):
    """Tell whether pods of these sizes, the largest first, fit on nodes with this room in any way."""
    if not sizes:
        return True
    tried = set()
    for at, free in enumerate(room):
        if free >= sizes[0] and free not in tried:
            tried.add(free)
            if packs(sizes[1:], [*room[:at], free - sizes[0], *room[at + 1 :]]):
                return True
    return False


def tree(pick):
    names = iter(f"n{i:02d}" for i in range(40))
    racks = [[next(names) for _ in range(pick.randint(2, 4))] for _ in range(pick.randint(1, 3))]
    return Tiers(racks, [range(len(racks))] if len(racks) > 1 else [])


def occupied(pick):
    """A cluster some of whose nodes are partly taken."""
    life = Life(tree(pick))
    life.add_group("old", 1)
    for name in life.tiers.nodes:
        if taken := pick.randint(0, 3):
            life.add_pod("old", cpu=taken, node=name)
    return life


def crowded(pick, life, limit):
    """Sizes of members that fill most of some allowed domain, if they are not too many to try every arrangement."""
    free = life.free()
    space = sum(free[name] for name in pick.choice(life.tiers.domains(limit)))
    sizes = []
    while sum(sizes) < space - 1 and len(sizes) < 8:
        sizes.append(pick.randint(1, 4))
    return sizes


def could_start(life, limit, sizes):
    free = life.free()
    wanted = sorted(sizes, reverse=True)
    return any(packs(wanted, [free[name] for name in domain]) for domain in life.tiers.domains(limit))


def trial(seed, mode):
    """Let one gang ask; returns whether it could start, and whether it did."""
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    life = occupied(pick)
    limit = pick.choice([life.tiers.low, life.tiers.top]) if mode == "hard" else life.tiers.top
    sizes = crowded(pick, life, limit)
    if not sizes:
        return False, False
    possible = could_start(life, limit, sizes)
    wish = {"mode": "hard", "highestTierAllowed": limit} if mode == "hard" else {"mode": "soft"}
    life.add_group("g", len(sizes), **({"networkTopology": wish} if mode != "plain" else {}))
    for size in sizes:
        life.add_pod("g", cpu=size)
    life.cycle()
    placed = life.nodes_of("g")
    assert len(placed) in (0, len(sizes))
    assert life.tiers.allows(placed, limit)
    return possible, bool(placed)


def shares(mode, seeds=range(WORLDS)):
    told = [trial(seed, mode) for seed in seeds]
    assert not any(started and not possible for possible, started in told)
    return sum(started for _, started in told), sum(possible for possible, _ in told)


@pytest.mark.parametrize("mode", ["hard", "soft", "plain"])
def test_almost_every_gang_of_unequal_pods_starts_that_some_arrangement_would_let_start(mode):
    started, possible = shares(mode)
    assert possible > WORLDS / 3
    assert started >= 0.95 * possible, f"{started} of {possible} started"


def rack(*room):
    """One rack of nodes with this much room."""
    names = [f"n{i}" for i in range(len(room))]
    life = Life(Tiers([names], []))
    life.add_group("old", 1)
    for name, free in zip(names, room, strict=True):
        if free < life.cpu[name]:
            life.add_pod("old", cpu=life.cpu[name] - free, node=name)
    return life


HARD = {"mode": "hard", "highestTierAllowed": 1}


def test_the_members_that_come_first_are_started_and_no_larger_ones_in_their_stead():
    life = rack(4, 2)
    life.add_group("g", 3, networkTopology=HARD)
    names = [life.add_pod("g", cpu=size) for size in (1, 1, 4, 4, 4)]
    life.cycle()
    assert sorted(life.desk.world.binds) == sorted(names[:3])


def test_what_the_first_order_said_is_told_where_no_order_helps():
    life = rack(4, 1, 1)
    life.add_group("g", 3, networkTopology=HARD)
    _, middle, largest = (life.add_pod("g", cpu=size) for size in (1, 2, 3))
    life.cycle()
    assert not life.nodes_of("g")
    told = life.desk.scheduler.cache.record.explain("a/g")
    assert f"{largest}: In hyperNode rack-0: 0/3 nodes are unavailable: 3 Insufficient cpu" in told
    assert middle not in told


def test_without_topology_what_the_first_order_said_is_told_where_no_order_helps():
    life = rack(4, 1, 1)
    life.add_group("g", 3)
    _, _, largest = (life.add_pod("g", cpu=size) for size in (1, 2, 3))
    life.cycle()
    assert not life.nodes_of("g")
    told = life.desk.scheduler.cache.record.explain("a/g")
    assert (
        f"2 of the 3 members it still needs could be placed; {largest}: 0/3 nodes are unavailable: 3 Insufficient cpu"
        in told
    )


def test_members_of_a_sub_group_are_tried_largest_first_too():
    life = rack(4, 2)
    policy = {"name": "ring", "subGroupSize": 3, "minSubGroups": 1, "matchLabelKeys": ["part"], "networkTopology": HARD}
    life.add_group("g", 3, subGroupPolicy=[policy])
    for size in (1, 1, 4):
        life.add_pod("g", cpu=size, labels={"part": "0"})
    life.cycle()
    assert len(life.nodes_of("g")) == 3


def test_room_that_is_being_released_is_arranged_in_the_same_way():
    life = rack(0, 2)
    life.add_group("leaving", 1)
    life.add_group("g", 3, networkTopology=HARD)
    old = next(iter(life.members("old")))["metadata"]["name"]
    life.remove(old)
    leaver = life.add_pod("leaving", cpu=4, node="n0", deleting=True)
    for size in (1, 1, 4):
        life.add_pod("g", cpu=size)
    life.cycle()
    assert not life.nodes_of("g")
    assert "holds room" in life.desk.scheduler.cache.record.explain("a/g")
    life.remove(leaver)
    life.cycle()
    assert len(life.nodes_of("g")) == 3
