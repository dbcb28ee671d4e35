"""A filter or a score of one node at a time gives exactly what the same one over columns gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework.per_node import filter_per_node, score_per_node
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject
from pumice.model.resources import CPU, MEMORY

CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {{name: {name}}}]
"""


class Columns(Plugin):
    """Keeps an eighth of every node's cpu free, once what is being released is gone, and prefers full nodes of the pool."""

    name = "columns"
    points = frozenset({"Predicate", "NodeOrder"})
    reads = NODE_LOCAL

    def open(self, session):
        self.full = session.reason(self.name, Code.UNSCHEDULABLE, "too full")
        session.predicate.add(self.fits)
        session.score.add(self.score)

    def fits(self, subject, nodes):
        left = nodes.future_idle[:, CPU] - subject.request.vector[CPU]
        return np.where(left * 8 < nodes.allocatable[:, CPU], self.full, 0).astype(np.int16)

    def score(self, subject, nodes):
        pool = nodes.table.attributes.mask("pool", lambda value: value == "a")[nodes.index]
        used = nodes.used[:, MEMORY] + nodes.pipelined[:, MEMORY] - nodes.releasing[:, MEMORY]
        return used / 2**20 + pool * 7.5


class Scalars(Columns):
    """The same for one node."""

    name = "scalars"

    @filter_per_node
    def fits(self, subject, node):
        left = node.future_idle("cpu") - subject.request.vector[CPU]
        return self.full if left * 8 < node.allocatable("cpu") else 0

    @score_per_node
    def score(self, subject, node):
        used = node.used("memory") + node.pipelined("memory") - node.releasing("memory")
        return used / 2**20 + (node.labels.get("pool") == "a") * 7.5


def world(name, nodes, pods):
    plugin = {"columns": Columns, "scalars": Scalars}[name]
    desk = Desk(CONFIG.format(name=name), plugin)
    for number, (cpu, pool) in enumerate(nodes):
        desk.feed(node(f"n{number}", cpu=str(cpu), labels={"pool": pool} if pool else None))
    for number, (cpu, memory, place, leaving) in enumerate(pods):
        at = f"n{place}" if place is not None and place < len(nodes) else ""
        desk.feed(group(f"g{number}"))
        leaves = bool(at) and leaving
        desk.feed(pod(f"p{number}", f"g{number}", cpu=f"{cpu}m", memory=f"{memory}Mi", node=at, deleting=leaves))
    return desk


NODES = st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["a", "b", ""])), min_size=1, max_size=6)
PODS = st.lists(
    st.tuples(st.integers(1, 3000), st.integers(1, 2000), st.none() | st.integers(0, 5), st.booleans()), max_size=10
)


@settings(max_examples=drawn(60), deadline=None)
@given(nodes=NODES, pods=PODS)
def test_both_forms_decide_the_same(nodes, pods):
    made = [world(name, nodes, pods) for name in ("columns", "scalars")]
    for desk in made:
        desk.cycle()
    assert made[0].world.binds == made[1].world.binds


@settings(max_examples=drawn(60), deadline=None)
@given(nodes=NODES, pods=PODS, more=st.integers(0, 3), released=st.booleans())
def test_both_forms_answer_the_same_for_every_view(nodes, pods, more, released):
    desk = world("scalars", nodes, [*pods, (500, 100, None, False)])
    session = desk.session()
    scalars, columns = Scalars(None, {}), Columns(None, {})
    scalars.full = columns.full = session.reason("scalars", Code.UNSCHEDULABLE, "too full")
    task = next(task for task in desk.cluster.tasks.values() if task.node is None)
    table, subject = desk.cluster.nodes, Subject(task)
    rows = table.rows[::2]
    steps = np.full(len(rows), more, dtype=np.int64)
    for view in (
        table.view(released=released),
        table.view(rows, released=released),
        table.ahead(rows, steps, task.shape, waiting=released),
    ):
        for scalar, vector in ((scalars.fits, columns.fits), (scalars.score, columns.score)):
            said, expected = scalar(subject, view), vector(subject, view)
            assert said.dtype == expected.dtype
            assert said.tolist() == expected.tolist()


def test_a_node_tells_what_it_is():
    desk = Desk().feed(node("n1", cpu="4", labels={"pool": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    desk.feed(group("g"), pod("p", "g", cpu="1", node="n1"), pod("q", "g", cpu="1"))
    desk.session()
    seen = []

    @score_per_node
    def look(subject, node):
        seen.append(
            (
                node.name,
                dict(node.labels),
                node.taints[0].key,
                node.idle("cpu"),
                node.used("gpu"),
                node.future_idle("gpu"),
            )
        )
        return 1

    assert look(Subject(desk.task("q")), desk.cluster.nodes.view()).tolist() == [1.0]
    assert seen == [("n1", {"pool": "a"}, "k", 3000, 0, 0)]


@pytest.mark.parametrize("decorator", [filter_per_node, score_per_node])
def test_no_node_is_an_answer_too(decorator):
    desk = Desk().feed(group("g"), pod("q", "g", cpu="1"))
    desk.session()
    assert decorator(lambda subject, node: 0)(Subject(desk.task("q")), desk.cluster.nodes.view()).tolist() == []
