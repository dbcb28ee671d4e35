"""For how long answers may be gathered, in virtual time against a server that takes its time for every call."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import virtual_loop
from kube_fakes import FakeApi

from pumice.cache import effects
from pumice.kube.writes import world

WORKERS = 8
LONGEST = 0.005


class SlowApi(FakeApi):
    def __init__(self, takes):
        super().__init__()
        self.takes = takes

    async def _enter(self, *_):
        await asyncio.sleep(self.takes)


class SlowVolumes:
    """Volumes that nobody makes."""

    async def prepare(self, _):
        await asyncio.sleep(3600)
        return []

    async def roll_back(self, _):
        pass


def bind(number, volumes):
    return effects.Bind(namespace="a", name=f"p{number}", uid=f"uid-{number}", node="n", volumes=volumes)


def lulls(takes, pods, *, with_volumes=0, moments=(0.5,)):
    """Send binds, and others that wait for volumes, and return the lulls at moments, as parts of the time that the first ones take."""
    api = SlowApi(takes)

    async def whole():
        made = world.KubeWorld(api, workers=WORKERS, volume_binder=SlowVolumes())
        running = asyncio.create_task(made.run(lambda _: None))
        for number in range(pods + with_volumes):
            made.send(bind(number, volumes=(object(),) if number >= pods else ()))
        length, found, slept = takes * -(-pods // WORKERS), [], 0.0
        for moment in moments:
            await asyncio.sleep(moment * length - slept)
            slept = moment * length
            found.append(made.gathering_pause())
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return found

    return virtual_loop.run(whole())


@pytest.mark.parametrize(
    ("takes", "gathering_pause"), [(0.001, 0.0001), (0.010, 0.001), (0.040, 0.004), (0.200, LONGEST)]
)
def test_in_a_burst_answers_are_gathered_for_a_tenth_of_the_time_that_one_takes(takes, gathering_pause):
    assert lulls(takes, 4000) == [pytest.approx(gathering_pause, rel=0.01)]


def test_a_lone_write_and_the_last_ones_of_a_burst_wait_for_nobody():
    assert lulls(0.05, WORKERS // 2 - 1) == [0.0]
    assert lulls(0.01, 403, moments=(0.5, 0.999)) == [pytest.approx(0.001, rel=0.1), 0.0]  # three are left at the end


def test_nothing_is_gathered_before_anything_is_known_and_when_all_is_done():
    assert lulls(0.01, 400, moments=(0.001, 2)) == [0.0, 0.0]


def test_binds_that_wait_for_volumes_are_no_burst():
    assert lulls(0.01, 400, with_volumes=100, moments=(0.5, 2)) == [pytest.approx(0.001, rel=0.1), 0.0]
