"""Several schedulers side by side share gangs and nodes out without a gap, an overlap or a split gang."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from drawing import drawn
from pumice.api import core, kinds, meta
from pumice.cache import assignment
from pumice.cache.cache import Cache
from pumice.scheduler import Scheduler


def members(count):
    return [assignment.Assignment(f"s-{i}", count) for i in range(count)]


@given(st.text(min_size=1, max_size=30), st.integers(1, 9))
@settings(max_examples=drawn(200), deadline=None)
def test_every_name_is_held_by_exactly_one_member(name, count):
    assert sum(each.holds(name) for each in members(count)) == 1


def test_no_member_is_left_without_a_fair_part():
    held = [sum(each.holds(f"node-{i}") for i in range(3000)) for each in members(3)]
    assert min(held) > 400


def test_a_further_member_takes_names_only_for_itself():
    two, three = members(2), members(3)
    for name in (f"node-{i}" for i in range(500)):
        if not three[2].holds(name):
            assert [each.holds(name) for each in two] == [each.holds(name) for each in three[:2]]


def test_pods_of_one_group_stay_together_whoever_owns_them():
    owner = meta.OwnerReference(name="other")
    first = core.Pod(metadata=meta.ObjectMeta(name="p-0", annotations={builders.GROUP_NAME: "g"}))
    owned = meta.ObjectMeta(name="p-1", annotations={builders.GROUP_NAME: "g"}, owner_references=(owner,))
    native = core.PodSpec(scheduling_group=core.SchedulingGroup(pod_group_name="g"))
    third = core.Pod(metadata=meta.ObjectMeta(name="p-2", owner_references=(owner,)), spec=native)
    for each in members(5):
        assert {each.holds_pod(pod) for pod in (first, core.Pod(metadata=owned), third)} == {each.holds("g")}


ENVIRONMENTS = {
    "not switched on": ({"SCHEDULER_NUM": "3", "SCHEDULER_POD_NAME": "s-1"}, None),
    "switched on": ({"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_NUM": "3", "SCHEDULER_POD_NAME": "s-1"}, "s-1"),
    "a single one": ({"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": "s-0"}, "s-0"),
}


@pytest.mark.parametrize(("environment", "expected"), ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_the_environment_says_which_member_this_is(environment, expected):
    found = assignment.from_environment(environment)
    assert (found and found.member) == expected


@pytest.mark.parametrize(
    ("number", "name", "message"),
    [
        ("three", "s-0", "SCHEDULER_NUM is 'three'"),
        ("0", "s-0", "SCHEDULER_NUM is '0'"),
        ("1001", "s-0", "SCHEDULER_NUM is '1001', which is not a number of schedulers from 1 to 1000"),
        ("2", "s-2", "scheduler 's-2' is none of <name>-0 … <name>-1"),
        ("2", "", "scheduler '' is none of"),
        ("2", "s-x", "scheduler 's-x' is none of"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused_by_name(number, name, message):
    environment = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_NUM": number, "SCHEDULER_POD_NAME": name}
    with pytest.raises(ValueError, match=message):
        assignment.from_environment(environment)


def test_two_schedulers_place_every_gang_once_and_only_on_their_own_nodes():
    objects = [builders.node(f"n{i}", cpu="8") for i in range(12)]
    for g in range(6):
        objects += [builders.group(f"g{g}", 3), *(builders.pod(f"g{g}-{i}", f"g{g}", cpu="2") for i in range(3))]
    bound = []
    for each in members(2):
        world = builders.World()
        cache = Cache(world, assignment=each)
        for manifest in [builders.queue("root"), builders.queue("default"), *objects]:
            cache.feed(builders.kind_of(manifest), "ADDED", manifest)
        Scheduler(cache, builders.settings(builders.GANG)[0], lambda: builders.NOW).cycle()
        assert all(each.holds(node) for node in world.binds.values())
        bound.append(world.binds)
    assert all(bound)
    assert not bound[0].keys() & bound[1].keys()
    assert len(bound[0]) + len(bound[1]) == 18


def test_a_group_of_kubernetes_own_is_followed_by_the_member_that_holds_its_name():
    names = [f"g{number}" for number in range(8)]
    for each in members(2):
        cache = Cache(builders.World(), assignment=each)
        for name in names:
            native = {"apiVersion": kinds.NATIVE_POD_GROUP.api_version, "kind": "PodGroup"}
            native |= {"metadata": builders.metadata(name, "a"), "spec": {"schedulingPolicy": {"basic": {}}}}
            held = builders.pod(f"{name}-0", cpu="1", node="n1", schedulingGroup={"podGroupName": name})
            for manifest in (native, held):
                cache.feed(builders.kind_of(manifest), "ADDED", manifest)
        cache.apply(builders.NOW)
        followed = [key for key, job in cache.cluster.jobs.items() if job.group is not None]
        assert followed == [f"a/{name}@scheduling.k8s.io" for name in names if each.holds(name)]
        assert 0 < len(followed) < len(names)
