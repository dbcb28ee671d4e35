"""What a search calls enough starts the job when it is made on a cluster with controllers and quotas, and what it calls not enough does not.

Many more worlds are asked by `python -m tests.lives.changes`.
"""

from __future__ import annotations

import pytest

from drawing import drawn
from tests.lives import changes, policies

JOBS = 1  # of each world; a search with what is made of it takes half a second


@pytest.mark.parametrize("seed", range(drawn(3, 1)))
@pytest.mark.parametrize("policy", policies.NAMES[::7])
def test_a_change_is_enough_exactly_if_making_it_starts_the_job(policy, seed):
    asked = list(changes.findings(seed, policy, JOBS))
    assert not [found for found in asked if found.wrong]
    assert not [found for found in asked if found.said == "none"]


def test_trials_that_evict_use_up_no_budget_of_those_after_them():
    assert not [found for found in changes.findings(154) if found.wrong]


def test_a_quota_that_is_raised_is_enough_though_other_jobs_make_their_pods_first():
    assert not [found for found in changes.findings(600, most=3) if found.wrong]
