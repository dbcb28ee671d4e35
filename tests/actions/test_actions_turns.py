"""Whose turn it is, and in which order the tasks of jobs are tried."""

from __future__ import annotations

import pytest
from test_actions_small_rules import waiting
from test_actions_small_worlds import Licensed, holders

from builders import Desk, group, node, pod, queue
from pumice.actions.placing import turn_order, waiting_tasks
from pumice.framework import observing
from pumice.framework.plugin import Plugin
from pumice.framework.reads import NOTHING, Reads

# -- many turns of one queue -----------------------------------------------------------------------------------


def begun(**jobs):
    """Give an order of turns in which a queue has its turn, and who waits."""
    listed = waiting(**jobs)
    order = turn_order.TurnOrder(listed)
    order.queue()
    return order, listed


def led(order, count=9, suits=lambda _: True):
    return [entry[2].name for entry in order.lead(count, suits)]


@pytest.mark.parametrize(
    ("jobs", "suitable", "leading"),
    [
        (3, "a0 a1 a2", ["a0", "a1", "a2"]),
        (3, "a0 a1", ["a0", "a1"]),
        (3, "a0 a2", []),  # one is not many
        (2, "a0 a1", ["a0", "a1"]),
        (1, "a0", []),
        (3, "", []),
    ],
)
def test_those_lead_who_suit_up_to_the_first_who_does_not(jobs, suitable, leading):
    order, listed = begun(a=jobs)
    assert led(order, suits=lambda job: job.name in suitable.split()) == leading
    order.end(kept=True)
    assert len(listed.jobs["a"]) == jobs  # nobody had a turn


def test_nobody_leads_before_a_queue_has_its_turn_nor_where_branches_say_who_is_next():
    listed = waiting(a=3)
    assert led(turn_order.TurnOrder(listed)) == []
    order = turn_order.TurnOrder(turn_order.Waiting(listed.queues, {"a": [1, 2, 3]}, {}))
    assert order.queue() is not None
    assert led(order) == []


def test_the_first_are_named_and_wait_on():
    order, listed = begun(a=3)
    assert [job.name for job in order.first(2)] == ["a0", "a1"]
    assert len(listed.jobs["a"]) == 3
    assert not order.is_unmoved  # nobody leads
    assert order.leave([]) == 0


def test_those_who_lead_leave_until_another_one_would_come_first():
    order, listed = begun(a=3)
    turns = order.lead(2, lambda _: True)
    assert order.is_unmoved
    assert order.leave(turns) == 2
    moved = turns[0][2]
    listed.jobs["a"].touch(listed.jobs["a"].waiting()[0])
    assert not order.is_unmoved
    order.took(moved, again=False)
    order.end(kept=True)
    assert sorted(job.name for job in listed.jobs["a"].waiting()) == ["a1", "a2"]


@pytest.mark.parametrize(
    ("jobs", "contended"), [({"a": 1}, False), ({"a": 2}, True), ({"a": 1, "b": 1}, True), ({"a": 3}, True)]
)
def test_a_turn_is_contended_if_anybody_waits_beside(jobs, contended):
    order, _ = begun(**jobs)
    owner = order.queue()
    order.job(owner)
    assert order.is_contended(owner) is contended


@pytest.mark.parametrize(("jobs", "following"), [({"a": 2, "b": 1}, "b"), ({"a": 2}, "a")])
def test_after_a_turn_the_queue_that_is_first_by_now_is_next(jobs, following):
    order, _ = begun(**jobs)
    owner = order.queue()
    job = order.job(owner)
    owner.number = 9
    order.go_on(owner, job, again=False)
    assert order.queue().name == following


# -- the tasks of jobs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("held", [False, True])
def test_the_tasks_of_each_job_are_listed_in_their_order(count, held):
    desk = holders(1) if held else Desk()
    for name in "gh":
        desk.feed(group(name, 1, phase="Inqueue"))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1", priority=i) for i in range(count)))
    session = desk.session()
    assert bool(session.reserved) is held
    session.resting_holders = {}
    jobs = [desk.task("g-0").job, desk.task("h-0").job]
    _, work = waiting_tasks.listed(session, jobs, "allocate")
    for job in jobs:
        assert [task.name for task in work[job.key]] == [f"{job.name}-{i}" for i in reversed(range(count))]
        assert waiting_tasks.eligible(session, job, job.pending.values()) == work[job.key]


