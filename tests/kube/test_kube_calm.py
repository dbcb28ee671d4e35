"""When events and reports are written beside binds, in virtual time against a server that takes 5 ms for every call."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools

import virtual_loop
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_fakes import FakeApi

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube.writes import world

TAKES = 0.005


class SlowApi(FakeApi):
    """Notes when each call began, whatever object it is about."""

    def __init__(self):
        super().__init__()
        self.begun = collections.defaultdict(list)

    async def _enter(self, verb, *_):
        self.begun[verb].append(asyncio.get_running_loop().time())
        await asyncio.sleep(TAKES)

    def find(self, kind, namespace, name):
        return {"metadata": {"namespace": namespace, "name": name, "uid": "", "resourceVersion": "1"}}


def bind(number):
    return effects.Bind(namespace="a", name=f"p{number}", uid="", node="n")


def note(number):
    about = {"namespace": "a", "name": f"p{number}", "uid": f"uid-{number}"}
    return effects.Note(kind=kinds.POD, **about, type="Normal", reason="Scheduled", message="it was")


def report(number, phase="Running"):
    about = {"namespace": "a", "name": f"g{number}", "uid": ""}
    return effects.Patch(kind=kinds.POD_GROUP, **about, body={"status": {"phase": phase}}, reports=True)


def play(scene, workers):
    async def whole():
        api = SlowApi()
        made = world.KubeWorld(api, workers=workers)
        running = asyncio.create_task(made.run(lambda _: None))
        await scene(made.send)
        await asyncio.sleep(60)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return api.begun

    return virtual_loop.run(whole())


def burst(pods, workers=4):
    """Bind so many at once, with an event and a report each."""

    async def scene(send):
        for number in range(pods):
            for made in (note(number), report(number), bind(number)):
                send(made)

    return play(scene, workers)


def test_a_trickle_of_binds_is_told_of_as_it_goes():
    async def scene(send):
        for number in range(1200):
            for made in (bind(number), report(number), note(number)):
                send(made)
            await asyncio.sleep(1 / 60)

    begun = play(scene, workers=32)
    for told in (begun["create"], begun["patch"]):
        assert len(told) == 1200
        assert all(at <= number / 60 + 0.2 for number, at in enumerate(told))
    assert all(at <= number / 60 + TAKES for number, at in enumerate(begun["bind"]))


@settings(max_examples=10)
@given(st.integers(20, 400), st.integers(5, 32))
def test_a_burst_is_told_of_when_it_is_over(pods, workers):
    begun = burst(pods, workers)
    assert min(begun["patch"]) >= max(begun["bind"])
    assert min(begun["create"]) >= max(begun["bind"]) + 0.1
    assert [len(begun[verb]) for verb in ("bind", "patch", "create")] == [pods] * 3


@settings(max_examples=20)
@given(st.integers(1, 4), st.permutations([bind, report, note]), st.floats(0, 1))
def test_what_is_told_of_a_bind_waits_for_it_also_after_a_quiet_while(pods, order, quiet):
    async def scene(send):
        send(note(-1))
        await asyncio.sleep(1 + quiet)
        for number in range(pods):
            for make in order:
                send(make(number))

    begun = play(scene, workers=32)
    decided = min(begun["bind"])
    assert begun["bind"] == [decided] * pods
    assert min(begun["patch"]) >= decided + TAKES
    assert min(begun["create"][1:]) >= decided + 0.1
    assert max(begun["create"] + begun["patch"]) <= decided + 0.2


def test_a_report_waits_for_a_bind_that_hangs_until_another_is_done():
    class HangingApi(SlowApi):
        async def bind(self, namespace, name, *args, **options):
            if name == "p0":
                await asyncio.sleep(20)
            return await super().bind(namespace, name, *args, **options)

    async def whole():
        api = HangingApi()
        made = world.KubeWorld(api, workers=4)
        running = asyncio.create_task(made.run(lambda _: None))
        made.send(bind(0))
        made.send(report(0))
        await asyncio.sleep(1)
        assert not api.begun["patch"]
        made.send(bind(1))
        await asyncio.sleep(1)
        (first,) = api.begun["patch"]
        assert 1 + TAKES <= first <= 1 + 3 * TAKES
        made.send(report(1))
        await asyncio.sleep(30)
        (second,) = api.begun["patch"][1:]
        assert 20 + TAKES <= second <= 20 + 3 * TAKES
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    virtual_loop.run(whole())


def test_in_a_burst_that_does_not_end_events_and_reports_get_a_share_after_ten_seconds():
    begun = burst(16_000)
    end = max(begun["bind"])
    assert end >= 20
    for verb, share in (("patch", 1 / 32), ("create", 1 / 50)):
        during = [at for at in begun[verb] if at < end]
        assert min(during) >= 10
        beside = sum(at >= 10 for at in begun["bind"])
        assert 0.8 * share * beside <= len(during) <= 1.2 * share * beside + 8
        assert max(b - a for a, b in itertools.pairwise(during)) < 0.5


class BusyApi(SlowApi):
    """Takes half a second for every call, whoever keeps it busy, until it is told to be quick; notes the largest number of patches and events at once."""

    def __init__(self):
        super().__init__()
        self.takes = 0.5
        self.said = collections.defaultdict(list)
        self.at_once = collections.Counter()
        self._now = collections.Counter()

    async def _enter(self, verb, *_):
        self.begun[verb].append(asyncio.get_running_loop().time())
        self._now[verb] += 1
        self.at_once[verb] = max(self.at_once[verb], self._now[verb])
        await asyncio.sleep(self.takes)
        self._now[verb] -= 1

    async def patch(self, kind, namespace, name, body, **options):
        self.said[name].append(body["status"]["phase"])
        return await super().patch(kind, namespace, name, body, **options)


def test_a_server_that_is_kept_busy_by_others_is_told_little_and_in_the_end_what_is_true():
    async def whole():
        api = BusyApi()
        made = world.KubeWorld(api, workers=64)
        running = asyncio.create_task(made.run(lambda _: None))
        for number in range(300):
            for phase, about in (("Inqueue", number), ("Running", number - 8)):
                if about >= 0:
                    made.send(report(about, phase))
            made.send(bind(number))
            made.send(note(number))
            if number == 100:  # by then it knows how long writes take
                api.at_once.clear()
            await asyncio.sleep(0.25)
        at_once = dict(api.at_once)
        api.takes = TAKES
        await asyncio.sleep(60)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return api, at_once

    api, at_once = virtual_loop.run(whole())
    assert len(api.begun["bind"]) == 300
    assert at_once["patch"] == at_once["create"] == 1
    assert all(told[-1] == ("Running" if int(name[1:]) < 292 else "Inqueue") for name, told in api.said.items())
    assert len(api.said) == 300
    assert len(api.begun["patch"]) < 400  # of 592 that were to be said
