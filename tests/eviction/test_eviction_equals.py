"""Where jobs or pods are equal, what is known of one is what asking about each would give."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from eviction_crowds import PLUGINS, crowd, equals, herd
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn, seeds
from pumice.actions.eviction import (
    equal_rivals,
    gang_rules,
    judge,
    set_order,
    takeover,
    trimming,
    units,
    ways,
)
from pumice.framework.runs import Step
from pumice.framework.statement import Statement
from pumice.model.statuses import Status

pytestmark = pytest.mark.usefixtures("node_by_node")
SEEDS = seeds(40, 1, 4, 5, 6, 7, 9, 10, 12, 14, 17)
LEAST = {
    "preempt": {"rivals": 5, "sets": 20},
    "preempt, gang falls through": {"rivals": 5, "sets": 20},
    "preempt, drf alone": {"sets": 20},
}
"""How often shortcuts are taken at the least in these crowds: a comparison that is never made proves nothing."""


def decided(name, *action, world=equals):
    """Say who is evicted in some crowds, and which nodes are held for whom."""
    found = []
    for seed in SEEDS:
        desk = world(seed, name, *action)
        desk.cycle()
        assert not desk.scheduler.failures, desk.scheduler.failures
        held = desk.scheduler.reservations.holds
        found.append((sorted(desk.world.evictions), {uid: hold.node for uid, hold in held.items()}))
    return found


class Watched:
    """Some crowds under one policy that are decided with an eye on every shortcut: how often each was taken, and where the long way says otherwise."""

    def __init__(self, name):
        self.name = name
        self.taken = {"rivals": 0, "sets": 0}
        self.wrong = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(equal_rivals, "is_one", self._rivals(equal_rivals.is_one))
            patched.setattr(judge.Door, "go_apart", self._sets(judge.Door.go_apart))
            self.equals = [decided(name), decided(name, world=herd)]
            for seed in SEEDS:
                crowd(seed, name).cycle()

    def _note(self, shortcut, right, *about, count=1):
        self.taken[shortcut] += count
        if not right:
            self.wrong.append((shortcut, *about))

    def _rivals(self, is_one):
        def checked(rules, plan, job):
            told = is_one(rules, plan, job)
            if told:
                claimant = next(iter(job.pending.values()))
                could = takeover.could_evict(plan.session, rules, claimant, plan.members)
                self._note("rivals", not could, job.key, plan.job.key)
            return told

        return checked

    def _sets(self, go_apart):
        def checked(door, going):
            told = go_apart(door, going)
            if told and len(going) > 1:
                plan, row = door.plan, going[0].tasks[0].node.row
                with plan.statement.trial():
                    may_go = True
                    for unit in going:
                        may_go &= units.may_all_go(plan.rules, plan.statement, door.member, unit.tasks)
                        plan.statement.evict(unit.tasks, plan.rules.name)
                    may_go &= plan.leaves_gangs_whole(going)
                    fits = plan.fits(door.member, row)
                alike = not door.by_numbers or door.passes(row, going) == fits
                self._note("sets", may_go and alike, door.member.key, going, count=fits)
            return told

        return checked


@pytest.fixture(scope="module", params=PLUGINS)
def watched(request):
    """The crowds under one policy, for all tests that ask about them: these follow each other."""
    return Watched(request.param)


def test_the_long_way_says_what_shortcuts_say(watched):
    assert watched.wrong == []
    least = LEAST.get(watched.name, {})
    assert {shortcut: count for shortcut, count in least.items() if watched.taken[shortcut] < count} == {}


def test_what_is_known_of_equals_decides_nothing(watched, monkeypatch):
    monkeypatch.setattr(equal_rivals, "is_one", lambda _rules, _plan, _job: False)
    monkeypatch.setattr(set_order, "are_equal", lambda _choices: False)
    monkeypatch.setattr(trimming, "is_needed", lambda _plan, _unit: False)
    monkeypatch.setattr(ways, "is_only_one", lambda *_: False)
    assert [decided(watched.name), decided(watched.name, world=herd)] == watched.equals


@settings(max_examples=drawn(200), deadline=None)
@given(
    count=st.integers(1, 7),
    asked=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    lacking=st.tuples(st.integers(-3, 12), st.integers(-3, 12)),
    whole=st.lists(st.booleans(), min_size=7, max_size=7),
)
def test_sets_of_equals_come_as_sets_of_others_do(count, asked, lacking, whole):
    vector = np.array(asked)
    alone = [SimpleNamespace(job=object()) for _ in range(count)]
    listed_units = [units.Unit((task,), whole=whole[at]) for at, task in enumerate(alone)]
    choices = [set_order.Choice(unit, vector, (10, 1), 1, 5) for unit in listed_units]
    columns = np.arange(2)

    def listed():
        sets = set_order.sets_by_rank(choices, np.array(lacking), columns)
        return [[listed_units.index(choice.unit) for choice in chosen] for chosen in sets]

    quick = listed()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(set_order, "are_equal", lambda _choices: False)
        assert listed() == quick


def one_by_one(statement, tasks, reason):
    """Evict tasks, each told of before the next goes."""
    for task in tasks:
        statement._apply(Step.EVICT, Status.RELEASING, [task], [task.node], None, reason=reason)  # noqa: SLF001  what `evict` does for all at once


@pytest.mark.parametrize("name", ["preempt", "preempt, drf", "reclaim, proportion", "reclaim, tree"])
def test_victims_that_go_together_are_those_that_would_go_one_by_one(name, monkeypatch):
    quick = [decided(name, world=crowd), decided(name, world=equals)]
    monkeypatch.setattr(Statement, "evict", one_by_one)
    assert [decided(name, world=crowd), decided(name, world=equals)] == quick


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_the_lists_that_gang_forms_keep_hold_everybody_who_may_go(action, monkeypatch):
    compared = []
    of_jobs = gang_rules.GangRules._of_jobs  # noqa: SLF001  compared wherever it is used

    def checked(self, claimant, jobs):
        found = of_jobs(self, claimant, jobs)
        slow = [task for job in jobs for task in job.tasks.values() if self.may_go(claimant, task)]
        assert {task.uid for task in found} == {task.uid for task in slow}
        compared.append(len(found))
        return found

    monkeypatch.setattr(gang_rules.GangRules, "_of_jobs", checked)
    for name in ("preempt", "reclaim, proportion", "reclaim, capacity"):
        decided(name, action)
    assert sum(compared) > 20