class Fragile(Plugin):
    """Breaks down where it orders the tasks of one job."""

    name = "fragile"
    points = frozenset({"TaskOrder"})

    def open(self, session):
        session.task_order.add(lambda task: 1 / (task.job.name != "b") and -task.priority)


@pytest.mark.retreats
def test_a_job_whose_tasks_cannot_be_ordered_costs_nobody_else_his_order_and_that_is_told(monkeypatch):
    retreats = []
    monkeypatch.setattr(observing.Observer, "retreated", lambda _, way, error: retreats.append((way, type(error))))
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: fragile}]\n'
    desk = Desk(text, Fragile).feed(node("n", "1"))
    for name in "ab":
        desk.feed(group(name, 1, phase="Inqueue"))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1", priority=i) for i in range(2)))
    desk.cycle()
    assert list(desk.world.binds) == ["a-1"]
    assert retreats == [("task order", ZeroDivisionError)]


class Endless(Plugin):
    """Gives no number where it orders the tasks of one job."""

    name = "endless"
    points = frozenset({"TaskOrder"})

    def open(self, session):
        session.task_order.add(lambda task: float("nan") if task.job.name == "b" else -task.priority)


@pytest.mark.retreats
def test_a_job_whose_tasks_are_ordered_by_what_is_no_number_is_not_served_and_others_are():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: endless}]\n'
    desk = Desk(text, Endless).feed(node("n", "9"))
    for name in "ab":
        desk.feed(group(name, 1, phase="Inqueue"))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1", priority=i) for i in range(2)))
    record = desk.cycle()
    assert list(desk.world.binds) == ["a-1", "a-0"]
    assert "endless" in record.explain("a/b")


def test_tasks_are_ordered_by_their_numbers_if_all_of_their_job_have_one():
    desk = Desk()
    names = {"g": ("g-w-10", "g-w-9"), "h": ("h-w-10", "h-w-9", "h-w-x")}
    for job, pods in names.items():
        desk.feed(group(job, 1, phase="Inqueue"), *(pod(name, job, cpu="1") for name in pods))
    session = desk.session()
    _, work = waiting_tasks.listed(session, [desk.task("g-w-9").job, desk.task("h-w-9").job], "allocate")
    assert [task.name for task in work["a/g"]] == ["g-w-9", "g-w-10"]
    assert [task.name for task in work["a/h"]] == ["h-w-10", "h-w-9", "h-w-x"]


# -- how turns of one pod each are told ------------------------------------------------------------------------


def many(count):
    for i in range(count):
        yield from (group(f"j{i}", 1, phase="Inqueue"), pod(f"j{i}-0", f"j{i}", cpu="1"))


def test_of_jobs_that_are_served_together_each_is_told_what_it_got_and_nothing_else_any_more():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n').feed(*many(4))
    desk.feed(node("n", "0")).cycle()
    assert all("Insufficient cpu" in desk.cache.record.explain(f"a/j{i}") for i in range(4))
    desk.modify(node("n", "4")).modify(pod("j3-1", "j3", cpu="1"))
    trace = desk.cycle().trace()
    assert len(desk.world.binds) == 4
    assert [line for line in trace if line.startswith("allocate: ")] == [
        *(f"allocate: a/j{i}: 1 pods placed, 0 left" for i in range(3)),
        "allocate: a/j3: 1 pods placed, 1 left",
        *(line for line in trace if line.startswith("allocate: a/j3: ") and "minimum" in line),
    ]
    assert not any("Insufficient cpu" in desk.cache.record.explain(f"a/j{i}") for i in range(3))


class Sizing(Plugin):
    """Refuses pods by what they ask for."""

    name = "sizing"
    points = frozenset({"PrePredicate"})

    def open(self, session):
        session.pre_predicate.add(
            lambda subject: "too large" if subject.shape.request.amounts["cpu"] > 1000 else None, reads=NOTHING
        )


