"""Random lives keep the rules; `make lives` searches further."""

from __future__ import annotations

import pytest

from tests.lives import judge, policies, scripts, stories

LIVES = 4


@pytest.mark.parametrize("policy", policies.NAMES)
def test_no_rule_is_broken_in_a_random_life(policy):
    for seed in range(LIVES):
        life, findings = judge.judge(scripts.draw(seed, policy))
        assert not findings, "\n".join([*stories.history(life), *map(str, findings)])
