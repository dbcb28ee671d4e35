"""The thread that notices: it tells where every thread is, lets the rest end in good order, and ends the process, whatever blocks."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from server_desk import Lines

from pumice.server.health import overdue
from pumice.server.logs import stacks
from pumice.server.threads import watchdog
from testbed import waiting


class Bench:
    def __init__(self, log=None):
        self.lines = Lines()
        self.left, self.order = [], []
        self.dog = watchdog.Watchdog(log or self.lines.log, leave=self.left.append)
        self.part = overdue.Part("deciding", "a cycle")
        self.dog.watch.add(self.part)
        self.now = 100.0
        self.part.due(self.now)
        self.dog.look(self.now)

    def pass_time(self, seconds):
        for _ in range(round(seconds / overdue.EVERY)):
            self.now += overdue.EVERY
            self.dog.look(self.now)
            if self.left:
                return


@pytest.fixture
def stuck():
    """A thread that waits for something that does not come."""
    coming = threading.Event()

    def wait_for_nothing():
        coming.wait()

    thread = threading.Thread(target=wait_for_nothing, name="stuck")
    thread.start()
    yield thread
    coming.set()
    thread.join()


def test_a_stall_is_told_once_with_the_stacks_of_all_threads(stuck):
    bench = Bench()
    bench.pass_time(20)
    (line,) = bench.lines.of("overdue")
    assert (line["part"], line["level"]) == ("deciding", "error")
    assert line["problem"] == "a cycle was due 5s ago and has not begun"
    told = {each["thread"]: each["innermost_first"] for each in bench.lines.of("stack")}
    assert "test_server_watchdog.py" in told["stuck"]
    assert " wait_for_nothing < " in told["stuck"]
    assert "MainThread" in told
    assert bench.left == []


def test_after_30_seconds_the_process_is_left_with_an_error_after_the_last_farewell_and_then_the_first():
    bench = Bench()
    bench.dog.before_leaving += [lambda: bench.order.append("first"), lambda: bench.order.append("last")]
    bench.pass_time(60)
    assert bench.left == [1]
    assert bench.order == ["last", "first"]
    (line,) = bench.lines.of("ending")
    assert line["problem"] == "a cycle was due 30s ago and has not begun"


def test_what_goes_on_again_is_told_and_nothing_ends():
    bench = Bench()
    bench.pass_time(20)
    bench.part.begin("a cycle")
    bench.part.rest()
    bench.pass_time(100)
    assert [each["part"] for each in bench.lines.of("it goes on again")] == ["deciding"]
    assert bench.left == []


def test_neither_a_log_nor_a_farewell_that_blocks_keeps_the_process_from_ending(monkeypatch):
    """What hangs may be the log itself, in the middle of a line, or the event loop that is asked to end."""
    monkeypatch.setattr(watchdog, "TELL", 0.01)
    monkeypatch.setattr(watchdog, "FAREWELL", 0.01)
    for_ever = threading.Event()

    class Blocked:
        def error(self, *_, **__):
            for_ever.wait()

    bench = Bench(Blocked())
    bench.dog.before_leaving.append(for_ever.wait)
    try:
        bench.pass_time(60)
        assert bench.left == [1]
    finally:
        for_ever.set()


def test_the_thread_looks_by_itself(monkeypatch):
    monkeypatch.setattr(overdue, "EVERY", 0.001)
    looked = threading.Event()
    dog = watchdog.Watchdog(Lines().log)
    monkeypatch.setattr(dog.watch, "look", lambda now: looked.set() or [])
    dog.start()
    assert looked.wait(waiting.PATIENCE)
    assert dog.daemon
    dog.stop()
    dog.join(waiting.PATIENCE)
    assert not dog.is_alive()


def test_a_loop_beats_while_it_turns_and_its_process_has_half_a_minute_to_end_after_it(monkeypatch):
    monkeypatch.setattr(overdue, "BEAT", 0.001)
    part = overdue.Part("io", "a turn")

    async def live():
        beating = asyncio.create_task(watchdog.beat(part))
        await waiting.soon(lambda: part.stand(0).turn > 3, every=0.001)
        assert part.stand(0).due < float("inf")
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)

    began = time.monotonic()
    asyncio.run(live())
    assert began + watchdog.ENDING <= part.stand(0).due <= time.monotonic() + watchdog.ENDING


def test_a_stack_without_end_is_cut():
    def deep(n, then):
        return deep(n - 1, then) if n else then()

    told = []
    begun = threading.Event()
    ending = threading.Event()
    thread = threading.Thread(target=lambda: deep(500, lambda: begun.set() or ending.wait()), name="deep")
    thread.start()
    try:
        begun.wait(waiting.PATIENCE)
        told = dict(stacks.of_threads())["deep"]
    finally:
        ending.set()
        thread.join()
    assert told.endswith("< …")
    assert told.count(" < ") == stacks.DEEPEST
