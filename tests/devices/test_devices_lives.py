"""Generated clusters with claims: whatever is placed keeps the rules, and no shortcut decides otherwise."""

import random

import pytest

import builders
from devices.test_devices_placing import bound, claim, device_class, given, pod, slice_of
from pumice.model.statuses import Status
from pumice.recording import state
from pumice.recording.effects import Ledger
from pumice.recording.known_classes import BY_CODE

SEEDS = range(24)


def world(seed):
    """Draw nodes with few devices, some of them for all nodes, and waves of gangs that want them."""
    draw = random.Random(seed)  # noqa: S311  cases, no secrets
    nodes = [f"n{index}" for index in range(draw.randint(1, 4))]
    first = [device_class()]
    for name in nodes:
        first += [builders.node(name, cpu=str(draw.randint(2, 6))), slice_of(name, draw.randint(0, 3))]
    if draw.random() < 0.4:
        wide = slice_of("wide", draw.randint(1, 3))
        del wide["spec"]["nodeName"]
        wide["spec"]["allNodes"] = True
        first.append(wide)
    waves = []
    for wave in range(2):
        made = []
        for job in range(draw.randint(1, 4)):
            name, size = f"j{wave}{job}", draw.randint(1, 4)
            made.append(builders.group(name, draw.randint(1, size), created=10 * wave + job))
            shared = draw.random() < 0.25
            if shared:
                made.append(claim(f"c-{name}", count=draw.randint(1, 2)))
            for member in range(size):
                key = f"{name}-{member}"
                if shared:
                    made.append(pod(key, name, shared=f"c-{name}", created=member))
                elif draw.random() < 0.8:
                    made += [pod(key, name, created=member), claim(f"c-{key}", key, count=draw.choice((1, 1, 2)))]
                else:
                    made.append(builders.pod(key, name, cpu="1", created=member))
        waves.append(made)
    return first, waves


def play(seed, **more):
    found = builders.Desk(**more)
    first, waves = world(seed)
    found.feed(*first)
    told = []
    for wave in waves:
        found.feed(*wave)
        found.cycle()
        judge(found)
        told.append((bound(found), given(found)))
    return found, told


def judge(found):
    """Hold everything that was given against the rules."""
    owners = {}
    for name, devices in given(found).items():
        task = found.task(name)
        for key, pool, device in devices:
            assert owners.setdefault((pool, device), key) == key
            assert pool in ("wide", task.node.name)
    for task in found.cluster.tasks.values():
        if task.shape.constraint_class.has_device_claims:
            assert (task.status is Status.BINDING) == (found.cluster.devices.reservations.get(task.uid) is not None)
    held = {(pool, device) for _, pool, device in found.cluster.devices.uses}
    assert held == set(owners)
    for job in found.cluster.jobs.values():
        placed = sum(1 for task in job.tasks.values() if task.status is Status.BINDING)
        assert placed == 0 or placed >= job.min_member


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_placed_keeps_the_rules_and_shortcuts_change_nothing(seed):
    found, told = play(seed)
    assert told == play(seed, plain=True)[1]
    captured = state.capture(found.scheduler, Ledger(), None)
    for group in captured.groups:
        listed = BY_CODE.get(group.code)
        assert listed is None or group.kind.__qualname__ in listed.get(group.kind.__module__, ()), group.kind


def test_some_of_them_find_devices_and_some_do_not():
    counts = [len(play(seed)[1][-1][1]) for seed in SEEDS]
    assert min(counts) < max(counts)
    assert max(counts) > 4
