"""What a search for victims knows and says beside its plans: of whom it breaks down, who lies dormant, and plans that would lead back to themselves."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from builders import Desk, group, node, pod, priority_class, queue
from pumice.actions.eviction import search
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model.statuses import Status

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: gang}, {name: predicates}%s]
"""
PLAIN = "tiers:\n- plugins: [{name: priority}]\n- plugins: [{name: gang}, {name: predicates}]\n"
KEPT = {"volcano.sh/preemptable": "false"}


def full(text, *plugins, annotations=None, **more):
    """A node that is full of a pod that weighs less than whoever asks."""
    desk = Desk(text, *plugins, **more).feed(node("n", "2"), priority_class("low", 1), priority_class("high", 9))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    return desk.feed(pod("low-0", "low", cpu="2", node="n", annotations=annotations))


class Fragile(Plugin):
    """Breaks down about one job, though it says that it looks at nodes alone."""

    name = "fragile"
    points = frozenset({"Predicate"})

    def open(self, session):
        session.predicate.add(self.fits, reads=Reads.NODE | Reads.COLUMNS)

    def fits(self, subject, nodes):
        return np.zeros(len(nodes), dtype=np.int16) if subject.job.name != "g0" else 1 // 0


def test_a_job_about_which_a_filter_breaks_down_says_nothing_of_its_equals():
    desk = full(CONFIG % ("preempt", ", {name: fragile}"), Fragile)
    for i in range(2):
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="2"))
    desk.cycle()
    assert desk.world.evictions == ["low-0"]


def test_who_lay_dormant_is_told_as_everybody_else_that_room_is_made_for_it():
    """It is left out of allocate, as no node will have so much; then somebody may go."""
    sent = []
    for dormant in (True, False):
        taken = msgspec.structs.replace(shortcuts.ALL, dormant_jobs=dormant)
        desk = full(CONFIG % ("enqueue, allocate, preempt", ""), annotations=KEPT, taken=taken)
        desk.feed(group("g", 1, phase="Inqueue", priorityClassName="high"), pod("g-0", "g", cpu="2"))
        desk.cycle()
        desk.cluster.changed += 1
        desk.cycle()
        assert desk.world.evictions == []
        desk.modify(pod("low-0", "low", cpu="2", node="n")).cycle()
        assert desk.world.evictions == ["low-0"]
        sent.append([repr(effect) for effect in desk.world.effects])
    assert sent[0] == sent[1]


class Ring(Plugin):
    """Says who may take from whom by the names of jobs."""

    name = "ring"
    points = frozenset({"Preemptable"})
    takes: dict[str, str]

    def open(self, session):
        session.preemptable.add(
            lambda claimant, tasks: [task for task in tasks if task.job.name in self.takes[claimant.job.name]]
        )


@pytest.mark.parametrize(("third", "evicted"), [("a", []), ("", ["b-0"])])
def test_no_plan_is_made_that_leads_back_to_its_claimant_over_a_third_job(third, evicted):
    """For the room of `a` its victim `b` would rather take from `c`, which weighs less; that may be stopped only by `c` taking from `a` in its turn."""
    text = 'actions: "preempt"\ntiers:\n- plugins: [{name: ring}]\n- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}]\n'
    desk = Desk(text, type("Ring", (Ring,), {"takes": {"a": "b", "b": "ac", "c": third}}))
    desk.feed(priority_class("low", 1), priority_class("high", 9))
    for name, rank, where in (("a", "high", ""), ("b", "high", "n0"), ("c", "low", "n1")):
        desk.feed(group(name, 1, phase="Running" if where else "Inqueue", priorityClassName=rank))
        desk.feed(*([node(where, "1")] if where else []), pod(f"{name}-0", name, cpu="1", node=where))
    desk.cycle()
    assert desk.world.evictions == evicted


# ---- plans that would be undone


RING = """
actions: "%s"
tiers:
- plugins: [{name: ring}, {name: gang, enablePreemptable: false%s}]
- plugins: [{name: predicates}]
"""


class Named(Plugin):
    """Says who may take from whom by the names of jobs, or of single pods."""

    name = "ring"
    points = frozenset({"Preemptable", "UnifiedEvictable"})
    takes: dict[str, tuple[str, ...]]

    def open(self, session):
        session.preemptable.add(self.given)
        session.unified_evictable.add(self.given)

    def given(self, asking, tasks):
        """Say whom a task, or a job, may take."""
        mine = self.takes.get(asking.job.name, ())
        return [task for task in tasks if task.name in mine or task.job.name in mine]


