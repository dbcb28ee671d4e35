"""Rooms and guarantees against a slow, obvious version written from the rule."""

import random
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.plugins.capacity import Capacity
from pumice.plugins.proportion import Proportion
from pumice.plugins.sharing import guarantees

UNLIMITED = 2**62

FLAT = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: capacity}, {name: predicates}]
"""
TREE = FLAT.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
SHARES = FLAT.replace("{name: capacity}", "{name: proportion}")

# -- guarantees that count -------------------------------------------------------------------------------------


def slow_written(parents, stated, ceilings, cluster):
    """One dimension, by the letter: own ceiling, absent beyond the cluster, at least the children's sum."""
    size = len(parents)
    below = {p: [c for c in range(1, size) if parents[c] == p] for p in range(size)}
    given = [min(stated[p], ceilings[p]) if p else 0 for p in range(size)]
    given = [0 if units > cluster else units for units in given]

    def guaranteed(place):
        return min(ceilings[place], max(given[place], sum(guaranteed(child) for child in below[place])))

    return [guaranteed(place) for place in range(size)]


def slow_guarantees(parents, stated, ceilings, cluster):
    """The same, scaled down by room(parent)."""
    size = len(parents)
    below = {p: [c for c in range(1, size) if parents[c] == p] for p in range(size)}
    guaranteed = slow_written(parents, stated, ceilings, cluster).__getitem__
    counted, room = {0: guaranteed(0)}, {0: min(ceilings[0], cluster)}

    def descend(place):
        wanted = {child: guaranteed(child) for child in below[place]}
        together = sum(wanted.values())
        for child, units in wanted.items():
            scale = Fraction(max(room[place], 0), together) if together > room[place] else 1
            counted[child] = floor(units * scale)
        for child in wanted:
            others = sum(counted[other] for other in wanted if other != child)
            room[child] = min(ceilings[child], room[place] - others)
        for child in wanted:
            descend(child)

    descend(0)
    return [counted[place] for place in range(size)]


@st.composite
def trees(draw):
    size = draw(st.integers(1, 9))
    parents = [-1, *(draw(st.integers(0, place)) for place in range(size))]
    amounts = st.sampled_from([0, 0, 1, 2, 3, 5, 7, 11, 30])
    stated = [draw(amounts) for _ in parents]
    ceilings = [draw(st.sampled_from([UNLIMITED, UNLIMITED, 2, 4, 9, 20])) for _ in parents]
    return parents, stated, ceilings, draw(st.integers(0, 25))


@settings(max_examples=drawn(300), deadline=None)
@given(drawn=trees())
def test_guarantees_that_count_are_those_of_the_rule(drawn):
    parents, stated, ceilings, cluster = drawn
    column = [np.array(values, dtype=np.int64)[:, None] for values in (stated, ceilings)]
    found = guarantees.counted(parents, *column, np.array([cluster], dtype=np.int64))
    assert found.amounts[:, 0].tolist()[1:] == slow_guarantees(parents, stated, ceilings, cluster)[1:]
    assert found.written[:, 0].tolist()[1:] == slow_written(parents, stated, ceilings, cluster)[1:]


