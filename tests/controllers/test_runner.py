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


def test_who_is_wound_up_while_there_is_nothing_to_do_ends_at_once_and_expects_no_look_before_or_after():
    async def scenario():
        stage = Stage()
        before = (stage.runner.looks, stage.runner.held_back, stage.runner.is_held)
        await asyncio.sleep(0.3)
        meanwhile = stage.runner.is_held
        stage.runner.wind_up()
        await stage.work
        return before, meanwhile, stage.runner.is_held, asyncio.get_running_loop().time()

    assert virtual_loop.run(scenario()) == ((0, 0, True), False, True, 0.3)


def test_who_is_cancelled_waits_for_no_answer_but_until_all_who_waited_for_one_have_ended():
    async def scenario():
        stage, ended = Stage(), []

        async def slow(name, seconds):
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(seconds)
                ended.append(name)

        stage.perform = lambda request: slow(request.name, {"i": 0, "j": 2}[request.name])
        stage.comes("i", "j")
        stage.runner.stir()
        await asyncio.sleep(1)
        await stage.end()
        return ended, asyncio.get_running_loop().time()

    assert virtual_loop.run(scenario()) == (["i", "j"], 3)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_requests_are_counted(steps):
    class Writing(Reading):
        def reconcile(self, namespace, name, observed, moment):
            read = requests.Step(request=effects.Read(kind=kinds.POD, namespace="a", name=name))
            return requests.Reconciled(steps=[read] * steps)

    class World:
        def perform(self, request):
            return requests.Answer(code="notfound")

    turns = engine.Engine([Writing()])
    turns.feed(kinds.JOB, "ADDED", {"metadata": {"name": "j", "namespace": "a", "uid": "j", "resourceVersion": "1"}})
    assert running.run_due(turns, World(), lambda: requests.Moment(0)) == steps


# ---- what is done at a look


def creations(count):
    made = [{"metadata": {"name": f"p{number}", "namespace": "a"}} for number in range(count)]
    return [requests.Step(request=effects.Create(kind=kinds.POD, manifest=each)) for each in made]


class Creating(Reading):
    """Creates so many pods for each of its objects at its first look."""

    count = 1

    def reconcile(self, namespace, name, observed, moment):
        self.looks.append((name, asyncio.get_running_loop().time()))
        return requests.Reconciled(steps=creations(self.count) if len(self.looks) == 1 else [])


def creating(count, **more):
    stage = Stage(**more)
    stage.controller.__class__, stage.controller.count = Creating, count
    return stage


def once(number):
    """Give a number once, then nothing."""
    left = [number]
    return lambda: left.pop() if left else 0


@pytest.mark.parametrize(
    ("before", "turn", "after"),
    [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2), (2, 1, 1)],
)
def test_a_look_at_which_something_was_done_is_followed_by_another_at_once(before, turn, after):
    async def scenario():
        beats = []
        stage = Stage(before=once(before), after=once(after), beat=lambda: beats.append(1))
        key, plan = engine.Key(0, "a", "j"), requests.Reconciled()
        turns = [engine.Turn(key=key, subject=None, kind=kinds.JOB, plan=plan, left=[])] * turn
        stage.engine.take = lambda _: turns.pop() if turns else None
        stage.engine.finish = lambda *_: None
        await asyncio.sleep(0.5)
        looks = stage.runner.looks
        await stage.end()
        return looks, len(beats)

    looks = 2 if before or turn or after else 1
    assert virtual_loop.run(scenario()) == (looks, looks)


def test_others_have_a_moment_between_two_looks_however_much_there_is_to_do():
    async def scenario():
        left = [1] * 1000
        stage = Stage(before=lambda: left.pop() if left else 0)
        for _ in range(5):
            await asyncio.sleep(0)
        seen = len(left)
        await stage.end()
        return seen

    assert 900 < virtual_loop.run(scenario()) < 1000


