"""Choosing for a run of equal tasks gives exactly the nodes that choosing one by one gives; patched vectors equal fresh ones."""

from __future__ import annotations

from unittest import mock

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import selection, shortcuts
from pumice.framework.evaluator import Evaluator
from pumice.framework.foresight import PRECISION
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL, NODE_TASKS, Reads
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject
from pumice.model.resources import CPU, PODS

CONFIG = """
actions: "allocate"
tiers:
- plugins: [{{name: predicates}}, {{name: nodeorder}}, {others}]
"""


class Headroom(Plugin):
    """A filter on amounts: a third of the cpu stays free of pods that are there or are coming."""

    name = "headroom"
    points = frozenset({"Predicate"})
    reads = NODE_LOCAL

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNSCHEDULABLE, "too little headroom")
        session.predicate.add(self.full)

    def full(self, subject, nodes):
        taken = nodes.used[:, CPU] + nodes.pipelined[:, CPU] + subject.request.vector[CPU]
        return np.where(3 * taken > 2 * nodes.allocatable[:, CPU], self.reason, 0).astype(np.int16)


class Zigzag(Plugin):
    """A score on amounts that goes up and down as a node fills."""

    name = "zigzag"
    points = frozenset({"NodeOrder"})
    reads = NODE_LOCAL

    def open(self, session):
        session.score.add(self.points_of)

    def points_of(self, _subject, nodes):
        return (nodes.pods * 37 % 11 * 20 + nodes.used[:, PODS] * 29 % 7 + nodes.pipelined[:, PODS] % 3).astype(float)


class Crowded(Plugin):
    """A filter on the tasks of the node: no more than two members of a job on one node."""

    name = "crowded"
    points = frozenset({"Predicate"})
    reads = NODE_TASKS

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNSCHEDULABLE, "two members are here already")
        session.predicate.add(self.full)

    def full(self, subject, nodes):
        counts = [sum(task.job is subject.job for task in record.tasks.values()) for record in nodes.records()]
        return np.where(np.array(counts) >= 2, self.reason, 0).astype(np.int16)


class Zones(Plugin):
    """A score on other nodes: the zone with the fewest members first."""

    name = "zones"
    points = frozenset({"NodeOrder"})
    reads = NODE_TASKS | Reads.OTHER_NODES

    def open(self, session):
        session.score.add(self.emptiness)

    def emptiness(self, _subject, nodes):
        counts = {}
        for record in nodes.table.records:
            zone = record.labels.get("zone", "")
            counts[zone] = counts.get(zone, 0) + len(record.tasks)
        return np.array([-50.0 * counts[record.labels.get("zone", "")] for record in nodes.records()])


class Fullest(Plugin):
    """A normalised score on amounts: compared with the fullest candidate."""

    name = "fullest"
    points = frozenset({"NodeOrder"})
    reads = NODE_LOCAL

    def open(self, session):
        session.score.add(self.raw, normalise=self.normalise)

    def raw(self, _subject, nodes):
        return nodes.used[:, CPU].astype(float)

    @staticmethod
    def normalise(raw):
        return np.floor(raw * 100 / max(1.0, raw.max()))


class Apart(Plugin):
    """A score on the tasks of the node: where fewest members of the job are."""

    name = "apart"
    points = frozenset({"NodeOrder"})
    reads = NODE_TASKS

    def open(self, session):
        session.score.add(self.loneliness)

    def loneliness(self, subject, nodes):
        counts = [sum(task.job is subject.job for task in record.tasks.values()) for record in nodes.records()]
        return np.array([-100.0 * count for count in counts])


PLUGINS = (Headroom, Zigzag, Crowded, Zones, Fullest, Apart)
SOFT = {"key": "k", "effect": "PreferNoSchedule"}


