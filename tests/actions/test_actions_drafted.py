"""Pods of different shapes that are placed together go where they would have gone one by one, and the same is said of them."""

from __future__ import annotations

import random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_actions_rounds import small_jobs
from test_actions_surplus import merged

import recount
from builders import Desk, group, node, played, pod, queue
from drawing import drawn
from pumice.actions.placing import drafted
from pumice.framework import block, blocks, drafting
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code

ANYTHING = st.randoms(use_true_random=True)


SHARING = ("{name: proportion}", "{name: capacity}", "{name: drf}", "{name: drf}, {name: proportion}")
TREES = (
    "{name: capacity, enableHierarchy: true}",
    "{name: drf}, {name: capacity, enableHierarchy: true}",
    "{name: drf, enableHierarchy: true}",
)


def configuration(pick, *more, shared=SHARING):
    """Plugins that spread pods or pack them, on any sharing plugin."""
    weights = {name: pick.choice([0, 1, 1, 2]) for name in ("leastrequested", "mostrequested", "balancedresource")}
    chosen = [
        f"{{name: nodeorder, arguments: {{{', '.join(f'{k}.weight: {v}' for k, v in weights.items())}}}}}",
        *(["{name: binpack, arguments: {binpack.weight: 5}}"] if pick.random() < 0.4 else []),
        *(["{name: overcommit}"] if pick.random() < 0.3 else []),
        *(f"{{name: {each}}}" for each in more),
    ]
    sharing = pick.choice(shared)
    actions = pick.choice(["allocate", "enqueue, allocate, backfill", "allocate, preempt"])
    second = ", ".join([sharing, "{name: predicates}", *chosen])
    return f'actions: "{actions}"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n- plugins: [{second}]\n'