def test_others_have_a_moment_in_the_middle_of_a_turn_that_takes_long():
    async def scenario():
        heard, beats, loop = [], [], asyncio.get_running_loop()
        stage = creating(4, beat=lambda: beats.append(1))

        def perform(request):
            loop.moment += 0.004
            loop.call_soon(lambda: heard.append(len(stage.asked)))
            stage.asked.append(request)
            return requests.Answer()

        stage.asked, stage.perform = [], perform
        stage.comes("j")
        stage.engine.next_steps, plain = lambda turn: one(plain, turn), stage.engine.next_steps
        await asyncio.sleep(0.5)
        await stage.end()
        return [len(stage.asked), heard], len(beats)

    def one(plain, turn):
        """Let nothing go side by side."""
        turn.creating = None
        return plain(turn)

    (count, heard), beats = virtual_loop.run(scenario())
    assert (count, heard) == (4, [3, 3, 3, 4])  # ten milliseconds are long
    assert beats == 3  # at each of two looks, and once in the middle of the turn


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 70])
def test_every_answer_is_taken_and_told_of_with_the_time_that_it_took(count, waits, monkeypatch):
    clock = iter(range(0, 10**6, 7))
    monkeypatch.setattr(running.time, "perf_counter", lambda: next(clock))

    async def scenario():
        told = []
        stage = creating(count, performed=lambda request, answer, seconds: told.append((request, answer, seconds)))

        async def later():
            await asyncio.sleep(1)
            return requests.Answer()

        stage.perform = lambda request: later() if waits else requests.Answer()
        stage.comes("j")
        await asyncio.sleep(20)
        await stage.end()
        return told, stage.engine.writes

    told, writes = virtual_loop.run(scenario())
    assert writes == count
    assert {request.manifest["metadata"]["name"] for request, _, _ in told} == {f"p{number}" for number in range(count)}
    assert len(told) == count
    assert {answer.code for _, answer, _ in told} == {""}
    seconds = [each for _, _, each in told]
    assert all(0 < each <= 14 * count for each in seconds)
    assert waits or set(seconds) == {7}


def test_what_was_begun_before_nobody_was_wanted_is_looked_at_again_when_they_are():
    async def scenario():
        wanted, asked = [True], []

        def perform(request):
            asked.append(request)
            wanted.clear()
            return requests.Answer()

        stage = creating(3, wanted=lambda: bool(wanted))
        stage.perform = perform
        stage.comes("j")
        await asyncio.sleep(3)
        before = (len(asked), len(stage.controller.looks))
        wanted.append(True)
        await asyncio.sleep(3)
        await stage.end()
        return before, len(stage.controller.looks)

    assert virtual_loop.run(scenario()) == ((1, 1), 2)


def test_what_has_to_be_tried_again_soon_is_not_left_until_the_next_second():
    async def scenario():
        stage = Stage()
        stage.perform = lambda _: requests.Answer(code="unavailable")
        await asyncio.sleep(5.3)
        stage.comes("j")
        stage.runner.stir()
        await asyncio.sleep(0.3)
        await stage.end()
        return [round(at, 3) for _, at in stage.controller.looks]

    assert virtual_loop.run(scenario())[:2] == [5.3, 5.35]


def test_a_turn_that_breaks_down_while_it_waits_ends_the_runner_and_nobody_else_does():
    async def scenario():
        said = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))

        def performed(request, answer, seconds):
            if request.name == "bad":
                raise ValueError("broken")

        stage = Stage(seconds=1.0, performed=performed)
        stage.comes("good")
        stage.runner.stir()
        await asyncio.sleep(5)
        assert not stage.work.done()
        stage.comes("bad")
        await asyncio.sleep(5)
        ended = stage.work.done() and type(stage.work.exception()).__name__
        other = Stage(seconds=10.0)
        other.comes("i")
        other.runner.stir()
        await asyncio.sleep(1)
        await other.end()
        await asyncio.sleep(1)
        return ended, said

    assert virtual_loop.run(scenario()) == ("ValueError", [])
