"""What holds for every small tree and every life: limits are kept, a gang waits only if it must, sub-groups start whole."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import PREEMPT, Life, Tiers

from builders import priority_class
from drawing import drawn


@st.composite
def trees(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    names = iter(f"n{i:02d}" for i in range(40))
    racks = [[next(names) for _ in range(size)] for size in sizes]
    order = draw(st.permutations(range(len(racks))))
    cut = draw(st.integers(0, len(racks)))
    blocks = [part for part in (order[:cut], order[cut:]) if part]
    if draw(st.booleans()):
        blocks = blocks[:1]
    outside = [next(names) for _ in range(draw(st.integers(0, 2)))]
    return Tiers(racks, blocks, outside, draw(st.sampled_from([(1, 2), (1, 4), (0, 3)])))


def limits(tiers):
    return st.sampled_from(sorted({tiers.low, tiers.high, tiers.top, max(0, tiers.low - 1)}))


def fill(draw, life):
    """Occupy some of the nodes with pods that stay, or that are on their way out and stay for now."""
    life.add_group("old", 1)
    for name in life.tiers.nodes:
        for _ in range(draw(st.integers(0, 2))):
            life.add_pod("old", cpu=draw(st.integers(1, 2)), node=name, deleting=draw(st.booleans()))


@given(st.data())
@settings(max_examples=drawn(120), deadline=None)
def test_a_gang_of_equal_pods_is_where_a_search_of_everything_would_allow_it_and_waits_only_if_it_must(data):
    tiers = data.draw(trees())
    life = Life(tiers)
    fill(data.draw, life)
    limit, size, cpu = data.draw(limits(tiers)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    extra = data.draw(st.integers(0, 2))
    free = life.free()
    life.add_group("g", size, networkTopology={"mode": "hard", "highestTierAllowed": limit})
    for _ in range(size + extra):
        life.add_pod("g", cpu=cpu)
    life.cycle()
    held = [sum(max(0, free[name]) // cpu for name in domain) for domain in tiers.domains(limit)]
    placed = life.nodes_of("g")
    assert tiers.allows(placed, limit)
    assert (len(placed) >= size) == any(count >= size for count in held), (held, size)
    assert len(placed) in (0, *range(size, size + extra + 1))
    # Beyond the minimum nobody is left out while there is room in the domain that was chosen.
    if size <= len(placed) < size + extra:
        left = life.free()
        tops = [domain for domain in tiers.domains(limit) if set(placed) <= domain]
        assert all(left[name] < cpu for domain in tops for name in domain)


@given(st.data())
@settings(max_examples=drawn(60), deadline=None)
def test_a_soft_gang_starts_exactly_when_it_would_without_any_wish(data):
    tiers = data.draw(trees())
    life = Life(tiers)
    fill(data.draw, life)
    size, cpu = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    fits = sum(max(0, left) // cpu for left in life.free().values()) >= size
    life.add_group("g", size, networkTopology={"mode": "soft"})
    for _ in range(size):
        life.add_pod("g", cpu=cpu)
    life.cycle()
    assert len(life.nodes_of("g")) == (size if fits else 0)


def grow(draw, life, name):
    for _ in range(draw(st.integers(1, 4))):
        life.add_pod(name, cpu=draw(st.integers(1, 3)))


def grow_without_requests(_draw, life, name):
    life.add_pod(name, cpu=0)


def shrink(draw, life, name):
    for made in life.members(name)[: draw(st.integers(0, 2))]:
        life.remove(made["metadata"]["name"])


def restart(draw, life, name):
    for made in life.members(name)[: draw(st.integers(0, 3))]:
        life.remove(made["metadata"]["name"])
        life.add_pod(name, cpu=draw(st.integers(1, 3)))


@given(st.data())
@settings(max_examples=drawn(80), deadline=None)
def test_a_hard_job_never_spans_more_than_its_tier_allows_in_all_its_life(data):
    draw = data.draw
    tiers = draw(trees())
    life = Life(tiers, PREEMPT)
    life.desk.feed(priority_class("high", 100))
    jobs = {name: draw(limits(tiers)) for name in ("a1", "b2", "c3")}
    for name, limit in jobs.items():
        spec = {"priorityClassName": "high"} if draw(st.booleans()) else {}
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": limit}
        life.add_group(name, draw(st.integers(1, 4)), **spec)
    for _ in range(draw(st.integers(3, 8))):
        step = draw(st.sampled_from([grow, grow, grow_without_requests, shrink, restart]))
        step(draw, life, draw(st.sampled_from(sorted(jobs))))
        for _ in range(draw(st.integers(1, 2))):
            life.cycle()
            for name, limit in jobs.items():
                assert tiers.allows(life.nodes_of(name), limit), (name, limit, life.nodes_of(name))


@given(st.data())
@settings(max_examples=drawn(100), deadline=None)
def test_sub_groups_are_never_partly_started(data):
    draw = data.draw
    tiers = draw(trees())
    life = Life(tiers, draw(st.sampled_from([PREEMPT, PREEMPT.replace(", gangpreempt", "")])))
    life.desk.feed(priority_class("high", 100))
    fill(draw, life)
    size, parts = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    policy = {
        "name": "ring",
        "subGroupSize": size,
        "minSubGroups": draw(st.integers(0, parts)),
        "matchLabelKeys": ["part"],
    }
    inner, outer = draw(st.one_of(st.none(), limits(tiers))), draw(st.one_of(st.none(), limits(tiers)))
    spec = {"priorityClassName": "high"} if draw(st.booleans()) else {}
    if inner is not None:
        policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": inner}
    if outer is not None:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": outer}
    minimum = draw(st.integers(1, size * parts))
    life.add_group("g", minimum, subGroupPolicy=[policy], **spec)
    for part in range(parts):
        for _ in range(size + draw(st.integers(0, 1))):
            life.add_pod("g", cpu=draw(st.integers(1, 2)), labels={"part": str(part)})
    for _ in range(3):
        life.cycle()
        placed = life.nodes_of("g")
        assert not placed or len(placed) >= minimum
        complete = 0
        for part in range(parts):
            mine = [m for m in life.members("g") if m["metadata"]["labels"]["part"] == str(part)]
            nodes = [m["spec"]["nodeName"] for m in mine if m["spec"]["nodeName"]]
            assert not nodes or len(nodes) >= size, (part, nodes)
            assert inner is None or tiers.allows(nodes, inner)
            complete += len(nodes) >= size
        assert not placed or complete >= policy["minSubGroups"]
        assert outer is None or tiers.allows(placed, outer)
