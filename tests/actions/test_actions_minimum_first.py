"""The minimum first, beside a search that names the members by hand and tries every arrangement of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GANG, Desk, group, node, pod
from drawing import drawn

# Each size divides the next: largest first is then the best order on nodes of any size, so a gang that can start must.
SIZES = (1, 2, 4)


@st.composite
def clusters(draw):
    """What each node has free."""
    return draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))


@st.composite
def gangs(draw):
    """Members as role and size in the order of tasks, the minimum of each role, and that of the gang."""
    members = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from((*SIZES, 16))), min_size=1, max_size=7))
    there = Counter(role for role, _ in members)
    roles = {role: draw(st.integers(0, count)) for role, count in there.items() if draw(st.booleans())}
    least = draw(st.integers(max(1, sum(roles.values())), len(members)))
    return members, roles, least


def desk(free, members, roles, least):
    made = Desk(GANG).feed(*(node(f"n{i}", cpu=str(cpu)) for i, cpu in enumerate(free)))
    made.feed(group("g", least, phase="Inqueue", **({"minTaskMember": roles} if roles else {})))
    return made.feed(*(pod(f"g-{r}-{i}", "g", cpu=str(size), role=r) for i, (r, size) in enumerate(members)))


def named(free, members, roles, least):
    """Positions of the members that the minimum names, leaving out those that fit nowhere; None if they are too few."""
    possible = [i for i, (_, size) in enumerate(members) if size <= max(free)]
    chosen = []
    for role, count in roles.items():
        chosen += [i for i in possible if members[i][0] == role][:count]
    if len(chosen) < sum(roles.values()):
        return None
    chosen += [i for i in possible if i not in chosen][: least - len(chosen)]
    return chosen if len(chosen) >= least else None


def packs(sizes, room):
    """Tell whether pods of these sizes fit on nodes with this room in any way."""
    if not sizes:
        return True
    return any(
        packs(sizes[1:], [*room[:at], left - sizes[0], *room[at + 1 :]])
        for at, left in enumerate(room)
        if left >= sizes[0]
    )


@given(clusters(), gangs())
@settings(max_examples=drawn(250), deadline=None)
def test_a_gang_starts_whenever_the_members_that_its_minimum_names_fit_together(free, gang):
    members, roles, least = gang
    made = desk(free, *gang)
    made.cycle()
    assert not made.scheduler.failures
    bound = [members[int(name.rsplit("-", 1)[1])] for name in made.world.binds]
    wanted = named(free, *gang)
    if wanted is not None and packs(sorted((members[i][1] for i in wanted), reverse=True), free):
        assert bound
    if bound:
        of_role = Counter(role for role, _ in bound)
        assert len(bound) >= least
        assert all(of_role[role] >= count for role, count in roles.items())


@given(clusters(), gangs())
@settings(max_examples=drawn(150), deadline=None)
def test_of_a_gang_that_has_started_nobody_waits_whom_some_node_would_take(free, gang):
    members, _, _ = gang
    made = desk(free, *gang)
    made.cycle()
    left = list(free)
    for name, where in made.world.binds.items():
        left[int(where[1:])] -= members[int(name.rsplit("-", 1)[1])][1]
    assert min(left) >= 0
    waiting = [size for i, (role, size) in enumerate(members) if f"g-{role}-{i}" not in made.world.binds]
    assert not made.world.binds or all(size > max(left) for size in waiting)
