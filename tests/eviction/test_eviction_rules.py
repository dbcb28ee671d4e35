"""Who may be taken for whom, question by question: what an action looks at, what protects a pod, whom a refused eviction spares, and who goes first."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from builders import SECOND, Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.eviction import gang_rules, rules
from pumice.actions.eviction.settings import Asked
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.model.statuses import Status

CONFIG = """
actions: "preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: conformance}%s]
- plugins: [{name: predicates}]
"""
PLAIN = CONFIG % ""
FORMS = {
    "preempt": rules.Preempt,
    "within": rules.PreemptWithin,
    "reclaim": rules.Reclaim,
    "gangpreempt": gang_rules.GangPreempt,
    "gangreclaim": gang_rules.GangReclaim,
}


def scene(text=PLAIN, *plugins, **more):
    """Three queues: q of the claimant with a rich and a poor neighbour, p with a guarantee, and one that gives nothing back."""
    desk = Desk(text, *plugins, **more).feed(
        *(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9)))
    )
    desk.feed(priority_class("system-node-critical", 5), node("m", "32", "64Gi"))
    desk.feed(queue("q"), queue("p", guarantee={"resource": {"cpu": "2"}}), queue("closed", reclaimable=False))
    for name, owner, rank in (
        ("low", "q", "low"),
        ("equal", "q", "mid"),
        ("high", "q", "high"),
        ("there", "p", "low"),
        ("shut", "closed", "low"),
    ):
        desk.feed(group(name, 0, queue=owner, phase="Running", priorityClassName=rank))
        desk.feed(*(pod(f"{name}-{i}", name, cpu=str(2 - i), memory="1Gi", node="m") for i in range(2)))
    desk.feed(group("asks", 1, queue="q", phase="Inqueue", priorityClassName="mid"))
    desk.feed(
        pod("asks-0", "asks", cpu="1", priority=5),
        pod("own", "asks", cpu="1", node="m", priority=5),
        pod("own-low", "asks", cpu="1", node="m"),
    )
    return desk


# ---- what the rules of a cycle are


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_gangs_are_kept_unless_the_action_or_the_whole_configuration_says_otherwise(told, there):
    text = CONFIG % ", {name: gang}"
    made = rules.Preempt(scene(text if there else f"compatibility: volcano\n{text}").session(), Asked(keeps_gangs=told))
    assert made.keeps_gangs is (told and there)
    assert made.has_spared is False


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("voters", [", {name: gang}", ""])
@pytest.mark.parametrize("compatible", [True, False])
def test_no_tier_gives_away_who_is_more_important_if_priority_votes_and_nothing_says_otherwise(
    told, voters, compatible
):
    text = (CONFIG % voters).replace("{name: priority}, ", "") if voters else PLAIN
    made = rules.Preempt(
        scene(f"compatibility: volcano\n{text}" if compatible else text).session(), Asked(protects_important=told)
    )
    assert made.protects_important is (told and not voters and not compatible)
    asks = made.session.cluster.jobs["a/asks"]
    assert made.highest_taken(asks) == (5 if made.protects_important else None)


class Attached(Plugin):
    """Simulates."""

    name = "attached"
    points = frozenset({"SimulateAddTask"})

    def open(self, session):
        session.simulate_add_task.add(lambda _claimant, _task, _record: None)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("attached", [True, False])
def test_plugins_simulate_where_the_action_is_told_so_and_any_does(told, attached):
    text = CONFIG % (", {name: attached}" if attached else "")
    made = rules.Preempt(scene(text, Attached).session(), Asked(simulates=told))
    assert (made.simulation is not None) is (told and attached)


# ---- where victims are looked for


@pytest.mark.parametrize(
    ("form", "jobs"),
    [
        ("preempt", ["asks", "equal", "high", "low"]),
        ("within", ["asks"]),
        ("reclaim", ["there"]),
        ("gangpreempt", ["asks", "equal", "high", "low"]),
        ("gangreclaim", ["there"]),
    ],
)
def test_victims_are_looked_for_in_the_claimant_s_queue_or_in_those_that_may_be_reclaimed_from(form, jobs):
    desk = scene()
    desk.feed(queue("bad", weight="x"), group("lost", 0, queue="bad"), pod("lost", "lost", cpu="1", node="m"))
    made = FORMS[form](desk.session())
    desk.cluster.queues["bad"].bad = "as the test says"
    assert sorted(job.name for job in made.sources(desk.task("asks-0"))) == jobs
    assert made.sources(SimpleNamespace(job=None)) == []


@pytest.mark.parametrize(
    ("form", "concerned"),
    [
        ("preempt", ["equal", "high", "low"]),
        ("within", ["own"]),
        ("reclaim", ["shut", "there"]),
        ("gangpreempt", ["low"]),
        ("gangreclaim", ["shut", "there"]),
    ],
)
def test_an_action_looks_at_its_own_kind_of_pods_alone(form, concerned):
    desk = scene()
    made = FORMS[form](desk.session())
    tasks = [task for task in desk.cluster.tasks.values() if task.job is not None]
    claimant = desk.task("asks-0")
    found = {task.name.split("-")[0] for task in tasks if made.concerns(claimant, task)}
    assert sorted(found) == concerned
    nobody = SimpleNamespace(job=None, uid="u")
    others = [desk.task(name) for name in ("low-0", "there-0")]
    assert not any(made.concerns(claimant, nobody) or made.concerns(nobody, each) for each in others)


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        ({}, True),
        ({"status": Status.RELEASING}, False),
        ({"job": None}, False),
        ({"job": SimpleNamespace(group=None, queue="q")}, False),
        ({"job": SimpleNamespace(group="g", queue="gone")}, False),
        ({"spared": True}, False),
        ({"name": "of no concern"}, False),
        ({"best_effort": True}, True),
    ],
)
@pytest.mark.parametrize("modest", [True, False])
def test_only_running_pods_of_groups_in_queues_are_reached_and_by_pods_without_requests_only_their_like(
    change, reached, modest
):
    usual = {
        "status": Status.RUNNING,
        "job": SimpleNamespace(group="g", queue="q"),
        "spared": False,
        "best_effort": False,
    }
    candidate = SimpleNamespace(**{**usual, "name": "pod", **change})
    stub = SimpleNamespace(
        statuses={Status.RUNNING},
        session=SimpleNamespace(cluster=SimpleNamespace(queues={"q": None})),
        is_spared=lambda task: task.spared,
        concerns=lambda _, task: task.name == "pod",
    )
    claimant = SimpleNamespace(best_effort=modest)
    assert rules.Rules.reaches(stub, claimant, candidate) is (reached and (not modest or candidate.best_effort))


@pytest.mark.parametrize("reaches", [True, False])
@pytest.mark.parametrize("reason", ["protected", None])
def test_whoever_is_reached_and_not_protected_may_go(reaches, reason):
    stub = SimpleNamespace(reaches=lambda *_: reaches, protection=lambda *_: reason)
    assert rules.Rules.may_go(stub, "claimant", "pod") is (reaches and reason is None)


def test_whoever_has_no_node_does_not_leave_one():
    desk = scene().feed(pod("low-2", "low", cpu="1"))
    found = rules.Preempt(desk.session()).leaving(desk.task("asks-0"))
    assert sorted({task.name for task in found}) == [
        "equal-0",
        "equal-1",
        "high-0",
        "high-1",
        "low-0",
        "low-1",
        "own",
        "own-low",
    ]


# ---- for whom it is too early


@pytest.mark.parametrize(("ago", "spared"), [(None, False), (0, True), (9, True), (10, False), (11, False), (-1, True)])
def test_a_pod_whose_eviction_was_refused_is_spared_for_as_long_as_is_told(ago, spared):
    desk = scene()
    session = desk.session()
    made, woken = rules.Preempt(session, Asked(spare_for=10 * SECOND)), []
    session.wake_at = woken.append
    refused = None if ago is None else session.started - ago * SECOND
    assert made.is_spared(SimpleNamespace(eviction_refused=refused)) is spared
    assert made.has_spared is spared
    assert woken == ([refused + 10 * SECOND] if spared else [])


# ---- what protects


def budget(allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata("b", "a"), "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("form", "name", "reason"),
    [
        ("preempt", "low-0", None),
        ("preempt", "equal-0", None),
        ("preempt", "high-0", "a/high-0 is more important"),
        ("preempt", "own", None),
        ("within", "own-low", None),
        ("within", "own", None),
        ("within", "vip", "a/vip is more important"),
        ("preempt", "marked", "a/marked is marked as not preemptable"),
        ("preempt", "critical", "critical"),
        ("reclaim", "high-0", None),
        ("reclaim", "shut-0", "queue closed is not reclaimable"),
        ("reclaim", "there-0", "queue p holds 3000 of cpu, 2000 are guaranteed to it"),
        ("reclaim", "there-1", None),  # without it there is as much as is guaranteed,
    ],
)
def test_the_first_reason_why_a_pod_must_not_go_is_told(form, name, reason):
    desk = scene()
    desk.feed(pod("vip", "asks", cpu="1", node="m", priority=6))
    desk.feed(pod("marked", "low", cpu="1", node="m", annotations={"volcano.sh/preemptable": "false"}))
    desk.feed(pod("critical", "low", cpu="1", node="m", priorityClassName="system-node-critical"))
    made = FORMS[form](desk.session())
    found = made.protection(desk.task("asks-0"), desk.task(name))
    assert found == reason or (reason == "critical" and "critical" in found)


@pytest.mark.parametrize(
    ("more", "guards"), [("", True), (", {name: capacity}", False), (", {name: proportion}", False)]
)
def test_what_is_guaranteed_to_a_queue_is_kept_by_the_rules_unless_a_plugin_shares(more, guards):
    desk = scene(CONFIG % more)
    desk.feed(
        queue("o", guarantee={"resource": {"memory": "1Gi", "example.com/none": "1"}}),
        group("other", 0, queue="o", phase="Running"),
    )
    desk.feed(pod("other", "other", cpu="1", node="m"))
    made = rules.Reclaim(desk.session())
    claimant = desk.task("asks-0")
    assert ("are guaranteed to it" in str(made.protection(claimant, desk.task("there-0")))) is guards
    assert "are guaranteed to it" not in str(made.protection(claimant, desk.task("other")))  # it holds none of that


def test_without_a_claimant_only_the_pod_itself_is_asked_about():
    desk = scene()
    desk.feed(pod("critical", "low", cpu="1", node="m", priorityClassName="system-node-critical"))
    made = rules.Preempt(desk.session())
    assert made.protection(None, desk.task("high-0")) is None
    assert made.protection(SimpleNamespace(job=None, uid="u"), desk.task("high-0")) is None
    assert made.protection(None, desk.task("critical")) is not None


@pytest.mark.parametrize(("allowed", "keeps"), [(0, True), (1, False)])
def test_budgets_are_asked_by_themselves(allowed, keeps):
    desk = scene(CONFIG % ", {name: pdb}")
    desk.feed(budget(allowed), pod("counted", "low", cpu="1", node="m", labels={"app": "x"}))
    desk.feed(pod("critical", "low", cpu="1", node="m", priorityClassName="system-node-critical"))
    made = rules.Preempt(desk.session())
    claimant = desk.task("asks-0")
    assert (made.budget(claimant, desk.task("counted")) is not None) is keeps
    assert made.budget(claimant, desk.task("critical")) is None


@pytest.mark.parametrize(
    ("form", "more", "apart"), [("preempt", "", True), ("reclaim", "", False), ("preempt", ", {name: pdb}", False)]
)
def test_who_goes_changes_nothing_for_others_where_nothing_counts_evictions_and_no_queue_loses(form, more, apart):
    assert FORMS[form](scene(CONFIG % more).session()).judges_apart is apart


@pytest.mark.parametrize(
    ("more", "equal", "blind"),
    [("", True, True), ("", False, False), (", {name: drf}", True, False), (", {name: cdp}", True, False)],
)
def test_rules_are_blind_where_nobody_who_votes_or_protects_knows_who_a_job_is(more, equal, blind):
    taken = msgspec.structs.replace(shortcuts.ALL, equal_claimants=equal)
    assert rules.Preempt(scene(CONFIG % more, taken=taken).session()).is_blind is blind


# ---- who goes first


def test_victims_come_job_by_job_the_least_important_first_and_of_equals_the_newest_and_then_the_larger_name():
    desk = Desk(PLAIN).feed(
        *(priority_class(name, value) for name, value in (("low", 1), ("high", 9))), node("m", "32")
    )
    jobs = {"vip": ("high", 0), "old": ("low", 1), "new-a": ("low", 2), "new-b": ("low", 2)}
    for name, (rank, made) in jobs.items():
        desk.feed(group(name, 0, phase="Running", priorityClassName=rank, created=made))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1", node="m", priority=9 - i, created=i) for i in range(2)))
    desk.feed(group("asks", 1), pod("asks-0", "asks", cpu="1"))
    session = desk.session()
    names = ["new-b-1", "new-b-0", "new-a-1", "new-a-0", "old-1", "old-0", "vip-1", "vip-0"]
    for some in (names, names[2:4], names[:1], names[3:6], []):
        mixed = [desk.task(name) for name in sorted(some)]
        for candidates in (mixed, mixed[::-1]):
            ordered = rules.victim_order(session, desk.task("asks-0"), candidates)
            assert [task.name for task in ordered] == some
            assert ordered is not candidates


class Picky(Plugin):
    """Has the queue lose first that the class names, where somebody asks."""

    name = "picky"
    points = frozenset({"VictimQueueOrder"})

    def open(self, session):
        session.victim_queue_order.add(lambda victim, _claimant: victim.name != "p")


def test_a_queue_is_asked_whether_it_may_reclaim_for_a_member(monkeypatch):
    desk = scene()
    session = desk.session()
    monkeypatch.setattr(session, "preemptive", lambda queue, demand: f"{queue.name} may not")
    own, member = desk.cluster.queues["q"], desk.task("asks-0")
    assert rules.Reclaim(session).may_ask(own, member) == "q may not"
    assert rules.Preempt(session).may_ask(own, member) is None


@pytest.mark.parametrize("among", ["opr", "op"])
@pytest.mark.parametrize("jobless", [True, False])
def test_victims_of_several_queues_come_queue_by_queue_as_the_plugins_say(jobless, among):
    """Of two that nothing tells apart, jobs are in their own order."""
    desk = Desk(CONFIG % ", {name: picky}", Picky).feed(node("m", "32"), *(queue(name) for name in "opr"))
    for i, name in enumerate("opr"):
        for age in range(2):
            desk.feed(group(f"{name}{age}", 0, queue=name, phase="Running", created=2 * i + age))
            desk.feed(pod(f"{name}{age}", f"{name}{age}", cpu="1", node="m"))
    desk.feed(group("asks", 1), pod("asks-0", "asks", cpu="1"))
    session = desk.session()
    claimant = SimpleNamespace(job=None) if jobless else desk.task("asks-0")
    tasks = [desk.task(f"{name}{age}") for name in among for age in range(2)]
    found = [task.name for task in rules.victim_order(session, claimant, tasks)]
    by_queue = list(among)
    usual = sorted(
        by_queue,
        key=lambda name: session.queue_order.sort(desk.cluster.queues[each] for each in by_queue).index(
            desk.cluster.queues[name]
        ),
        reverse=True,
    )
    order = usual if jobless else ["p", *(name for name in usual if name != "p")]
    assert found == [f"{name}{age}" for name in order for age in (1, 0)]
