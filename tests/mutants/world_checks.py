"""The worlds and lives of `tests/eviction` and `tests/lives`, each a test of its own, for whoever looks for the quickest that could notice a change; `pytest` runs many of them in one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lives import judge, policies, scripts

sys.path.append(str(Path("tests/eviction")))

import tiny_checks
import tiny_worlds
from test_eviction_tiny import FIRST, MENDED, WORLDS

from pumice.actions.eviction import exhaustive

MANY = WORLDS // 3  # of them also with nothing tried in every combination
KNOWN = [(seed, action) for _, seed, action in MENDED]
DRAWN = [(seed, action) for seed in range(FIRST, FIRST + WORLDS) for action in tiny_worlds.ACTIONS]


@pytest.mark.parametrize(("seed", "action"), KNOWN + DRAWN)
def test_what_is_committed_passes_every_rule_and_nothing_is_missed(seed, action):
    assert not tiny_checks.Check(seed, action).findings


@pytest.mark.parametrize(("seed", "action"), [each for each in DRAWN if each[0] < FIRST + MANY])
def test_what_is_found_among_many_passes_every_rule_too(seed, action, monkeypatch):
    monkeypatch.setattr(exhaustive, "MOST", 0)
    found = tiny_checks.Check(seed, action).findings
    assert not [each for each in found if not any(word in each.rule for word in ("missed", "rank"))]


@pytest.mark.parametrize("policy", policies.NAMES)
def test_no_rule_is_broken_in_a_random_life(policy):
    _, findings = judge.judge(scripts.draw(0, policy))
    assert not findings
