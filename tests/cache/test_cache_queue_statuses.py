"""The status of queues is written when it is not what counting pods and groups gives, and only then."""

from __future__ import annotations

import itertools
import random

import pytest

from builders import Desk, group, node, pod, queue
from drawing import seeds

PARENTS = {"root": "", "default": "", "team": "root", "left": "team", "right": "team", "lost": "nowhere"}
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")


def above(name):
    """The queue itself and those above it; who has no parent hangs under root, who has one that does not exist under nobody."""
    found = [name]
    while found[-1] in PARENTS and found[-1] != "root":
        found.append(PARENTS[found[-1]] or "root")
    return [each for each in found if each in PARENTS]


def written(desk):
    """The status of each queue that was written."""
    found = {patch.name: patch.body["status"] for patch in desk.world.patches("Queue")}
    desk.world.effects.clear()
    return found


def fed(made, draw):
    """Feed some groups, those that run with their pods; give by queue the status that it is to have."""
    held = {name: {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0, "pods": 0} for name in PARENTS}
    counts = {name: dict.fromkeys(PHASES, 0) for name in PARENTS}
    for i in range(draw.randint(0, 6)):
        where, phase = draw.choice([*PARENTS]), draw.choice(["Running", "Inqueue"])
        made.feed(group(f"g{i}", 1, queue=where, phase=phase))
        counts[where][phase] += 1
        for k in range(draw.randint(1, 3) if phase == "Running" else 0):
            wants = {"cpu": draw.randint(1, 3), "nvidia.com/gpu": draw.choice((0, 1))}
            made.feed(pod(f"g{i}-{k}", f"g{i}", requests={n: str(u) for n, u in wants.items() if u}, node="n"))
            for name, resource in itertools.product(above(where), (*wants, "pods")):
                held[name][resource] += wants.get(resource, 1)
    return {
        name: {
            "allocated": {n: str(units) for n, units in held[name].items() if units or n in ("cpu", "memory")},
            **{phase.lower(): count for phase, count in counts[name].items()},
        }
        for name in PARENTS
    }


def spoilt(status, how):
    """Give another status in which something is wrong, and what of it is to be taken away."""
    allocated = status["allocated"]
    match how:
        case "amount":
            return {**status, "allocated": {**allocated, "cpu": str(int(allocated["cpu"]) + 1)}}, {}
        case "name":
            return {**status, "allocated": {**allocated, "example.com/gone": "1"}}, {"example.com/gone": None}
        case "missing":
            return {}, {}
        case _:
            return {**status, how: status[how] + 1}, {}


@pytest.mark.parametrize("seed", seeds(40, *range(8)))
def test_what_is_held_and_how_many_groups_there_are_is_written_if_it_is_not_said_already(seed):
    draw = random.Random(seed)  # noqa: S311  a world, not a secret
    made = Desk(queues=()).feed(node("n", cpu="100", **{"nvidia.com__gpu": "40"}))
    expected = {}
    for name, status in fed(made, draw).items():
        stated = status
        if how := draw.choice(["", "", "amount", "name", "missing", *map(str.lower, PHASES)]):
            stated, gone = spoilt(status, how)
            if how != "missing" or any(
                text not in ("0", 0) for text in (*status["allocated"].values(), *[*status.values()][1:])
            ):
                expected[name] = {**status, "allocated": {**status["allocated"], **gone}}
        made.feed({**queue(name, parent=PARENTS[name]), "status": stated})
    made.cycle()
    assert written(made) == expected
    made.cycle()
    assert written(made) == {}
