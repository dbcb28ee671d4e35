"""Who waits for victims is left out of cycles while nothing about it changes, and nobody can tell from what is decided, written and told."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import msgspec
import pytest
from eviction_holders import POLICIES
from eviction_restless import Restless
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import Desk, group, node, pod, priority_class
from drawing import drawn, seeds
from pumice.framework import resting, shortcuts

AWAKE = msgspec.structs.replace(shortcuts.ALL, resting_holders=False)
EACH_CLAIMANT = msgspec.structs.replace(shortcuts.ALL, equal_claimants=False)
SHARED = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]
"""


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=drawn(3, 2), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nobody_can_tell_that_holders_are_left_out(name, seed):
    lives = Restless(seed, name, shortcuts.ALL), Restless(seed, name, AWAKE)
    for cycle, (rested, awake) in enumerate(itertools.zip_longest(*(life.told() for life in lives))):
        assert rested == awake, f"cycle {cycle}"


def test_who_could_not_be_taken_from_in_turn_stands_for_nobody_else():
    """One that budgets protect takes over held room that its like, whom they do not, must leave alone."""
    lives = [Restless(200, "budgets", taken) for taken in (shortcuts.ALL, EACH_CLAIMANT)]
    assert list(lives[0].told()) == list(lives[1].told())


def test_holders_do_rest_in_these_lives():
    lives = [
        Restless(seed, name, shortcuts.ALL)
        for name in ("shared", "shared, live", "not limited")
        for seed in seeds(8, 1, 5)
    ]
    for life in lives:
        assert list(life.told())
    assert sum(life.rested for life in lives) > 200


def waiting(count):
    """Return a scheduler that holds room on so many nodes for pods whose victims do not go."""
    made = Desk(SHARED).feed(priority_class("low", 1), priority_class("high", 100))
    for i in range(count):
        made.feed(node(f"n{i}", "4"), group(f"old{i}", 0, phase="Running", priorityClassName="low"))
        made.feed(pod(f"old{i}-0", f"old{i}", cpu="3", node=f"n{i}"))
    for i in range(count):
        made.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high"), pod(f"g{i}-0", f"g{i}", cpu="3"))
    for i in range(5):
        # Somebody for whom there is no room comes in every cycle, so that none is skipped.
        made.feed(
            group(f"late{i}", 1, phase="Inqueue", priorityClassName="low"), pod(f"late{i}-0", f"late{i}", cpu="3")
        )
        made.cycle()
        made.now += 1_000_000
    assert len(made.scheduler.reservations.holds) == count
    return made


def tried(made):
    """Name the jobs of which anything was said in a cycle in which one more has come, without those who wait and hold nothing."""
    made.feed(group("more", 1, phase="Inqueue", priorityClassName="high"), pod("more-0", "more", cpu="3"))
    made.cycle()
    return holders(made)


def holders(made):
    """Name the jobs of the last cycle that were there to hold room."""
    return {verdict.job for verdict in made.cache.record.latest if verdict.job.startswith("a/g")}


def test_a_cycle_tries_only_holders_for_whom_something_has_changed():
    made = waiting(12)
    assert tried(made) == set()


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_a_holder_whose_victim_changes_is_tried(event):
    made = waiting(12)
    held = {uid: hold.victims for uid, hold in made.scheduler.reservations.holds.items()}
    claimant, (victim,) = next(iter(held.items()))
    name = victim.removeprefix("a.")
    where = made.cluster.tasks[victim].node.name
    made.feed(pod(name, name.rpartition("-")[0], cpu="3", node=where, deleting=2), event=event)
    assert tried(made) == {made.cluster.tasks[claimant].job_key}
    assert made.world.binds == ({} if event == "MODIFIED" else {claimant.removeprefix("a."): where})


def test_all_holders_are_tried_where_a_node_has_room_for_one():
    made = waiting(12)
    made.feed(node("roomy", "4"))
    assert len(tried(made)) == 12


@pytest.mark.parametrize("log", ["job_changes", "group_changes"])
def test_all_holders_are_tried_where_it_is_not_known_any_more_what_has_changed(log, monkeypatch):
    made = waiting(12)
    monkeypatch.setattr(made.cluster, log, SimpleNamespace(**ended(getattr(made.cluster, log))))
    assert len(tried(made)) == 12


def ended(log):
    """A log that does not reach back to any position."""
    known = {name: getattr(log, name) for name in dir(log) if not name.startswith("_")}
    return {**known, "since": lambda _: None}


def test_all_holders_are_tried_where_somebody_else_takes_room_that_is_held():
    made = waiting(12)
    made.feed(pod("foreign", cpu="3", node="n3", scheduler="another"))
    assert len(tried(made)) == 12
    recount.check(made.cluster)


def opened(made):
    """Open a session with the room held that is held."""
    made.apply()
    engine = made.scheduler.engine
    return engine.open(made.cache.record, made.cache, number=9, now=made.now, reserved=made.scheduler.reservations)


@pytest.mark.parametrize("told", [False, True])
def test_nobody_is_left_out_where_somebody_has_come_to_want_to_be_told_of_everybody(told):
    session = opened(waiting(3))
    assert len(session.reserved) == 3
    session.gates.enabled = told
    left_out = [uid for _, uids in resting.of(session).left_out(session) for uid in uids]
    assert len(left_out) == (0 if told else 3)


def test_where_not_all_can_wait_who_rests_is_put_back_where_it_waits():
    made = waiting(3)
    other = pod("other", "more", cpu="3")
    other["status"]["nominatedNodeName"] = "n0"
    session = opened(made.feed(group("more", 1, phase="Inqueue", priorityClassName="high"), other))
    assert sorted(task.node.name for task in session.reserved.values()) == ["n0", "n1", "n2"]
    assert not any(uids for _, uids in resting.of(session).left_out(session))


def test_everybody_is_looked_at_where_somebody_asks_why():
    made = waiting(12)
    made.feed(group("more", 1, phase="Inqueue", priorityClassName="high"), pod("more-0", "more", cpu="3"))
    found = []
    made.scheduler.cycle(lambda explainer: found.append(explainer.job("a/g7")))
    assert len(holders(made)) == 12
    assert "old" in str(found[0])
