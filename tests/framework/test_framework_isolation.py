"""What a fault of a plugin means, for every extension point and every way of being wrong: it costs whoever it is about, and nobody else."""

from __future__ import annotations

import inspect

import faulty
import numpy as np
import pytest
from faulty import TABLE, Faulty

import recount
from builders import GANG, Desk, group, node, pod, priority_class, queue
from pumice.framework.breakdowns import LONGEST_REST, PluginBreakdownError
from pumice.framework.combining import AllInFirstTier, Refusals, Votes
from pumice.framework.job_domains import ALLOCATE
from pumice.framework.naming_tasks import Intersection
from pumice.framework.points import POINTS
from pumice.framework.subject import EvictionContext, Subject, demand

pytestmark = pytest.mark.retreats  # plugins that go wrong in every way also go wrong where many are asked about at once

PLACING = GANG.replace("{name: priority}", "{name: faulty}, {name: priority}")
BY_ATTRIBUTE = {point.attribute: point for point in POINTS}


def world(text, point, fault="raises"):
    Faulty.point, Faulty.fault, Faulty.calls = point, fault, 0
    return Desk(text, Faulty, queues=("root", "default", "bad-queue"))


# ---- every point by itself


def questions(session, name):
    """What each point is asked with about the job of a name."""
    job, task = session.cluster.jobs[f"a/{name}"], session.cluster.jobs[f"a/{name}"].tasks[f"a.{name}-0"]
    line, root = session.cluster.queues[job.queue], session.topology.tree.root
    table = session.cluster.nodes
    sub_job, subject = next(iter(job.sub_jobs.values()), None) or task.sub_job, Subject(task, line)
    record, view = table.records[0], table.view()
    running = [each for each in session.cluster.tasks.values() if each.node is not None]
    return {
        "job_order": (job,),
        "queue_order": (line,),
        "task_order": (task,),
        "sub_job_order": (sub_job,),
        "victim_queue_order": (line, line),
        "sub_job_ready": (sub_job,),
        "sub_job_pipelined": (sub_job,),
        "overused": (line,),
        "allocatable": (line, demand([task])),
        "preemptive": (line, demand([task])),
        "simulate_allocatable": (line, demand([task])),
        "pre_predicate": (subject,),
        "predicate": (subject, view),
        "score": (subject, view),
        "best_node": (subject, view, np.zeros(len(view))),
        "hyper_node_order": (sub_job, [root]),
        "job_gradient": (job, root, ALLOCATE),
        "sub_job_gradient": (sub_job, root, ALLOCATE),
        "preemptable": (task, running),
        "reclaimable": (task, running),
        "unified_evictable": (EvictionContext("gangpreempt", job), running),
        "protection": (None, task, "preempt"),
        "victim_tasks": ([task],),
        "simulate_remove_task": (task, task, record),
        "simulate_add_task": (task, task, record),
        "simulate_predicate": (task, record),
        "pre_bind": (task, record),
    } | dict.fromkeys(
        (
            "job_valid",
            "job_enqueueable",
            "job_enqueued",
            "job_ready",
            "job_pipelined",
            "job_starving",
            "job_delay",
            "job_blocked",
            "due",
        ),
        (job,),
    )


def asked(session, point, args, others=None):
    """Ask one point as the actions do, an order about somebody and somebody else."""
    extension = getattr(session, point)
    if point == "predicate":
        return session.evaluate(args[0]).mask(released=False).tolist()
    if point == "score":
        evaluation = session.evaluate(args[0])
        evaluation.refresh_scores()
        return evaluation.plain.tolist()
    if point in faulty.ORDERS:
        return extension.compare(args[0], (others or args)[0], *args[1:])
    return extension(*args)