def test_products_of_large_amounts_are_exact():
    stated = np.array([[0], [2**52], [2**52 - 1]], dtype=np.int64)
    found = guarantees.counted([-1, 0, 0], stated, np.full((3, 1), UNLIMITED, dtype=np.int64), np.array([2**52]))
    assert found.amounts[1:, 0].tolist() == [2**52 * 2**52 // (2**53 - 1), (2**52 - 1) * 2**52 // (2**53 - 1)]
    assert found.scaled[1:, 0].all()


# -- rooms -----------------------------------------------------------------------------------------------------


class Slow:
    """Rooms by the rule, from nothing but the queues' specs and the pods; cpu in whole cores."""

    def __init__(self, queues, held, total, foreign):
        self.queues, self.held_by_leaf, self.free = queues, held, total - foreign
        self.parents = {name: spec["parent"] for name, spec in queues.items()}
        order = ["root"]
        for name in order:
            order += [child for child, parent in self.parents.items() if parent == name]
        index = {name: place for place, name in enumerate(order)}
        stated = (
            [-1, *(index[self.parents[name]] for name in order[1:])],
            [queues[name]["guarantee"] if name != "root" else 0 for name in order],
            [queues[name]["ceiling"] if name != "root" else UNLIMITED for name in order],
            self.free * 1000,
        )
        self.guaranteed = dict(zip(order, slow_guarantees(*stated), strict=True))
        self.written = dict(zip(order, slow_written(*stated), strict=True))

    def held(self, name):
        below = [child for child, parent in self.parents.items() if parent == name]
        return sum(map(self.held, below)) if below else self.held_by_leaf.get(name, 0)

    def room(self, name):
        if name == "root":
            return self.free * 1000
        parent = self.parents[name]
        siblings = [other for other, its in self.parents.items() if its == parent and other != name]
        room = self.room(parent) - sum(map(self.taken, siblings))
        if self.written[name] > self.guaranteed[name]:
            # Up to its guarantee as written, only what siblings hold counts against it.
            room = max(room, min(self.written[name], self.room(parent) - sum(map(self.held, siblings))))
        return min(self.queues[name]["ceiling"], room)

    def taken(self, name):
        below = [child for child, parent in self.parents.items() if parent == name]
        kept = max(self.guaranteed[name], sum(map(self.taken, below)))
        return max(self.held(name), min(kept, self.queues[name]["ceiling"]))

    def refuses(self, leaf, amount):
        if not any(self.written[name] for name in self.queues):
            return False
        name = leaf
        while True:
            wanted = self.held(name) + amount
            if wanted <= self.guaranteed[name]:
                return False
            if wanted > self.room(name):
                return True
            if name == "root":
                return False
            name = self.parents[name]


def world(seed, *, tree):
    """A cluster of one node with queues, running pods of theirs and of others, and one waiting pod in each leaf."""
    rng = random.Random(seed)  # noqa: S311  reproducible, not secret
    names = [f"q{i}" for i in range(rng.randint(1, 5))]
    parents = {name: rng.choice(["root", *names[:i]]) if tree else "root" for i, name in enumerate(names)}
    queues = {
        name: {
            "parent": parents[name],
            "guarantee": 1000 * rng.choice([0, 0, 1, 2, 3, 40]),
            "ceiling": rng.choice([UNLIMITED, UNLIMITED, 2000, 5000]),
        }
        for name in names
    }
    total, foreign = rng.randint(4, 12), rng.randint(0, 3)
    leaves = [name for name in names if name not in parents.values()]
    held, manifests = {}, []
    for name, spec in queues.items():
        written = {"guarantee": {"resource": {"cpu": f"{spec['guarantee']}m"}}, "parent": spec["parent"]}
        if spec["ceiling"] < UNLIMITED:
            written["capability"] = {"cpu": f"{spec['ceiling']}m"}
        manifests.append(queue(name, **written))
    for name in leaves:
        manifests.append(group(name, 0, queue=name, phase="Inqueue"))
        manifests.append(pod(f"{name}-w", name, cpu="1"))
        for i in range(rng.randint(0, 2)):
            held[name] = held.get(name, 0) + 1000
            manifests.append(pod(f"{name}-{i}", name, cpu="1", node="m"))
    manifests += [pod(f"foreign-{i}", "", cpu="1", node="m", schedulerName="other") for i in range(foreign)]
    for name in names:
        queues[name]["parent"] = parents[name]
    return queues, leaves, held, total, foreign, manifests


def rooms_of(made):
    session = made.session()
    plugins = [p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, Capacity | Proportion)]
    return session, plugins[0].rooms if isinstance(plugins[0], Capacity) else plugins[0].limits.rooms


@settings(max_examples=drawn(120), deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from([FLAT, TREE, SHARES]))
def test_room_is_that_of_the_rule_also_while_a_statement_moves_pods(seed, text):
    queues, leaves, held, total, foreign, manifests = world(seed, tree=text is TREE)
    made = Desk(text).feed(node("m", str(total), "64Gi", "1000"), *manifests)
    session, rooms = rooms_of(made)
    slow = Slow(queues, held, total, foreign)
    rng = random.Random(seed)  # noqa: S311  reproducible, not secret
    statement = session.statement()
    placed = []
    for _ in range(6):
        for leaf in leaves:
            for cores in (1, 2, 5):
                amounts = np.zeros(len(made.cluster.vocabulary), dtype=np.int64)
                amounts[0] = 1000 * cores
                found = rooms.refusal(made.cluster.queues[leaf], amounts)
                assert (found is not None) == slow.refuses(leaf, 1000 * cores), (leaf, cores)
        leaf = rng.choice(leaves)
        task = made.task(f"{leaf}-w")
        if leaf in placed:
            statement.undo(task)
            placed.remove(leaf)
            slow.held_by_leaf[leaf] -= 1000
        else:
            statement.allocate([task], [made.cluster.nodes.by_name["m"]])
            placed.append(leaf)
            slow.held_by_leaf[leaf] = slow.held_by_leaf.get(leaf, 0) + 1000


