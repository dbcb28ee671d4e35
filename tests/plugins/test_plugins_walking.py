"""Choosing nodes for many equal pods whose rules look at each other: all at once, exactly as one by one."""

from __future__ import annotations

import pods_world
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_reference import HOSTNAME, REQUIRED, ZONE

import builders
from drawing import drawn
from pumice.framework import kind_choice, selection, walking
from pumice.framework.evaluation import Evaluation
from pumice.framework.subject import Subject

CONFIG = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
    arguments: {leastrequested.weight: LEAST, mostrequested.weight: MOST, podaffinity.weight: 2, podtopologyspread.weight: 2}
"""


def twins(draw, nodes):
    """More nodes, each like one that is there but for its name."""
    made = []
    for number in range(draw.choose([0, 0, 4, 12])):
        model = draw.choose(nodes)
        labels = {**model["metadata"]["labels"], HOSTNAME: f"t{number:02d}"}
        made.append({**builders.node(f"t{number:02d}", labels=labels), "spec": model["spec"]})
    return made


def gang(draw):
    """A world with a gang of equal pods that mind each other, on nodes that may fill up."""
    affinity = draw.affinity() if draw.odds(2) else None
    spread = draw.some(draw.constraint, 1, 2) if draw.odds(2) or affinity is None else ()
    first = draw.pod("member-0", affinity=affinity, spread=spread)
    nodes, others, about, _ = draw.world(None)
    nodes += twins(draw, nodes)
    for node in nodes:
        node["status"]["allocatable"]["pods"] = draw.choose(["3", "6", "110"])
        node["status"]["allocatable"]["cpu"] = draw.choose(["20m", "50m", "8"])
    members = []
    for number in range(draw.random.randint(2, 20)):
        pod = builders.pod(
            f"member-{number}", "g", namespace=first["metadata"]["namespace"], labels=first["metadata"].get("labels")
        )
        requests = {"cpu": "10m", "memory": "1Gi"}
        members.append(
            {**pod, "spec": {**first["spec"], "containers": [{"name": "c", "resources": {"requests": requests}}]}}
        )
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": builders.metadata("s", first["metadata"]["namespace"]),
            "spec": {"selector": {"app": "x"}},
        }
    ]
    return (nodes, others, about, members[0]), members, services if draw.odds(2) else []


def opened(draw, made):
    world, members, services = made
    config = CONFIG.replace("LEAST", str(draw.choose([0, 1]))).replace("MOST", str(draw.choose([0, 1])))
    desk, session, _ = pods_world.enact(world, more=[*services, *members[1:]], config=config)
    tasks = [desk.task(pod["metadata"]["name"], pod["metadata"]["namespace"]) for pod in members]
    return desk, session, tasks


def one_by_one(desk, session, tasks, *, released):
    rows = []
    statement = session.statement()
    for task in tasks:
        chosen = selection.choose(session.evaluate(Subject(task)), desk.cluster.nodes, 1, released=released)
        if not chosen:
            break
        rows += chosen
        step = statement.pipeline if released else statement.allocate
        step([task], [desk.cluster.nodes.records[chosen[0]]])
    statement.discard()
    return rows


def at_once(desk, session, tasks, *, released):
    """Rows as they come, several at a time, applied before the next question."""
    rows, calls = [], 0
    statement = session.statement()
    while len(rows) < len(tasks):
        left = tasks[len(rows) :]
        chosen = selection.choose(session.evaluate(Subject(left[0])), desk.cluster.nodes, len(left), released=released)
        if not chosen:
            break
        calls += 1
        step = statement.pipeline if released else statement.allocate
        step(left[: len(chosen)], [desk.cluster.nodes.records[row] for row in chosen])
        rows += chosen
    statement.discard()
    return rows, calls


@settings(max_examples=drawn(200), deadline=None)
@given(seed=pods_world.SEEDS, released=st.booleans(), by_kind=st.booleans())
def test_many_are_chosen_as_if_one_by_one(seed, released, by_kind):
    draw = pods_world.Draw(seed)
    desk, session, tasks = opened(draw, gang(draw))
    with pytest.MonkeyPatch.context() as patched:
        if by_kind:
            # However few pods there are, and however different the nodes.
            patched.setattr(kind_choice, "WORTHWHILE", 1)
            patched.setattr(kind_choice, "ALIKE", 0)
        rows, _ = at_once(desk, session, tasks, released=released)
    assert rows == one_by_one(desk, session, tasks, released=released)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]}, 3),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]}, 3),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}]}, 1),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"}]}, 1),
        ({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE}]}}}, 3),
        ({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": HOSTNAME}]}}}, 1),
    ],
)  # fmt: skip
def test_nodes_that_are_alike_are_looked_at_as_one(spec, expected):
    desk, session, tasks = alike(spec)
    evaluation = session.evaluate(Subject(tasks[0]))
    evaluation.mask(released=False)
    evaluation.refresh_scores()
    followers = evaluation.followers(released=False)
    fixed = evaluation.fixed(released=False)
    found = kind_choice.find(evaluation.plain, fixed, followers, len(tasks))
    assert found.number == expected
    rows, calls = at_once(desk, session, tasks, released=False)
    assert calls == 1
    assert rows == one_by_one(desk, session, tasks, released=False)


@pytest.mark.parametrize(("topology", "placed"), [(HOSTNAME, 20), (ZONE, 3)])
def test_pods_that_keep_apart_are_chosen_without_looking_ahead(topology, placed, monkeypatch):
    monkeypatch.setattr(walking, "Foresight", None)
    desk, session, tasks = alike({"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": topology}]}}})
    rows, _ = at_once(desk, session, tasks, released=False)
    assert rows == one_by_one(desk, session, tasks, released=False)
    assert len(set(rows)) == len(rows) == placed


def alike(spec):
    """Thirty equal nodes in three zones, and twenty pods with a rule about each other."""
    for rule in [
        *spec.get("topologySpreadConstraints", ()),
        *(r for g in spec.get("affinity", {}).values() for r in g[REQUIRED]),
    ]:
        rule["labelSelector"] = {"matchLabels": {"app": "x"}}
    nodes = [builders.node(f"n{i:02d}", labels={HOSTNAME: f"n{i:02d}", ZONE: f"z{i % 3}"}) for i in range(30)]
    pods = [builders.pod(f"p{i:02d}", "g", labels={"app": "x"}, cpu="10m", **spec) for i in range(20)]
    desk = builders.Desk(CONFIG.replace("LEAST", "1").replace("MOST", "0")).feed(*nodes, *pods)
    return desk, desk.session(), [desk.task(f"p{i:02d}") for i in range(20)]


@pytest.mark.parametrize("released", [False, True])
def test_pods_that_mind_each_other_are_chosen_in_one_go(released):
    asked = 0
    for seed in range(40):
        draw = pods_world.Draw(seed)
        desk, session, tasks = opened(draw, gang(draw))
        evaluation = session.evaluate(Subject(tasks[0]))
        evaluation.mask(released=released)
        evaluation.refresh_scores()
        if evaluation.is_stepwise(released=released):
            assert evaluation.followers(released=released) is not None
            asked += 1
            # What was not chosen in the first go has no node.
            _, calls = at_once(desk, session, tasks, released=released)
            assert calls <= 1
    assert asked > 20


def test_functions_that_cannot_be_followed_are_asked_after_every_placement(monkeypatch):
    monkeypatch.setattr(Evaluation, "followers", lambda _, *, released: None)
    longest = 0
    for seed in range(20):
        draw = pods_world.Draw(seed)
        desk, session, tasks = opened(draw, gang(draw))
        rows, calls = at_once(desk, session, tasks, released=False)
        if session.evaluate(Subject(tasks[0])).is_stepwise(released=False):
            assert calls == len(rows)
            longest = max(longest, calls)
    assert longest > 5
