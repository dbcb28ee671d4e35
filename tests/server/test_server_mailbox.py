"""Waits of the deciding thread end when a message comes or their time is up: millions of short ones beside a load, where `queue.SimpleQueue` of Python 3.11 and 3.12 waits for ever."""

from __future__ import annotations

import _thread
import contextlib
import functools
import itertools
import os
import random
import signal
import threading
import time

import pytest

from pumice.server.threads import mailbox
from testbed import waiting

LONGER = 20 if os.environ.get("PUMICE_FUZZ") else 1
ROUNDS = 40_000 * LONGER
SHORT = (
    0.0,
    1e-7,
    1e-6,
    2e-6,
    1e-5,
    5e-5,
    3e-4,
)  # seconds; less than it takes to begin a wait, and the least pause of a pace
TIMES = tuple(zip(SHORT, (200_000, 500_000, 100_000, 60_000, 30_000, 15_000, 3_000), strict=True))
NONE = mailbox.Changed()


class Progress:
    """Counts rounds; whoever makes none any more is waiting for ever."""

    def __init__(self):
        self.rounds = 0
        self.over = False

    def look(self):
        """Return when it is over; a round may take as long as anything may."""
        while not self.over:
            before = self.rounds
            waiting.until(
                functools.partial(self._goes_on, before),
                functools.partial(str, f"no wait has ended after round {before}"),
                every=0.1,
            )

    def _goes_on(self, before):
        return self.over or self.rounds > before

    def beside(self, story):
        """Run a story in a thread of its own until it is over."""

        def tell():
            try:
                story()
            finally:
                self.over = True

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        self.look()
        teller.join(waiting.PATIENCE)


@pytest.mark.parametrize(("timeout", "rounds"), TIMES)
def test_a_wait_ends_when_its_time_is_up_though_a_message_was_left_and_taken_with_nobody_waiting(timeout, rounds):
    box, progress, found = mailbox.Mailbox(), Progress(), []

    def story():
        for _ in range(rounds * LONGER):
            box.post(NONE)
            found.append(box.take(0) is NONE and box.take(time.monotonic() + timeout) is None)
            progress.rounds += 1

    progress.beside(story)
    assert len(found) == rounds * LONGER
    assert all(found)


def numbered(box, until):
    """Take all messages there are until a moment, and give the numbers of those that have one."""
    while (message := box.take(until)) is not None:
        if isinstance(message, mailbox.Echoed) and message.wait >= 1000:
            yield message.wait


def test_beside_a_load_that_rings_and_posts_every_message_comes_once_and_in_order():
    box, progress = mailbox.Mailbox(), Progress()
    posted, taken = itertools.count(), []
    rng = random.Random(24)  # noqa: S311  a test wants the same pauses in each run

    def load():
        while not progress.over:
            for _ in range(rng.randrange(20)):
                box.ring() if rng.random() < 0.5 else box.hint(0.2)
            if rng.random() < 0.5:
                box.post(mailbox.Echoed(1000.0 + next(posted)))
            time.sleep(rng.choice((0, 0, 1e-5, 1e-4)))

    def story():
        while progress.rounds < ROUNDS:
            box.hush()
            until = time.monotonic() + rng.choice(SHORT)
            taken.extend(numbered(box, until))
            progress.rounds += 1

    loading = threading.Thread(target=load, daemon=True)
    loading.start()
    progress.beside(story)
    loading.join(waiting.PATIENCE)
    taken.extend(numbered(box, 0))
    assert taken == [1000.0 + each for each in range(next(posted))]


def test_signal_handlers_may_post_at_any_moment_of_a_wait():
    """Run the waits in the main thread, where handlers run, as the process does."""
    box, progress = mailbox.Mailbox(), Progress()
    told, heard = itertools.count(), []
    before = signal.signal(signal.SIGALRM, lambda *_: box.post(mailbox.Echoed(float(next(told)))))

    def watch():
        with contextlib.suppress(waiting.NeverError):
            progress.look()
        if not progress.over:
            _thread.interrupt_main()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        while progress.rounds < ROUNDS:
            message = box.take(time.monotonic() + SHORT[progress.rounds % len(SHORT)])
            if message is not None:
                heard.append(message.wait)
            progress.rounds += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        progress.over = True
    while (message := box.take(0)) is not None:
        heard.append(message.wait)
    # A handler may be interrupted by the next one, before it has posted.
    assert sorted(heard) == [float(each) for each in range(next(told))]
    assert heard


def test_a_message_ends_a_wait_that_has_begun_long_before_its_time():
    box = mailbox.Mailbox()
    found = []
    reader = threading.Thread(target=lambda: found.append(box.take(time.monotonic() + 10 * waiting.PATIENCE)))
    reader.start()
    box.post(NONE)
    reader.join(waiting.PATIENCE)
    assert found == [NONE]


def test_a_message_is_found_though_nobody_rang(monkeypatch):
    """Whatever may be wrong with a lock, a wait looks again."""
    monkeypatch.setattr(mailbox, "LONGEST", 0.01)
    box = mailbox.Mailbox()
    found = []
    reader = threading.Thread(target=lambda: found.append(box.take(time.monotonic() + 10 * waiting.PATIENCE)))
    reader.start()
    box._messages.append(NONE)  # noqa: SLF001  as nobody may that posts one
    reader.join(waiting.PATIENCE)
    assert found == [NONE]