def ring(takes, *running, action="preempt", told="", **more):
    """A job `a` that waits, and one for each that runs, in the order of their importance, each on a node of its own and, to be reclaimed from, in a queue of its own."""
    desk = Desk(RING % (action, told), type("Named", (Named,), {"takes": takes})).feed(priority_class("a", 99))
    owners = {name: name if action == "gangreclaim" else "" for name in ("a", *running)}
    desk.feed(*(queue(owner) for owner in owners.values() if owner))
    desk.feed(group("a", 1, phase="Inqueue", priorityClassName="a", queue=owners["a"]), pod("a-0", "a", cpu="1"))
    for i, name in enumerate(running):
        desk.feed(priority_class(name, i + 1))
        desk.feed(group(name, 1, phase="Running", priorityClassName=name, queue=owners[name]))
        desk.feed(node(f"on-{name}", "1"), pod(f"{name}-0", name, cpu="1", node=f"on-{name}", **more.get(name, {})))
    return desk


@pytest.mark.parametrize("action", ["preempt", "gangreclaim"])
def test_whoever_would_come_back_is_left_out_and_somebody_dearer_goes(action):
    desk = ring({"a": "bc", "b": "a"}, "b", "c", action=action)
    desk.cycle()
    assert desk.world.evictions == ["c-0"]


@pytest.mark.parametrize("selector", [{}, {"is": "nowhere"}])
def test_a_job_that_has_its_minimum_would_come_back_for_any_of_its_members(selector):
    """The first of them that waits may have no place anywhere."""
    told = ", enableJobStarving: false}, {name: priority, enablePreemptable: false"
    desk = ring({"a": "b", "b": "a"}, "b", told=told).modify(group("b", 0, phase="Running", priorityClassName="b"))
    desk.feed(pod("b-waits", "b", uid="0", cpu="1", nodeSelector=selector))
    desk.cycle()
    assert desk.world.evictions == []


def test_whoever_may_have_nobody_evicted_does_not_come_back():
    desk = ring({"a": "b", "b": "a"}, "b", b={"preemptionPolicy": "Never"})
    desk.cycle()
    assert desk.world.evictions == ["b-0"]


def test_whoever_would_come_back_for_another_pod_of_the_claimant_s_job_is_left_out_too():
    """That other pod could have nobody evicted in its turn."""
    desk = ring({"a": "b", "b": ("a-1",)}).feed(node("n", "2"), priority_class("b", 1))
    desk.modify(group("a", 2, phase="Inqueue", priorityClassName="a"))
    desk.feed(pod("a-1", "a", cpu="1", node="n", preemptionPolicy="Never"))
    desk.feed(group("b", 1, phase="Running", priorityClassName="b"), pod("b-0", "b", cpu="1", node="n"))
    desk.cycle()
    assert desk.world.evictions == []


@pytest.mark.parametrize(("third", "evicted"), [("b", []), ("", ["b-0"])])
def test_whoever_could_keep_nobody_else_s_room_would_come_back_for_the_claimant_s(third, evicted):
    """`b` would rather take from `c`, which is less important, but could not if `c` took its room in turn."""
    desk = ring({"a": "b", "b": "ac", "c": third}, "c", "b")
    desk.cycle()
    assert desk.world.evictions == evicted


@pytest.mark.parametrize(
    ("takes", "running", "plans", "evicted"),
    [
        ({"a": "b", "b": "ac", "c": "a"}, "cb", 0, ["b-0"]),
        ({"a": "b", "b": "ac", "c": "a"}, "cb", 1, []),
        ({"a": "b", "b": "ac", "c": "ad", "d": "a"}, "dcb", 2, ["b-0"]),
        ({"a": "b", "b": "ac", "c": "ad", "d": "a"}, "dcb", 3, []),
    ],
)
def test_whether_a_plan_leads_back_is_followed_as_far_as_may_be_and_told_where_it_was_not(
    takes, running, plans, evicted, monkeypatch
):
    """The longer the ring, the more later plans have to be looked at to find that it is one."""
    monkeypatch.setattr(search, "DEEPER", plans)
    desk = ring(takes, *running)
    said = desk.cycle().verdict("a/a", "preempt").text
    assert desk.world.evictions == evicted
    assert (search.LONG in said) is bool(evicted)


