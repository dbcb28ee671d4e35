"""Small parts of plans, each held against what is obvious: where members may go, and in which orders they are tried."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_checks
from hypothesis import given
from hypothesis import strategies as st

from pumice.actions.eviction import ping_pong, units
from pumice.actions.eviction import plan as plans

ROWS = st.none() | st.lists(st.integers(0, 9), unique=True).map(sorted)


def rows(given):
    return None if given is None else np.array(given, dtype=np.int64)


@pytest.mark.parametrize("sub_groups_are_bound", [(), (False,), (False, True)])
@given(ROWS, ROWS)
def test_a_member_goes_where_both_the_domain_and_its_sub_group_are(sub_groups_are_bound, domain, reached):
    """Inside a domain only sub-groups that are bound to one of their own are narrower."""
    plan = SimpleNamespace(
        domain=None if domain is None else SimpleNamespace(rows=rows(domain)),
        job=SimpleNamespace(policies=[SimpleNamespace(topology=bound) for bound in sub_groups_are_bound]),
        session=SimpleNamespace(topology=SimpleNamespace(reach=lambda _: rows(reached))),
    )
    bounds = [domain] if domain is not None and not any(sub_groups_are_bound) else [domain, reached]
    expected = set(range(10)).intersection(*(each for each in bounds if each is not None))
    found = plans.Plan.rows(plan, None)
    assert (set(range(10)) if found is None else set(found.tolist())) == expected


def members(sizes):
    """Make members of some sizes; equal ones share their shape."""
    shapes = {size: SimpleNamespace(request=SimpleNamespace(vector=np.array([size]))) for size in sizes}
    made = [SimpleNamespace(shape=shapes[size], size=size) for size in sizes]
    for each in made:
        each.likeness = each.size
    return made


@pytest.mark.parametrize("nodes", [2, plans.SMALL, plans.SMALL + 1])
@given(st.lists(st.integers(1, 4), min_size=1, max_size=plans.FEW + 1))
def test_members_are_tried_in_their_order_the_largest_first_and_if_there_are_few_in_every_other(nodes, sizes):
    table = SimpleNamespace(allocatable=np.full((nodes, 1), 8), count=nodes)
    plan = SimpleNamespace(session=SimpleNamespace(cluster=SimpleNamespace(nodes=table)))
    plan.is_small = lambda some: plans.Plan.is_small(plan, some)
    tasks = members(sizes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plans.ways, "kind_of", lambda _, task: task.likeness)
        found = [[task.size for task in order] for order in plans.orders(plan, tasks)]
    assert found[0] == sizes
    if len(set(sizes)) == 1:
        assert len(found) == 1
        return
    assert found[1] == sorted(sizes, reverse=True)
    every = set(itertools.permutations(sizes)) if len(sizes) <= plans.FEW and nodes <= plans.SMALL else set()
    assert {tuple(order) for order in found} == every | {tuple(sizes), tuple(found[1])}


def test_who_asks_for_all_that_there_is_of_something_is_the_largest():
    table = SimpleNamespace(allocatable=np.array([[1, 10]]), count=1)
    plan = SimpleNamespace(session=SimpleNamespace(cluster=SimpleNamespace(nodes=table)), is_small=lambda _: False)
    most, all_of_one = members([(0, 9), (1, 1)])
    most.shape.request.vector, all_of_one.shape.request.vector = np.array([0, 9]), np.array([1, 1])
    assert list(plans.orders(plan, [most, all_of_one])) == [[most, all_of_one], [all_of_one, most]]


def test_of_many_pods_it_is_told_in_one_question_whether_a_victim_s_job_would_take_them_back(monkeypatch):
    monkeypatch.setattr(ping_pong, "LOOKS", 0)
    assert not tiny_checks.Check(1554).findings  # in which the victims' job would


@pytest.mark.parametrize(
    ("minimum", "going", "left", "alone"),
    [
        (2, 3, 0, True),  # it could spare one: as a start not all of it
        (2, 2, 0, False),  # it could spare nobody
        (1, 2, 0, True),
        (1, 1, 0, False),
        (0, 1, 0, False),
        (0, 2, 0, True),
        (2, 3, 1, False),  # it is there still, without them
    ],
)
def test_a_job_of_which_all_went_may_give_what_it_can_spare_and_nobody_if_that_was_in_vain_too(
    minimum, going, left, alone
):
    job = SimpleNamespace(key="j", min_member=minimum, tally=SimpleNamespace(ready=left))
    tasks = [SimpleNamespace(uid=f"u{i}", job=job, job_key="j") for i in range(going)]
    made = SimpleNamespace(excluded={}, kept={})
    for again in (False, True):
        plans.Plan.exclude(made, tasks)
        one, everybody = (units.Unit(tuple(some), whole=False) for some in (tasks[:1], tasks))
        assert plans.Plan.leaves_out(made, [everybody])
        assert plans.Plan.leaves_out(made, [one]) is (again or not alone)
