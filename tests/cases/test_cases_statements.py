"""Statements: the worked cases 14 to 16 of framework.md, and the victim order of case 19."""

from __future__ import annotations

from builders import Desk, group, node, pod, priority_class
from pumice.cache.effects import Bind
from pumice.framework.plugin import Plugin
from pumice.framework.runs import Step
from pumice.model.statuses import Status

EMPTY = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'


def pools(desk, name):
    row = desk.node(name).row
    table = desk.cluster.nodes
    return [column[row].tolist() for column in (table.used, table.releasing, table.pipelined)]


def test_case_14_discard_restores_victim_claimant_and_node_and_remembers_where_the_claimant_would_have_gone():
    desk = Desk(EMPTY).feed(node("n1", cpu="2"), group("low"), group("high"))
    desk.feed(pod("v", "low", cpu="2", node="n1"), pod("p", "high", cpu="2"))
    session = desk.session()
    victim, claimant, target = desk.task("v"), desk.task("p"), desk.node("n1")
    before = pools(desk, "n1")
    statement = session.statement()
    statement.evict([victim], "preempt")
    statement.pipeline([claimant], [target], evicted=True)
    assert (victim.status, claimant.status, claimant.node) == (Status.RELEASING, Status.PIPELINED, target)
    assert [run.step for run in statement.runs] == [Step.EVICT, Step.PIPELINE]
    statement.discard()
    assert (victim.status, victim.node) == (Status.RUNNING, target)
    assert (claimant.status, claimant.node) == (Status.PENDING, None)
    assert pools(desk, "n1") == before
    assert len(statement) == 0
    last = session.findings.last_transactions[claimant.uid]
    assert (last.status, last.node, last.evicted) == (Status.PIPELINED, "n1", True)
    assert not desk.world.evictions


def test_a_victim_that_was_only_bound_is_bound_again_after_undo():
    desk = Desk(EMPTY).feed(node("n1"), group("low"), pod("v", "low", cpu="2", node="n1", phase="Pending"))
    session = desk.session()
    statement = session.statement()
    statement.evict([desk.task("v")], "preempt")
    statement.discard()
    assert desk.task("v").status == Status.BOUND  # the peer restores Running (framework.md 9, pitfall 4)


class Follower(Plugin):
    """Counts what it is told; refuses every placement if its class says so."""

    told: list
    refusal: str | None = None

    def open(self, session):
        session.add_handler(self.follow, may_refuse=True)

    def follow(self, run, sign):
        self.told.append((self.name, sign, [task.name for task in run.tasks]))
        return self.refusal if sign > 0 else None


def test_case_15_a_handler_that_refuses_undoes_the_placement_and_every_handler_is_told_once():
    told = []
    first = type("First", (Follower,), {"name": "first", "told": told})
    second = type("Second", (Follower,), {"name": "second", "told": told, "refusal": "no"})
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: first}, {name: second}]\n'
    desk = Desk(text, first, second).feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    session = desk.session()
    before = pools(desk, "n1")
    statement = session.statement()
    assert statement.allocate([desk.task("p")], [desk.node("n1")]) == 0
    assert told == [("first", 1, ["p"]), ("second", 1, ["p"]), ("first", -1, ["p"]), ("second", -1, ["p"])]
    assert (desk.task("p").status, desk.task("p").node) == (Status.PENDING, None)
    assert pools(desk, "n1") == before
    assert len(statement) == 0


def test_case_16_a_bind_that_is_refused_at_hand_over_undoes_its_own_task_only():
    desk = Desk(EMPTY).feed(node("n1"), node("n2"), group("g", 2), pod("x", "g", cpu="1"), pod("y", "g", cpu="1"))
    session = desk.session()
    statement = session.statement()
    statement.allocate([desk.task("x"), desk.task("y")], [desk.node("n1"), desk.node("n2")])
    desk.node("n1").object = None  # the Node left between decision and hand-over
    statement.commit()
    assert (desk.task("x").status, desk.task("x").node) == (Status.PENDING, None)
    assert desk.task("y").status == Status.BINDING
    assert [effect.name for effect in desk.world.of(Bind)] == ["y"]


def test_neither_committed_nor_discarded_is_undone_when_the_session_ends():
    desk = Desk(EMPTY).feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    session = desk.session()
    before = pools(desk, "n1")
    statement = session.statement()
    statement.allocate([desk.task("p")], [desk.node("n1")])
    statement.keep()
    assert desk.task("p").status == Status.ALLOCATED
    session.rollback()
    assert desk.task("p").status == Status.PENDING
    assert pools(desk, "n1") == before
    assert not desk.world.binds


def test_case_19_victims_come_lowest_job_first_then_highest_index():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n'
    desk = Desk(text).feed(priority_class("nine", 9), priority_class("one", 1), node("n1"))
    desk.feed(group("hi", priorityClassName="nine"), group("lo", priorityClassName="one"))
    desk.feed(pod("h1", "hi", cpu="1", node="n1"), *(pod(f"lo-w-{i}", "lo", cpu="1", node="n1") for i in (0, 1)))
    session = desk.session()
    jobs = session.job_order.sort([desk.cluster.jobs["a/hi"], desk.cluster.jobs["a/lo"]])
    order = [t.name for job in reversed(jobs) for t in reversed(session.task_order.sort(job.tasks.values()))]
    assert order == ["lo-w-1", "lo-w-0", "h1"]
