"""task-topology: buckets of roles, the order they give, the score of nodes, and what placements and undo do to them."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework.subject import Subject
from pumice.model.statuses import Status
from pumice.plugins.task_topology import TaskTopology

AFFINITY, ANTI, ORDER = (f"volcano.sh/task-topology-{part}" for part in ("affinity", "anti-affinity", "task-order"))
TT = {AFFINITY: "ps,worker", ANTI: "ps"}


def config(weight=1):
    plugins = [
        {"name": "gang"},
        {"name": "predicates"},
        {"name": "task-topology", "arguments": {"task-topology.weight": weight}},
    ]
    return json.dumps({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": plugins}]})


def roles(**counts):
    """Pods `ROLE-0`, `ROLE-1` … of one core each."""
    return [pod(f"{role}-{i}", "g", cpu="1", role=role) for role, count in counts.items() for i in range(count)]


def desk(annotations, pods, *nodes, weight=1, minimum=1):
    made = Desk(config(weight)).feed(*nodes, group("g", minimum, annotations=annotations), *pods)
    session = made.session()
    plugin = next(p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, TaskTopology))
    return made, session, plugin


def held(made, plugin):
    """The buckets by the names of their tasks."""
    found = plugin.buckets(made.cluster.jobs["a/g"])
    return None if found is None else [[task.name for task in bucket.tasks] for bucket in found.all]


def ordered(made, session):
    return [task.name for task in session.task_order.sort(made.cluster.jobs["a/g"].pending.values())]


def scores(made, plugin, name):
    subject, table = Subject(made.task(name)), made.cluster.nodes
    if plugin.applies(subject, table.view()) is None:
        return None
    return [round(points, 2) for points in plugin.closeness(subject, table).points(table.rows).tolist()]


# ---- worked cases


def test_tt1_roles_that_attract_each_other_share_a_bucket_and_come_together():
    made, session, plugin = desk(TT, roles(ps=2, worker=4))
    assert held(made, plugin) == [["ps-0", "worker-0", "worker-2"], ["ps-1", "worker-1", "worker-3"]]
    assert ordered(made, session) == ["ps-0", "worker-0", "worker-2", "ps-1", "worker-1", "worker-3"]


def test_tt2_a_node_scores_by_how_much_of_the_bucket_fits():
    made, _, plugin = desk(TT, roles(ps=2, worker=4), node("n0", "2"), node("n1", "1"), node("n2", "4"))
    assert scores(made, plugin, "ps-0") == [66.67, 33.33, 100]


def test_tt3_a_node_with_what_a_role_shuns_scores_less():
    made, session, plugin = desk(TT, roles(ps=2, worker=4), node("n0", "2"), node("n1", "1"), node("n2", "4"))
    plugin.buckets(made.cluster.jobs["a/g"])
    first = [made.task(name) for name in ("ps-0", "worker-0", "worker-2")]
    session.statement().allocate(first, [made.node("n2")] * 3)
    assert scores(made, plugin, "ps-1") == [66.67, 33.33, 0]
    assert scores(made, plugin, "worker-1") == [66.67, 33.33, 33.33]


@pytest.mark.parametrize("weight", [0, 1, 3])
def test_the_weight_scales_the_score(weight):
    made, session, plugin = desk(TT, roles(ps=2, worker=4), node("n0", "2"), weight=weight)
    assert [r.plugin for r in session.score] == (["task-topology"] if weight else [])
    assert scores(made, plugin, "ps-0") == [round(200 / 3 * weight, 2)]


# ---- buckets


@pytest.mark.parametrize(
    ("annotations", "pods", "expected"),
    [
        pytest.param({AFFINITY: "w"}, roles(w=3), [["w-0", "w-1", "w-2"]], id="a role that attracts its own kind"),
        pytest.param({ANTI: "w"}, roles(w=3), [["w-0"], ["w-1"], ["w-2"]], id="a role that shuns its own kind"),
        pytest.param({ANTI: "a,b"}, roles(a=2, b=2), [["a-0", "a-1"], ["b-0", "b-1"]], id="roles that shun each other"),
        pytest.param(
            {AFFINITY: "a,b;c"}, roles(c=1, b=1, a=1), [["a-0", "b-0", "c-0"]], id="who minds nobody joins the first"
        ),
        pytest.param(
            TT, roles(ps=1, worker=1, other=2), [["ps-0", "worker-0"]], id="roles without a topology are in no bucket"
        ),
        pytest.param(
            {AFFINITY: "a,b", ANTI: "a"},
            roles(a=2, b=1),
            [["a-0", "b-0"], ["a-1"]],
            id="who shuns its kind comes first",
        ),
        pytest.param(
            {AFFINITY: "a,b", ANTI: "a", ORDER: "b"}, roles(a=2, b=1), [["b-0", "a-0", "a-1"]], id="the user's order"
        ),
        pytest.param({AFFINITY: " a , b ; ", ANTI: ""}, roles(a=1, b=1), [["a-0", "b-0"]], id="blanks mean nothing"),
    ],
)
def test_tasks_join_what_attracts_them_and_leave_what_they_shun(annotations, pods, expected):
    made, _, plugin = desk(annotations, pods)
    assert held(made, plugin) == expected


def test_equal_tasks_join_the_lightest_bucket():
    heavy = pod("ps-0", "g", cpu="1", memory="64Gi", role="ps")
    made, _, plugin = desk(TT, [heavy, *roles(worker=2), pod("ps-1", "g", cpu="1", role="ps")])
    assert held(made, plugin) == [["ps-0"], ["ps-1", "worker-0", "worker-1"]]


def test_placed_tasks_share_a_bucket_per_node_and_come_first():
    running = [pod("ps-0", "g", cpu="1", role="ps", node="n1"), pod("worker-0", "g", cpu="1", role="worker", node="n1")]
    other = pod("worker-9", "g", cpu="1", role="worker", node="n0")
    going = pod("worker-8", "g", cpu="1", role="worker", node="n0", deleting=True)
    waiting = [pod(name, "g", cpu="1", role=name[:-2]) for name in ("ps-1", "worker-1")]
    made, _, plugin = desk(TT, [*running, other, going, *waiting], node("n0"), node("n1"))
    assert held(made, plugin) == [["ps-0", "worker-0", "worker-1"], ["worker-9", "ps-1"]]
    # One of the bucket is there and it fits itself; the other node has a server already.
    assert scores(made, plugin, "ps-1") == [66.67, 0]


def test_the_largest_bucket_comes_first_and_tasks_in_none_come_last():
    made, session, _ = desk({AFFINITY: "a;b", ANTI: "a,b"}, roles(c=1, a=1, b=3))
    assert ordered(made, session) == ["b-0", "b-1", "b-2", "a-0", "c-0"]


def test_a_task_in_no_bucket_and_a_job_without_topology_have_no_score():
    made, _, plugin = desk(TT, roles(ps=1, worker=1, other=1), node("n0"))
    assert scores(made, plugin, "other-0") is None
    made, _, plugin = desk(None, roles(ps=1, worker=1), node("n0"))
    assert scores(made, plugin, "ps-0") is None
    assert plugin.order(made.task("ps-0")) == plugin.order(made.task("worker-0"))


def test_the_role_is_that_of_the_annotation():
    labelled = pod("ps-1", "g", cpu="1", labels={"volcano.sh/task-spec": "ps"})
    made, _, plugin = desk(TT, [*roles(ps=1, worker=1), labelled])
    assert held(made, plugin) == [["ps-0", "worker-0"]]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({AFFINITY: "ps,wroker"}, f"{AFFINITY} names role wroker, which no pod of the job has"),
        ({AFFINITY: "ps,worker", ANTI: "ps,ps"}, f"{ANTI} names role ps twice in ps,ps"),
        ({AFFINITY: "ps", ORDER: "chief"}, f"{ORDER} names role chief, which no pod of the job has"),
    ],
)
def test_an_unknown_role_or_one_named_twice_voids_the_topology_and_explain_says_so(annotations, told):
    made, _, plugin = desk(annotations, roles(ps=1, worker=1))
    assert held(made, plugin) is None
    assert f"task-topology (cycle 0): the topology is ignored: {told}" in made.cache.record.explain("a/g")
    made.modify(group("g", 1, annotations=TT)).session()
    assert held(made, plugin) == [["ps-0", "worker-0"]]
    assert "ignored" not in made.cache.record.explain("a/g")


# ---- whole cycles


def test_equal_pods_of_different_buckets_are_told_apart():
    """Both servers are of one shape and one role, one after the other; each goes where its own bucket fits."""
    nodes = [node("n0", "3"), node("n1", "3")]
    made, *_ = desk({ANTI: "ps"}, roles(ps=2), *nodes, minimum=2)
    made.cycle()
    assert sorted(made.world.binds.values()) == ["n0", "n1"]


def test_a_pod_of_a_later_cycle_shuns_what_is_there():
    made, *_ = desk({ANTI: "ps"}, roles(ps=1), node("n0", "8"), node("n1", "9"))
    made.cycle()
    assert made.world.binds == {"ps-0": "n0"}
    made.modify(pod("ps-0", "g", cpu="1", role="ps", node="n0"))
    made.feed(pod("ps-1", "g", cpu="1", role="ps")).cycle()
    assert made.world.binds["ps-1"] == "n1"


# ---- properties

SEEDS = st.integers(0, 2**32)


def plain_buckets(pods, affine, anti, weights):
    """The rule as it reads: look at every bucket for every task."""
    buckets = []
    for name, role in pods:
        likings = [
            sum((r in affine.get(role, ())) - (r in anti.get(role, ())) for _, r in bucket) for bucket in buckets
        ]
        best = max(likings, default=-1)
        if best < 0:
            buckets.append([(name, role)])
            continue
        fitting = [bucket for bucket, liking in zip(buckets, likings, strict=True) if liking == best]
        min(fitting, key=lambda bucket: sum(weights[n] for n, _ in bucket)).append((name, role))
    return [[name for name, _ in bucket] for bucket in buckets]


@settings(max_examples=drawn(100), deadline=None)
@given(SEEDS)
def test_buckets_are_those_of_the_plain_rule(seed):
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    names = "abcd"[: pick.randint(1, 4)]
    groups = {
        kind: [pick.sample(names, pick.randint(1, len(names))) for _ in range(pick.randint(0, 2))]
        for kind in (AFFINITY, ANTI)
    }
    pods, weights = [], {}
    for role in names:
        for i in range(pick.randint(1, 5)):
            cpu = pick.randint(1, 3)
            weights[f"{role}{i}"] = cpu * 1000 + 1
            pods.append(pod(f"{role}{i}", "g", cpu=str(cpu), role=role))
    relations = {AFFINITY: {}, ANTI: {}}
    strength = dict.fromkeys(names, 0)
    for kind, alone, together in ((AFFINITY, 2, 3), (ANTI, 4, 1)):
        for listed in groups[kind]:
            for role in listed:
                relations[kind].setdefault(role, set()).update(listed if len(listed) == 1 else set(listed) - {role})
                strength[role] = max(strength[role], alone if len(listed) == 1 else together)
    written = {kind: ";".join(",".join(listed) for listed in groups[kind]) for kind in groups}
    made, _, plugin = desk(written, pods)
    related = sorted((-strength[n[0]], n) for n in weights if strength[n[0]])
    expected = plain_buckets([(n, n[0]) for _, n in related], relations[AFFINITY], relations[ANTI], weights)
    assert held(made, plugin) == expected


def state(buckets):
    return [
        (sorted(bucket.placed.items()), sorted(bucket.waiting), [t.name for t in bucket.tasks])
        for bucket in buckets.all
    ], sorted((row, sorted(counts.items())) for row, counts in buckets.on_row.items())


@settings(max_examples=drawn(100), deadline=None)
@given(SEEDS)
def test_buckets_follow_every_step_and_undo_restores_them(seed):
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    pods = [
        pod(f"{role}-{i}", "g", cpu="1", role=role, node=pick.choice(["", "", "n0", "n1"]))
        for role, count in (("ps", 3), ("worker", 4), ("other", 1))
        for i in range(count)
    ]
    made, session, plugin = desk(TT, pods, node("n0"), node("n1"), node("n2"))
    job = made.cluster.jobs["a/g"]
    buckets = plugin.buckets(job)
    start = state(buckets)
    statement = session.statement()
    kept = []
    for _ in range(14):
        task = pick.choice(list(job.tasks.values()))
        target = made.node(f"n{pick.randrange(3)}")
        match pick.randrange(6), task.status:
            case 0 | 1, Status.PENDING:
                statement.allocate([task], [target])
            case 2, Status.PENDING:
                statement.pipeline([task], [target])
            case 0 | 1, Status.RUNNING:
                statement.evict([task], "test")
            case 3, _:
                kept.append((statement.checkpoint(), state(buckets)))
            case 4, _ if kept:
                mark, before = kept.pop()
                statement.rollback(mark)
                assert state(buckets) == before
            case 5, _:
                statement.undo(task)
                kept.clear()
        there = [
            t for t in job.tasks.values() if t.node is not None and t.status not in (Status.RELEASING, Status.EVICTING)
        ]
        counted = {}
        for placed in there:
            counts = counted.setdefault(placed.node.row, {})
            counts[placed.role] = counts.get(placed.role, 0) + 1
        assert buckets.on_row == counted
        for bucket in buckets.all:
            assert list(bucket.in_order()) == [t for t in bucket.tasks if t.status == Status.PENDING]
            assert sum(bucket.placed.values()) == sum(t in there for t in bucket.tasks)
    statement.discard()
    assert state(buckets) == start


@settings(max_examples=drawn(60), deadline=None)
@given(SEEDS)
def test_a_score_counts_what_is_there_what_fits_and_what_is_shunned_within_bounds(seed):
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    pods = [
        pod(f"{role}-{i}", "g", cpu=str(pick.randint(1, 3)), role=role, node=pick.choice(["", "", "", "n0", "n1"]))
        for role, count in (("ps", 3), ("worker", 4))
        for i in range(count)
    ]
    sizes = {f"n{i}": pick.randint(4, 24) for i in range(3)}
    made, _, plugin = desk(TT, pods, *(node(name, str(size)) for name, size in sizes.items()))
    buckets = plugin.buckets(made.cluster.jobs["a/g"])
    for task in list(made.cluster.jobs["a/g"].pending.values()):
        bucket = buckets.of[task.uid]
        found = plugin.closeness(Subject(task), made.cluster.nodes).points(made.cluster.nodes.rows)
        for row, name in enumerate(sorted(sizes)):
            there = [t for t in made.cluster.tasks.values() if t.node is made.node(name)]
            free = sizes[name] * 1000 - sum(t.shape.request.amounts["cpu"] for t in there)
            together = 0
            for other in [task, *(t for t in bucket.tasks if t.status == Status.PENDING and t is not task)]:
                free -= other.shape.request.amounts["cpu"]
                if free < 0:
                    break
                together += 1
            shunned = sum(task.role == "ps" == t.role for t in there)
            expected = together + sum(t in bucket.tasks for t in there) - shunned if together else 0
            assert found[row] == pytest.approx(100 * expected / buckets.largest)
        assert np.all(found <= 100)


@settings(max_examples=drawn(60), deadline=None)
@given(SEEDS)
def test_a_score_that_is_followed_stays_the_score_that_is_asked_for_anew(seed):
    pick = random.Random(seed)  # noqa: S311  a test's own dice
    sizes = {role: str(pick.randint(1, 2)) for role in ("ps", "worker")}
    pods = [
        pod(f"{role}-{i}", "g", cpu=sizes[role], role=role, node=pick.choice(["", "", "", "n0"]))
        for role, count in (("ps", 3), ("worker", 6))
        for i in range(count)
    ]
    annotations = pick.choice([TT, {AFFINITY: "ps,worker;worker"}, {AFFINITY: "ps,worker", ANTI: "worker"}])
    made, session, plugin = desk(annotations, pods, *(node(f"n{i}", str(pick.randint(6, 20))) for i in range(3)))
    table = made.cluster.nodes
    for bucket in plugin.buckets(made.cluster.jobs["a/g"]).all:
        equal = [t for t in bucket.in_order() if t.role == "worker"]
        if not equal:
            continue
        followed = plugin.closeness(Subject(equal[0]), table)
        for placed, following in itertools.pairwise(equal):
            row = pick.randrange(3)
            session.statement().allocate([placed], [table.records[row]])
            followed.place(row)
            anew = plugin.closeness(Subject(following), table)
            assert followed.points(table.rows).tolist() == anew.points(table.rows).tolist()
