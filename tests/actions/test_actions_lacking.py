"""How many members a gang still lacks, wherever that is asked, held against counting them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.actions.eviction import asking
from pumice.actions.placing import domain_search, task_runs, telling
from pumice.actions.placing import minimum as number_lacking
from pumice.model.statuses import Status

POLICY = {"name": "ring", "matchLabelKeys": ["rank"], "subGroupSize": 3, "minSubGroups": 1}
CROWDS = [*itertools.product((0, 1, 2), (0, 1), (0, 1), (1, 2, 3))]


def gang(minimum, runs, holds, idle, waits, **spec):
    """A job of which so many run, hold room that is being released, ask for nothing, and wait; those that wait ask for 1, 2, 3 cpu."""
    made = Desk().feed(node("n", cpu="64"), group("g", minimum, **spec))
    labels = {"rank": "0"}
    made.feed(*(pod(f"r-{i}", "g", cpu="1", node="n", labels=labels) for i in range(runs)))
    made.feed(*(pod(f"h-{i}", "g", cpu="1", labels=labels) for i in range(holds)))
    made.feed(*(pod(f"i-{i}", "g", labels=labels) for i in range(idle)))
    made.feed(*(pod(f"w-{i}", "g", cpu=str(1 + i), labels=labels) for i in range(waits))).apply()
    held = [made.task(f"h-{i}") for i in range(holds)]
    made.cluster.apply(held, [made.node("n")] * holds, Status.PIPELINED)
    return made, made.cluster.jobs["a/g"], [made.task(f"w-{i}") for i in range(waits)]


@pytest.mark.parametrize("minimum", [1, 3, 5])
@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_members_that_run_or_hold_room_are_not_lacking(minimum, crowd):
    made, job, waiting = gang(minimum, *crowd)
    runs, holds, idle, waits = crowd
    lacking = minimum - runs - holds
    assert asking.number_lacking(job) == task_runs.lacking(waiting[0]) == max(1, lacking)
    first = waiting[:lacking] if lacking > 0 else waiting
    assert [task.name for task in asking.members_lacking(job, waiting)] == [task.name for task in first]
    cpu = made.cluster.vocabulary.columns["cpu"]
    least = asking.least_need(job, waiting[::-1])
    assert int(np.asarray(least)[cpu]) == sum(1000 * (1 + i) for i in range(min(waits, max(1, lacking))))
    assert domain_search.needed(job.tally, minimum, ready=False) == max(1, lacking - idle)
    assert domain_search.needed(job.tally, minimum, ready=True) == 1
    assert number_lacking.lacking(job.tally, minimum) == max(0, lacking - idle)


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_a_sub_group_lacks_members_of_its_own_size(crowd):
    _, job, waiting = gang(1, *crowd, subGroupPolicy=[POLICY])
    runs, holds, _, _ = crowd
    assert task_runs.lacking(waiting[0]) == max(1, 3 - runs - holds)
    assert asking.members_lacking(job, waiting) == waiting


def test_roles_are_not_told_from_the_number_alone():
    _, job, waiting = gang(3, 1, 0, 0, 3, minTaskMember={"x": 3})
    assert asking.members_lacking(job, waiting) == waiting


@pytest.mark.parametrize("lacking", range(-1, 3))
def test_who_has_its_minimum_is_told_how_many_wait_and_others_how_many_could_be_placed(lacking):
    said = str(telling.Shortfall(placed=1, lacking=lacking, minimum=4, pending=3, task="", failure=None))
    if lacking > 0:
        assert said == f"1 of the {lacking} members it still needs could be placed"
    else:
        assert said == "has its minimum of 4; 3 more pods wait"


@pytest.mark.parametrize(
    ("rules", "compatibility", "first"),
    [
        ("current", "", True),
        ("current", "kube-batch", True),
        ("current", "volcano", False),
        ("kube-batch", "", False),
        ("kube-batch", "volcano", False),
    ],
)
def test_members_that_the_minimum_names_come_first_but_for_those_who_mean_other_rules(rules, compatibility, first):
    session = SimpleNamespace(configuration=SimpleNamespace(rules=rules, compatibility=compatibility))
    assert number_lacking.comes_first(session) is first
