"""What a search calls enough starts the job when it is made on a cluster with controllers and quotas, and what it calls not enough does not.

Many more worlds are asked by `python -m tests.lives.changes`.
"""

from __future__ import annotations

import pytest

from tests.lives import changes, policies

WORLDS = 2
JOBS = 1


@pytest.mark.parametrize("policy", policies.NAMES[::2])
def test_a_change_is_enough_exactly_if_making_it_starts_the_job(policy):
    asked = [found for seed in range(WORLDS) for found in changes.findings(seed, policy, JOBS)]
    assert not [found for found in asked if found.wrong]


def test_a_change_is_found_for_nearly_every_job_that_waits():
    asked = [found for seed in range(40, 46) for found in changes.findings(seed)]
    assert len(asked) > 5
    assert [found.said for found in asked].count("none") * 20 <= len(asked)
