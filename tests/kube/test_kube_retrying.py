"""Which errors are worth another attempt, and how long it waits."""

from __future__ import annotations

import random

import pytest

from pumice.kube import errors
from pumice.kube.calls.retrying import RetryPolicy

POLICY = RetryPolicy(attempts=9, first=1.0, longest=10.0, longest_retry_after=30.0)


def seeded(seed):
    return random.Random(seed)  # noqa: S311  spreads retries, guards nothing


def _api(status, retry_after=None, causes=()):
    return errors.ApiError(status, "Reason", "text", retry_after, causes)


@pytest.mark.parametrize(
    ("error", "read", "write"),
    [
        (errors.UnreachableError("refused"), True, True),
        (errors.UnreachableError("untrusted", transient=False), False, False),
        (errors.BrokenConnectionError("cut"), True, False),
        (errors.SilenceError("still"), False, False),
        (errors.UnknownOutcomeError("lost"), False, False),
        (errors.OversizeError("large"), False, False),
        (errors.CredentialsError("plugin"), False, False),
        (errors.ConfigurationError("file"), False, False),
        (_api(400), False, False),
        (_api(401), False, False),
        (_api(404), False, False),
        (_api(409), False, False),
        (_api(410), False, False),
        (_api(429), True, True),
        (_api(429, 5), True, True),
        (_api(429, 5, ("DisruptionBudget",)), True, False),
        (_api(500), True, False),
        (_api(500, 2), True, False),
        (_api(502), True, False),
        (_api(503), True, False),
        (_api(503, 2), True, True),
        (_api(504), True, False),
    ],
)
def test_a_write_is_repeated_only_if_it_certainly_did_not_happen(error, read, write):
    rng = seeded(1)
    assert (POLICY.delay(error, 1, write=False, rng=rng) is not None) == read
    assert (POLICY.delay(error, 1, write=True, rng=rng) is not None) == write


def test_back_off_doubles_with_jitter_up_to_the_longest():
    rng = seeded(1)
    for attempt, longest in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (60, 10)]:
        delays = [POLICY.delay(errors.UnreachableError("x"), attempt, write=True, rng=rng) for _ in range(200)]
        assert longest / 2 <= min(delays) < max(delays) <= longest
        assert len(set(delays)) > 100


@pytest.mark.parametrize(("asked", "least"), [(0, 0), (7, 7), (30, 30), (100_000, 30)])
def test_retry_after_is_followed_up_to_its_limit(asked, least):
    rng = seeded(1)
    delays = [POLICY.delay(_api(429, float(asked)), 1, write=True, rng=rng) for _ in range(100)]
    assert least <= min(delays) < max(delays) <= least + POLICY.first


def test_the_same_seed_gives_the_same_delays():
    def delays():
        rng = seeded(7)
        return [POLICY.delay(errors.UnreachableError("x"), n, write=False, rng=rng) for n in range(1, 9)]

    assert delays() == delays()