def preferring(weights):
    """Prefer zones by weight; with three values the candidates that are left decide what each is worth."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}}
        for zone, weight in weights.items()
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


ANYTHING = st.randoms(use_true_random=True)


def cluster(pick):
    """Some nodes, pods that run, leave or come there, and a run of equal pods."""
    nodes, present = [], []
    for i in range(pick.randint(1, 5)):
        amounts = {"cpu": str(pick.randint(1, 8)), "pods": str(pick.choice([2, 5, 110]))}
        taints = [SOFT] if not pick.randint(0, 3) else []
        nodes.append(node(f"n{i}", **amounts, labels={"zone": pick.choice("abc")}, taints=taints))
        present += [(i, pick.choice(["runs", "leaves", "comes", "comes"])) for _ in range(pick.randint(0, 3))]
    weights = pick.choice([{}, {"a": 40}, {"a": 100, "b": 30}, {"a": 100, "b": 10, "c": 5}])
    spec = {"affinity": preferring(weights)} if weights else {}
    ports = [{"hostPort": 80}] if not pick.randint(0, 4) else []
    asked = {"cpu": pick.choice(["500m", "1", "2"]), "memory": pick.choice([None, "1Gi", "3Gi"])}
    run = [pod(f"run-w-{i}", "g", **asked, ports=ports, **spec) for i in range(pick.randint(2, 14))]
    return nodes, present, run


def plugins(pick):
    return pick.sample(PLUGINS, pick.randint(0, 2))


def stage(plugins, nodes, present, run):
    others = ", ".join(f"{{name: {each.name}}}" for each in plugins)
    desk = Desk(CONFIG.format(others=others), *plugins).feed(*nodes, group("g", 99), *run)
    for i, (where, state) in enumerate(present):
        name = f"old-w-{i}"
        if state == "comes":
            desk.feed(pod(name, "g", cpu="1"))
        else:
            desk.feed(pod(name, "g", cpu="1", node=f"n{where}", deleting=state == "leaves"))
    session = desk.session()
    statement = session.statement()
    for i, (where, state) in enumerate(present):
        if state == "comes":
            statement.pipeline([desk.task(f"old-w-{i}")], [desk.node(f"n{where}")])
    return desk, session


def place(desk, session, run, size, *, released):
    """Choose for up to `size` tasks at a time, placing them before the next choice; give the nodes in order and undo it all."""
    statement = session.statement()
    tasks = [desk.task(manifest["metadata"]["name"]) for manifest in run]
    evaluation = session.evaluate(Subject(tasks[0]))
    table, chosen = desk.cluster.nodes, []
    while len(chosen) < len(tasks):
        rows = selection.choose(evaluation, table, min(size, len(tasks) - len(chosen)), released=released)
        if not rows:
            break
        step = statement.pipeline if released else statement.allocate
        step(tasks[len(chosen) : len(chosen) + len(rows)], [table.records[row] for row in rows])
        chosen += rows
    statement.discard()
    return chosen


@settings(max_examples=drawn(300), deadline=None)
@given(pick=ANYTHING)
def test_choosing_in_runs_equals_choosing_one_by_one(pick):
    nodes, present, run = cluster(pick)
    released = bool(pick.randint(0, 1))
    desk, session = stage(plugins(pick), nodes, present, run)
    with mock.patch.object(selection, "FEWEST", pick.choice([1, 2, 4, 64])):
        together = place(desk, session, run, pick.randint(2, 14), released=released)
    assert together == place(desk, session, run, 1, released=released)


def test_runs_are_really_chosen_ahead():
    """The property above would hold trivially if every choice were for one task."""
    nodes = [node(f"n{i}", cpu="8") for i in range(3)]
    run = [pod(f"run-w-{i}", "g", cpu="1") for i in range(12)]
    for plugins, expected in (
        ((), 12),
        ((Headroom, Zigzag), 12),
        ((Crowded,), 1),
        ((Zones,), 1),
        ((Fullest,), 1),
        ((Apart,), 1),
    ):
        desk, session = stage(plugins, nodes, [], run)
        evaluation = session.evaluate(Subject(desk.task("run-w-0")))
        assert evaluation.is_stepwise(released=False) is (expected == 1)
        assert len(selection.choose(evaluation, desk.cluster.nodes, 12, released=False)) == expected


def test_nodes_where_pods_will_wait_are_scored_as_they_are_for_each_of_a_run():
    """Also for those after the first: pods that leave are there still."""

    class Company(Plugin):
        name = "company"
        points = frozenset({"NodeOrder"})
        reads = NODE_LOCAL

        def open(self, session):
            session.score.add(lambda _, nodes: 100.0 * nodes.pods)

    run = [pod(f"run-w-{i}", "g", cpu="1") for i in range(3)]
    present = [(0, "runs"), (1, "leaves"), (1, "leaves")]
    desk, session = stage([Company], [node("n0"), node("n1")], present, run)
    assert place(desk, session, run, 3, released=True) == [1, 1, 1]


# ---- kept vectors


def fresh(session, subject):
    """The evaluation of a subject by somebody who has seen nothing before."""
    evaluator = Evaluator(session.cluster.nodes, session.evaluator.reasons)
    evaluator.open(session.predicate, session.score, session.number)
    return evaluator.evaluate(subject)


def compare(session, subject):
    kept, new = session.evaluate(subject), fresh(session, subject)
    kept.refresh_scores()
    new.refresh_scores()
    for released in (False, True):
        assert kept.mask(released=released).tolist() == new.mask(released=released).tolist()
        assert kept.is_stepwise(released=released) == new.is_stepwise(released=released)
    assert kept.plain.tolist() == new.plain.tolist()
    assert [None if v is None else v.tolist() for v in kept.raw_vectors] == [
        None if v is None else v.tolist() for v in new.raw_vectors
    ]


DECISIONS = ["allocate", "pipeline", "evict", "undo"]
EVENTS = ["taint", "grow", "shrink", "add", "drop"]


@settings(max_examples=drawn(100), deadline=None)
@given(pick=ANYTHING)
def test_patched_vectors_equal_fresh_ones_after_any_changes(pick):
    nodes, present, run = cluster(pick)
    # One that asks for the same and is otherwise different.
    other = {**run[0], "metadata": {**run[0]["metadata"], "name": "other-w-0", "uid": "other"}}
    other["spec"] = {**run[0]["spec"], "nodeSelector": {"zone": "a"}}
    desk, session = stage(plugins(pick), nodes, present, [*run, other])
    statement = session.statement()
    compare(session, Subject(desk.task("run-w-0")))
    for _ in range(pick.randint(1, 10)):
        where, change = pick.choice(nodes), pick.choice([*DECISIONS, *DECISIONS, *EVENTS])
        if change in EVENTS:
            session.rollback()
            _alter(desk, where, change)
            session = desk.session()
            statement = session.statement()
        else:
            task = desk.task(pick.choice(run)["metadata"]["name"])
            _decide(desk, statement, change, task, where["metadata"]["name"])
        for name in pick.sample(["run-w-0", "other-w-0"], pick.randint(1, 2)):
            compare(session, Subject(desk.task(name)))


def _alter(desk, manifest, change):
    name = manifest["metadata"]["name"]
    if change == "drop":
        desk.delete(manifest)
    elif change == "add":
        desk.feed(node("m", cpu="5", labels={"zone": "b"}))
    elif change == "taint":
        desk.modify(node(name, cpu="3", labels={"zone": "c"}, taints=[SOFT]))
    else:
        desk.modify(node(name, cpu="9" if change == "grow" else "1", labels={"zone": "a"}))


def _decide(desk, statement, change, task, where):
    record = desk.cluster.nodes.by_name.get(where)
    if record is None or record.object is None:
        return
    if change in ("allocate", "pipeline") and task.status.name == "PENDING":
        (statement.pipeline if change == "pipeline" else statement.allocate)([task], [record])
    elif change == "evict":
        statement.evict([t for t in record.tasks.values() if t.status.name == "RUNNING"], "test")
    elif change == "undo":
        statement.undo(task)


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_between_scores_that_differ_by_the_least_there_is_the_higher_one_wins_for_every_pod(ahead):
    class Hair(Plugin):
        name = "hair"
        points = frozenset({"NodeOrder"})
        reads = NODE_LOCAL

        def open(self, session):
            session.score.add(
                lambda _, nodes: np.array([ahead * (n.name == "n9") / PRECISION for n in nodes.records()])
            )

    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: hair}]\n'
    desk = Desk(text, Hair, taken=msgspec.structs.replace(shortcuts.ALL, blocks=False))
    desk.feed(*(node(f"n{i}", "100", "640Gi") for i in range(10)))
    desk.feed(group("g", 40), *(pod(f"g-{i:02}", "g", cpu="1") for i in range(40)))
    desk.cycle()
    assert set(desk.world.binds.values()) == {"n9"}
