"""Small rules of eviction on their own: what is complete, what goes whole, what a job beyond its minimum asks for, and for whom a victim is said to go."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class
from pumice.actions.eviction import asking, listed, units


def gang(surplus, minimum=2, *, roles=None, sub_groups=None):
    """A gang with so many placed members more than it needs; roles and sub-groups are None if there are none, else whether they are complete."""
    return SimpleNamespace(
        surplus=surplus,
        min_member=minimum,
        roles_enforced=roles is not None,
        policies=[] if sub_groups is None else ["policy"],
        # Members that wait for room are none, so nobody may ask to count them.
        roles_reach=lambda *, pipelined, without: roles is not False and not pipelined,
        sub_jobs_reach=lambda *, pipelined, without: sub_groups is not False and not pipelined,
    )


PARTS = st.none() | st.booleans()


@given(st.integers(-2, 3), st.integers(0, 3), PARTS, PARTS)
def test_a_gang_is_complete_if_it_has_enough_members_and_every_part_of_it_is(surplus, without, roles, sub_groups):
    found = units.keeps_its_minimum(gang(surplus, roles=roles, sub_groups=sub_groups), ["member"] * without)
    assert found == (surplus >= without and roles is not False and sub_groups is not False)


@given(st.integers(-1, 1), st.integers(0, 3))
def test_who_goes_with_all_that_is_left_of_it_ends_if_it_was_complete_and_breaks_if_it_is_a_gang(surplus, minimum):
    unit = units.whole_job(gang(surplus, minimum), ("task",))
    assert (unit.whole, unit.ends, unit.breaks) == (True, surplus >= 0, surplus >= 0 and minimum > 1)


@given(st.lists(st.sampled_from(["", "started", "waiting", "other"]), max_size=6), st.booleans())
def test_beyond_its_minimum_a_job_asks_for_one_member_more_or_for_a_sub_group_that_has_not_started(names, divided):
    subs = {name: SimpleNamespace(name=name) for name in names if name}
    tasks = [SimpleNamespace(sub_job=subs.get(name), name=name) for name in sorted(names)]
    has_started = {"waiting": False, "other": False}
    session = SimpleNamespace(is_sub_job_pipelined=lambda _, sub: has_started.get(sub.name, True))
    job = SimpleNamespace(policies=["policy"] if divided else [])
    expected = []
    for name, members in itertools.groupby(tasks, key=lambda task: task.name):
        some = list(members)
        together = divided and name in has_started
        expected += [(some, False)] if together else [([task], True) for task in some]
    assert [(wanted, done()) for wanted, done in asking.wishes(session, job, tasks)] == expected


@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("may_start", [True, False])
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans())))
def test_it_is_enough_once_a_job_can_start_and_no_sub_group_waits_in_part(may_start, divided, parts):
    subs = {
        str(n): SimpleNamespace(tally=SimpleNamespace(waiting=w), whole=whole) for n, (w, whole) in enumerate(parts)
    }
    job = SimpleNamespace(policies=["policy"] if divided else [], sub_jobs=subs)
    session = SimpleNamespace(is_pipelined=lambda _: may_start, is_sub_job_pipelined=lambda _, sub: sub.whole)
    in_part = divided and any(waiting and not whole for waiting, whole in parts)
    assert asking.is_enough(session, job) == (may_start and not in_part)


PREEMPT = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}]
"""


def test_each_victim_is_told_for_which_member_it_goes():
    """Two members of a gang are for two nodes, of which each has one victim."""
    desk = Desk(PREEMPT).feed(priority_class("high", 100), group("low", 1), group("g", 2, priorityClassName="high"))
    for name in ("x", "y"):
        desk.feed(node(f"n-{name}", cpu="2", labels={"is": name}), pod(f"low-{name}", "low", cpu="2", node=f"n-{name}"))
        desk.feed(pod(f"g-{name}", "g", cpu="2", nodeSelector={"is": name}, priorityClassName="high"))
    desk.cycle()
    desk.cycle()
    reasons = {effect.name: effect.reason for effect in desk.world.effects if type(effect).__name__ == "Evict"}
    assert sorted(reasons) == ["low-x", "low-y"]
    for name in ("x", "y"):
        assert f"for pod a/g-{name} of group a/g in queue default" in reasons[f"low-{name}"]


@pytest.mark.parametrize("names", list(itertools.permutations(["preempt", "gangreclaim", "allocate", "reclaim"], 3)))
def test_every_action_that_evicts_has_its_own_search_in_the_order_of_the_list(names):
    session = Desk(PREEMPT.replace('"preempt"', f'"{", ".join(names)}"')).session()
    assert [each.rules.name for each in listed.searches(session)] == [name for name in names if name != "allocate"]
