"""Sub-groups through their whole lives: they start whole, stay inside their limits, and wait only if they must."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from test_topology_properties import fill, limits, trees
from topology_world import PREEMPT, Life

from builders import priority_class
from drawing import drawn

ORDERS = (PREEMPT, PREEMPT.replace("allocate, backfill, gangpreempt", "gangpreempt, allocate, backfill"))


def hard(tier):
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}


def widest(domains):
    """Those of some sets of nodes that lie inside no other."""
    return {d for d in map(frozenset, domains) if not any(d < set(other) for other in domains)}


@given(st.data())
@settings(max_examples=drawn(80), deadline=None)
def test_equal_sub_groups_wait_only_if_no_allowed_domain_holds_them_all(data):
    draw = data.draw
    tiers = draw(trees())
    life = Life(tiers)
    fill(draw, life)
    size, parts, cpu = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    inner, outer = draw(limits(tiers)), draw(st.one_of(st.none(), limits(tiers)))
    room = {name: max(0, left) // cpu for name, left in life.free().items()}
    fits = any(
        sum(
            sum(room[name] for name in rack) // size for rack in widest([d for d in tiers.domains(inner) if d <= whole])
        )
        >= parts
        for whole in ([set(tiers.nodes)] if outer is None else tiers.domains(outer))
    )
    policy = {"name": "ring", "subGroupSize": size, "minSubGroups": parts, "matchLabelKeys": ["part"], **hard(inner)}
    life.add_group("g", size * parts, subGroupPolicy=[policy], **({} if outer is None else hard(outer)))
    for part in range(parts):
        for _ in range(size):
            life.add_pod("g", cpu=cpu, labels={"part": str(part)})
    life.cycle()
    assert len(life.nodes_of("g")) == (size * parts if fits else 0)


def add(draw, life, parts):
    life.add_pod("g", cpu=draw(st.integers(0, 2)), labels={"part": str(draw(st.integers(0, parts - 1)))})


def stray(_draw, life, _parts):
    life.add_pod("g", cpu=1)


def remove(draw, life, _parts):
    if life.members("g"):
        life.remove(draw(st.sampled_from(life.members("g")))["metadata"]["name"])


def restart(draw, life, _parts):
    if life.members("g"):
        found = draw(st.sampled_from(life.members("g")))
        life.remove(found["metadata"]["name"])
        life.add_pod("g", cpu=draw(st.integers(1, 2)), labels=dict(found["metadata"].get("labels", {})))


def leave(draw, life, _parts):
    if life.members("old"):
        life.remove(draw(st.sampled_from(life.members("old")))["metadata"]["name"])


def by_part(life):
    """The members of each sub-group."""
    found = {}
    for made in life.members("g"):
        found.setdefault(made["metadata"].get("labels", {}).get("part"), []).append(made)
    return found


def placed(members):
    return [made["spec"]["nodeName"] for made in members if made["spec"]["nodeName"]]


def asks_for_nothing(made):
    return made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "0"


@given(st.data())
@settings(max_examples=drawn(80), deadline=None)
def test_sub_groups_start_whole_and_stay_inside_their_limits_in_all_their_life(data):
    draw = data.draw
    tiers = draw(trees())
    life = Life(tiers, draw(st.sampled_from(ORDERS)))
    life.desk.feed(priority_class("high", 100))
    fill(draw, life)
    size, parts = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    inner, outer = draw(st.one_of(st.none(), limits(tiers))), draw(st.one_of(st.none(), limits(tiers)))
    policy = {"name": "ring", "subGroupSize": size, "minSubGroups": draw(st.integers(0, parts))}
    policy |= {"matchLabelKeys": ["part"], **({} if inner is None else hard(inner))}
    spec = {"priorityClassName": "high"} if draw(st.booleans()) else {}
    spec |= {} if outer is None else hard(outer)
    life.add_group("g", draw(st.integers(1, size * parts)), subGroupPolicy=[policy], **spec)
    for _ in range(draw(st.integers(0, (size + 1) * parts))):
        add(draw, life, parts)
    for _ in range(draw(st.integers(2, 7))):
        draw(st.sampled_from([add, stray, remove, restart, leave]))(draw, life, parts)
        before = {part: placed(members) for part, members in by_part(life).items()}
        life.cycle()
        for part, members in by_part(life).items():
            nodes = placed(members)
            # Members that ask for nothing count before they have a node, and are bound one by one.
            free = [made for made in members if asks_for_nothing(made) and not made["spec"]["nodeName"]]
            if part is not None:
                assert not nodes or before[part] or len(nodes) + len(free) >= size, (part, nodes)
                assert inner is None or tiers.allows(nodes, inner), (part, nodes)
        assert outer is None or tiers.allows(life.nodes_of("g"), outer)
