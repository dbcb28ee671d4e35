"""Shortcuts decide nothing: what is left out, grouped or chosen ahead gives the same as looking at everything one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import ALLOCATE, PREEMPT, hyper_node

from builders import Desk, group, node, pod, priority_class, queue
from drawing import drawn
from pumice.actions.eviction import gang_rules
from pumice.framework import group_choice
from pumice.framework.shortcuts import ALL, Shortcuts
from pumice.plugins.network_topology.scores import Cells, Fill, Weights

RECLAIM = PREEMPT.replace("gangpreempt", "gangreclaim")
CLASSES = {"low": 1, "mid": 50, "high": 100}


def tiers(choose, names):
    """Racks of a few nodes, blocks of a few racks; some nodes may lie outside."""
    size = choose.choice([1, 2, 3, 4])
    inside = names[: len(names) - choose.choice([0, 0, 1])]
    racks = {f"rack-{i:02d}": inside[i : i + size] for i in range(0, len(inside), size)}
    listed = [hyper_node(name, 1, nodes) for name, nodes in racks.items()]
    if choose.random() < 0.7:
        keys = list(racks)
        listed += [hyper_node(f"block-{i:02d}", 2, keys[i : i + 3], "HyperNode") for i in range(0, len(keys), 3)]
    return listed


def occupy(choose, desk, names, cpu):
    """Fill most nodes with jobs of which some can spare pods, some go only whole and some may not be touched."""
    free = dict.fromkeys(names, cpu)
    for g in range(12):
        size = choose.randint(1, 6)
        asked = choose.choice([1, 1, 2])
        notes = {"volcano.sh/preemptable": "false"} if choose.random() < 0.1 else {}
        owner = choose.choice(["default", "other", "guarded"])
        spec = {"queue": owner, "priorityClassName": choose.choice(["low", "low", "mid"]), "annotations": notes}
        desk.feed(group(f"v{g}", choose.choice([0, 1, size, size]), phase="Running", **spec))
        for i in range(size):
            open_to = [name for name in names if free[name] >= asked]
            if open_to:
                where = choose.choice(open_to) if choose.random() < 0.5 else open_to[0]
                free[where] -= asked
                marks = {"volcano.sh/preemptable": "false"} if choose.random() < 0.05 else {}
                desk.feed(pod(f"v{g}-{i}", f"v{g}", cpu=str(asked), node=where, annotations=marks))


def world(seed, config, taken=ALL):
    """A small cluster in tiers, nearly full, and gangs that ask for room in it."""
    choose = random.Random(seed)  # noqa: S311  a world, not a secret
    names = [f"n{i:02d}" for i in range(choose.randint(6, 16))]
    cpu = choose.choice([2, 4])
    desk = Desk(config, taken=taken).feed(*(priority_class(name, value) for name, value in CLASSES.items()))
    desk.feed(queue("other"), queue("guarded", guarantee={"resource": {"cpu": "3"}}))
    desk.feed(*(node(name, cpu=str(cpu), memory="64Gi") for name in names), *tiers(choose, names))
    occupy(choose, desk, names, cpu)
    for g in range(2):
        size, asked = choose.randint(1, 5), choose.choice([1, 2, cpu])
        wish = choose.choice([{"mode": "hard", "highestTierAllowed": choose.choice([1, 2, 3])}, {"mode": "soft"}])
        spec = {"networkTopology": wish, "priorityClassName": choose.choice(["mid", "high"]), "phase": "Inqueue"}
        desk.feed(group(f"g{g}", size, created=g, **spec))
        desk.feed(*(pod(f"g{g}-{i}", f"g{g}", cpu=str(asked)) for i in range(size + choose.choice([0, 0, 1]))))
    return desk


def outcome(desk):
    """What a cycle says and sends."""
    lines = desk.cycle().trace()
    assert not desk.scheduler.failures
    return lines, desk.world.evictions, desk.world.binds, sorted(map(repr, desk.world.patches("Pod")))


@pytest.mark.parametrize("config", [PREEMPT, RECLAIM], ids=["gangpreempt", "gangreclaim"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(20), deadline=None)
def test_leaving_out_domains_and_choosing_ahead_changes_no_plan(config, seed):
    each_one = Shortcuts(domain_sums=False, runs=False)
    assert outcome(world(seed, config, each_one)) == outcome(world(seed, config))


def unequal(seed, taken=ALL):
    """A small cluster in tiers, partly full and partly about to be freed, and gangs of unequal members."""
    choose = random.Random(seed)  # noqa: S311  a world, not a secret
    names = [f"n{i:02d}" for i in range(choose.randint(4, 14))]
    desk = Desk(ALLOCATE, taken=taken).feed(
        *(node(name, cpu="8", memory="16Gi") for name in names), *tiers(choose, names)
    )
    desk.feed(group("old", phase="Running"))
    for i, name in enumerate(names):
        cpu, going = str(choose.randint(1, 6)), choose.random() < 0.3
        desk.feed(pod(f"old-{i}", "old", cpu=cpu, memory="2Gi", node=name, deleting=going))
    for g in range(4):
        size = choose.randint(2, 8)
        wish = choose.choice([{"mode": "hard", "highestTierAllowed": choose.choice([1, 2])}, {"mode": "soft"}])
        desk.feed(group(f"g{g}", size, created=g, networkTopology=wish, phase="Inqueue"))
        for i in range(size + choose.choice([0, 0, 1])):
            desk.feed(pod(f"g{g}-{i}", f"g{g}", cpu=str(choose.randint(1, 6)), memory=f"{choose.randint(1, 9)}Gi"))
    return desk


def placed(desk):
    desk.cycle()
    assert not desk.scheduler.failures
    return desk.world.binds, {task.name: task.status for task in desk.cluster.tasks.values()}


@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(100), deadline=None)
def test_hyper_nodes_left_out_by_what_is_free_in_sum_would_have_held_no_gang(seed):
    assert placed(unequal(seed, Shortcuts(domain_sums=False))) == placed(unequal(seed))


@pytest.mark.parametrize("rules", [gang_rules.GangPreempt, gang_rules.GangReclaim])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(15), deadline=None)
def test_all_candidates_at_once_are_those_who_may_go_one_by_one(rules, seed):
    session = world(seed, PREEMPT).session()
    asked = rules(session)
    claimant = next(task for task in session.cluster.tasks.values() if task.name == "g0-0")
    mine = [task for job in asked.sources(claimant) for task in job.tasks.values() if asked.may_go(claimant, task)]
    assert sorted(task.uid for task in asked.candidates(claimant)) == sorted(task.uid for task in mine)
    for domain in session.topology.tree.domains:
        here = {task.uid for task in mine if task.node is not None and task.node.row in domain.rows}
        assert {task.uid for task in asked.candidates(claimant, domain)} == here


@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(25), deadline=None)
def test_a_cell_is_worth_what_the_hyper_nodes_around_each_of_its_nodes_are_worth(seed):
    choose = random.Random(seed)  # noqa: S311  a world, not a secret
    names = [f"n{i:02d}" for i in range(choose.randint(1, 20))]
    overlap = [hyper_node("odd", 1, choose.sample(names, min(3, len(names))))] if choose.random() < 0.3 else []
    desk = Desk(ALLOCATE).feed(*(node(name, cpu="8", memory="64Gi") for name in names))
    desk.feed(*tiers(choose, choose.sample(names, len(names))), *overlap, group("g"), pod("p", "g", cpu="1"))
    session = desk.session()
    tree, task = session.topology.tree, desk.task("p")
    request = (task.shape.request.vector, ())
    totals, weights = session.cluster.hyper_nodes.totals, Weights({"cpu": 1, "memory": 1}, 1)
    vocabulary = session.cluster.vocabulary
    fill = Fill(Cells(tree), totals, request, vocabulary=vocabulary, weights=weights, fading=0.8)
    placed = [choose.randrange(len(names)) for _ in range(choose.choice([0, 1, 70]))]
    for row in placed:
        fill.place(row)
    for row in range(len(names)):
        points = whole = 0.0
        for tier, domains in tree.by_tier.items():
            weight = 0.8 ** max(0, tier - 1)
            around = domains[row]
            inside = sum(1 for other in placed if domains[other] == around)
            offered = 8 * tree.sizes[around]
            share = 1.0 if around < 0 else (inside + 1) / offered if inside < offered else 0.0
            points, whole = points + weight * share, whole + weight
        assert fill.points(np.array([row]))[0] == pytest.approx(100 * points / whole)


def one_after_the_other(choice, _rating, foresight, count):
    chosen = []
    while len(chosen) < count and (row := choice.best()) is not None:
        chosen.append(row)
        choice.place(row, foresight.take(row))
    return chosen


def crowd(seed, taken=ALL):
    """Nodes in tiers, alike or not, and gangs without a topology that fill them, packed or spread."""
    choose = random.Random(seed)  # noqa: S311  a world, not a secret
    names = [f"n{i:02d}" for i in range(choose.randint(1, 40))]
    fading = f"hypernode.binpack.normal-pod.fading: {choose.choice([0, 0.8, 1, 2])}"
    aware = "{name: network-topology-aware"
    config = ALLOCATE.replace(aware, f"{aware}, arguments: {{{fading}}}")
    config = config.replace(
        "{name: nodeorder}",
        choose.choice(["{name: nodeorder}", "{name: binpack}", "{name: nodeorder}, {name: binpack}"]),
    )
    desk = Desk(config, taken=taken)
    sizes = choose.choice([[4], [8], [2, 4, 8]])
    desk.feed(*(node(name, cpu=str(choose.choice(sizes)), memory=choose.choice(["8Gi", "64Gi"])) for name in names))
    desk.feed(*tiers(choose, names if choose.random() < 0.5 else choose.sample(names, len(names))))
    for g in range(3):
        size, asked = choose.randint(1, 60), choose.choice(["300m", "1", "2", "4"])
        desk.feed(group(f"g{g}", choose.choice([1, size // 2, size]), created=g, phase="Inqueue"))
        desk.feed(*(pod(f"g{g}-{i}", f"g{g}", cpu=asked, memory="1Gi", created=i) for i in range(size)))
    return desk


@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(25), deadline=None)
def test_choosing_by_cells_is_choosing_among_all_nodes(seed):
    by_cells, _ = placed(crowd(seed))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_choice.GroupChoice, "choose", one_after_the_other)
        assert placed(crowd(seed))[0] == by_cells
    assert placed(crowd(seed, Shortcuts(runs=False, blocks=False, rounds=False)))[0] == by_cells
