"""The rate limit: exact, in order, and nothing lost to those who give up."""

from __future__ import annotations

import asyncio

import pytest
import virtual_loop
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.kube.calls.limiter import Limiter, TokenBucket


async def _passages(limiter, arrivals):
    """Let one request arrive at each of these times; return the number of each, in order of arrival, and when it was let through."""
    loop = asyncio.get_running_loop()
    arrived, passed = [], []

    async def one(at):
        await asyncio.sleep(at)
        arrived.append(number := len(arrived))
        await limiter.acquire()
        passed.append((number, loop.time()))

    await asyncio.gather(*map(one, arrivals))
    return passed


def test_a_burst_goes_at_once_and_the_rest_at_the_rate():
    passed = virtual_loop.run(_passages(Limiter(10, 3), [0.0] * 8))
    assert [index for index, _ in passed] == list(range(8))
    assert [at for _, at in passed] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_bucket_fills_up_while_nobody_comes_but_not_beyond_its_burst():
    passed = virtual_loop.run(_passages(Limiter(10, 2), [0, 0, 0, 100, 100, 100]))
    assert [at for _, at in passed] == pytest.approx([0, 0, 0.1, 100, 100, 100.1])


def test_after_a_million_requests_the_time_is_still_exact():
    bucket = TokenBucket(2000, 2000)
    now = 0.0
    for _ in range(1_000_000):
        while wait := bucket.take(now):
            now += wait
    assert now == pytest.approx((1_000_000 - 2000) / 2000, abs=1e-6)


def test_whoever_gives_up_takes_no_token_and_blocks_nobody():
    async def run():
        limiter = Limiter(1, 1)
        loop = asyncio.get_running_loop()
        await limiter.acquire()
        waiting = [asyncio.create_task(limiter.acquire()) for _ in range(4)]
        await asyncio.sleep(0.5)
        for task in waiting[:3]:
            task.cancel()
        assert limiter.waiting == 1
        await waiting[3]
        return loop.time(), limiter.waiting

    at, left = virtual_loop.run(run())
    assert (at, left) == (pytest.approx(1.0), 0)


def test_a_late_comer_does_not_overtake_those_who_wait():
    async def run():
        limiter = Limiter(1, 1)
        await limiter.acquire()
        order = []

        async def one(name):
            await limiter.acquire()
            order.append(name)

        first = asyncio.create_task(one("first"))
        await asyncio.sleep(0.999)
        await asyncio.gather(first, one("second"))
        return order

    assert virtual_loop.run(run()) == ["first", "second"]


@pytest.mark.parametrize("rate", [0, -1])
def test_no_rate_is_no_limit(rate):
    assert {at for _, at in virtual_loop.run(_passages(Limiter(rate, 0), [0.0] * 100))} == {0.0}


@pytest.mark.parametrize(("rate", "burst"), [(1, 0), (1, -1)])
def test_a_burst_below_one_would_let_nothing_through(rate, burst):
    with pytest.raises(ValueError, match="burst of at least 1"):
        Limiter(rate, burst)


@settings(max_examples=drawn(60))
@given(
    st.floats(0.5, 5000),
    st.integers(1, 50),
    st.lists(st.floats(0, 20), min_size=1, max_size=80),
)
def test_in_no_window_more_passes_than_burst_and_rate_allow(rate, burst, arrivals):
    times = sorted(at for _, at in virtual_loop.run(_passages(Limiter(rate, burst), sorted(arrivals))))
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + (times[last] - times[first]) * rate + 1e-6


@settings(max_examples=drawn(60))
@given(st.floats(0.5, 5000), st.integers(1, 50), st.lists(st.floats(0, 20), min_size=1, max_size=80))
def test_nobody_waits_longer_than_needed(rate, burst, arrivals):
    arrivals = sorted(arrivals)
    passed = virtual_loop.run(_passages(Limiter(rate, burst), arrivals))
    assert [index for index, _ in passed] == sorted(index for index, _ in passed)
    tokens, clock = float(burst), 0.0
    for (_, at), arrival in zip(passed, arrivals, strict=True):
        now = max(arrival, clock)
        tokens = min(burst, tokens + (now - clock) * rate)
        if tokens < 1 - 1e-9:
            now += (1 - tokens) / rate
            tokens = 1.0
        tokens -= 1
        clock = now
        assert at == pytest.approx(now, abs=1e-6)