@pytest.mark.parametrize(("point", "fault"), TABLE)
def test_a_fault_is_a_refusal_where_plugins_refuse_and_else_leaves_the_function_out_or_gives_the_job_up(point, fault):
    made = world('actions: "allocate"\ntiers: [{plugins: [{name: faulty}]}]\n', point, fault).feed(
        node("n1", cpu="8"),
        group("bad", 1, queue="bad-queue"),
        group("good", 1),
        *(pod(f"{name}-0", name, cpu="1") for name in ("bad", "good")),
        pod("runs-0", "runs", cpu="1", node="n1"),
        group("runs", 1),
    )
    session = made.session()
    before = recount.fingerprint(made.cluster)
    bad, good = questions(session, "bad"), questions(session, "good")
    kind = BY_ATTRIBUTE[point].kind
    if point in faulty.GIVING_UP:
        attempt = session.attempt(session.cluster.jobs["a/bad"])
        with attempt:
            asked(session, point, bad[point])
            raise AssertionError("the job was not given up")
    else:
        answer = asked(session, point, bad[point], good[point])
        if issubclass(kind, Refusals):
            text = getattr(answer, "message", answer)
            assert f"plugin faulty broke down at {BY_ATTRIBUTE[point].name} (" in text
            assert "faulty.py line " in text
        elif issubclass(kind, Votes):
            assert answer.value < 0
            assert "plugin faulty broke down at" in answer.reason
        elif point == "predicate":
            assert answer == [False]
        elif point in faulty.ORDERS:
            assert not getattr(session, point).active
        else:
            assert not answer
            assert issubclass(kind, Intersection) or point in faulty.TRUTHS or point == "victim_tasks"
    (found,) = session.breakdowns.found.values()
    where = "_raises" if fault == "raises" else "Faulty.asked"
    assert (found.plugin, found.point, found.routine) == ("faulty", BY_ATTRIBUTE[point].name, where)
    assert found.place.startswith("faulty.py line ")
    if kind is not AllInFirstTier and point != "victim_tasks":
        expected = {"predicate": [True], "score": [0.0]}.get(point)
        neutral = asked(session, point, good[point])
        assert neutral == expected if expected else True
    assert len(session.breakdowns.found) == 1
    session.rollback()
    assert recount.fingerprint(made.cluster) == before


def test_every_point_is_in_the_table():
    assert {point for point, _ in TABLE} == {point.attribute for point in POINTS}


# ---- whole cycles


def placing(point, fault="raises"):
    made = world(PLACING, point, fault).feed(
        node("n1", cpu="2"),
        node("n2", cpu="2"),
        group("bad", 3, queue="bad-queue", minResources={"cpu": "3"}),
        *(pod(f"bad-{i}", "bad", cpu="1") for i in range(3)),
        group("good", 2, created=9, minResources={"cpu": "2"}),
        *(pod(f"good-{i}", "good", cpu="1", created=9) for i in range(2)),
        group("light-bad", 1, queue="bad-queue"),
        pod("light-bad-0", "light-bad"),
        group("light", 1),
        pod("light-0", "light"),
    )
    record = made.cycle()
    return made, record


GANG_OF_THREE, NEIGHBOUR = {"bad-0", "bad-1", "bad-2"}, {"good-0", "good-1", "light-0"}
REFUSED = [
    "job_valid",
    "job_enqueueable",
    "job_enqueued",
    "job_ready",
    "overused",
    "allocatable",
    "pre_predicate",
    "predicate",
    "score",
    "best_node",
    "pre_bind",
    "handler",
]
PLACES = [
    (point, fault) for point in REFUSED for fault in (faulty.faults_of(point) if point != "handler" else ["raises"])
]


@pytest.mark.parametrize(("point", "fault"), PLACES)
def test_a_job_that_a_plugin_breaks_down_about_waits_and_its_neighbours_are_served_in_the_same_cycle(point, fault):
    made, record = placing(point, fault)
    assert set(made.world.binds) >= NEIGHBOUR
    assert not GANG_OF_THREE & set(made.world.binds)
    recount.check(made.cluster)
    told = "\n".join(record.trace())
    assert "plugin faulty broke down at " in told
    assert "faulty.py line " in told
    explained = record.explain("a/bad") + record.explain("a/light-bad")
    assert "plugin faulty broke down at " in explained


@pytest.mark.parametrize("point", ["job_order", "queue_order"])
@pytest.mark.parametrize("fault", ["raises", "wrong type", "NaN"])
def test_an_order_that_breaks_down_is_left_out_and_everybody_is_served(point, fault):
    made, record = placing(point, fault)
    assert len(set(made.world.binds) & GANG_OF_THREE) in (0, 3)
    assert "light-0" in made.world.binds
    assert made.world.binds
    assert f"plugin faulty broke down at {BY_ATTRIBUTE[point].name} (" in "\n".join(record.trace())
    recount.check(made.cluster)


