"""Answers are looked for in batches: what a gathering_pause lets come is seen at once, and nothing that is due waits for it."""

from __future__ import annotations

import asyncio
import os
import selectors

import pytest

from pumice.server.threads import gathering


class Pipes:
    """Pipes watched by a selector whose pauses are noted; in a pause the next pipe can be read."""

    def __init__(self, gathering_pause, ready=1):
        self.slept = []
        self.selector = gathering.GatheringSelector(lambda: gathering_pause, self._sleep)
        self._ends = [os.pipe() for _ in range(3)]
        for read, _ in self._ends:
            self.selector.register(read, selectors.EVENT_READ)
        self._filled = 0
        for _ in range(ready):
            self._fill()

    def _fill(self):
        os.write(self._ends[self._filled][1], b"x")
        self._filled += 1

    def _sleep(self, seconds):
        self.slept.append(seconds)
        self._fill()

    def seen(self, timeout):
        return len(self.selector.select(timeout))

    def close(self):
        self.selector.close()
        for ends in self._ends:
            for end in ends:
                os.close(end)


@pytest.fixture
def pipes(request):
    made = Pipes(*request.param)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("pipes", "timeout", "seen", "slept"),
    [
        ((0.0,), None, 1, []),
        ((0.005,), None, 2, [0.005]),
        ((0.005,), 10.0, 2, [0.005]),
        ((0.005,), 0.002, 2, [0.002]),  # a timer that is due sooner is not late
        ((0.005,), 0, 1, []),  # somebody is ready to run
        ((0.005,), -1.0, 1, []),
        ((0.0, 0), 0.001, 0, []),
    ],
    indirect=["pipes"],
)
def test_a_lull_lets_more_come_and_keeps_nobody_waiting(pipes, timeout, seen, slept):
    assert pipes.seen(timeout) == seen
    assert pipes.slept == slept


def test_it_runs_as_the_loop_of_asyncio_does():
    lulls = iter([0.0, 0.001] * 1000)
    with asyncio.Runner(loop_factory=lambda: gathering.loop(lambda: next(lulls))) as runner:

        async def run():
            loop = asyncio.get_running_loop()
            started = loop.time()
            process = await asyncio.create_subprocess_exec("true")  # as credentials are asked for
            called = loop.run_in_executor(None, loop.call_soon_threadsafe, asyncio.Event().set)
            await asyncio.gather(asyncio.sleep(0.01), called)
            return await process.wait(), loop.time() - started

        code, taken = runner.run(run())
    assert code == 0
    assert taken >= 0.01


def test_a_loop_that_watches_no_sockets_is_left_as_it_is(monkeypatch):
    class Other(asyncio.BaseEventLoop):
        """As that of Windows, which has no selector."""

    other = Other()
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: other)
    try:
        assert gathering.loop(lambda: 1.0) is other
    finally:
        other.close()
