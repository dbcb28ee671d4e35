"""What a session tells by itself: which jobs can be served, what is closed, when to look again, and who is told of placements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import pytest

from builders import GANG, NOW, SECOND, Desk, group, node, pod, queue
from pumice.framework.plugin import Plugin
from pumice.framework.reservations import Hold
from pumice.framework.runs import Run, Step
from pumice.model.statuses import Status

LOOSE = GANG.replace(", {name: gang}", "")


def native(name, minimum):
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a", "uid": f"native.{name}"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    }


def jobs_of_all_kinds():
    made = Desk().feed(node("n"), queue("bad", weight=0), queue("closed", state="Closed"))
    made.feed(group("good"), group("invalid", -1), group("lost", queue="nowhere"), group("spoilt", queue="bad"))
    made.feed(group("late", queue="closed"), pod("stray-0", "stray"))
    made.feed(native("held", 3), pod("held-0", schedulingGroup={"podGroupName": "held"}))
    made.feed(native("whole", 1), pod("whole-0", schedulingGroup={"podGroupName": "whole"}))
    return made


def test_a_job_can_be_served_if_its_group_and_its_queue_are_there_and_valid_and_nothing_holds_it():
    made = jobs_of_all_kinds()
    session = made.session()
    jobs = made.cluster.jobs
    usable = {key for key, job in jobs.items() if session.usable(job)}
    assert {key.removeprefix("a/").partition("@")[0] for key in usable} == {"good", "late", "whole"}
    assert {job.key for job in session.usable_jobs(jobs.values())} == usable
    assert session.valid_queues() == {"root", "default", "closed"}
    assert {key for key, job in jobs.items() if session.queue_of(job) is not None} > usable


@pytest.mark.parametrize("compatibility", ["", "volcano"])
def test_a_queue_that_is_not_open_starts_nothing_new_unless_volcanos_rules_leave_that_to_plugins(compatibility):
    made = Desk(GANG + (f"compatibility: {compatibility}\n" if compatibility else ""))
    made.feed(queue("closed", state="Closed"), group("late", queue="closed"), group("good"), group("lost", queue="no"))
    session = made.session()
    told = {name: session.closed(made.cluster.jobs[f"a/{name}"]) for name in ("late", "good", "lost")}
    assert told["good"] is None
    assert told["lost"] is None
    if compatibility:
        assert (told["late"], session.closed_queues()) == (None, {})
    else:
        assert told["late"].startswith("queue closed: ")
        assert session.closed_queues() == {"closed": told["late"]}


def test_a_cycle_is_asked_for_at_the_first_of_all_times():
    session = Desk().session()
    for at, wake in ((NOW + 7, 7), (NOW + 9, 7), (NOW + 5, 5)):
        session.wake_at(at)
        assert session.wake == NOW + wake


@pytest.mark.parametrize(("later", "may"), [(-1, True), (0, True), (1, False)])
def test_a_task_whose_bind_failed_may_be_tried_again_when_its_time_has_come(later, may):
    session = Desk().session()
    assert session.may_try(SimpleNamespace(retry_at=NOW + later)) is may
    assert session.wake == (None if may else NOW + later)


def test_who_reads_the_time_makes_the_cycle_depend_on_it():
    session = Desk().session()
    assert (session.started, session.reads_time) == (NOW, False)
    assert (session.now, session.reads_time) == (NOW, True)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (GANG, True),
        (LOOSE, False),
        (GANG + "compatibility: volcano\n", False),
    ],
)
def test_gangs_are_kept_whole_where_there_are_gangs_unless_volcanos_rules_count(text, kept):
    assert Desk(text).session().gangs_are_kept is kept


@pytest.mark.parametrize("phase", [False, True])
@pytest.mark.parametrize("noted", [False, True])
def test_a_cycle_has_come_to_something_if_anything_was_decided_or_let_in(noted, phase):
    made = Desk().feed(group("g", 1), pod("g-0", "g"))
    session = made.session()
    session.progressed = noted
    if phase:
        session.findings.set_phase(made.cluster.jobs["a/g"], "Inqueue")
    assert session.progressed is (noted or phase)


@pytest.mark.parametrize("placed", [0, 1, 2])
@pytest.mark.parametrize("text", [GANG, LOOSE], ids=["minimums count", "without gangs"])
def test_whether_a_job_is_ready_can_be_asked_after_every_step(text, placed):
    made = Desk(text).feed(node("n"), group("g", 2), *(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    session, job = made.session(), made.cluster.jobs["a/g"]
    is_ready = session.readiness(job)
    session.statement().allocate([made.task(f"g-{i}") for i in range(placed)], [made.node("n")] * placed)
    assert is_ready() is session.job_ready(job) is (text is LOOSE or placed == 2)


class Reluctant(Plugin):
    """Says that no job is ready and none waits for release, and counts how often it is asked."""

    name = "reluctant"
    points = frozenset({"JobReady"})

    def open(self, session):
        session.job_ready.add(self._no)

    def _no(self, job):
        asked.append(job.key)
        return False


asked = []


def test_nobody_is_asked_whether_a_job_is_ready_before_its_minimum_is_placed():
    made = Desk(GANG.replace("{name: gang}", "{name: gang}, {name: reluctant}"), Reluctant)
    made.feed(node("n"), group("g", 1), pod("g-0", "g", cpu="1"))
    session, job = made.session(), made.cluster.jobs["a/g"]
    is_ready = session.readiness(job)
    asked.clear()
    assert not is_ready()
    assert asked == []
    session.statement().allocate([made.task("g-0")], [made.node("n")])
    assert not is_ready()
    assert asked == ["a/g"]


class Watching(Plugin):
    """Follows placements, by runs and in lists."""

    name = "watching"
    how: ClassVar = {}

    def open(self, session):
        session.add_handler(lambda run, sign: told.append((sign, [t.name for t in run.tasks])), **self.how)
        session.follow(lambda runs, sign: listed.append((sign, [t.name for r in runs for t in r.tasks])), **self.how)


told, listed = [], []


@pytest.mark.parametrize("waiting", [False, True])
def test_who_follows_placements_is_told_of_each_and_of_its_end_and_of_those_who_only_wait_if_it_wants_to(waiting):
    how = type("Watching", (Watching,), {"how": {"waiting": waiting}})
    made = Desk(GANG.replace("{name: gang}", "{name: gang}, {name: watching}"), how)
    made.feed(node("n"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    made.feed(pod("old", "g", cpu="1", node="n", deleting=9))
    session = made.session()
    told.clear(), listed.clear()
    statement = session.statement()
    statement.allocate([made.task("g-0")], [made.node("n")])
    statement.suppose([made.task("old")], [None], Status.PENDING)
    statement.discard()
    expected = [(1, ["g-0"]), *([(0, ["old"])] * waiting), (-1, ["g-0"])]
    assert [each for each in told if each[0]] == [each for each in listed if each[0]] == [e for e in expected if e[0]]
    assert any(sign == 0 for sign, _ in told) is any(sign == 0 for sign, _ in listed) is waiting
    assert session.handlers.may_refuse is False


class Order(Plugin):
    """Orders jobs and queues by what is written down of each."""

    name = "order"
    points = frozenset({"JobOrder", "QueueOrder"})

    def open(self, session):
        session.job_order.add(lambda job: ranks[job.name])
        session.queue_order.add(lambda queue: ranks[queue.name])


ranks = {}


@pytest.mark.parametrize("many", [False, True])
def test_who_is_told_of_a_placement_may_order_its_job_and_its_queue_anew_and_all_where_many_were_placed(many):
    made = Desk(LOOSE.replace("{name: priority}", "{name: order}"), Order).feed(node("n"), queue("q"), queue("r"))
    for name, where in (("g", "q"), ("h", "r")):
        made.feed(group(name, 1, queue=where), pod(f"{name}-0", name, cpu="1"))
    session = made.session()
    jobs, queues = made.cluster.jobs, made.cluster.queues
    ranks.update(g=1, h=2, q=1, r=2)
    waiting = session.job_order.queue([jobs["a/g"], jobs["a/h"]])
    in_turn = session.queue_order.queue([queues["q"], queues["r"]])
    ranks.update(h=0, r=0) if many else ranks.update(g=3, q=3)
    task = made.task("g-0")
    run = Run(Step.ALLOCATE, Status.PENDING, Status.ALLOCATED, [task], [None], [made.node("n")])
    assert (session.tell_of_many if many else session.tell)([run], 1) is None
    assert [waiting.pop().name for _ in range(2)] == ["h", "g"]
    assert [in_turn.pop().name for _ in range(2)] == ["r", "q"]


def test_victims_are_taken_from_the_last_queue_first_unless_somebody_orders_them():
    made = Desk().feed(queue("a", priority=5), queue("b"))
    session, queues = made.session(), made.cluster.queues
    asks = queues["default"]
    before = session.queue_order.compare(queues["a"], queues["b"])
    assert before != 0
    for claimant in (None, asks):
        assert session.victim_queue_compare(queues["a"], queues["b"], claimant) == -before


@pytest.mark.parametrize(
    ("held", "placed", "holds"),
    [([], False, False), (["g-0"], False, True), (["g-0"], True, False), (["other"], False, False)],
)
def test_room_is_held_for_a_job_if_a_member_that_waits_has_some(held, placed, holds):
    made = Desk().feed(node("n"), group("g", 1), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="1"))
    session = made.session()
    for name in held:
        uid = made.task(name).uid if name != "other" else "of another"
        session.reservations.holds[uid] = Hold("n")
    if placed:
        session.statement().allocate([made.task("g-0")], [made.node("n")])
    assert session.holds_room(made.cluster.jobs["a/g"]) is holds


def test_what_is_reserved_is_held_from_now_on_for_so_long():
    made = Desk().feed(node("n"), group("g", 1), pod("g-0", "g", cpu="1"), pod("old", cpu="1", node="n"))
    session, task, victim = made.session(), made.task("g-0"), made.task("old")
    session.statement().pipeline([task], [made.node("n")])
    session.reserve([task], [victim], 7 * SECOND)
    assert session.reservations.holds == {task.uid: Hold("n", (victim.uid,), NOW, patience=7 * SECOND)}


# ---- statements


def three():
    """Three pods that wait, the first two of them equal, and one that runs."""
    made = Desk().feed(node("n"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1" if i < 2 else "2") for i in range(3)))
    made.feed(group("old", 0), pod("old", "old", cpu="1", node="n"))
    return made, made.session()


def test_who_goes_goes_for_the_claimant_of_the_statement_and_nothing_else_is_done_for_him():
    made, session = three()
    statement = session.statement(made.task("g-0"))
    statement.evict([made.task("old")], "why")
    statement.pipeline([made.task("g-0")], [made.node("n")])
    assert [(run.step, run.claimant) for run in statement.runs] == [
        (Step.EVICT, made.task("g-0")),
        (Step.PIPELINE, None),
    ]


@pytest.mark.parametrize("enough", [1, 2, 3, 4])
def test_no_more_is_placed_once_that_is_enough(enough):
    made, session = three()
    tasks = [made.task(f"g-{i}") for i in range(3)]
    statement = session.statement()
    placed = statement.allocate(
        tasks, [made.node("n")] * 3, until=lambda: sum(task.node is not None for task in tasks) >= enough
    )
    assert placed == min(3, enough)
    assert [task.node is not None for task in tasks] == [i < enough for i in range(3)]


def test_to_undo_what_was_not_done_does_nothing():
    made, session = three()
    statement = session.statement()
    statement.undo(made.task("g-0"))
    statement.allocate([made.task("g-1")], [made.node("n")])
    statement.undo(made.task("g-0"))
    assert made.task("g-1").node is made.node("n")
    statement.undo(made.task("g-1"))
    assert (made.task("g-1").node, statement.runs) == (None, [])
