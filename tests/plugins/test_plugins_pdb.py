"""pdb: budgets bound evictions, count our own until they are counted anew, and get back what is undone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, metadata, node, pod
from drawing import drawn
from pumice.plugins import pdb as budgets
from pumice.plugins.pdb import DisruptionBudgets

CONFIGURATION = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def budget(name, allowed, *, namespace="a", labels=None, disrupted=(), version="1"):
    made = metadata(name, namespace)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**made, "resourceVersion": version},
        "spec": {"selector": {"matchLabels": labels} if labels else {}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")},
    }


def desk(*manifests):
    return Desk(CONFIGURATION).feed(node("m1"), group("g", 0, phase="Running"), *manifests)


def member(name, **labels):
    return pod(name, "g", cpu="1", node="m1", labels=labels)


def opened(made):
    session = made.session()
    plugin = next(p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, DisruptionBudgets))
    return session, plugin


def kept(made, *names):
    _, plugin = opened(made)
    return [task.name for task in plugin.within_budgets(None, [made.task(name) for name in names])]


DB = {"app": "db"}
BOTH = {"app": "db", "tier": "back"}


@pytest.mark.parametrize(
    ("objects", "asked", "expected"),
    [
        pytest.param([budget("b", 1, labels=DB), member("t1", **DB), member("t2", **DB)], "t1 t2", "t1", id="PD1"),
        pytest.param([budget("b", 1, labels=DB), member("t1", **DB), member("t2", **DB)], "t2 t1", "t2", id="order"),
        pytest.param([budget("b", 0), member("t3")], "t3", "t3", id="PD2: no labels, no budget"),
        pytest.param([budget("b", 0), member("t1", any="label")], "t1", "", id="an empty selector is everybody"),
        pytest.param(
            [budget("b", 1, labels=DB, disrupted=["t1"]), member("t1", **DB), member("t2", **DB)],
            "t1 t2",
            "t1 t2",
            id="PD3",
        ),
        pytest.param(
            [budget("b", 1, labels=DB), budget("c", 0, labels={"tier": "back"}), member("t1", **BOTH)],
            "t1",
            "",
            id="PD4: both budgets must allow it",
        ),
        pytest.param(
            [
                budget("b", 1, labels=DB),
                budget("c", 0, labels={"tier": "back"}),
                member("t1", **BOTH),
                member("t2", **DB),
            ],
            "t1 t2",
            "",
            id="PD4: the one that is refused uses up the other budget",
        ),
        pytest.param([budget("b", 0, labels=DB, namespace="z"), member("t1", **DB)], "t1", "t1", id="namespace"),
        pytest.param([budget("b", 0, labels={"app": "web"}), member("t1", **DB)], "t1", "t1", id="other labels"),
        pytest.param([member("t1", **DB), member("t2", **DB)], "t1 t2", "t1 t2", id="no budgets"),
        pytest.param([budget("b", -1, labels=DB), member("t1", **DB)], "t1", "", id="below zero"),
    ],
)
def test_candidates_are_kept_while_their_budgets_last(objects, asked, expected):
    assert kept(desk(*objects), *asked.split()) == expected.split()


def test_asking_spends_nothing():
    made = desk(budget("b", 1, labels=DB), member("t1", **DB), member("t2", **DB))
    _, plugin = opened(made)
    tasks = [made.task("t1"), made.task("t2")]
    assert plugin.within_budgets(None, tasks) == plugin.within_budgets(None, tasks) == tasks[:1]


def test_an_eviction_protects_the_next_pod_with_the_numbers():
    made = desk(budget("b", 1, labels=DB), member("t1", **DB), member("t2", **DB))
    session, plugin = opened(made)
    assert plugin.protection(None, made.task("t2"), "preempt") is None
    session.statement().evict([made.task("t1")], "preempt")
    reason = plugin.protection(None, made.task("t2"), "preempt")
    assert reason == "PodDisruptionBudget a/b allows 1 disruptions, 1 are used up"


def test_a_budget_that_was_counted_anew_forgets_our_evictions():
    made = desk(budget("b", 1, labels=DB), member("t1", **DB), member("t2", **DB))
    session, _ = opened(made)
    session.statement().evict([made.task("t1")], "preempt")
    made.modify(budget("b", 1, labels=DB, version="2"))
    _, plugin = opened(made)
    assert plugin.protection(None, made.task("t2"), "preempt") is None


def test_pdb_names_no_victims_by_itself():
    session, _ = opened(desk(budget("b", 9, labels=DB), member("t1", **DB)))
    assert not list(session.victim_tasks)


@settings(max_examples=drawn(60), deadline=None)
@given(
    allowed=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    labelled=st.lists(st.sampled_from([{}, DB, BOTH]), min_size=1, max_size=6),
    picks=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=8),
)
def test_undone_evictions_give_budgets_back(allowed, labelled, picks):
    made = desk(
        budget("b", allowed[0], labels=DB),
        budget("c", allowed[1], labels={"tier": "back"}),
        *(member(f"t{i}", **labels) for i, labels in enumerate(labelled)),
    )
    session, _ = opened(made)
    known = list(made.cluster.objects["PodDisruptionBudget"].values())

    def left():
        return [budgets.remaining(made.cluster, each) for each in known]

    statement, gone = session.statement(), {}
    for index, goes in picks:
        task = made.task(f"t{index % len(labelled)}")
        if goes and task.name not in gone:
            statement.evict([task], "preempt")
            gone[task.name] = task
        elif not goes and gone.pop(task.name, None) is not None:
            statement.undo(task)
        expected = [
            budgets_allowed - sum(budgets.selects(each, task) for task in gone.values())
            for budgets_allowed, each in zip(allowed, known, strict=True)
        ]
        assert left() == expected
    statement.rollback(0)
    assert left() == list(allowed)


REQUIREMENTS = [
    {"key": "app", "operator": "In", "values": ["db", "web"]},
    {"key": "tier", "operator": "Exists"},
    {"key": "tier", "operator": "DoesNotExist"},
]


@settings(max_examples=drawn(80), deadline=None)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["db", "web", ""]), max_size=2),
            st.lists(st.sampled_from(REQUIREMENTS), max_size=2),
            st.booleans(),
        ),
        max_size=6,
    ),
    labelled=st.lists(
        st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["db", "web", ""]), max_size=2),
        min_size=1,
        max_size=4,
    ),
)
def test_budgets_that_are_found_by_a_label_are_those_of_which_each_was_asked(asked, labelled):
    made = desk(*(member(f"t{i}", **labels) for i, labels in enumerate(labelled)))
    for number, (namespace, labels, expressions, selected) in enumerate(asked):
        found = budget(f"b{number}", 1, namespace=namespace, labels=labels)
        if selected:
            found["spec"]["selector"]["matchExpressions"] = expressions
        else:
            del found["spec"]["selector"]
        made.feed(found)
    _, plugin = opened(made)
    known = made.cluster.objects.get("PodDisruptionBudget", {}).values()
    for number in range(len(labelled)):
        task = made.task(f"t{number}")
        every = [each for each in known if budgets.selects(each, task)]
        assert [plugin.protection(None, task, "preempt")] == [None]
        assert sorted(map(id, plugin.budgets_of(task))) == sorted(map(id, every))
