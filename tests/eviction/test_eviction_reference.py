"""The search against one that tries everything, on clusters of at most 4 nodes and 8 pods."""

from __future__ import annotations

import eviction_worlds as worlds
import pytest
from eviction_arena import Arena
from eviction_reference import GangReference, Reference
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import group
from drawing import drawn

GENERATE = [Phase.explicit, Phase.generate]
GANGS = drawn(150, 30)
CLAIMANT = "zz"
ONLY_PRIORITY = "[{name: priority}, {name: conformance}]"
NO_VOTE = "[{name: gang, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]"
# How each policy is told to the scheduler, and which plugins vote about victims, tier by tier.
POLICIES = {
    "gang votes": ("preempt", worlds.PREEMPT, worlds.FIT, [["priority", "gang", "conformance"]]),
    "gang does not vote": ("preempt", ONLY_PRIORITY, NO_VOTE, [["priority", "conformance"]]),
    "gang first, then priority": (
        "preempt",
        "[{name: gang}, {name: conformance}]",
        "[{name: priority}, {name: predicates}, {name: nodeorder}]",
        [["gang", "conformance"], ["priority"]],
    ),
    "bundles": ("gangpreempt", worlds.PREEMPT, worlds.FIT, None),
}


def tiny(choices, *, size, limited=False):
    """A world in which everything runs but one job, which has a higher priority than most."""
    world = worlds.Maker(choices, nodes=4, jobs=5, pods=8 - size, queues=1).make()
    for name in [name for name, member in world.members.items() if not member.node]:
        del world.members[name]
    known = {member.group for member in world.members.values()}
    world.groups = [g for g in world.groups if g["metadata"]["name"] in known]
    spec = world.queues[0]["spec"]
    spec.pop("guarantee", None)
    spec.pop("capability", None)
    if limited:
        spec["capability"] = {"cpu": str(choices.randint(2, 8))}
    minimum = choices.randint(2, size) if size > 1 else 1
    world.groups.append(group(CLAIMANT, minimum, created=9, priorityClassName="high", queue="q0"))
    for index in range(size):
        world.members[f"{CLAIMANT}-{index}"] = worlds.Member(
            f"{CLAIMANT}-{index}",
            CLAIMANT,
            choices.randint(1, 4 if size == 1 else 3),
            port=8080 if choices.random() < 0.2 else 0,
            zone=choices.choice("ab") if choices.random() < 0.2 else "",
        )
    return world


def decide(world, policy, *, limited=False):
    """Run one cycle of one action; return the plan, if any, and the reference."""
    action, first, second, votes = POLICIES[policy]
    second = second.replace("[", "[{name: proportion}, ", 1) if limited else second
    arena = Arena(world, f'actions: "enqueue, {action}"\ntiers:\n- plugins: {first}\n- plugins: {second}\n')
    made = arena.decide()
    reference = GangReference(world, CLAIMANT, []) if votes is None else Reference(world, CLAIMANT, votes)
    return (made[0] if made else None), reference, arena


def check(world, policy, *, limited=False):
    """Hold one decision against the reference; tells whether a plan was missed."""
    made, reference, arena = decide(world, policy, limited=limited)
    limit = reference.limit() if limited else None
    plans = [frozenset(m.name for m in plan) for plan in reference.plans(limit=limit)]
    if made is None:
        return bool(plans) and frozenset() not in plans
    assert frozenset() not in plans, f"{made.victims} go though there is room\n{arena.told()}"
    gone = frozenset(made.victims)
    assert reference.keeps_gangs([world.members[name] for name in gone]), f"a gang is broken\n{arena.told()}"
    members = [world.members[name] for name in made.members]
    found = [frozenset(m.name for m in plan) for plan in reference.plans(members, limit)]
    if len(reference.waiting) == 1:
        assert gone in found, f"{made} is no plan, {found} are\n{arena.told()}"
    spared = [sorted(plan) for plan in found if plan < gone]
    assert not spared, f"{made}, but {spared} would have done\n{arena.told()}"
    return False


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=drawn(60), deadline=None, phases=GENERATE)
@given(seed=st.integers(0, 2**32))
def test_for_a_single_pod_a_plan_is_found_exactly_when_one_exists_and_nobody_could_be_spared(policy, seed):
    world = tiny(worlds.choices(seed), size=1)
    assert not check(world, policy), f"a plan is missed: seed {seed}"


@settings(max_examples=drawn(60), deadline=None, phases=GENERATE)
@given(seed=st.integers(0, 2**32))
def test_under_a_limit_of_the_queue_too(seed):
    world = tiny(worlds.choices(seed), size=1, limited=True)
    assert not check(world, "gang does not vote", limited=True), f"a plan is missed: seed {seed}"


@pytest.mark.parametrize("policy", POLICIES)
def test_for_gangs_nobody_could_be_spared_and_no_plan_is_missed(policy, record_property):
    missed = [seed for seed in range(GANGS) if check(tiny(worlds.choices(seed), size=2 + seed % 2), policy)]
    record_property(f"plans missed of {GANGS} gangs", len(missed))
    assert not missed, f"seeds {missed}"
