"""usage: the worked cases, what is expected of pods that were not measured, and that looking at few nodes finds what looking at all would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import SECOND, Desk, group, node, pod, stamp
from drawing import drawn
from pumice.framework.subject import Subject
from pumice.plugins.sharing import loads
from pumice.plugins.usage.estimates import Estimator, EstimatorSettings
from pumice.plugins.usage.plugin import Usage
from pumice.plugins.usage.shadows import Recent

CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: usage}]
metrics: {type: prometheus, address: "http://x"}
"""


def measured(**nodes):
    found = {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in nodes.items()}
    return {
        "apiVersion": "pumice.dev/v1alpha1",
        "kind": "NodeUsage",
        "metadata": {"name": "cluster"},
        "time": stamp(0),
        "nodes": found,
    }


def plugin_of(desk):
    session = desk.session()
    return session, next(p for tier in desk.scheduler.engine.plugins for p in tier if isinstance(p, Usage))


def asked(*objects):
    """Scores and verdicts of all nodes for a pod that asks for a little."""
    waiting = pod("w", "g", cpu="100m")
    desk = Desk(CONFIGURATION).feed(*objects, group("g", 1), waiting)
    session, plugin = plugin_of(desk)
    task = next(t for t in session.cluster.tasks.values() if t.name == "w")
    subject = Subject(task)
    view = session.cluster.nodes.view()
    return plugin.score(subject, view).tolist(), plugin.fits(subject, view).tolist()


def busy_pod(**more):
    made = pod("fresh", "g", cpu="4", memory="8Gi", node="n1", phase="Running", **more)
    made["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "8"}
    made["status"]["startTime"] = stamp(0)
    return made


@pytest.mark.parametrize(
    ("objects", "score"),
    [
        pytest.param([measured(n1=(40, 20))], 350.0, id="US1"),
        pytest.param([measured(n1=(40, 20)), busy_pod()], 284.375, id="US2: a pod that was not measured yet"),
        pytest.param([measured(n1=(75, 55)), busy_pod()], 96.25, id="US3: more on a node that is risky"),
        pytest.param([measured(n2=(1, 1))], 0.0, id="a node of which nothing is known"),
    ],
)
def test_the_score_is_what_is_left_of_a_node(objects, score):
    scores, _ = asked(node("n1", cpu="16", memory="64Gi"), node("n2", cpu="16", memory="64Gi"), *objects)
    assert scores[0] == pytest.approx(score)


@pytest.mark.parametrize(("cpu", "memory", "fits"), [("80", "80", True), ("80.1", 0, False), (0, "80.001", False)])
def test_a_node_above_a_threshold_is_refused(cpu, memory, fits):
    _, verdicts = asked(node("n1"), measured(n1=(cpu, memory)))
    assert (verdicts[0] == 0) == fits


def test_what_was_measured_six_minutes_ago_says_nothing():
    desk = Desk(CONFIGURATION).feed(node("n1"), measured(n1=(99, 99)), group("g", 1), pod("w", "g", cpu="1"))
    desk.now += 360 * SECOND
    session, _ = plugin_of(desk)
    assert not any(each.plugin == "usage" for each in session.predicate)


@pytest.mark.parametrize("bad", ["-1", "much", "1e999"])
def test_a_load_that_makes_no_sense_is_told_and_counts_for_nobody(bad):
    desk = Desk(CONFIGURATION).feed(node("n1"), measured(n1=(bad, 1)), group("g", 1), pod("w", "g", cpu="1"))
    session, _ = plugin_of(desk)
    assert loads.of_nodes(session) is None


@pytest.mark.parametrize(
    ("told", "cpu", "limit", "risky", "expected"),
    [
        ({}, "4", "8", False, 2800),
        ({}, "4", "8", True, 3360),
        ({}, "4", "2", True, 3360),
        ({"request_ratio": 1}, "4", None, True, 4000),
        ({"burst_ratio": 1, "request_ratio": 1}, "4", "8", True, 8000),
        ({}, None, None, False, 250),
        ({"be_cpu": "1500m"}, None, None, True, 1800),
        ({"be_cpu": 100}, None, None, False, 100),
    ],
)
def test_a_pod_is_taken_to_use_a_part_of_what_it_asks_for(told, cpu, limit, risky, expected):
    made = pod("p", "g", **({"cpu": cpu} if cpu else {}))
    if limit:
        made["spec"]["containers"][0]["resources"]["limits"] = {"cpu": limit}
    if cpu is None:
        made["spec"]["containers"][0]["resources"] = {}
    session = Desk(CONFIGURATION).feed(node("n1"), group("g", 1), made).session()
    task = next(iter(session.cluster.tasks.values()))
    assert Estimator(EstimatorSettings(told)).estimate(task, risky=risky)[0] == expected


EVENTS = st.lists(
    st.tuples(st.sampled_from(["start", "end", "wait"]), st.integers(0, 3), st.integers(0, 9)), max_size=25
)


@settings(max_examples=drawn(30))
@given(EVENTS)
def test_looking_at_nodes_that_changed_finds_the_pods_that_looking_at_all_would(events):
    desk = Desk(CONFIGURATION).feed(*(node(f"n{i}", cpu="99") for i in range(4)), group("g", 1))
    kept = Recent()
    for what, at, number in events:
        if what == "wait":
            desk.now += 7 * SECOND
        else:
            made = pod(f"p{number}", "g", cpu="1", node=f"n{at}", phase="Running")
            made["status"]["startTime"] = stamp((desk.now - Desk(CONFIGURATION).now) // SECOND)
            known = desk.session().cluster.tasks
            alive = next((t for t in known.values() if t.name == f"p{number}"), None)
            if what == "end" and alive is not None:
                made["spec"]["nodeName"] = alive.node.name
                made["status"]["phase"] = "Succeeded"
                desk.feed(made)
            elif what == "start" and alive is None:
                desk.feed(made)
        table = desk.session().cluster.nodes
        anew = Recent()
        assert kept.update(table, desk.now, 30 * SECOND) == anew.update(table, desk.now, 30 * SECOND)
        assert {row: {t.uid for t in tasks} for row, tasks in kept.by_row.items()} == {
            row: {t.uid for t in tasks} for row, tasks in anew.by_row.items()
        }


def test_what_is_taken_back_leaves_nothing_behind():
    desk = Desk(CONFIGURATION).feed(
        *(node(f"n{i}", cpu="4") for i in range(3)),
        measured(n0=(10, 10), n1=(59, 61), n2=(70, 1)),
        group("g", 9),
        *(pod(f"w{i}", "g", cpu="1") for i in range(9)),
    )
    session, plugin = plugin_of(desk)
    before = plugin.shadows.expected.copy()
    tasks = [t for t in session.cluster.tasks.values() if t.name.startswith("w")]
    statement = session.statement()
    for index, task in enumerate(tasks):
        statement.allocate([task], [session.cluster.nodes.records[index % 3]])
    assert plugin.shadows.expected.sum() > before.sum()
    statement.discard()
    assert np.array_equal(plugin.shadows.expected, before)
