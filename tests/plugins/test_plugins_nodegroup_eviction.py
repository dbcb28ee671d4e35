"""nodegroup: who makes way where a queue has used up what it may hold in a group, beside a search that tries everything."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue
from drawing import drawn
from pumice.actions.eviction import exhaustive
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.framework import subject

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = {"n0": "g1", "n1": "g1", "n2": "g2"}
CPU = 6


@dataclass(frozen=True)
class Held:
    """A pod that runs: where, how large, of which queue and priority."""

    name: str
    node: str
    cpu: int
    queue: str
    priority: str


def config(action, **switches):
    first = [{"name": "priority"}, {"name": "gang"}, *([{"name": "proportion"}] if "reclaim" in action else [])]
    second = [{"name": "predicates"}, {"name": "nodegroup", **switches}]
    tiers = [{"plugins": first}, {"plugins": second}]
    return json.dumps({"actions": f"enqueue, allocate, backfill, {action}", "tiers": tiers})


def desk(action, limits, held, asked, **switches):
    affinity = {"nodeGroupAffinity": {REQUIRED: ["g1", "g2"]}}
    made = Desk(config(action, **switches)).feed(
        *(priority_class(name, value) for name, value in (("low", 10), ("high", 100), ("top", 1000))),
        *(node(name, cpu=str(CPU), labels={LABEL: label}) for name, label in NODES.items()),
        queue("q", annotations={LIMITS: json.dumps(limits)}, affinity=affinity),
        queue("other", affinity=affinity),
    )
    for each in held:
        made.feed(group(each.name, 0, queue=each.queue, priorityClassName=each.priority, phase="Running"))
        made.feed(pod(each.name, each.name, cpu=str(each.cpu), node=each.node))
    return made.feed(group("high", 1, queue="q", priorityClassName="high"), pod("high", "high", cpu=str(asked)))


# ---- the search that tries everything


def fits(name, limits, held, asked):
    """Tell whether a node takes the claimant beside those who are left."""
    label = NODES[name]
    mine = sum(each.cpu for each in held if each.queue == "q" and NODES[each.node] == label)
    within = label not in limits or mine + asked <= int(limits[label]["cpu"])
    return within and sum(each.cpu for each in held if each.node == name) + asked <= CPU


def sets(held):
    for size in range(len(held) + 1):
        yield from (set(gone) for gone in itertools.combinations(held, size))


def ways(action, limits, held, asked):
    """Give every node with every set of victims that makes way there: on that node for preempt, anywhere for gangpreempt."""
    for name in NODES:
        victims = [each for each in held if each.queue == "q" and each.priority == "low"]
        if action == "preempt":
            victims = [each for each in victims if each.node == name]
        yield from (gone for gone in sets(victims) if fits(name, limits, [h for h in held if h not in gone], asked))


@st.composite
def worlds(draw, owners=("q", "q", "q", "other"), crowd=3):
    limits = {
        label: {"cpu": str(draw(st.integers(1, 10)))}
        for label in ("g1", "g2")
        if draw(st.integers(0, 3)) or label == "g1"
    }
    held = []
    for name in NODES:
        free = CPU
        while free and len(held) < 9 and draw(st.integers(0, crowd)):
            cpu = draw(st.integers(1, min(free, 3)))
            free -= cpu
            owner = draw(st.sampled_from(owners))
            priority = draw(st.sampled_from(["low", "low", "top"]))
            held.append(Held(f"h{len(held)}", name, cpu, owner, priority))
    return limits, tuple(held), draw(st.integers(1, 5))


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
@settings(max_examples=drawn(150), deadline=None)
@given(world=worlds())
def test_just_enough_pods_of_the_queue_make_way_whenever_they_can(action, world):
    limits, held, asked = world
    made = desk(action, limits, held, asked)
    made.cycle()
    evicted = {each for each in held if each.name in made.world.evictions}
    found = list(ways(action, limits, held, asked))
    if any(not gone for gone in found):
        assert made.world.binds.keys() == {"high"}
        assert not evicted
    elif not found:
        assert not made.world.binds
        assert not evicted
    else:
        assert evicted in found
        assert not any(gone < evicted for gone in found)


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@settings(max_examples=drawn(100), deadline=None)
@given(world=worlds(owners=("q", "other", "other", "other"), crowd=20))
def test_pods_of_other_queues_never_make_way_for_a_limit(action, world):
    limits, held, asked = world
    made = desk(action, limits, held, asked)
    made.cycle()
    evicted = {each for each in held if each.name in made.world.evictions}
    assert not any(each.queue == "q" for each in evicted)
    left = [each for each in held if each not in evicted]
    if evicted:
        assert any(fits(name, limits, left, asked) for name in NODES)
    # Refusing before the search starts saves time and decides nothing.
    searched = desk(action, limits, held, asked, enablePreemptive=False)
    searched.cycle()
    assert searched.world.evictions == made.world.evictions


# ---- whether the queue may take from others at all


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_where_the_limit_is_used_up_nobody_is_asked_which_pods_of_others_could_go(action, monkeypatch):
    held = [Held(f"mine-{name}", name, 1, "q", "high") for name in ("n0", "n1")]
    held += [Held(f"theirs-{name}", name, 5 if NODES[name] == "g1" else 6, "other", "low") for name in NODES]
    made = desk(action, {"g1": {"cpu": "2"}}, held, 4)
    asked = []
    cheapest = VictimSets.cheapest

    def noting(self, row, *known):
        asked.append(made.cluster.nodes.records[row].name)
        return cheapest(self, row, *known)

    monkeypatch.setattr(exhaustive, "MOST", 0)  # or every combination would be tried before nodes are asked
    monkeypatch.setattr(VictimSets, "cheapest", noting)
    made.cycle()
    assert [key.split("/")[-1] for key in made.world.evictions] == ["theirs-n2"]
    assert set(asked) == {"n2"}


def refusal(made, *tasks):
    session = made.session()
    tasks = [made.task(name) for name in tasks or ("high",)]
    return session.preemptive(made.cluster.queues["q"], subject.demand(tasks))


def told(label, cpu):
    return f"node group resource limit exceeded (queue q may hold cpu {cpu} in {label})"


MINE = (Held("a", "n0", 2, "q", "low"), Held("b", "n2", 3, "q", "low"))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({"g1": 2, "g2": 3}, f"{told('g1', 2)}; {told('g2', 3)}", id="every group is full"),
        pytest.param({"g1": 2, "g2": 4}, None, id="one is not"),
        pytest.param({"g1": 2}, None, id="one has no limit"),
        pytest.param({}, None, id="no limits"),
    ],
)
def test_a_queue_takes_from_others_only_if_some_limit_is_not_used_up(limits, expected):
    made = desk("reclaim", {label: {"cpu": str(cpu)} for label, cpu in limits.items()}, MINE, 1)
    assert refusal(made) == expected


def test_a_smaller_pod_of_the_same_gang_may_still_have_room():
    limits = {"g1": {"cpu": "3"}, "g2": {"cpu": "3"}}
    made = desk("reclaim", limits, MINE, 2).feed(pod("small", "high", cpu="1"))
    assert refusal(made) == f"{told('g1', 3)}; {told('g2', 3)}"
    assert refusal(made, "high", "small") is None


def test_limits_that_are_not_asked_about_keep_nobody_from_taking():
    made = desk("reclaim", {"g1": {"cpu": "0"}, "g2": {"cpu": "0"}}, MINE, 1, enablePredicate=False)
    assert refusal(made) is None
