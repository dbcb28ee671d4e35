"""The judge's door by itself: when numbers alone may tell whether a member fits, and what they tell."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from pumice.actions.eviction import judge, plan, units


class Evaluation:
    """What filters say of themselves; each is asked as if victims were gone."""

    def __init__(self, *, stepwise=False, minds=False, by_amounts=True, passes=True):
        self._answers = {"is_stepwise": stepwise, "minds_others": minds, "is_by_amounts": by_amounts}
        self.passes = passes
        self.asked = []

    def __getattr__(self, name):
        def answer(*, released):
            assert released
            return self._answers[name]

        return answer

    def passes_ahead(self, nodes):
        self.asked.append(nodes)
        return None if self.passes is None else np.array([self.passes])


class Plan:
    can_spare = plan.Plan.can_spare
    job = "its own"

    def __init__(self, evaluation=None, *, simulation=None, allowed=True, judges_apart=True, gangs=True):
        self._evaluation = evaluation or Evaluation()
        self.rules = SimpleNamespace(simulation=simulation, judges_apart=judges_apart)
        self.gangs = gangs
        self._allowed = allowed
        table = SimpleNamespace(
            future_idle_at=lambda _: np.array([1, 1]),
            state=lambda row: f"state of {row}",
            used=np.array([[9, 9], [7, 7]]),
            non_zero=np.array([[0, 0], [1, 1]]),
            pipelined=np.array([[0, 0], [2, 2]]),
        )
        self.session = SimpleNamespace(cluster=SimpleNamespace(nodes=table))

    def evaluation(self, _):
        return self._evaluation

    def is_allowed(self, _):
        return self._allowed


def member(*needed, unoffered=False):
    request = SimpleNamespace(asked=np.arange(len(needed)), needed=np.array(needed), unoffered=unoffered)
    return SimpleNamespace(shape=SimpleNamespace(request=request))


def unit(amount=(2, 2), *, job="j", whole=False, alone=False, keeps=True, serial=1):
    shape = SimpleNamespace(request=SimpleNamespace(vector=np.array(amount)), serial=serial)
    task = SimpleNamespace(shape=shape, job_key=job, job=SimpleNamespace(keeps=keeps))
    return SimpleNamespace(tasks=[task], whole=whole, is_job_of_one=alone)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setattr(judge, "Nodes", lambda *given, **options: (given[1:], options))
    monkeypatch.setattr(units, "keeps_its_minimum", lambda job, tasks: job.keeps and len(tasks) < 3)


@pytest.mark.parametrize(
    ("plan", "alone"),
    [
        (Plan(), True),
        (Plan(simulation="topology"), False),
        (Plan(Evaluation(stepwise=True)), False),
        (Plan(Evaluation(minds=True)), False),
        (Plan(allowed=False), False),
    ],
)
def test_numbers_decide_alone_where_nothing_but_room_does(plan, alone):
    assert judge.Door(plan, member(1)).by_numbers is alone


@pytest.mark.parametrize(
    ("going", "options", "apart"),
    [
        ([unit()], {}, True),
        ([unit(), unit()], {}, True),
        ([unit(), unit(), unit()], {}, False),  # the job has too few left
        ([unit(), unit(), unit(job="k")], {}, True),
        ([unit(), unit(), unit()], {"gangs": False}, True),
        ([unit(keeps=False)], {}, False),
        ([unit(whole=True)], {}, False),
        ([unit(whole=True, alone=True)], {}, True),
        ([unit(whole=True, alone=True, keeps=False)], {}, True),  # it goes as a whole, so nothing is left
        ([unit()], {"judges_apart": False}, True),
        ([unit(), unit()], {"judges_apart": False}, False),
    ],
)
def test_pods_go_one_by_one_where_no_gang_is_left_in_part_and_none_protects_the_others(going, options, apart):
    assert bool(judge.Door(Plan(**options), member(1)).go_apart(going)) is apart


def test_a_task_of_no_job_keeps_no_minimum():
    alone = unit()
    alone.tasks[0].job = None
    assert not judge.Door(Plan(), member(1)).go_apart([alone])


@pytest.mark.parametrize(
    ("needed", "unoffered", "units_going", "passes"),
    [
        ((3, 3), False, 1, True),  # one is idle, two are freed
        ((4, 3), False, 1, False),
        ((3, 4), False, 1, False),
        ((5, 5), False, 2, True),
        ((6, 5), False, 2, False),
        ((1, 1), True, 1, False),
    ],
)
def test_room_is_what_is_idle_and_what_is_freed(needed, unoffered, units_going, passes):
    evaluation = Evaluation()
    door = judge.Door(Plan(evaluation), member(*needed, unoffered=unoffered))
    assert door.passes(1, [unit() for _ in range(units_going)]) is passes
    assert len(evaluation.asked) == passes


def test_filters_are_asked_about_the_node_without_those_who_go():
    evaluation = Evaluation()
    judge.Door(Plan(evaluation), member(1, 1)).passes(1, [unit(), unit()])
    (((rows, used, non_zero, waiting), options),) = evaluation.asked
    assert (rows.tolist(), used.tolist(), non_zero.tolist(), waiting.tolist()) == ([1], [[3, 3]], [[1, 1]], [[2, 2]])
    assert options == {"released": True}


@pytest.mark.parametrize(("said", "passes"), [(None, True), (True, True), (False, False)])
def test_what_filters_say_counts_and_saying_nothing_is_consent(said, passes):
    assert judge.Door(Plan(Evaluation(passes=said)), member(1, 1)).passes(1, [unit()]) is passes


@pytest.mark.parametrize(("by_amounts", "times"), [(True, 2), (False, 3)])
def test_filters_that_read_amounts_are_asked_once_for_a_state_and_those_who_go(by_amounts, times):
    evaluation, passed = Evaluation(by_amounts=by_amounts), {}
    for serial in (1, 1, 2):
        assert judge.Door(Plan(evaluation), member(1, 1), passed).passes(1, [unit(serial=serial)])
    assert len(evaluation.asked) == times


class Statement:
    """Takes down who is gone; a trial takes it back."""

    def __init__(self):
        self.gone = []

    @contextlib.contextmanager
    def trial(self):
        before = list(self.gone)
        yield
        self.gone = before

    def evict(self, tasks, by):
        assert by == "preempt"
        self.gone += [task.uid for task in tasks]


def tried(*, given=True, budget=9, whole=True, fits=True):
    """Let a unit of two and one of one go, where filters have to be asked; a budget protects whoever is too many."""
    pair, single = unit(job="pair", whole=True), unit()
    pair.tasks *= 2
    for each in (pair, single):
        each.tasks = [SimpleNamespace(**vars(task), uid=f"{task.job_key}{i}") for i, task in enumerate(each.tasks)]
    plan = Plan(Evaluation(minds=True))
    plan.statement, plan.rules.name, plan.rules.budget = Statement(), "preempt", budget
    plan.votes = SimpleNamespace(give=lambda *_: given)
    plan.tier = lambda *_: 0
    plan.leaves_gangs_whole = lambda _: whole and plan.statement.gone == ["pair0", "pair1", "j0"]
    plan.fits = lambda _, row: fits and row == 1
    tasks = [*pair.tasks, *single.tasks]
    answer = judge.Door(plan, member(1)).lets([pair, single], tasks, 1)
    assert plan.statement.gone == []
    return answer


@pytest.mark.parametrize(
    ("options", "lets"),
    [
        ({}, True),
        ({"given": False}, False),
        ({"whole": False}, False),
        ({"fits": False}, False),
        ({"budget": 3}, True),
        ({"budget": 2}, False),
        ({"budget": 1}, False),
    ],
)
def test_who_goes_is_asked_about_with_those_before_it_gone_and_then_the_member(options, lets, monkeypatch):
    def may_all_go(rules, statement, _, tasks):
        return len(statement.gone) + len(tasks) <= rules.budget

    monkeypatch.setattr(units, "may_all_go", may_all_go)
    assert tried(**options) is lets