def test_tasks_that_cannot_be_ordered_leave_their_job_waiting_and_no_other():
    made, record = placing("task_order")
    assert set(made.world.binds) >= NEIGHBOUR
    assert not GANG_OF_THREE & set(made.world.binds)
    assert "plugin faulty broke down at TaskOrder (" in record.explain("a/bad")


def test_the_reason_is_told_to_the_pods_of_the_job():
    made, _ = placing("score")
    (patch,) = [each for each in made.world.patches("Pod") if each.name == "bad-0"]
    text = str(patch)
    assert "plugin faulty broke down at NodeOrder (_raises, faulty.py line " in text
    assert "FaultError: in score" in text


# ---- opening and closing


def test_a_plugin_that_cannot_be_opened_refuses_what_it_might_have_refused(monkeypatch):
    monkeypatch.setattr(Faulty, "points", frozenset({"JobReady", "JobOrder"}))
    made, record = placing("open")
    assert not made.world.binds
    assert "plugin faulty broke down at open (" in "\n".join(record.trace())
    assert "plugin faulty broke down at open (" in record.explain("a/good")
    recount.check(made.cluster)


def test_a_plugin_that_only_orders_and_cannot_be_opened_is_done_without(monkeypatch):
    monkeypatch.setattr(Faulty, "points", frozenset({"JobOrder", "NodeOrder"}))
    made, record = placing("open")
    assert {"bad-0", "light-0"} <= set(made.world.binds) or set(made.world.binds) >= NEIGHBOUR
    assert "plugin faulty broke down at open (" in "\n".join(record.trace())


def test_a_plugin_that_breaks_down_while_it_is_opened_is_asked_nothing_though_it_had_registered_something(monkeypatch):
    asked = []

    def half_open(_self, session):
        session.job_order.add(lambda job: asked.append(job.key) or 0)
        session.job_ready.add(lambda job: asked.append(job.key) or True)
        raise ValueError("halfway")

    monkeypatch.setattr(Faulty, "points", frozenset({"JobOrder"}))
    monkeypatch.setattr(Faulty, "open", half_open)
    made, _ = placing("open")
    assert asked == []
    assert made.world.binds


def test_a_plugin_that_breaks_down_at_close_costs_nobody_anything():
    made, record = placing("close")
    assert made.world.binds
    assert "plugin faulty broke down at close (" in "\n".join(record.trace())


# ---- evictions

EVICTING = """
actions: "enqueue, allocate, {action}"
configurations: [{{name: preempt, arguments: {{enableTopologyAwarePreemption: true}}}}]
tiers:
- plugins: [{{name: faulty}}, {{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: nodeorder}}, {{name: {sharing}}}]
"""


def evicting(point, fault="raises", action="preempt"):
    """Two claimants and two victims; a rule that breaks down about one claimant, or about one victim, leaves the others theirs."""
    text = EVICTING.format(action=action, sharing="binpack" if action.endswith("preempt") else "proportion")
    if action != "preempt":
        text = text.replace("configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n", "")
    theirs = "default" if action.endswith("preempt") else "rich"
    return world(text, point, fault).feed(
        queue("rich", weight=1),
        priority_class("high", 100),
        *(node(f"n{i}", cpu="2") for i in range(2)),
        *(group(f"victim-{i}", 1, queue=theirs) for i in range(2)),
        *(pod(f"victim-{i}-{k}", f"victim-{i}", cpu="1", node=f"n{i}") for i in range(2) for k in range(2)),
        group("bad", 1, priorityClassName="high"),
        pod("bad-0", "bad", cpu="1", priority=100),
        group("good", 1, created=5, priorityClassName="high"),
        pod("good-0", "good", cpu="1", created=5, priority=100),
    )


RULES = [
    ("job_starving", "preempt"),
    ("preemptable", "preempt"),
    ("simulate_predicate", "preempt"),
    ("simulate_allocatable", "preempt"),
    ("simulate_remove_task", "preempt"),
    ("allocatable", "preempt"),
    ("pre_predicate", "preempt"),
    ("predicate", "preempt"),
    ("unified_evictable", "gangpreempt"),
    ("job_starving", "gangpreempt"),
]