def test_whoever_is_found_to_have_no_lasting_plan_in_as_many_as_are_tried_is_not_taken_to_come_back(monkeypatch):
    monkeypatch.setattr(search, "ROUNDS", 1)
    desk = ring({"a": "b", "b": "ac", "c": "b"}, "c", "b")
    desk.cycle()
    assert desk.world.evictions == ["b-0"]


# ---- claimants alike


class Choosy(Plugin):
    """Says by the priority of a claimant and the name of a pod whether this may go."""

    name = "choosy"
    points = frozenset({"Preemptable"})
    goes: dict[int, tuple[str, ...]]

    def open(self, session):
        session.preemptable.add(
            lambda claimant, tasks: [task for task in tasks if task.name in self.goes.get(claimant.job.priority, ())],
            reads=Reads.TASK | Reads.OTHER_NODES,
        )


class Growing:
    """Names that one more belongs to as soon as `k` waits for room: votes that count what others hold change with every plan."""

    def __init__(self, desk):
        self._desk = desk

    def __contains__(self, name):
        return name == "tiny-0" or (name == "h-0" and self._desk.task("k-0").status is Status.PIPELINED)


def alike(goes, *plugins, more="", **running):
    """Nodes of two cores, each with a pod of a job; beside them one that is too small, whose pod helps nobody."""
    text = f'actions: "preempt"\ntiers:\n- plugins: [{{name: choosy}}]\n- plugins: [{{name: gang, enablePreemptable: false}}, {{name: predicates}}{more}]\n'
    desk = Desk(text, type("Choosy", (Choosy,), {"goes": goes}), *plugins).feed(node("small", "1"))
    desk.feed(*(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))))
    desk.feed(group("tiny", 1, phase="Running", priorityClassName="low"), pod("tiny-0", "tiny", cpu="1", node="small"))
    for name, rank in running.items():
        desk.feed(node(f"on-{name}", "2"), group(name, 1, phase="Running", priorityClassName=rank))
        desk.feed(pod(f"{name}-0", name, cpu="2", node=f"on-{name}"))
    return desk


def asks(desk, *names, rank="high", created=0):
    for i, name in enumerate(names):
        desk.feed(group(name, 1, phase="Inqueue", priorityClassName=rank, created=created + i))
        desk.feed(pod(f"{name}-0", name, cpu="2"))
    return desk


def held(desk):
    return sorted(desk.cluster.tasks[uid].name for uid in desk.scheduler.reservations.holds)


def test_of_claimants_alike_the_one_takes_room_over_that_its_holder_could_not_take_back():
    desk = asks(alike({5: ("low-0", "g0-0"), 9: ("tiny-0", "h-0")}, low="low"), "h", rank="mid")
    desk.cycle()
    assert held(desk) == ["h-0"]
    asks(desk, "g0", "g1", created=1).cycle()
    assert held(desk) == ["g1-0"]


def test_whoever_takes_the_room_of_one_holder_over_leaves_the_others_theirs():
    """Whose victim has gone already would else see its room given to somebody weaker."""
    desk = full_nodes(2)
    asks(desk, "h0", "h1", rank="mid").cycle()
    assert held(desk) == ["h0-0", "h1-0"]
    asks(desk, "best", rank="high", created=5)
    asks(desk, "last", rank="low", created=6).cycle()
    (kept,) = {"h0-0", "h1-0"} & set(held(desk))
    assert held(desk) == ["best-0", kept]
    assert len(desk.world.evictions) == 2


def full_nodes(count):
    """Nodes of two cores, each with a pod of less importance than anybody."""
    desk = Desk('actions: "allocate, preempt"\n' + PLAIN).feed(priority_class("least", 0))
    desk.feed(*(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))))
    for i in range(count):
        desk.feed(node(f"n{i}", "2"), group(f"v{i}", 1, phase="Running", priorityClassName="least"))
        desk.feed(pod(f"v{i}-0", f"v{i}", cpu="2", node=f"n{i}", terminationGracePeriodSeconds=600))
    return desk


def test_a_gang_that_lost_the_room_of_one_member_holds_none_for_the_others():
    desk = full_nodes(3).feed(group("pair", 2, phase="Inqueue", priorityClassName="mid"))
    desk.feed(pod("pair-0", "pair", cpu="2"), pod("pair-1", "pair", cpu="2"))
    asks(desk, "h", rank="mid", created=3).cycle()
    assert held(desk) == ["h-0", "pair-0", "pair-1"]
    asks(desk, "best", rank="high", created=5).cycle()
    assert held(desk) in (["best-0", "h-0"], ["best-0", "pair-0", "pair-1"])


