"""The I/O thread: in which order things begin, and how it ends."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from server_desk import Lines

from pumice.api import kinds
from pumice.kube import election
from pumice.kube.watches.informers import WatchReport
from pumice.server import surroundings
from pumice.server.logs import watch_log
from pumice.server.threads import io_thread, mailbox
from testbed import waiting


class Counts:
    waiting = 0
    in_flight = 0


class World:
    def __init__(self):
        self.counts = Counts()
        self.drained = None

    async def run(self, settled):
        await asyncio.Event().wait()

    async def drain(self, patience):
        self.drained = patience

    def gathering_pause(self):
        return 0.0


class Informers:
    """Lists after a while; catches up when told."""

    def __init__(self, story, *, delay=0.0, fails=None):
        self.story = story
        self._delay, self._fails = delay, fails
        self._listed = asyncio.Event()

    async def run(self):
        self.story.append("watching")
        await asyncio.sleep(self._delay)
        if self._fails is not None:
            raise self._fails
        self._listed.set()
        await asyncio.Event().wait()

    async def wait_first(self):
        await self._listed.wait()
        self.story.append("listed")

    async def wait_synced(self):
        await self._listed.wait()

    async def catch_up(self, version):
        self.story.append(f"caught up with {version}")

    def report(self):
        return [
            WatchReport(
                watch="pods",
                kind=kinds.POD,
                state="listing",
                synced=self._listed.is_set(),
                objects=3,
                version="",
                last_heard_age=None,
                lists=0,
                errors=1,
                error="" if self._listed.is_set() else "pods: forbidden",
            )
        ]


class Election:
    """Leads after some attempts in vain; is lost if told."""

    def __init__(self, story, *, attempts=0, loses=None):
        self.story = story
        self._attempts, self._loses = attempts, loses

    async def run(self, lead, stand_by):
        for _ in range(self._attempts):
            self.story.append("in vain")
            stand_by()
            await asyncio.sleep(0.05)
        self.story.append("leading")
        lead("77")
        if self._loses is not None:
            raise self._loses
        await asyncio.Event().wait()

    async def release(self):
        self.story.append("released")


class Companions:
    def __init__(self, story):
        self.story = story

    async def run(self):
        self.story.append("companions")
        await asyncio.Event().wait()


class Client:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None


class Bench:
    def __init__(self, *, delay=0.0, fails=None, chores=(), **voting):
        self.story = []
        self.world = World()
        self.box = mailbox.Mailbox()
        self.lines = Lines()
        wanted = voting.pop("elect", True)
        elected = Election(self.story, **voting) if wanted else None
        parts = io_thread.Parts(
            [Client(), Client()],
            Informers(self.story, delay=delay, fails=fails),
            self.world,
            Companions(self.story),
            election=elected,
            prepare=self.prepare,
            settled=lambda _: None,
            alone=self.alone,
            chores=chores,
        )
        self.thread = io_thread.IoThread(parts, self.box, self.lines.log, surroundings.REAL)

    async def alone(self):
        self.story.append("alone")

    async def prepare(self):
        self.story.append("prepared")

    def message(self):
        return self.box.take(time.monotonic() + waiting.PATIENCE)


def test_the_first_attempt_to_lead_comes_before_the_lists_so_that_they_are_new_enough():
    bench = Bench()
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    bench.thread.stop(waiting.PATIENCE)
    assert bench.story == ["leading", "prepared", "watching", "listed", "caught up with 77", "companions", "released"]
    assert not bench.thread.is_alive()


def test_a_standby_follows_the_cluster_and_begins_only_when_it_leads_and_has_caught_up():
    bench = Bench(attempts=3)
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    bench.thread.stop(waiting.PATIENCE)
    assert bench.story.index("watching") < bench.story.index("leading") < bench.story.index("caught up with 77")
    assert "companions" not in bench.story[: bench.story.index("caught up with 77")]


def test_what_is_missing_is_said_while_lists_are_waited_for(monkeypatch):
    monkeypatch.setattr(watch_log, "LOOK", 0.02)
    bench = Bench(delay=0.2)
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    bench.thread.stop(waiting.PATIENCE)
    told = bench.lines.of("waiting for lists")
    assert told[0]["missing"] == "pods"
    assert told[0]["errors"] == "pods: forbidden"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"loses": election.LostLeaseError("held by b")}, "the lease is lost: held by b"),
        ({"fails": RuntimeError("no")}, "the I/O thread broke down: RuntimeError: no"),
    ],
)
def test_when_a_part_fails_the_deciding_thread_is_told(more, told):
    bench = Bench(**more)
    bench.thread.start()
    messages = [bench.message()]
    while not isinstance(messages[-1], mailbox.Fatal):
        messages.append(bench.message())
    assert messages[-1] == mailbox.Fatal(told)
    bench.thread.join(waiting.PATIENCE)
    bench.thread.stop(0.0)


def test_a_chore_that_cannot_start_says_why_in_words():
    async def chore():
        raise io_thread.StartError("cannot serve metrics on :8080: Address in use")

    bench = Bench(chores=[chore], delay=5)
    bench.thread.start()
    assert bench.message() == mailbox.Fatal("cannot serve metrics on :8080: Address in use")


def test_writes_that_were_handed_over_get_their_time_before_the_lease_is_given_up():
    bench = Bench()
    bench.world.counts.in_flight = 2
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    threading.Timer(0.1, lambda: setattr(bench.world.counts, "in_flight", 0)).start()
    started = time.monotonic()
    bench.thread.stop(waiting.PATIENCE)
    assert 0.1 <= time.monotonic() - started < waiting.PATIENCE
    assert bench.world.drained == io_thread.LAST_ANSWERS
    assert bench.story[-1] == "released"


def test_writes_that_take_too_long_are_given_up():
    bench = Bench()
    bench.world.counts.waiting = 2
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    bench.thread.stop(0.05)
    assert bench.lines.of("writes are given up")[0]["waiting"] == 2
    assert bench.story[-1] == "released"


def test_without_an_election_it_begins_when_everything_is_listed():
    bench = Bench(elect=False)
    bench.thread.start()
    assert bench.message() == mailbox.Begin()
    bench.thread.stop(waiting.PATIENCE)
    assert bench.story == ["alone", "prepared", "watching", "listed", "companions"]
