"""The judge by itself, over plans that only say what they are asked: what is spared, what is played again, for whom each unit goes, and what stays of a plan that fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.actions.eviction import judge, trimming, units
from pumice.model.statuses import Status


class Plan:
    """A plan that takes down what is done with it; `refuses` are members that no node takes, `shut` those that the door keeps out."""

    def __init__(self, steps=(), going=(), *, refuses=(), shut=(), node_by_node=True, small=True):
        self.done = []
        self.members = [step.member for step in steps]
        self.units = list(going)
        self.is_admitted = False
        self.refusal = ""
        self.gangs = True
        self.queue = SimpleNamespace(name="q")
        self._refuses, self.shut, self._small = refuses, shut, small
        self.rules = SimpleNamespace(
            node_by_node=node_by_node,
            may_go=lambda _, task: not task.protected,
            in_order=lambda _, tasks: sorted(tasks, key=lambda task: task.uid),
            may_ask=lambda _, member: "it has its due" if member.name == "rich" else None,
        )
        self.statement = SimpleNamespace(checkpoint=lambda: len(self.done))
        self.session = SimpleNamespace(pre_predicate=lambda asked: "no" if asked.task.name == "barred" else None)
        self.votes = SimpleNamespace(
            give=lambda tier, _, asked, __: (tier, [task.uid for task in asked]) != self.denied
        )
        self.denied = None
        self.owners = {}
        self.covered = True

    def start_again(self):
        self.done.append("start again")

    def back_to(self, mark, members):
        del self.done[mark:]
        self.done.append(f"back to {members}")

    def is_small(self, _):
        return self._small

    def taken_for(self, unit):
        return self.owners.get(unit.name)

    def covers(self, _):
        return self.covered

    def tier(self, *_):
        return "tier"

    def evict(self, unit):
        self.done.append(f"{unit.name} goes")

    def evict_all(self, going):
        self.done += [f"{unit.name} goes" for unit in going]

    def leaves_gangs_whole(self, going):
        return all(not unit.breaks for unit in going)

    def fits(self, member, _):
        return member.name not in self._refuses

    def settle(self, member, _):
        self.done.append(f"{member.name} waits")
        return True


class Door:
    def __init__(self, plan, member):
        self._plan, self._member = plan, member

    def lets(self, going, ordered, _):
        self._plan.done.append(f"asked: {[unit.name for unit in going]} of {[task.uid for task in ordered]}")
        return self._member.name not in self._plan.shut


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(trimming, "trim", lambda plan: plan.done.append("trimmed"))
    monkeypatch.setattr(judge, "Door", Door)
    monkeypatch.setattr(units, "may_all_go", lambda _, __, ___, tasks: not any(task.kept for task in tasks))
    monkeypatch.setattr(judge.subject, "Subject", lambda task, queue: SimpleNamespace(task=task, queue=queue))


def task(uid, *, protected=False, kept=False):
    return SimpleNamespace(uid=uid, node=None, protected=protected, kept=kept)


def member(name, node, status=Status.PENDING):
    return SimpleNamespace(name=name, node=node, status=status, uid=name)


def node(row, *tasks):
    made = SimpleNamespace(row=row, tasks={each.uid: each for each in tasks})
    for each in tasks:
        each.node = made
    return made


def unit(name, *tasks, whole=False, breaks=False):
    return SimpleNamespace(name=name, tasks=list(tasks), whole=whole, breaks=breaks)


def scene(**options):
    """Two members on two nodes, and a unit that goes on each."""
    one, two = task("v1"), task("v2")
    left, right = node(0, one), node(1, two)
    steps = [judge.Step(member("a", left), left, []), judge.Step(member("b", right), right, [])]
    return Plan(steps, [unit("u1", one), unit("u2", two)], **options)


# ---- whole plans


def test_a_plan_is_trimmed_and_played_again_before_it_is_admitted():
    plan = scene()
    assert judge.passes(plan, lambda: True) is True
    assert plan.is_admitted
    assert plan.done == [
        "trimmed",
        "start again",
        "asked: ['u1'] of ['v1']",
        "u1 goes",
        "a waits",
        "asked: ['u2'] of ['v2']",
        "u2 goes",
        "b waits",
    ]


@pytest.mark.parametrize("does", [True, False])
def test_a_plan_that_was_admitted_or_evicts_nobody_is_not_played_again(does):
    admitted, empty = scene(), scene()
    admitted.is_admitted = True
    empty.units.clear()
    for plan in (admitted, empty):
        assert judge.passes(plan, lambda: does) is does
        assert plan.done == ["trimmed"]
    assert not empty.is_admitted


def test_a_plan_that_does_not_do_what_it_is_for_is_undone():
    plan = scene()
    assert judge.passes(plan, lambda: False) is False
    assert not plan.is_admitted
    assert plan.done[-1] == "start again"
    assert plan.done.count("start again") == 3  # each of the two ways, and the end


def test_units_go_for_whom_they_were_taken_and_if_that_fails_for_the_first_beside_them(monkeypatch):
    victim = task("v1")
    shared = node(0, victim)
    steps = [judge.Step(member(name, shared), shared, []) for name in "ab"]
    second = steps[1].member

    def played():
        plan = Plan(steps, [unit("u", victim)])
        plan.owners = {"u": second}
        assert judge.passes(plan, lambda: True)
        last = len(plan.done) - plan.done[::-1].index("start again")
        return [each for each in plan.done[last:] if not each.startswith("asked")]

    assert played() == ["a waits", "u goes", "b waits"]

    class Strict(Door):
        def lets(self, going, ordered, row):
            return super().lets(going, ordered, row) and not (going and self._member is second)

    monkeypatch.setattr(judge, "Door", Strict)
    assert played() == ["u goes", "a waits", "b waits"]


# ---- for whom each unit goes


def test_a_unit_goes_for_the_member_beside_most_of_it():
    tasks = [task(f"v{number}") for number in range(3)]
    left, right = node(0, tasks[0]), node(1, *tasks[1:])
    plan = Plan([judge.Step(member("a", left), left, []), judge.Step(member("b", right), right, [])])
    plan.members = [member("a", left), member("b", right), member("nowhere", None)]
    plan.units = [unit("gang", *tasks, whole=True)]
    steps = judge.steps_of(plan, first=False)
    assert [(step.member.name, [each.name for each in step.going]) for step in steps] == [("a", []), ("b", ["gang"])]


def test_a_unit_that_is_not_beside_its_owner_any_more_goes_for_another():
    victim = task("v")
    left, right = node(0), node(1, victim)
    plan = Plan()
    plan.members = [member("a", left), member("b", right)]
    plan.units, plan.owners = [unit("u", victim)], {"u": plan.members[0]}
    assert [len(step.going) for step in judge.steps_of(plan, first=False)] == [0, 1]


# ---- one step after the other


def test_of_few_members_one_that_does_not_pass_comes_after_the_others_and_of_many_it_ends_the_plan():
    for small, passes in ((True, True), (False, False)):
        plan = scene(small=small)
        opened = []
        plan.shut = ("a",)
        plan.settle = lambda each, _, plan=plan, opened=opened: (
            (
                opened.append(each.name),
                setattr(plan, "shut", ()),
            )
            != ()
        )
        assert judge.replayed(plan, judge.steps_of(plan, first=False)) is passes
        assert opened == (["b", "a"] if passes else [])


def test_nothing_stays_of_a_step_that_is_refused():
    plan = scene(refuses=("b",))
    before = list(plan.units)
    plan.evict_all = plan.units.extend
    steps = judge.steps_of(plan, first=False)
    assert not judge.is_let(plan, steps[1])
    assert plan.units == before
    assert plan.done == ["back to 2"]
    assert judge.is_let(plan, steps[0])


@pytest.mark.parametrize(
    ("protected", "kept", "whole", "passes"),
    [
        (False, False, False, True),
        (True, False, False, False),
        (True, False, True, True),
        (False, True, False, False),
        (False, True, True, False),
    ],
)
def test_who_is_protected_or_no_candidate_keeps_a_step_from_passing(protected, kept, whole, passes):
    tasks = [task("v0"), task("v1", protected=protected, kept=kept)]
    place = node(0, *tasks)
    step = judge.Step(member("a", place), place, [unit("u", *tasks, whole=whole)])
    assert judge.is_let(Plan([step]), step) is passes


def test_a_member_that_is_placed_already_or_may_not_ask_or_is_barred_is_not_placed():
    place = node(0)
    for name, status, refusal in (
        ("a", Status.RUNNING, ""),
        ("rich", Status.PENDING, "queue q may not take from others: it has its due"),
        ("barred", Status.PENDING, ""),
        ("large", Status.PENDING, ""),
    ):
        step = judge.Step(member(name, place, status), place, [])
        plan = Plan([step], refuses=("large",))
        assert judge.is_placed(plan, step, ()) is False
        assert plan.refusal == refusal
        assert f"{name} waits" not in plan.done


def test_units_are_asked_about_in_victim_order_and_those_without_candidates_last():
    tasks = [task(f"v{number}") for number in range(3)]
    going = [unit("none", task("x")), unit("late", tasks[2]), unit("both", tasks[1], tasks[0])]
    assert [each.name for each in judge.in_order(going, tasks)] == ["both", "late", "none"]


# ---- gang forms


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ({}, True),
        ({"denied": ("tier", ["v1", "v2"])}, False),
        ({"denied": ("tier", ["v1"])}, True),
        ({"covered": False}, False),
        ({"protected": True}, False),
        ({"kept": True}, False),
        ({"breaks": True}, False),
    ],
)
def test_the_units_of_a_gang_form_go_together_or_not_at_all(change, passes):
    plan = scene(node_by_node=False)
    plan.denied, plan.covered = change.get("denied"), change.get("covered", True)
    for name in ("protected", "kept"):
        setattr(plan.units[1].tasks[0], name, change.get(name, False))
    plan.units[1].breaks = change.get("breaks", False)
    steps = judge.steps_of(plan, first=False)
    assert judge.replayed(plan, steps) is passes
    if passes:
        assert plan.done == ["start again", "u1 goes", "u2 goes", "a waits", "b waits"]
    else:
        assert "a waits" not in plan.done


def test_a_member_of_a_gang_form_that_no_node_takes_ends_the_plan():
    plan = scene(node_by_node=False, refuses=("b",))
    assert not judge.replayed(plan, judge.steps_of(plan, first=False))