@pytest.mark.parametrize(("cpu", "holders"), [("2", 1), ("3", 0)])
def test_a_holder_for_whom_its_queue_has_nothing_left_loses_its_room_though_that_is_free(cpu, holders):
    """The queue may have four cores, of which those of the victims are as good as gone."""
    desk = Desk('actions: "allocate, preempt"\n' + PLAIN.replace("predicates", "predicates}, {name: capacity"))
    desk.feed(queue("q", capability={"cpu": "4"}))
    desk.feed(*(priority_class(name, value) for name, value in (("least", 0), ("mid", 5), ("high", 9))))
    ours = {"phase": "Inqueue", "queue": "q"}
    for i in range(2):
        desk.feed(node(f"n{i}", "2"), group(f"v{i}", 1, phase="Running", priorityClassName="least", queue="q"))
        desk.feed(pod(f"v{i}-0", f"v{i}", cpu="2", node=f"n{i}"))
        desk.feed(group(f"h{i}", 1, priorityClassName="mid", **ours), pod(f"h{i}-0", f"h{i}", cpu="2"))
    desk.cycle()
    assert held(desk) == ["h0-0", "h1-0"]
    desk.feed(node("wide", "3"), group("best", 1, priorityClassName="high", **ours), pod("best-0", "best", cpu=cpu))
    desk.cycle()
    assert held(desk)[0] == "best-0"
    assert len(held(desk)) == 1 + holders


def test_what_was_known_of_holders_is_forgotten_with_each_plan():
    """The holder is offered only once another job has got room; then the second claimant could be taken from in turn, and the third not."""
    goes = {5: ("low-0", "g0-0", "g1-0")}
    desk = alike(goes, low="low", mid="low")
    asks(desk, "h", rank="mid").cycle()
    assert held(desk) == ["h-0"]
    goes |= {5: ("mid-0", "g0-0", "g1-0"), 9: Growing(desk)}
    asks(desk, "g0", created=1)
    asks(desk, "k", rank="mid", created=2)
    asks(desk, "g1", "g2", created=3)
    desk.cycle()
    assert desk.world.evictions == ["low-0", "mid-0"]
    assert held(desk) == ["g2-0", "k-0"]


def test_whoever_is_like_one_for_whom_nobody_helped_has_room_that_was_made_since():
    desk = alike({5: ("big-0",), 9: ("tiny-0",)}).feed(node("n", "4"))
    desk.feed(group("big", 1, phase="Running", priorityClassName="low"), pod("big-0", "big", cpu="4", node="n"))
    asks(desk, "g0")
    asks(desk, "h", rank="mid", created=1)
    asks(desk, "g1", created=2).cycle()
    assert desk.world.evictions == ["big-0"]
    assert held(desk) == ["g1-0", "h-0"]


def test_of_claimants_alike_one_is_served_from_whom_the_victim_could_not_take_the_room_back():
    desk = asks(alike({5: ("g0-0",), 9: ("mid-0",)}, mid="mid"), "g0", "g1")
    desk.cycle()
    assert desk.world.evictions == ["mid-0"]
    assert held(desk) == ["g1-0"]


def test_a_claimant_with_pods_of_its_own_says_nothing_of_its_equals_which_may_take_these():
    desk = alike({9: ("tiny-0", "g0-1")})
    for i, cpu in enumerate(("2", "1")):
        desk.feed(node(f"n{i}", cpu), group(f"g{i}", 2, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="2"), pod(f"g{i}-1", f"g{i}", cpu=cpu, node=f"n{i}"))
    desk.cycle()
    assert desk.world.evictions == ["g0-1"]


class Licensed(Plugin):
    """Lets a queue take one job on and not another."""

    name = "licensed"
    points = frozenset({"Allocatable"})

    def open(self, session):
        session.allocatable.add(
            lambda _queue, demand: "no licence" if any(task.job.name == "g0" for task in demand.tasks) else None
        )


def test_a_claimant_that_its_queue_may_not_take_on_says_nothing_of_its_equals():
    desk = asks(alike({9: ("low-0",)}, Licensed, more=", {name: licensed}", low="low"), "g0", "g1")
    desk.cycle()
    assert desk.world.evictions == ["low-0"]
    assert held(desk) == ["g1-0"]
