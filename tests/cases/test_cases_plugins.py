"""Verdicts of conformance, gang, priority and predicates: their worked cases in plugins.md."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod, priority_class
from pumice.framework.reasons import Code, Invalid
from pumice.framework.subject import Subject
from pumice.model.statuses import Status


def policy(*plugins):
    return f'actions: "allocate"\ntiers:\n- plugins: [{", ".join(f"{{name: {name}}}" for name in plugins)}]\n'


def names(tasks):
    return [task.name for task in tasks]


def test_cf1_critical_pods_are_not_offered():
    desk = Desk(policy("conformance")).feed(node("n"), group("g"), group("k", namespace="kube-system"))
    desk.feed(pod("a", "k", namespace="kube-system", node="n"))
    desk.feed(pod("b", "g", node="n", priorityClassName="system-node-critical"))
    desk.feed(pod("c", "g", node="n", priorityClassName="high"))
    session = desk.session()
    candidates = [desk.task("a", "kube-system"), desk.task("b"), desk.task("c")]
    for point in (session.preemptable, session.reclaimable):
        assert names(point(desk.task("c"), candidates)) == ["c"]


def test_ga1_a_gang_of_three_with_two_running_is_valid_not_ready_and_starving():
    desk = Desk(policy("gang")).feed(node("n"), group("g", 3))
    desk.feed(
        *(pod(f"r{i}", "g", cpu="1", node="n") for i in range(2)), *(pod(f"p{i}", "g", cpu="1") for i in range(2))
    )
    session = desk.session()
    job = desk.cluster.jobs["a/g"]
    assert session.job_valid(job) is None
    assert (session.job_ready(job), session.job_starving(job)) == (False, True)
    desk.modify(pod("p1", "g")).apply()
    assert (session.job_ready(job), session.job_starving(job)) == (True, True)


@pytest.mark.parametrize(
    ("case", "minimum", "roles", "pods", "reason"),
    [
        ("fewer pods than the minimum", 3, {}, ["w", "w"], "NotEnoughTasks"),
        ("A12: too few of one role", 4, {"a": 2, "b": 2}, ["a", "a", "a", "b"], "NotEnoughPodsOfTask"),
        ("A11: the minimum is below the sum of the roles", 3, {"a": 2, "b": 2}, ["a", "a", "a"], None),
    ],
)
def test_a_job_is_valid_if_it_could_ever_be_complete(case, minimum, roles, pods, reason):
    desk = Desk(policy("gang")).feed(group("g", minimum, minTaskMember=roles))
    desk.feed(*(pod(f"p{index}", "g", cpu="1", role=role) for index, role in enumerate(pods)))
    found = desk.session().job_valid(desk.cluster.jobs["a/g"])
    assert (found.reason if isinstance(found, Invalid) else found) == reason, case


def test_ga3_a_gang_offers_its_surplus_in_the_given_order():
    desk = Desk(policy("gang")).feed(node("n"), group("v", 2), group("c"), pod("claimant", "c", cpu="1"))
    desk.feed(*(pod(f"t{index}", "v", cpu="1", node="n") for index in range(1, 5)))
    session = desk.session()
    candidates = [desk.task(f"t{index}") for index in (1, 2, 3)]
    assert names(session.preemptable(desk.task("claimant"), candidates)) == ["t1", "t2"]
    assert names(session.reclaimable(desk.task("claimant"), candidates)) == ["t1", "t2"]


@pytest.mark.parametrize(
    ("case", "victim", "claimant", "offered"),
    [("PI1: lower", 5, 10, ["v"]), ("PI1: equal", 10, 10, []), ("higher", 11, 10, [])],
)
def test_pi1_only_jobs_of_lower_priority_are_preempted(case, victim, claimant, offered):
    desk = Desk(policy("priority")).feed(priority_class("v", victim), priority_class("c", claimant), node("n"))
    desk.feed(group("vg", priorityClassName="v"), group("cg", priorityClassName="c"))
    desk.feed(pod("v", "vg", cpu="1", node="n"), pod("c", "cg", cpu="1"))
    session = desk.session()
    assert names(session.preemptable(desk.task("c"), [desk.task("v")])) == offered, case


@pytest.mark.parametrize(("victim", "offered"), [("1", []), ("0", ["v"])])
def test_pi2_inside_a_job_task_priority_decides(victim, offered):
    desk = Desk(policy("priority")).feed(node("n"), group("g"))
    desk.feed(
        pod("v", "g", cpu="1", node="n", annotations={"volcano.sh/task-priority": victim}), pod("c", "g", cpu="1")
    )
    session = desk.session()
    assert names(session.preemptable(desk.task("c"), [desk.task("v")])) == offered


def test_pi3_a_failed_pod_keeps_its_job_starving():
    desk = Desk(policy("priority")).feed(node("n", cpu="64"), group("g"))
    desk.feed(*(pod(f"r{index}", "g", cpu="1", node="n") for index in range(8)))
    desk.feed(pod("w", "g", cpu="1"), pod("f", "g", cpu="1", node="n", phase="Failed"))
    session = desk.session()
    session.statement().pipeline([desk.task("w")], [desk.node("n")])
    job = desk.cluster.jobs["a/g"]
    assert (job.tally.counts[Status.RUNNING], job.tally.waiting, len(job.tasks)) == (8, 1, 10)
    assert session.job_starving(job)


@pytest.mark.parametrize(
    ("case", "made", "held", "text", "code"),
    [
        ("PR1", node("n", pods="3"), 3, "node(s) pod number exceeded", Code.UNSCHEDULABLE),
        (
            "PR2",
            node("n", taints=[{"key": "k", "effect": "NoSchedule"}]),
            0,
            "node(s) had untolerated taint(s)",
            Code.UNRESOLVABLE,
        ),
        ("cordoned", node("n", cordoned=True), 0, "node(s) were unschedulable", Code.UNRESOLVABLE),
        ("not ready", node("n", ready="Unknown"), 0, "node(s) were not ready", Code.UNRESOLVABLE),
    ],
)
def test_pr1_and_pr2_a_refusal_says_whether_eviction_could_help(case, made, held, text, code):
    desk = Desk(policy("predicates")).feed(made, group("g"), pod("p", "g", cpu="1"))
    desk.feed(*(pod(f"h{index}", scheduler="other", node="n") for index in range(held)))
    session = desk.session()
    view = desk.cluster.nodes.view()
    answers = [registered.function(Subject(desk.task("p")), view) for registered in session.predicate]
    given = [session.evaluator.reasons.table[int(a[0])] for a in answers if a is not None and a[0]]
    assert [(reason.text, reason.code) for reason in given] == [(text, code)], case
