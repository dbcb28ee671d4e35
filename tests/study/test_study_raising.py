"""Of a limit the smallest raise is offered that starts a job, whoever waits beside it, and few rehearsals find it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_worlds import KNOWN
from test_study_relaxing import LIMITS, QUOTAS, group, node, pod, queue

from drawing import drawn
from pumice.cache.options import Options
from pumice.framework import configuration
from pumice.sim.cluster import SimulatedCluster
from pumice.study import files, search
from pumice.study.rehearsal import Rehearsal
from pumice.study.relaxing import of_quotas, raising

MOST_REHEARSALS = 9


@given(st.integers(0, 2**60))
def test_parts_are_all_small_numbers_and_later_ones_a_sixteenth_apart(most):
    found = raising.parts(most)
    assert found == sorted(set(found))
    assert (found[-1:] or [0]) == [most]
    for before, after in zip([0, *found], found, strict=False):
        assert after - before <= max(1, before // 16)
    assert len(found) <= 16 + 12 * most.bit_length()


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "cards"]), st.integers(0, 10_000))
UNITS = {"cpu": 1000, "memory": 7, "cards": 1}


@given(st.lists(AMOUNTS, min_size=1, max_size=3))
def test_a_raise_goes_from_the_least_to_the_most_and_never_down(amounts):
    made = raising.Raise(amounts, UNITS.__getitem__)
    steps = [made.at(number) for number in range(1, len(made) + 1)]
    assert steps[0] == amounts[0]
    for name in {name for each in amounts for name in each}:
        walked = [each.get(name, 0) for each in steps]
        assert walked == sorted(walked)
        assert walked[-1] == max(each.get(name, 0) for each in amounts)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_is_rounded_is_enough_and_as_whole_as_the_limit(units, limit):
    found = raising.rounded(units, limit, (1024, 32, 1))
    assert 0 <= found - units < 1024
    assert all(found % whole == 0 for whole in (1024, 32) if limit % whole == 0)


def rehearsed(policy, objects):
    cluster = SimulatedCluster()
    cluster.apply(objects)
    known = configuration.load(policy, KNOWN.catalog(), "config")
    return Rehearsal(files.stored(cluster), known, Options(), cluster.clock.now(), KNOWN)


def offered(rehearsal, sort, count):
    """Return to how much the search raises a limit, and count rehearsals of that sort."""
    attempt = search.attempt

    def counted(rehearsal, target, tried, **options):
        count.append(tried is not None and tried.sort == sort)
        return attempt(rehearsal, target, tried, **options)

    search.attempt = counted
    try:
        result = search.search(rehearsal, search.Target("a/g"))
    finally:
        search.attempt = attempt
    change = next(trial.change for trial in result.enough if trial.sort == sort)
    return int(re.search(r" to (\d+)$", change)[1])


def world(capability, rivals, large, own):
    """A queue that is full, with those who come first, one that is not let in, and the job that is asked about."""
    given = [
        node(cpu="400"),
        queue("team", capability={"cpu": str(capability)}),
        group("run", queue="team", phase="Running"),
        pod("run-0", "run", cpu=str(capability), on="n1"),
    ]
    for number, cpu in enumerate(rivals):
        given += [group(f"first{number}", queue="team"), pod(f"first{number}-0", f"first{number}", cpu=str(cpu))]
    given.append(group("large", queue="team", phase="Pending", minResources={"cpu": str(large)}))
    return [*given, group(queue="team", minimum=len(own)), *(pod(f"g-{n}", cpu=str(cpu)) for n, cpu in enumerate(own))]


@settings(max_examples=drawn(10), deadline=None)
@given(
    st.integers(2, 8),
    st.lists(st.integers(1, 4), max_size=3),
    st.integers(10, 200),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
)
def test_the_raise_of_a_capability_is_the_smallest_that_starts_the_job(capability, rivals, large, own):
    count, objects = [], world(capability, rivals, large, own)
    to = offered(rehearsed(LIMITS, objects), "capability", count)
    least = capability + sum(own)
    assert starts(objects, to)
    assert to == least or not (starts(objects, least) or starts(objects, to - 1))
    assert sum(count) <= MOST_REHEARSALS


def starts(objects, capability):
    """Tell whether the job starts by itself where its queue has another capability."""
    others = [each for each in objects if each["kind"] != "Queue"]
    rehearsal = rehearsed(LIMITS, [*others, queue("team", capability={"cpu": str(capability)})])
    return search.attempt(rehearsal, search.Target("a/g"), None, imagine=False).verdict.starts


def test_amounts_of_quotas_are_rounded_to_what_people_write():
    for name in ("memory", "requests.memory", "limits.memory", "requests.storage", "hugepages-2Mi"):
        assert of_quotas.wholes(name)[0] == 2**30 * 1000
    for name in ("cpu", "requests.cpu", "pods", "requests.nvidia.com/gpu", "count/pods"):
        assert of_quotas.wholes(name) == (1000,)


@pytest.mark.parametrize(
    ("limit", "own", "told"), [("4Gi", "1500Mi", "4Gi to 6Gi"), ("4000Mi", "1500Mi", "4000Mi to 5500Mi")]
)
def test_a_limit_that_is_written_in_whole_units_is_raised_to_whole_units(limit, own, told):
    stated = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": "a"}}
    quota = {
        **stated,
        "spec": {"hard": {"memory": limit}},
        "status": {"hard": {"memory": limit}, "used": {"memory": limit}},
    }
    result = search.search(
        rehearsed(QUOTAS, [node(), quota, group(phase="Pending", minResources={"memory": own})]), search.Target("a/g")
    )
    tried = [trial.change for trial in (*result.enough, *result.not_enough)]
    assert any(told in change for change in tried), tried
