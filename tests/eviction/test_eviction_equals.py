"""Where jobs or pods are equal, what is known of one is what asking about each would give."""

from __future__ import annotations

import numpy as np
import pytest
from eviction_crowds import PLUGINS, crowd, equals, flock, herd
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actions.eviction import (
    equal_rivals,
    gang_rules,
    member_room,
    node_ahead,
    offers,
    offers_ahead,
    ping_pong,
    set_order,
    takeover,
    trimming,
    units,
    victim_sets,
)
from pumice.framework.statement import Statement, Step
from pumice.model.statuses import Status

SEEDS = 40
PREEMPT = [name for name in PLUGINS if name.startswith("preempt")]


def decided(name, *action, world=equals):
    """Say who is evicted in some crowds, and which nodes are held for whom."""
    found = []
    for seed in range(SEEDS):
        desk = world(seed, name, *action)
        desk.cycle()
        assert not desk.scheduler.failures, desk.scheduler.failures
        held = desk.scheduler.reservations.holds
        found.append((sorted(desk.world.evictions), {uid: hold.node for uid, hold in held.items()}))
    return found


def test_nobody_takes_room_from_a_claimant_that_it_is_like(monkeypatch):
    asked = []
    is_one = equal_rivals.is_one

    def checked(rules, plan, job):
        told = is_one(rules, plan, job)
        if told:
            claimant = next(iter(job.pending.values()))
            assert not takeover.could_evict(plan.session, rules, claimant, plan.members), f"{job.key} of {plan.job.key}"
            asked.append(job.key)
        return told

    monkeypatch.setattr(equal_rivals, "is_one", checked)
    for name in PLUGINS:
        decided(name)
    assert len(asked) > 20


def test_nobody_starves_of_whom_that_is_known(monkeypatch):
    asked = []
    is_known_to_be_none = ping_pong.is_known_to_be_none

    def checked(session, victims):
        told = is_known_to_be_none(session, victims)
        if told:
            statement = session.statement()
            with statement.trial():
                statement.suppose(victims, [None] * len(victims), ping_pong.Status.PENDING)
                assert not any(session.job_starving(task.job) for task in victims)
            asked.append(victims)
        return told

    monkeypatch.setattr(ping_pong, "is_known_to_be_none", checked)
    for name in PLUGINS:
        decided(name)
    assert len(asked) > 20


@pytest.mark.parametrize("name", PLUGINS)
def test_what_is_known_of_equals_decides_nothing(name, monkeypatch):
    quick = decided(name)
    monkeypatch.setattr(equal_rivals, "is_one", lambda _rules, _plan, _job: False)
    monkeypatch.setattr(ping_pong, "is_known_to_be_none", lambda _session, _victims: False)
    monkeypatch.setattr(set_order, "are_equal", lambda _choices: False)
    monkeypatch.setattr(member_room, "of", lambda _plan: None)
    monkeypatch.setattr(trimming, "_are_all_needed", lambda _plan: False)
    assert decided(name) == quick


def test_sets_that_may_go_one_by_one_may_go_together(monkeypatch):
    compared = []
    go_apart = victim_sets.VictimSets._go_apart

    def checked(self, chosen):
        told = go_apart(self, chosen)
        if told and len(chosen) > 1:
            plan, row = self._plan, chosen[0].unit.tasks[0].node.row
            with plan.statement.trial():
                for choice in chosen:
                    assert units.may_all_go(plan, self._member, choice.unit.tasks)
                    plan.statement.evict(choice.unit.tasks, plan.rules.name)
                assert plan.leaves_gangs_whole([choice.unit for choice in chosen])
                fits = plan.fits(self._member, row)
            assert not self._by_numbers or self._passes(row, chosen) == fits
            compared.append(fits)
        return told

    monkeypatch.setattr(victim_sets.VictimSets, "_go_apart", checked)
    for name in PLUGINS:
        decided(name)
        for seed in range(SEEDS):
            crowd(seed, name).cycle()
    assert sum(compared) > 20


def test_members_that_are_placed_ahead_go_where_they_would_go_one_by_one(monkeypatch):
    """Whoever is placed ahead finds no room without victims, and a market that knows nothing yet offers the same."""
    compared = []
    take = node_ahead.NodeAhead._take

    def checked(self, member):
        plan = self.plan
        free = plan.place_freely(member)
        wanted = None if free else offers.Market(plan.session, plan.rules).cheapest(plan, member)
        count = len(plan.units)
        told = take(self, member)
        if told:
            assert not free
            assert wanted is not None
            assert (wanted.row, wanted.units) == (self.row, tuple(plan.units[count:]))
            compared.append(self.row)
        return told

    monkeypatch.setattr(node_ahead.NodeAhead, "_take_together", lambda *_: 0)
    monkeypatch.setattr(node_ahead.NodeAhead, "_take", checked)
    for name in PLUGINS:
        decided(name, world=herd)
    assert len(compared) > 50


def test_members_that_are_placed_together_go_where_they_would_go_one_by_one(monkeypatch):
    compared = []
    take_together = node_ahead.NodeAhead._take_together

    def checked(self, run, done):
        plan, wanted = self.plan, []
        members, known = len(plan.members), len(plan.units)
        with plan.statement.trial():
            for member in run:
                offer = (
                    None
                    if plan.place_freely(member)
                    else offers.Market(plan.session, plan.rules).cheapest(plan, member)
                )
                if offer is None or offer.row != self.row:
                    break
                wanted += offer.units
                plan.statement.evict([task for unit in offer.units for task in unit.tasks], "test")
                plan.statement.pipeline([member], [plan.session.cluster.nodes.records[offer.row]])
                if done():
                    break
        assert len(plan.members) == members
        count = take_together(self, run, done)
        assert plan.units[known:] == wanted[:count]
        assert plan.members[members:] == list(run[:count])
        compared.append(count)
        return count

    monkeypatch.setattr(node_ahead.NodeAhead, "_take_together", checked)
    for name in PREEMPT:
        decided(name, world=flock)
    assert sum(count > 1 for count in compared) > 50


@pytest.mark.parametrize(("world", "configured"), [(herd, PLUGINS), (flock, PREEMPT)])
def test_placing_ahead_decides_nothing(world, configured, monkeypatch):
    quick = [decided(name, world=world) for name in configured]
    monkeypatch.setattr(offers_ahead, "times", lambda *_: 0)
    assert [decided(name, world=world) for name in configured] == quick


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 7),
    asked=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    lacking=st.tuples(st.integers(-3, 12), st.integers(-3, 12)),
)
def test_sets_of_equals_come_as_sets_of_others_do(count, asked, lacking):
    vector = np.array(asked)
    listed_units = [units.Unit((object(),), whole=False) for _ in range(count)]
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
        statement._apply(Step.EVICT, Status.RELEASING, [task], [task.node], None, reason=reason)


@pytest.mark.parametrize("name", ["preempt", "preempt, drf", "reclaim, proportion", "reclaim, tree"])
def test_victims_that_go_together_are_those_that_would_go_one_by_one(name, monkeypatch):
    quick = [decided(name, world=crowd), decided(name, world=equals)]
    monkeypatch.setattr(Statement, "evict", one_by_one)
    assert [decided(name, world=crowd), decided(name, world=equals)] == quick


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_the_lists_that_gang_forms_keep_hold_everybody_who_may_go(action, monkeypatch):
    compared = []
    of_jobs = gang_rules.GangRules._of_jobs

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