@pytest.mark.parametrize(("point", "action"), RULES)
@pytest.mark.parametrize("fault", ["raises", "wrong type"])
def test_nobody_is_evicted_for_a_claimant_that_a_rule_breaks_down_about_and_others_are_served(point, action, fault):
    sound = evicting("", action=action)
    sound.cycle()
    assert len(sound.world.evictions) == 2
    made = evicting(point, fault, action)
    record = made.cycle()
    assert len(made.world.evictions) == 1
    assert {task.name for task in made.cluster.tasks.values() if task.uid in made.scheduler.reservations.holds} == {
        "good-0"
    }
    assert "plugin faulty broke down at " in record.explain("a/bad")
    recount.check(made.cluster)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
@pytest.mark.parametrize("fault", ["raises", "wrong type"])
def test_a_protection_that_breaks_down_protects(action, fault):
    made = evicting("protection", fault, action).feed(
        node("n2", cpu="2"),
        group("kept-bad", 1),
        *(pod(f"kept-bad-{k}", "kept-bad", cpu="1", node="n2") for k in range(2)),
        group("third", 1, created=7, priorityClassName="high"),
        pod("third-0", "third", cpu="1", created=7, priority=100),
    )
    made.cycle()
    assert made.world.evictions
    assert not [name for name in made.world.evictions if "bad" in name]
    assert Faulty.calls
    recount.check(made.cluster)


# ---- in a row


def test_a_function_that_breaks_down_again_and_again_is_asked_ever_more_seldom_but_at_last_again():
    made, _ = placing("allocatable")
    asked_in = []
    for cycle in range(2, 300):
        before = Faulty.calls
        record = made.cycle()
        assert not record.skipped
        assert any(each.plugin == "faulty" for each in made.scheduler.engine.breakdowns)
        assert "plugin faulty broke down at Allocatable (" in record.explain("a/bad")
        if Faulty.calls > before:
            asked_in.append(cycle)
    assert asked_in == [2, 4, 8, 16, 32, 64, 128, 192, 256]  # and in cycle 1
    assert LONGEST_REST == 63
    Faulty.point = "nowhere"
    made.delete(*(pod(f"good-{i}", "good", cpu="1", created=9) for i in range(2)))
    for _ in range(LONGEST_REST + 2):
        made.cycle()
    assert set(made.world.binds) >= GANG_OF_THREE
    assert not made.scheduler.engine.breakdowns
    assert "broke down" not in made.cache.record.explain("a/bad")


def test_what_broke_down_about_a_job_that_is_gone_is_forgotten():
    made, _ = placing("allocatable")
    for _ in range(4):
        made.cycle()
    assert made.scheduler.engine.breakdowns
    made.delete(group("bad", 3), *(pod(f"bad-{i}", "bad", cpu="1") for i in range(3)))
    made.cycle()
    assert not made.scheduler.engine.breakdowns


def test_handlers_hear_of_everything_however_often_they_break_down():
    made, _ = placing("handler")
    for _ in range(6):
        made.cycle()
        assert [each.resting for each in made.scheduler.engine.breakdowns if each.point == "handler"]
        assert not any(each.resting for each in made.scheduler.engine.breakdowns)


def test_a_cycle_without_a_breakdown_starts_the_count_anew():
    made, _ = placing("allocatable")
    Faulty.point = "nowhere"
    made.cycle()
    assert not made.scheduler.engine._streaks  # noqa: SLF001  what is remembered of it shows only cycles later


def test_whoever_breaks_down_inside_another_plugins_question_is_the_one_named():
    made = world('actions: "allocate"\ntiers: [{plugins: [{name: faulty}]}]\n', "due").feed(
        node("n1"), group("bad", 1), pod("bad-0", "bad", cpu="1")
    )
    session = made.session()
    job = session.cluster.jobs["a/bad"]
    outer = session.job_enqueueable
    session._roster.slot = None  # noqa: SLF001  as where nobody is asked
    with pytest.raises(PluginBreakdownError) as raised:
        session.due(job)
    assert outer.broke(next(iter(session.due)), raised.value, (job,)) is raised.value
    assert inspect.getmodule(type(raised.value.breakdown.error)) is faulty
