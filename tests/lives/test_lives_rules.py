"""Random lives keep the rules; `make lives` searches further."""

from __future__ import annotations

import pytest

from drawing import FUZZ, drawn
from tests.lives import judge, policies, scripts, stories, variants

LIVES = drawn(4, 2)
BOTH_WAYS = 1  # the seed of the lives that are lived without shortcuts, too
EVERY_OTHER = policies.NAMES[:: 1 if FUZZ else 2]  # as there are seven ways to evict, all of them and all ways to share
CHEAPER = {} if FUZZ else {"hdrf_gangr": 10}  # more is bound and evicted there, over more cycles


def judged(script):
    """Give the life of a script, in which no rule is broken."""
    life, findings = judge.judge(script)
    assert not findings, "\n".join([*stories.history(life), *map(str, findings)])
    return life


@pytest.mark.parametrize("policy", policies.NAMES)
def test_no_rule_is_broken_in_a_random_life(policy):
    for seed in range(LIVES):
        if seed != BOTH_WAYS:
            judged(scripts.draw(seed, policy))


# In these lives allocate lets a claimant wait elsewhere for a cycle than where its room is held.
@pytest.mark.parametrize("seed", [710490, 710705, 711845])
def test_a_scheduler_that_is_started_again_keeps_what_was_held(seed):
    assert not variants.restarted(scripts.draw(seed))


# The rest of a gang that goes; members that are put back on room that is held for them.
@pytest.mark.parametrize("seed", [710510, 7175])
def test_decisions_and_texts_do_not_depend_on_the_order_of_lists(seed):
    assert not variants.shuffled(scripts.draw(seed))


@pytest.mark.long
@pytest.mark.parametrize("policy", EVERY_OTHER)
def test_no_rule_is_broken_in_a_random_life_and_shortcuts_change_no_decision(policy):
    script = scripts.draw(CHEAPER.get(policy, BOTH_WAYS), policy)
    assert not variants.plain(script, life=judged(script))


# A queue that closes while a group waits to be let in; a gang whose roles are tried in another order; a hold that cannot be used yet.
@pytest.mark.parametrize("seed", [42, 49, 61])
def test_shortcuts_change_no_word(seed):
    assert not variants.plain(scripts.draw(seed), texts=True)


# Another could take the hold over as soon as a pod runs that was just bound; a hold was judged without the members that were placed and waited for the others.
@pytest.mark.parametrize("seed", [900071, 12280, 12104])
def test_a_life_in_which_a_rule_was_broken_once_breaks_none(seed):
    _, findings = judge.judge(scripts.draw(seed))
    assert not findings