def asked(pick):
    """What a pod asks for; seldom twice the same, and now and then with what keeps it out of a draft."""
    more = {"nodeSelector": {"zone": pick.choice("ab")}} if pick.random() < 0.1 else {}
    if pick.random() < 0.05:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
        more["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if pick.random() < 0.05:
        more["ports"] = [{"hostPort": 80}]
    if pick.random() < 0.05:
        more["schedulingGates"] = [{"name": "wait"}]
    cpu, memory = pick.choice([f"{pick.randint(1, 900)}m", "500m", None]), f"{pick.randint(1, 900)}Mi"
    return {"cpu": cpu, "memory": memory, "labels": {"app": pick.choice("xyz")}, **more}


def gangs(pick, wave):
    """Gangs of unequal pods, of which the minimum may be fewer than all."""
    for number in range(pick.randint(1, 5)):
        name, count = f"g{wave}-{number}", pick.choice([2, 3, 5, 12])
        yield group(name, pick.choice([count, count, pick.randint(1, count)]), queue=pick.choice(["default", "other"]))
        for i in range(count):
            yield pod(f"{name}-w-{i}", name, **asked(pick))


def world(pick):
    """The objects of each cycle: nodes, some in use, then jobs."""
    limits = {"capability": {"cpu": str(pick.randint(1, 9))}} if pick.random() < 0.3 else {}
    first = [queue("default", **limits), queue("other", weight=2), group("old", 1)]
    for i in range(pick.choice([1, 3, 6, 30])):
        pods, cpu = str(pick.choice([3, 110, 110])), str(pick.choice([pick.randint(1, 8), 8]))
        labels = {"zone": pick.choice("ab")}
        first.append(node(f"n{i:02}", cpu=cpu, memory=pick.choice(["2Gi", "8Gi"]), pods=pods, labels=labels))
        if pick.random() < 0.3:
            first.append(pod(f"old-{i}", "old", cpu="500m", node=f"n{i:02}", deleting=pick.random() < 0.4))
    jobs = gangs if pick.random() < 0.6 else small_jobs
    return [[*first, *jobs(pick, 0)], *([*jobs(pick, wave)] for wave in range(1, pick.randint(1, 3)))]


def decide(text, waves, *classes):
    """Play the waves, with every sum recounted; give what was sent and what was said."""
    return played(Desk(text, *classes), waves, merged, recount.check)


def assert_as_one_by_one(pick, text, waves, *classes):
    reach = pick.choice([1, 4, 32])
    few, limit = pick.choice([0, 3, 64]), pick.choice([1, 1 << 18])
    with (
        mock.patch.multiple(block, FARTHEST=reach, FEW=few, MEMO_LIMIT=limit),
        mock.patch.object(blocks, "FIRST", pick.choice([2, 32])),
        mock.patch.object(drafting, "FARTHEST", reach),
    ):
        together = decide(text, waves, *classes)
    with mock.patch.object(drafted, "place", return_value=0):
        assert together == decide(text, waves, *classes)


@settings(max_examples=drawn(40), deadline=None)
@given(pick=ANYTHING)
def test_pods_placed_together_go_where_they_would_have_gone_one_by_one(pick):
    assert_as_one_by_one(pick, configuration(pick), world(pick))


def tree(pick):
    """Branches above the queues of a world, most of which limit what is below them somewhere."""

    def limits():
        found = {"capability": (2, 12), "deserved": (1, 6)}
        return {name: {"cpu": str(pick.randint(*span))} for name, span in found.items() if pick.random() < 0.4}

    yield queue("top", **limits())
    yield queue("branch", parent="top", **limits())
    for name in ("default", "other"):
        parent = pick.choice(["top", "branch", "branch"])
        written = {"volcano.sh/hierarchy": f"root/{parent}/{name}", "volcano.sh/hierarchy-weights": "1/2/3"}
        yield queue(name, parent=parent, annotations=written, **limits())


@settings(max_examples=drawn(40), deadline=None)
@given(pick=ANYTHING)
def test_below_a_tree_of_queues_pods_placed_together_go_where_they_would_have_gone_one_by_one(pick):
    first, *rest = world(pick)
    waves = [[*(each for each in first if each["kind"] != "Queue"), *tree(pick)], *rest]
    assert_as_one_by_one(pick, configuration(pick, shared=TREES), waves)


@pytest.mark.parametrize("sharing", TREES)
def test_below_a_tree_of_queues_pods_are_placed_together(sharing):
    """A comparison in which nobody is placed together proves nothing."""
    pick, placed = random.Random(1), []  # noqa: S311  a world, not a secret
    place = drafted.place

    def counted(*arguments):
        placed.append(place(*arguments))
        return placed[-1]

    for _ in range(10):
        first, *rest = world(pick)
        waves = [[*(each for each in first if each["kind"] != "Queue"), *tree(pick)], *rest]
        with mock.patch.object(drafted, "place", counted):
            decide(configuration(pick, shared=(sharing,)), waves)
    assert sum(count > 1 for count in placed) > 10


class Refusing(Plugin):
    """Follows placements by the run alone, and refuses some."""

    name = "refusing"

    def open(self, session):
        session.add_handler(self.follow, one_job=True)

    def follow(self, run, sign):
        return "not this one" if sign > 0 and run.tasks[0].name.endswith("-w-1") else None


class Licensed(Plugin):
    """Lets no more than five pods be placed in the cluster, by what the cluster holds when it is asked."""

    name = "licensed"
    points = frozenset({"PrePredicate"})

    def open(self, session):
        self.cluster = session.cluster
        session.pre_predicate.add(self.out_of_licences)

    def out_of_licences(self, _subject):
        held = sum(job.tally.ready for job in self.cluster.jobs.values())
        return "no licence is left" if held >= 5 else None


class Late(Plugin):
    """Looks at other nodes, and has something to say once four pods are placed."""

    name = "late"
    points = frozenset({"Predicate"})
    reads = Reads.OTHER_NODES

    def open(self, session):
        self.cluster = session.cluster
        self.reason = session.reason(self.name, Code.UNSCHEDULABLE, "not here any more")
        session.predicate.add(self.judge)

    def judge(self, _subject, nodes):
        held = sum(job.tally.ready for job in self.cluster.jobs.values())
        return (nodes.index % 2 * self.reason).astype(np.int16) if held >= 4 else None


class Moving(Plugin):
    """Has to be told of each run before the next: it moves whoever waits."""

    name = "moving"
    points = frozenset({"JobOrder"})

    def open(self, session):
        self.places = {}
        session.job_order.add(lambda job: self.places.get(job.key, 0))
        session.add_handler(lambda run, sign: self.follow(session, sign))

    def follow(self, session, sign):
        for key in sorted(session.cluster.pending_jobs)[:1]:
            self.places[key] = self.places.get(key, 0) + sign
            session.job_order.touch(session.cluster.jobs[key])


@pytest.mark.parametrize("plugin", [Refusing, Licensed, Late, Moving])
@settings(max_examples=drawn(15), deadline=None)
@given(pick=ANYTHING)
def test_plugins_that_change_their_mind_as_pods_are_placed_are_heeded_as_one_by_one(plugin, pick):
    assert_as_one_by_one(pick, configuration(pick, plugin.name), world(pick), plugin)


@pytest.mark.parametrize("packs", [False, True])
def test_a_gang_of_unequal_pods_is_placed_in_one_go_with_few_looks_at_nodes(packs):
    """The properties above would hold trivially if nothing were ever drafted."""
    weights = "{leastrequested.weight: 0, mostrequested.weight: 1}" if packs else "{leastrequested.weight: 1}"
    desk = Desk(
        'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
        f"- plugins: [{{name: nodeorder, arguments: {weights}}}]\n"
    )
    desk.feed(*(node(f"n{i:02}", cpu="64") for i in range(40)), group("g", 30))
    desk.feed(*(pod(f"p{i}", "g", cpu=f"{1000 + i}m") for i in range(30)))
    placed, looks = [], []
    place, look = drafted.place, block.Block.look

    def counted_place(*arguments):
        placed.append(place(*arguments))
        return placed[-1]

    def counted_look(self, states, *arguments):
        looks.append(len(states))
        look(self, states, *arguments)

    with (
        mock.patch.object(drafted, "place", counted_place),
        mock.patch.object(block.Block, "look", counted_look),
    ):
        desk.cycle()
    assert len(desk.world.binds) == 30
    assert placed == [30, 0]
    assert len(looks) <= 4
