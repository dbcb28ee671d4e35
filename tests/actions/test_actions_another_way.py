"""Gangs that cannot start in their own order, beside a search that writes every order of the rule out and takes the first node that has room."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn

# Nobody scores nodes: the first with room is taken.
FIRST_FIT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}]
"""

AMOUNTS = st.tuples(st.integers(1, 4), st.integers(0, 4))
"""Cpus and Gi of memory."""


def asked(amounts):
    cpu, memory = amounts
    return {"cpu": str(cpu), **({"memory": f"{memory}Gi"} if memory else {})}


def orders(nodes, members):
    """The order of tasks, then the largest first: by the largest share, the same with ties told apart, by each dimension."""
    total = [max(1, sum(column)) for column in zip(*nodes, strict=True)]

    def share(member):
        return max(Fraction(amount, all_of_it) for amount, all_of_it in zip(member, total, strict=True))

    keys = [
        lambda _member: 0,
        lambda member: -share(member),
        lambda member: (-share(member), -member[0], -member[1]),
        lambda member: (-member[0], -share(member)),
        lambda member: (-member[1], -share(member)),
    ]
    return [sorted(members, key=key) for key in keys]


def fitting(nodes, members):
    """Count the members for whom, one after the other, some node has room."""
    left, count = [list(each) for each in nodes], 0
    for cpu, memory in members:
        for free in left:
            if free[0] >= cpu and free[1] >= memory:
                free[0], free[1] = free[0] - cpu, free[1] - memory
                count += 1
                break
    return count


def desk(nodes, members, least, releasing=()):
    made = Desk(FIRST_FIT)
    for number, (cpu, memory) in enumerate(nodes):
        gone = releasing[number] if releasing else 0
        made.feed(node(f"n{number}", cpu=str(cpu + gone), memory=f"{memory}Gi"))
        if gone:
            made.feed(pod(f"old-{number}", scheduler="other", cpu=str(gone), node=f"n{number}", deleting=3600))
    made.feed(group("g", least, phase="Inqueue"))
    return made.feed(*(pod(f"g-{number}", "g", **asked(amounts)) for number, amounts in enumerate(members)))


@given(st.lists(AMOUNTS, min_size=2, max_size=3), st.lists(AMOUNTS, min_size=2, max_size=5))
@settings(max_examples=drawn(300), deadline=None)
def test_a_gang_starts_if_it_fits_in_its_order_or_largest_first_by_any_size_and_only_then(nodes, members):
    made = desk(nodes, members, len(members))
    made.cycle()
    fits = any(fitting(nodes, order) == len(members) for order in orders(nodes, members))
    assert len(made.world.binds) == (len(members) if fits else 0)


@given(
    st.lists(AMOUNTS, min_size=1, max_size=3),
    st.lists(AMOUNTS, min_size=2, max_size=5),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.data(),
)
@settings(max_examples=drawn(300), deadline=None)
def test_a_gang_that_could_start_on_free_room_in_its_order_waits_for_none_that_is_being_released(
    nodes, members, releasing, data
):
    least = data.draw(st.integers(1, len(members)))
    made = desk(nodes, members, least, releasing)
    made.cycle()
    bound = len(made.world.binds)
    assert bound == 0 or bound >= least
    if fitting(nodes, members) >= least:
        assert bound >= least
