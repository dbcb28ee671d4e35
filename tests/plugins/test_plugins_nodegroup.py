"""nodegroup: which groups a queue uses, how much it likes them, and how much it may hold there."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject
from pumice.model.statuses import Status
from pumice.plugins.nodegroup import NodeGroup, limits

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def config(**arguments):
    switches = {"enableHierarchy": arguments.pop("enableHierarchy", False)}
    plugins = [{"name": "gang"}, {"name": "nodegroup", "arguments": arguments, **switches}]
    return json.dumps({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": plugins}]})


def affinity(required=(), preferred=(), anti_required=(), anti_preferred=()):
    return {
        "nodeGroupAffinity": {REQUIRED: list(required), PREFERRED: list(preferred)},
        "nodeGroupAntiAffinity": {REQUIRED: list(anti_required), PREFERRED: list(anti_preferred)},
    }


NG1 = affinity(["g1", "g2"], ["g1"], ["g3"], ["g4"])


def in_groups(*groups):
    """One node for each group, None for a node that has none."""
    return [
        node(f"n{i}", labels=None if name is None else {LABEL: name}, cpu="100", memory="100Gi")
        for i, name in enumerate(groups)
    ]


def judged(made, task="p"):
    """What the plugin says about each node: a score, or the reason why not, with a question mark if eviction may cure it."""
    session = made.session()
    subject = Subject(made.task(task), session.queue_of(made.task(task).job))
    nodes = made.cluster.nodes.view()
    told = []
    for function in session.predicate:
        answer = function.function(subject, nodes)
        told.append(np.zeros(len(nodes), dtype=int) if answer is None else answer)
    first = [next((n for n in numbers if n), 0) for numbers in zip(*told, strict=True)]
    (liking,) = session.score
    points = liking.function(subject, nodes)
    points = np.zeros(len(nodes)) if points is None else points
    table = session.evaluator.reasons.table
    marks = {Code.UNRESOLVABLE: "", Code.UNSCHEDULABLE: "?"}
    return [
        table[n].text + marks[table[n].code] if n else round(float(p), 2) for n, p in zip(first, points, strict=True)
    ]


def desk(nodes, *queues, text=None, asked="q", requests=None):
    made = Desk(text or config()).feed(*nodes, *queues)
    return made.feed(group("g", 1, queue=asked), pod("p", "g", requests=requests or {"cpu": "2"}))


NO_LABEL = "node group label not found"
NO_AFFINITY = "node group affinity not specified"
MISMATCH = "node does not satisfy the node group affinity"


@pytest.mark.parametrize(
    ("spec", "arguments", "groups", "expected"),
    [
        pytest.param(
            {"affinity": NG1},
            {},
            ["g1", "g2", "g3", "g4", "g5", None],
            [150, 100, MISMATCH, -1, MISMATCH, NO_LABEL],
            id="NG1",
        ),
        pytest.param({}, {}, ["g1", None], [NO_AFFINITY, NO_LABEL], id="NG2: strict"),
        pytest.param({}, {"strict": False}, ["g1", None], [NO_AFFINITY, 0], id="NG2: not strict"),
        pytest.param(
            {"affinity": affinity(preferred="xyz")},
            {"enablePreferredOrder": True},
            ["x", "y", "z"],
            [50, 33.33, 16.67],
            id="NG3",
        ),
        pytest.param({"affinity": affinity(preferred="xyz")}, {}, ["x", "y", "z"], [50, 50, 50], id="NG3 unordered"),
        pytest.param(
            {"affinity": affinity(preferred=["x", "x", "y"])},
            {"enablePreferredOrder": True},
            ["x", "y"],
            [50, 25],
            id="a group named twice counts once",
        ),
        pytest.param({"affinity": {}}, {"strict": False}, ["g1", None], [MISMATCH, 0], id="an empty affinity"),
        pytest.param(
            {"affinity": affinity(["g1"])}, {"strict": False}, ["g1", None], [100, NO_LABEL], id="affinity is strict"
        ),
        pytest.param(
            {"affinity": affinity(anti_required=["g1"])},
            {},
            ["g1", "g2"],
            [MISMATCH] * 2,
            id="anti alone opens nothing",
        ),
        pytest.param(
            {"affinity": affinity(["g1"], anti_required=["g1"], anti_preferred=["g1"])},
            {},
            ["g1"],
            [-1],
            id="both anti",
        ),
        pytest.param(
            {"affinity": affinity(["g1"], ["g1"], anti_preferred=["g1"])}, {}, ["g1"], [-1], id="avoided whatever else"
        ),
        pytest.param({"affinity": affinity(["g1"])}, {}, ["g1", ""], [100, MISMATCH], id="an empty name is a group"),
    ],
)
def test_a_queue_uses_the_groups_it_names(spec, arguments, groups, expected):
    assert judged(desk(in_groups(*groups), queue("q", **spec), text=config(**arguments))) == expected


@pytest.mark.parametrize(
    ("hierarchy", "parents", "with_affinity", "opened"),
    [
        pytest.param(True, {"q": "team", "team": "dept"}, "dept", True, id="the nearest ancestor"),
        pytest.param(True, {"q": "team"}, "root", True, id="root"),
        pytest.param(True, {"q": ""}, "root", True, id="no parent means root"),
        pytest.param(True, {"q": "team", "team": "q"}, "other", False, id="a circle"),
        pytest.param(True, {"q": "missing"}, "root", True, id="a missing parent hangs under root"),
        pytest.param(False, {"q": "team"}, "root", False, id="switched off"),
    ],
)
def test_a_queue_without_affinity_inherits_it(hierarchy, parents, with_affinity, opened):
    spec = {name: {"parent": parent} if parent else {} for name, parent in parents.items()}
    spec.setdefault(with_affinity, {})["affinity"] = affinity(["g1"])
    made = Desk(config(enableHierarchy=hierarchy), queues=("default",)).feed(*in_groups("g1", "g2"))
    made.feed(*(queue(name, **fields) for name, fields in {"root": {}, **spec}.items()))
    made.feed(group("g", 1, queue="q"), pod("p", "g", cpu="1"))
    assert judged(made) == ([100, MISMATCH] if opened else [NO_AFFINITY] * 2)


def test_the_nearest_affinity_wins_and_limits_are_not_inherited():
    limits = {LIMITS: json.dumps({"g1": {"cpu": "0"}})}
    parent = queue("team", annotations=limits, affinity=affinity(["g1"]))
    top = queue("root", affinity=affinity(["g2"]))
    made = Desk(config(enableHierarchy=True), queues=("default",)).feed(
        *in_groups("g1", "g2"), parent, top, queue("q", parent="team"), group("g", 1, queue="q"), pod("p", "g", cpu="1")
    )
    assert judged(made) == [100, MISMATCH]


# ---- limits


def limited(limits, **spec):
    text = limits if isinstance(limits, str) else json.dumps(limits)
    return queue("q", annotations={LIMITS: text}, affinity=affinity(["g1", "g2"]), **spec)


FULL = "node group resource limit exceeded (queue q may hold cpu 10 in g1)"


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "2"}, [100, 100], id="NG4: up to the limit"),
        pytest.param({"cpu": "2.5"}, [f"{FULL}?", 100], id="NG4: beyond it"),
        pytest.param({"cpu": "2", "memory": "90Gi"}, [100, 100], id="NG4: memory is not limited"),
        pytest.param({"cpu": "2001m"}, [f"{FULL}?", 100], id="a millicore beyond it"),
        pytest.param({"cpu": "10"}, [f"{FULL}?", 100], id="all of it, once the others are gone"),
        pytest.param({"cpu": "10001m"}, [FULL, 100], id="beyond it whoever goes"),
    ],
)
def test_ng4_a_queue_holds_no_more_in_a_group_than_it_may(requests, expected):
    made = desk(in_groups("g1", "g2"), limited({"g1": {"cpu": "10"}}), requests=requests)
    made.feed(group("old", 1, queue="q", phase="Running"), pod("o1", "old", cpu="8", node="n0"))
    made.feed(pod("o2", "old", cpu="50", node="n1"), pod("o3", "old", cpu="9", node="n0", deleting=True))
    made.feed(group("others", 1, phase="Running"), pod("x", "others", cpu="40", node="n0"))
    assert judged(made) == expected


@pytest.mark.parametrize(
    "text", ["{", '{"g1": 3}', '{"g1": {"cpu": "ten"}}', '{"g1": {"cpu": "-1"}}', '{"g1": {"cpu": true}}', "[]", ""]
)
def test_limits_that_cannot_be_read_close_the_queue_and_say_which(text):
    told = judged(desk(in_groups("g1", None), limited(text)))
    assert all(text.startswith("node group resource limit annotation invalid (queue q: ") for text in told)


def test_a_gang_is_cut_off_at_the_limit_and_the_rest_goes_to_another_group():
    made = Desk(config()).feed(*in_groups("g1", "g1", "g2"), limited({"g1": {"cpu": "5"}}), group("g", 8, queue="q"))
    made.feed(*(pod(f"p-{i}", "g", cpu="1") for i in range(8)))
    made.cycle()
    bound = [made.world.binds[f"p-{i}"] for i in range(8)]
    assert sum(name in ("n0", "n1") for name in bound) == 5
    assert bound.count("n2") == 3


def test_a_gang_that_the_limit_would_split_waits_whole():
    made = Desk(config()).feed(*in_groups("g1", "g1"), limited({"g1": {"cpu": "5"}}), group("g", 6, queue="q"))
    made.feed(*(pod(f"p-{i}", "g", cpu="1") for i in range(6)))
    record = made.cycle()
    assert made.world.binds == {}
    assert "2 node group resource limit exceeded (queue q may hold cpu 5 in g1)" in record.explain("a/g")


@settings(max_examples=drawn(60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_held_follows_every_step_and_every_undo(seed):
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    made = Desk(config()).feed(*in_groups("g1", "g2", None), limited({"g1": {"cpu": "9", "pods": "5"}, "g2": {}}))
    made.feed(group("g", 3, queue="q"))
    for i in range(8):
        placed = f"n{pick.randrange(3)}" if pick.random() < 0.5 else ""
        made.feed(pod(f"p{i}", "g", cpu=str(pick.randint(1, 3)), node=placed))
    session = made.session()
    held = limits.Limits(session, NodeGroup.name)
    session.add_handler(held.follow)
    holdings = held.holdings(made.cluster.queues["q"])
    statement = session.statement()
    marks = []
    for _ in range(12):
        task = pick.choice(list(made.cluster.tasks.values()))
        target = made.node(f"n{pick.randrange(3)}")
        match pick.randrange(5), task.status:
            case 0 | 1, Status.PENDING:
                statement.allocate([task], [target])
            case 2, Status.PENDING:
                statement.pipeline([task], [target])
            case 0 | 1, Status.RUNNING:
                statement.evict([task], "test")
            case 3, _:
                marks.append(statement.checkpoint())
            case 4, _ if marks:
                statement.rollback(marks.pop())
        for name, ceiling in holdings.ceilings.items():
            there = [
                t
                for t in made.cluster.tasks.values()
                if t.node is not None
                and t.node.labels.get(LABEL) == name
                and t.status not in (Status.RELEASING, Status.EVICTING)
            ]
            expected = sum((t.shape.request.vector[ceiling.columns] for t in there), np.zeros_like(ceiling.held))
            assert ceiling.held.tolist() == expected.tolist()
