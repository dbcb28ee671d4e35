"""Who lets controllers have their turns on an event loop: at once when it is stirred, so many side by side, while it is wanted, until what was begun is answered."""

from __future__ import annotations

import asyncio

import pytest

from kube import virtual_loop
from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, requests, running


class Reading:
    """Reads something for each of its objects, once."""

    kind = kinds.JOB
    watched = ()

    def __init__(self):
        self.looks = []

    def concerns(self, kind, manifest, observed):
        return []

    def reconcile(self, namespace, name, observed, moment):
        self.looks.append((name, asyncio.get_running_loop().time()))
        read = requests.Step(request=effects.Read(kind=kinds.POD, namespace="a", name=name))
        return requests.Reconciled(steps=[read] if len(self.looks) <= 3 else [])


class Stage:
    """A runner whose world answers after some seconds, and how many answers it owes."""

    def __init__(self, *, seconds=0.0, **more):
        self.controller, self.seconds, self.owed, self.most = Reading(), seconds, 0, 0
        loop = asyncio.get_running_loop()
        self.engine = engine.Engine([self.controller])
        moment = lambda: requests.Moment(int(loop.time() * 1_000_000))  # noqa: E731
        self.runner = running.Runner(self.engine, self, moment, **more)
        self.work = asyncio.create_task(self.runner.work())

    def perform(self, request):
        if not self.seconds:
            return requests.Answer(code="notfound")
        return self._answer()

    async def _answer(self):
        self.owed += 1
        self.most = max(self.most, self.owed)
        await asyncio.sleep(self.seconds)
        self.owed -= 1
        return requests.Answer(code="notfound")

    def comes(self, *names):
        for name in names:
            metadata = {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"}
            self.engine.feed(kinds.JOB, "ADDED", {"metadata": metadata})

    async def end(self):
        self.work.cancel()
        await asyncio.gather(self.work, return_exceptions=True)


@pytest.mark.parametrize(("stirred", "looked_at"), [(True, 0.3), (False, 1.0)])
def test_what_comes_is_looked_at_when_the_runner_is_stirred_else_within_a_second(stirred, looked_at):
    async def scenario():
        stage = Stage()
        await asyncio.sleep(0.3)
        stage.comes("j")
        if stirred:
            stage.runner.stir()
        await asyncio.sleep(2)
        await stage.end()
        return stage.controller.looks[0]

    assert virtual_loop.run(scenario()) == ("j", looked_at)


def test_while_it_is_not_wanted_nothing_is_begun_and_it_asks_twice_a_second():
    async def scenario():
        stage = Stage(wanted=lambda: asyncio.get_running_loop().time() > 3.2)
        stage.comes("j")
        await asyncio.sleep(2.9)
        before = (list(stage.controller.looks), stage.runner.held_back, stage.runner.is_held)
        await asyncio.sleep(1)
        await stage.end()
        return before, stage.controller.looks[0]

    before, first = virtual_loop.run(scenario())
    assert before == ([], 6, True)
    assert first == ("j", 3.5)


def test_so_many_turns_wait_for_answers_side_by_side_and_the_next_begins_when_one_has_ended():
    async def scenario():
        stage = Stage(seconds=10.0, workers=2)
        stage.comes("i", "j", "k")
        stage.runner.stir()
        await asyncio.sleep(9)
        waiting = list(stage.controller.looks)
        looks = stage.runner.looks
        await asyncio.sleep(3)
        await stage.end()
        return waiting, looks, stage.controller.looks[2], stage.most

    waiting, looks, third, most = virtual_loop.run(scenario())
    assert waiting == [("i", 0.0), ("j", 0.0)]
    assert looks <= 13  # nobody looks again and again at what has to wait
    assert (third, most) == (("k", 10.0), 2)


def test_who_winds_up_begins_nothing_more_and_ends_when_what_was_begun_is_answered():
    async def scenario():
        stage = Stage(seconds=10.0)
        stage.comes("i")
        stage.runner.stir()
        await asyncio.sleep(1)
        stage.runner.wind_up()
        stage.comes("j")
        await stage.work
        return stage.controller.looks, stage.owed, asyncio.get_running_loop().time()

    assert virtual_loop.run(scenario()) == ([("i", 0.0)], 0, 10.0)


def test_a_request_that_breaks_down_is_complained_of_and_tried_again():
    async def scenario():
        said = []
        stage = Stage(seconds=1.0, complain=said.append)

        async def broken():
            raise OSError("no such luck")

        stage.perform = lambda _: broken()
        stage.comes("i")
        stage.runner.stir()
        await asyncio.sleep(0.5)
        stage.runner.wind_up()
        await stage.work
        return said

    said = virtual_loop.run(scenario())
    assert len(said) > 1
    assert set(said) == {"Pod: OSError: no such luck"}
