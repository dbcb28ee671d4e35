"""The storm: lives in which everything goes wrong at once, and what looks on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from drawing import drawn
from tests.storm import telling

SEEDS = drawn(400, 4)
FOUND = (80040, 80279, 80297, 91013)  # in which something was broken once


@pytest.fixture(scope="module")
def loaded():
    telling.prepare()


@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
def test_whatever_goes_wrong_the_rules_hold(loaded, seed):
    found = telling.lived(seed)
    assert found["broken"] == []
    assert found["steps"] > 1000


def test_storms_are_storms(loaded):
    """Of a few lives together every program was killed or ended, and every kind of fault has come."""
    faults = set()
    for seed in range(1000, 1004):
        faults |= telling.lived(seed)["faults"].keys()
    assert faults >= {"late", "refused", "answered in vain", "ends", "dial refused"}


def test_a_seed_gives_the_same_life_in_any_process():
    """Whatever strings hash to, and wherever in memory objects come to lie: in one of them much was made before."""
    one, other = (
        subprocess.run(
            [sys.executable, "-c", f"from tests.storm import telling; {before}; print(telling.lived(12)['digest'])"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed, before in (("1", "telling.prepare()"), ("2", "pass"))
    )
    assert one.stdout == other.stdout
    assert len(one.stdout) > 60


def test_what_is_left_out_does_not_happen(loaded):
    found = telling.lived(5, ["fates", *telling.lived(5)["happened"]])
    assert (found["broken"], found["faults"]) == ([], {})
