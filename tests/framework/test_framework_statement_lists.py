"""Statements as lists of decisions: save and recover, merge, hold, and what each leaves to the others."""

from __future__ import annotations

import itertools

import recount
from builders import GANG, Desk, group, node, pod
from pumice.framework.findings import LastTransaction
from pumice.framework.plugin import Plugin
from pumice.framework.runs import Step
from pumice.model.statuses import Status


class Ear(Plugin):
    """Hears every placement with its sign."""

    name = "ear"

    def open(self, session):
        self.heard = []
        session.add_handler(lambda run, sign: self.heard.extend((task.name, sign) for task in run.tasks))


def desk():
    made = Desk(GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: ear}"), Ear)
    made.feed(node("n1"), node("n2"), group("g", 9), pod("old", "g", cpu="1", node="n1"))
    return made.feed(*(pod(f"g-w-{i}", "g", cpu="1") for i in range(4)))


def opened():
    made = desk()
    session = made.session()
    return made, session, [made.task(f"g-w-{i}") for i in range(4)], made.node("n1"), made.node("n2")


def test_saved_decisions_are_applied_again_after_a_discard():
    made, session, tasks, first, second = opened()
    statement = session.statement()
    statement.allocate(tasks[:2], [first, second])
    statement.pipeline(tasks[2:3], [second], evicted=True)
    statement.evict([made.task("old")], "why")
    decided, saved = recount.fingerprint(made.cluster), statement.save()
    statement.discard()
    again = session.statement()
    assert again.recover(saved)
    assert recount.fingerprint(made.cluster) == decided
    assert [(run.step, run.reason, run.evicted) for run in again.runs] == [
        (Step.ALLOCATE, "", False),
        (Step.PIPELINE, "", True),
        (Step.EVICT, "why", False),
    ]


def test_recover_applies_nothing_if_a_task_was_placed_meanwhile():
    made, session, tasks, first, second = opened()
    statement = session.statement()
    statement.allocate(tasks[:2], [first, second])
    saved = statement.save()
    before = recount.fingerprint(made.cluster)
    assert not session.statement().recover(saved)
    statement.undo(tasks[0])
    assert not session.statement().recover(saved)
    statement.undo(tasks[1])
    assert session.statement().recover(saved)
    assert recount.fingerprint(made.cluster) == before


def test_recover_applies_nothing_if_a_victim_is_leaving_already():
    made, session, *_ = opened()
    statement = session.statement()
    statement.evict([made.task("old")], "why")
    saved = statement.save()
    assert not session.statement().recover(saved)
    ear = made.scheduler.engine.plugins[1][2]
    assert ear.heard == [("old", -1)]


def test_recover_applies_nothing_if_a_later_part_cannot_be_applied():
    made, session, tasks, first, _ = opened()
    statement = session.statement()
    statement.allocate(tasks[:1], [first])
    statement.pipeline(tasks[1:2], [first])
    saved = statement.save()
    statement.discard()
    other = session.statement()
    other.allocate(tasks[1:2], [first])
    before = recount.fingerprint(made.cluster)
    assert not session.statement().recover(saved)
    assert recount.fingerprint(made.cluster) == before


def test_merge_takes_operations_over_and_leaves_the_sources_empty():
    made, session, tasks, first, second = opened()
    one, two = session.statement(), session.statement()
    one.allocate(tasks[:1], [first])
    two.allocate(tasks[1:3], [second, second])
    one.merge(two)
    assert (len(one), len(two)) == (3, 0)
    two.discard()
    assert [task.status for task in tasks[:3]] == [Status.ALLOCATED] * 3
    one.undo(tasks[1])
    one.commit()
    assert made.world.binds == {"g-w-0": "n1", "g-w-2": "n2"}


def test_discard_remembers_where_tasks_would_have_gone_and_a_bind_forgets_it():
    _, session, tasks, first, second = opened()
    statement = session.statement()
    statement.allocate(tasks[:1], [first])
    statement.pipeline(tasks[1:2], [second], evicted=True)
    statement.discard()
    assert session.findings.last_transactions == {
        tasks[0].uid: LastTransaction(Status.ALLOCATED, "n1", evicted=False),
        tasks[1].uid: LastTransaction(Status.PIPELINED, "n2", evicted=True),
    }
    statement.allocate(tasks[:1], [second])
    statement.commit()
    assert set(session.findings.last_transactions) == {tasks[1].uid}


def test_held_tasks_keep_their_room_for_later_actions_and_give_it_back_at_the_end():
    made, session, tasks, first, _ = opened()
    before = recount.fingerprint(made.cluster)
    statement = session.statement()
    statement.allocate(tasks[:2], [first, first])
    statement.keep()
    assert (len(statement), tasks[0].status) == (0, Status.ALLOCATED)
    statement.discard()
    assert tasks[0].status == Status.ALLOCATED
    session.statements.release(tasks[0])
    assert [task.status for task in tasks[:2]] == [Status.PENDING, Status.ALLOCATED]
    session.rollback()
    assert recount.fingerprint(made.cluster) == before


def test_dispatch_binds_what_earlier_actions_left_held():
    made, session, tasks, first, second = opened()
    for task, where in zip(tasks[:2], (first, second), strict=True):
        statement = session.statement()
        statement.allocate([task], [where])
        statement.keep()
    session.sender.dispatch(made.cluster.jobs["a/g"])
    session.rollback()
    assert made.world.binds == {"g-w-0": "n1", "g-w-1": "n2"}
    recount.check(made.cluster)


def test_until_stops_a_run_after_the_task_that_satisfies_it():
    made, session, tasks, first, _ = opened()
    statement = session.statement()
    job = made.cluster.jobs["a/g"]
    assert statement.allocate(tasks, [first] * 4, lambda: job.tally.ready >= 3) == 2
    assert [task.status.name for task in tasks] == ["ALLOCATED", "ALLOCATED", "PENDING", "PENDING"]
    recount.check(made.cluster)


def test_who_is_taken_back_step_by_step_waits_in_the_order_in_which_it_waited():
    """Members of several jobs that were placed together, each part of them taken back by itself."""
    made = Desk(GANG).feed(node("n", "64"), *(group(f"g{i}", 1) for i in range(2)))
    made.feed(*(pod(f"g{i}-{j}", f"g{i}", cpu=f"{1 + j % 2}") for i in range(2) for j in range(4)))
    session = made.session()
    jobs = [made.cluster.jobs[f"a/g{i}"] for i in range(2)]
    before = [list(job.pending) for job in jobs]
    placed = [task for pair in zip(*(job.pending.values() for job in jobs), strict=True) for task in pair]
    for marks in itertools.permutations(range(0, 9, 2), 3):
        statement = session.statement()
        statement.allocate(placed, [made.node("n")] * len(placed))
        for mark in sorted(marks, reverse=True):
            statement.rollback(mark)
            still = {task.uid for task in placed[:mark]}
            assert [list(job.pending) for job in jobs] == [[uid for uid in uids if uid not in still] for uids in before]
        statement.rollback(0)