@settings(max_examples=drawn(60), deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from([FLAT, TREE]))
def test_whoever_is_placed_leaves_others_their_guarantee(seed, text):
    queues, leaves, held, total, foreign, manifests = world(seed, tree=text is TREE)
    more = [pod(f"{name}-more-{i}", name, cpu="1") for name in leaves for i in range(12)]
    made = Desk(text).feed(node("m", str(total), "64Gi", "1000"), *manifests, *more)
    made.cycle()
    slow = Slow(queues, dict(held), total, foreign)
    if slow.written != slow.guaranteed:
        return  # what was scaled down is lent to whoever stays within what was written
    if sum(max(held.get(name, 0), slow.guaranteed[name]) for name in leaves) > slow.room("root"):
        return  # too much was held before
    sums = made.cluster.queue_sums
    now = {name: int(sums.allocated[made.cluster.queues[name].row, 0]) for name in leaves}
    assert sum(max(now[name], slow.guaranteed[name]) for name in leaves) <= max(slow.room("root"), sum(now.values()))
    if any(slow.guaranteed[name] for name in leaves):
        assert sum(max(now[name], slow.guaranteed[name]) for name in leaves) <= slow.room("root")


@settings(max_examples=drawn(60), deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from([FLAT, TREE]), votes=st.booleans())
def test_no_idle_room_is_kept_from_a_queue_within_its_guarantee_as_written(seed, text, votes):
    queues, leaves, _held, total, foreign, manifests = world(seed, tree=text is TREE)
    minimum = {"minResources": {"cpu": "1"}, "phase": "Pending"} if votes else {"phase": "Inqueue"}
    more = [
        part
        for name in leaves
        for i in range(3)
        for part in (group(f"{name}-g{i}", 1, queue=name, **minimum), pod(f"{name}-more-{i}", f"{name}-g{i}", cpu="1"))
    ]
    made = Desk(text).feed(node("m", str(total), "64Gi", "1000"), *manifests, *more)
    for _ in range(6):
        made.cycle()
    sums = made.cluster.queue_sums
    slow = Slow(
        queues, {name: int(sums.allocated[made.cluster.queues[name].row, 0]) for name in leaves}, total, foreign
    )
    if slow.held("root") + 1000 > slow.room("root"):
        return
    for name in leaves:
        branch = [name]
        while slow.parents[branch[-1]] != "root":
            branch.append(slow.parents[branch[-1]])
        within = all(slow.held(each) + 1000 <= slow.written[each] for each in branch)
        waiting = [t for t in made.cluster.tasks.values() if t.name.startswith(f"{name}-") and t.node is None]
        assert not (within and waiting), (name, slow.held(name), slow.written[name])


# -- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        (
            [queue("a", guarantee={"resource": {"cpu": "500"}})],
            {"a": "the guarantee of cpu 500 is larger than the cluster and counts as absent"},
        ),
        (
            [queue("a", guarantee={"resource": {"example/acc": "1"}})],
            {"a": "the guarantee of example/acc 1 is larger than the cluster and counts as absent"},
        ),
        ([queue("a", guarantee={"resource": {"cpu": "500"}}, capability={"cpu": "3"})], {}),
        (
            [queue(name, guarantee={"resource": {"cpu": "8"}}) for name in "ab"],
            dict.fromkeys(
                "ab",
                "the guarantee of cpu 8 is scaled down: with those of its siblings it is more than there is room for",
            ),
        ),
        ([queue(name, guarantee={"resource": {"cpu": "5"}}) for name in "ab"], {}),
    ],
)
@pytest.mark.parametrize("text", [FLAT, TREE, SHARES])
def test_a_guarantee_that_does_not_count_in_full_is_told_to_its_queue_once(text, manifests, said):
    made = Desk(text).feed(node("m", "10", "64Gi", "1000"), *manifests)
    for _ in range(3):
        made.cycle()
    told = [(name, text) for name, reason, text in made.world.notes if reason == "GuaranteeReduced"]
    assert dict(told) == said
    assert len(told) == len(said)
