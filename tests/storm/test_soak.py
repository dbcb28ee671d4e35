"""A soak of a virtual quarter of an hour or more: whatever came, struck and went, the cluster comes to rest with as much in every container as the time before."""

from __future__ import annotations

import functools
import gc

import pytest

from drawing import drawn
from tests.storm import soak, telling

ROUNDS, MINUTES = 3, drawn(6, 3)
SPARE = 16  # entries of one container that may come and go, such as connections that are kept for a while


def soaked(folder):
    """Give what every container holds after each of a few rounds."""
    made = soak.Soak(1, folder, nodes=12, jobs_per_hour=400, faults_per_hour=120, longest=40)
    found = []
    for _ in range(ROUNDS):
        made.work(MINUTES * soak.MINUTE)
        sample = made.sample()
        found.append({"sample": sample, "containers": made.containers()})
    return {"faults": made.faults, "jobs": made.jobs, "found": found}


@pytest.mark.long
def test_nothing_is_left_of_what_came_and_went():
    soaked_ = telling.apart(soaked)
    assert soaked_["jobs"] > 4 * MINUTES * ROUNDS
    assert soaked_["faults"] > MINUTES * ROUNDS
    first, last = soaked_["found"][0], soaked_["found"][-1]
    for part, sizes in last["containers"].items():
        grown = {path: size - first["containers"][part].get(path, 0) for path, size in sizes.items()}
        assert {path: more for path, more in grown.items() if more > SPARE} == {}, part
    for part in ("timers and tasks", "connections"):
        assert last["sample"][part] <= first["sample"][part] + SPARE
    assert last["sample"]["bytes on disk"] < 2 * first["sample"]["bytes on disk"]


def told(folder, garbage):
    """Give what happened in a while of many faults, in which garbage is collected often or never."""
    made = soak.Soak(2, folder, nodes=6, jobs_per_hour=400, faults_per_hour=900, longest=40)
    if garbage:
        gc.set_threshold(100, 2, 2)
        gc.enable()
    made.work(1.5 * soak.MINUTE)
    return {"lines": made.world.lines}


@pytest.mark.long
def test_a_soak_is_the_same_whenever_garbage_is_collected():
    """What a killed process has left must not be cleared up by whoever runs just then, in his name."""
    often, never = (telling.apart(functools.partial(told, garbage=garbage)) for garbage in (True, False))
    assert sum(" kill " in line for line in never["lines"]) > 2
    assert often == never


def test_a_line_is_fitted():
    samples = [{"hour": hour, "part": 10 + 2 * hour} for hour in range(5)]
    assert soak.slope(samples, "part") == (48.0, 14.0)
    assert soak.slope([{"hour": 1, "part": 3}], "part") == (0.0, 3.0)