TEXT = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: %s}, {name: predicates}]\n'


def test_who_is_refused_for_what_he_asks_for_is_not_placed_with_others():
    desk = Desk(TEXT % "sizing", Sizing).feed(node("n", "9"), group("g", 2, phase="Inqueue"))
    desk.feed(*(pod(f"g-{i}", "g", cpu=str(i + 1)) for i in range(2))).cycle()
    assert desk.world.binds == {}


def test_who_is_refused_for_what_he_is_is_not_placed_with_his_equals():
    desk = Desk(TEXT % "licensed", Licensed).feed(node("n", "9"), *many(5))
    desk.feed(group("j2x", 1, phase="Inqueue", created=0), pod("j2x-0", "j2x", cpu="1", labels={"app": "x"})).cycle()
    assert sorted(desk.world.binds) == [f"j{i}-0" for i in range(5)]


def test_a_member_that_is_refused_for_what_he_is_keeps_none_of_his_equals_out():
    desk = Desk(TEXT % "licensed", Licensed).feed(node("n", "9"), group("g", 2, phase="Inqueue"))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", labels={} if i else {"app": "x"}) for i in range(4))).cycle()
    assert sorted(desk.world.binds) == ["g-1", "g-2", "g-3"]


def held(cluster):
    return [task for job in cluster.jobs.values() for task in job.tasks.values() if task.node is not None]


NO_FOURTH = {
    Reads.OTHER_NODES: lambda cluster: len(held(cluster)) >= 3,
    Reads.TASKS: lambda cluster: sum(len(each.tasks) for each in cluster.nodes.records) >= 3,
    Reads.COLUMNS: lambda cluster: cluster.nodes.view().idle[:, 0].sum() <= 18000 - 3000,
}
WAITING = {
    "a gang of five": ([(5, 5)], 0),
    "five, of whom one is enough": ([(5, 1)], 3),
    "five, of whom two are enough": ([(5, 2)], 3),
    "five alone": ([(1, 1)] * 5, 3),
    "pairs": ([(2, 2)] * 3, 2),
    "pairs and two alone": ([(2, 2)] * 2 + [(1, 1)] * 2, 3),
}


@pytest.mark.parametrize("memory", ["1Gi", None], ids=["equal", "each another"])
@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("reads", NO_FOURTH)
def test_who_says_before_nodes_are_looked_at_what_placements_change_is_asked_about_each_of_them(reads, waiting, memory):
    class Licences(Plugin):
        name = "licences"
        points = frozenset({"PrePredicate"})

        def open(self, session):
            cluster = session.cluster
            session.pre_predicate.add(lambda _: "no licence" if NO_FOURTH[reads](cluster) else None, reads=reads)

    groups, wanted = WAITING[waiting]
    desk = Desk(TEXT % "licences", Licences).feed(node("n0", "9"), node("n1", "9"))
    for g, (count, minimum) in enumerate(groups):
        desk.feed(group(f"g{g}", minimum, phase="Inqueue"))
        desk.feed(*(pod(f"g{g}-{i}", f"g{g}", cpu="1", memory=memory or f"{1 + g + i}Gi") for i in range(count)))
    desk.cycle()
    assert len(desk.world.binds) == wanted


@pytest.mark.parametrize(("rules", "bound"), [("", ["half-1"]), ("compatibility: volcano", ["first-0", "first-1"])])
def test_gangs_that_were_left_incomplete_are_finished_first_but_for_who_means_volcano_s_rules(rules, bound):
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n- plugins: [{name: predicates}]\n'
    desk = Desk(f"{rules}\n{text}").feed(node("n", "3"), queue("a"), queue("b"))
    desk.feed(group("half", 2, queue="b", phase="Running"), pod("half-0", "half", cpu="1", node="n"))
    desk.feed(pod("half-1", "half", cpu="1"))
    desk.feed(group("first", 2, queue="a", phase="Inqueue"), *(pod(f"first-{i}", "first", cpu="1") for i in range(2)))
    desk.cycle()
    assert sorted(desk.world.binds) == bound
