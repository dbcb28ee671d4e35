"""Random lives keep the rules; `make lives` searches further."""

from __future__ import annotations

import pytest

from tests.lives import judge, policies, scripts, stories, variants

LIVES = 4


@pytest.mark.parametrize("policy", policies.NAMES)
def test_no_rule_is_broken_in_a_random_life(policy):
    for seed in range(LIVES):
        life, findings = judge.judge(scripts.draw(seed, policy))
        assert not findings, "\n".join([*stories.history(life), *map(str, findings)])


# In these lives allocate lets a claimant wait elsewhere for a cycle than where its room is held.
@pytest.mark.parametrize("seed", [710490, 710705, 711845])
def test_a_scheduler_that_is_started_again_keeps_what_was_held(seed):
    assert not variants.restarted(scripts.draw(seed))


def test_the_rest_of_a_gang_goes_in_an_order_that_does_not_depend_on_lists():
    assert not variants.shuffled(scripts.draw(710510))


@pytest.mark.parametrize("seed", [900071])  # another could take the hold over as soon as a pod runs that was just bound
def test_a_life_in_which_a_rule_was_broken_once_breaks_none(seed):
    _, findings = judge.judge(scripts.draw(seed))
    assert not findings
