"""The deciding thread: its pace, its mailbox, and breakdowns that end nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time

import numpy as np
import pytest
from server_desk import Lines

import builders
from pumice.framework import configuration, registry
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.scheduler import Scheduler
from pumice.server.surroundings import Surroundings
from pumice.server.threads import deciding, mailbox, watch_feed
from testbed import waiting


class Notes:
    def __init__(self):
        self.cycles, self.dumps, self.summaries, self.views = [], 0, 0, 0
        self.broken = []
        self.troubles = []

    def cycled(self, record, microseconds):
        assert microseconds >= 0
        self.cycles.append(record.skipped)

    def broke(self, action, plugin):
        self.broken.append((action, plugin))

    def broken_after(self, found, text):
        self.troubles.append(text)

    def dump(self):
        self.dumps += 1

    def summarise(self):
        self.summaries += 1
        raise OSError("disk full")

    def view(self):
        self.views += 1


class Bench:
    def __init__(self, period=0.01, verbosity=0, sleep=time.sleep, known=None):
        self.desk = builders.Desk()
        self.lines = Lines(verbosity)
        self.box = mailbox.Mailbox()
        self.notes = Notes()
        usual = configuration.default(registry.catalog())
        self.scheduler = Scheduler(self.desk.cache, usual, lambda: builders.NOW, known=known)
        self.decider = deciding.Decider(
            self.scheduler,
            self.box,
            self.lines.log,
            self.notes,
            period=period,
            around=Surroundings(wall=lambda: builders.NOW, sleep=sleep),
        )

    def run(self, *messages, until=None, after=0.05):
        """Decide until a condition holds, or for some time."""
        for message in messages:
            self.box.post(message)
        threading.Thread(target=self._stop, args=(until, after)).start()
        return self.box.serve(self.decider.steps())

    def _stop(self, until, after):
        deadline = time.monotonic() + (waiting.PATIENCE if until else after)
        while time.monotonic() < deadline and not (until and until()):
            time.sleep(0.005)
        self.box.post(mailbox.Stop("test"))


def test_before_it_may_begin_it_only_keeps_up():
    bench = Bench()
    bench.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
    assert bench.run(until=lambda: "n1" in bench.desk.cluster.nodes.by_name) == mailbox.Stop("test")
    assert bench.notes.cycles == []
    assert "n1" in bench.desk.cluster.nodes.by_name
    assert bench.desk.world.effects == []


def test_it_decides_from_begin_on_and_skips_when_nothing_changes():
    bench = Bench(verbosity=4)
    bench.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
    bench.run(mailbox.Begin(), until=lambda: True in bench.notes.cycles)
    assert bench.desk.world.binds == {"p": "n1"}
    assert bench.notes.cycles[0] is False
    assert bench.notes.cycles[-1] is True
    assert bench.lines.of("cycle")[0]["binds"] == 1


def test_the_period_runs_from_the_end_of_a_cycle():
    bench, begun, ended = Bench(period=0.04), [], []
    cycle, told = bench.scheduler.cycle, bench.notes.cycled

    def begin():
        begun.append(time.monotonic())
        return cycle()

    def end(record, microseconds):
        ended.append(time.monotonic())
        told(record, microseconds)

    bench.scheduler.cycle, bench.notes.cycled = begin, end
    bench.run(mailbox.Begin(), until=lambda: len(ended) > 3)
    assert all(after - before >= 0.04 for before, after in zip(ended, begun[1:], strict=False))


def test_what_comes_in_a_long_pause_is_in_the_model_before_the_next_cycle():
    bench = Bench(period=3600)
    bench.desk.feed(builders.node("n1"))
    told = bench.notes.cycled

    def seen():
        return "n2" in bench.desk.cluster.nodes.by_name

    def come(record, microseconds):
        told(record, microseconds)
        bench.desk.feed(builders.node("n2"), builders.group("g"), builders.pod("p", "g", cpu="1"))
        bench.box.ring()

    bench.notes.cycled = come
    bench.run(mailbox.Begin(), until=seen)
    assert seen()
    assert bench.notes.cycles == [False]
    assert bench.desk.world.binds == {}


def test_what_broke_down_in_a_pause_is_told_of_after_the_next_cycle():
    bench = Bench()
    applied = bench.desk.cache.objects.apply

    def broken(kind, event_type, found):
        if found.metadata.name == "n1":
            raise RuntimeError("cannot take it in")
        applied(kind, event_type, found)

    bench.desk.cache.objects.apply = broken
    bench.desk.feed(builders.node("n1"))
    bench.desk.cache.apply(builders.NOW, standby=True)
    bench.run(mailbox.Begin(), until=lambda: len(bench.notes.cycles) > 1)
    assert bench.notes.broken == [("", "")]


def test_messages_are_answered_between_cycles_and_one_that_breaks_down_ends_nothing():
    bench = Bench()
    bench.run(mailbox.Summarise(), mailbox.Dump(), mailbox.Begin(), until=lambda: bench.notes.cycles)
    assert (bench.notes.dumps, bench.notes.summaries) == (1, 1)
    assert bench.lines.of("summary broke down")[0]["level"] == "error"
    assert bench.notes.cycles


def test_who_asked_for_numbers_and_gave_up_ends_nothing():
    bench = Bench()
    given_up, waiting = concurrent.futures.Future(), concurrent.futures.Future()
    given_up.cancel()
    messages = mailbox.View(given_up), mailbox.View(waiting), mailbox.Begin()
    assert bench.run(*messages, until=lambda: bench.notes.cycles) == mailbox.Stop("test")
    assert waiting.result(timeout=0) is None
    assert bench.notes.views == 1
    assert bench.notes.cycles


def test_a_fatal_message_ends_it_before_the_next_cycle():
    bench = Bench(period=10)
    assert bench.run(mailbox.Begin(), mailbox.Fatal("lost")) == mailbox.Fatal("lost")
    assert len(bench.notes.cycles) == 1


def test_a_new_configuration_counts_from_the_next_cycle():
    bench = Bench()
    known = registry.catalog()
    other = configuration.load('actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]\n', known)
    bench.run(mailbox.Reconfigure(other), mailbox.Begin(), until=lambda: bench.notes.cycles)
    assert bench.scheduler.configuration is other


def test_a_cycle_that_breaks_down_is_told_of_once_and_tried_again(monkeypatch):
    bench = Bench()
    tries = []

    def broken():
        tries.append(1)
        raise ZeroDivisionError("as the test says")

    monkeypatch.setattr(bench.scheduler, "cycle", broken)
    assert bench.run(mailbox.Begin(), until=lambda: len(tries) > 1) == mailbox.Stop("test")
    assert len(tries) > 1
    assert len(bench.lines.of("cycle broke down")) == 1
    line = bench.lines.of("cycle broke down")[0]
    assert "ZeroDivisionError: as the test says" in line["exception"]
    assert line["error"] == "ZeroDivisionError: as the test says"
    assert bench.decider.trouble == "the last cycle broke down: ZeroDivisionError: as the test says"
    assert bench.notes.broken[0] == ("", "")


def test_plugins_that_break_down_are_told_of():
    bench = Bench()
    bench.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))

    class Broken:
        name = "broken"

        def execute(self, _session):
            raise RuntimeError("no")

    bench.scheduler.engine.actions.insert(0, Broken())
    bench.run(mailbox.Begin(), until=lambda: bench.notes.cycles)
    assert bench.lines.of("a plugin or action broke down")
    assert bench.desk.world.binds == {"p": "n1"}


class Quiet(Plugin):
    """Breaks down where and as long as it is told to."""

    name = "quiet"
    points = frozenset({"score"})
    at = ""
    text = "division by zero"

    def open(self, session):
        self._fall("open")
        session.score.add(self._score, reads=Reads.COLUMNS)
        session.add_handler(lambda _run, _sign: self._fall("handler"))

    def _score(self, _subject, nodes):
        self._fall("score")
        return np.zeros(len(nodes))

    def close(self, _session):
        self._fall("close")

    def _fall(self, where):
        if Quiet.at == where:
            raise ZeroDivisionError(Quiet.text)


def with_quiet(monkeypatch, at, text="division by zero"):
    installed = registry.installed()
    known = registry.Registry({**installed.plugins, "quiet": Quiet}, installed.actions)
    bench = Bench(known=known)
    conf = 'actions: "enqueue, allocate, backfill"\ntiers: [{plugins: [{name: gang}, {name: quiet}]}]\n'
    bench.scheduler.reconfigure(configuration.load(conf, known.catalog()))
    monkeypatch.setattr(Quiet, "at", at)
    monkeypatch.setattr(Quiet, "text", text)
    bench.desk.feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g", cpu="1"))
    return bench


@pytest.mark.parametrize(
    ("at", "action", "text"),
    [
        ("score", "allocate", "plugin quiet broke down at NodeOrder ("),
        ("handler", "allocate", "plugin quiet broke down at handler ("),
        ("open", "", "plugin quiet broke down at open ("),
        ("close", "", "plugin quiet broke down at close ("),
    ],
)
def test_a_breakdown_names_the_plugin_and_the_action_until_a_cycle_without_one(monkeypatch, at, action, text):
    bench = with_quiet(monkeypatch, at)
    bench.run(mailbox.Begin(), until=lambda: len(bench.notes.cycles) > 2)
    (line,) = bench.lines.of("a plugin or action broke down")
    assert (line["plugin"], line.get("action", "")) == ("quiet", action)
    assert line["error"] == "ZeroDivisionError: division by zero"
    assert list(line).index("error") < list(line).index("exception")
    assert bench.decider.trouble.startswith(text)
    assert "test_server_deciding.py line " in bench.decider.trouble
    assert "): ZeroDivisionError: division by zero" in bench.decider.trouble
    assert bench.notes.troubles[-1] == bench.decider.trouble
    assert set(bench.notes.broken) == {(action, "quiet")}
    monkeypatch.setattr(Quiet, "at", "")
    for _ in range(70):  # as long as it may be at rest, at the most
        bench.decider.cycle()
    assert bench.decider.trouble == ""
    assert bench.desk.world.binds == {"p": "n1"}


def test_an_error_is_one_line_of_a_length_that_can_be_read(monkeypatch):
    bench = with_quiet(monkeypatch, "score", "first\n" + "x" * 5000)
    bench.decider.cycle()
    assert "ZeroDivisionError: first\\nxxx" in bench.decider.trouble
    assert len(bench.decider.trouble) < 500


def test_two_breakdowns_in_every_cycle_are_told_of_once_each():
    bench = Bench()

    class Broken:
        def __init__(self, name):
            self.name = name

        def execute(self, _session):
            raise RuntimeError(self.name)

    bench.scheduler.engine.actions[:] = [Broken("one"), Broken("two")]
    bench.desk.feed(builders.node("n1"))
    bench.run(mailbox.Begin(), until=lambda: len(bench.notes.cycles) > 3)
    assert [line["action"] for line in bench.lines.of("a plugin or action broke down")] == ["one", "two"]
    assert bench.decider.trouble == "action one broke down in the last cycle: RuntimeError: one (and 1 more)"


def test_a_configuration_whose_plugins_cannot_be_made_leaves_the_old_one_in_force():
    class Unmade(Quiet):
        def __init__(self, *_):
            raise RuntimeError("no")

    installed = registry.installed()
    known = registry.Registry({**installed.plugins, "quiet": Unmade}, installed.actions)
    bench = Bench(known=known)
    before = bench.scheduler.configuration
    other = configuration.load('actions: "allocate"\ntiers: [{plugins: [{name: quiet}]}]\n', known.catalog())
    assert bench.run(mailbox.Reconfigure(other), mailbox.Begin()) == mailbox.Stop("test")
    assert bench.scheduler.configuration is before
    assert bench.lines.of("a new configuration, which is left alone, broke down")


def test_what_is_wanted_later_runs_later(monkeypatch):
    monkeypatch.setattr(watch_feed, "PAUSE", 0.01)
    answers = iter([False, False, True])
    story = []

    async def work():
        story.append(next(answers, "ran"))

    asyncio.run(watch_feed.WhenWanted(work, lambda: next(answers)).run())
    assert story == ["ran"]


@pytest.mark.parametrize("until", [-1.0, 0.0])
def test_a_message_that_is_there_is_taken_at_any_time(until):
    box = mailbox.Mailbox()
    assert box.take(until) is None
    box.post(mailbox.Dump())
    assert box.take(until) == mailbox.Dump()


@pytest.mark.parametrize("binds", [0, 1, deciding.FEW, deciding.FEW + 1])
def test_a_few_binds_get_a_head_start_before_anything_is_written_about_them(binds, monkeypatch):
    given = []
    bench = Bench(sleep=given.append)
    made = bench.desk.feed(builders.node("n1", cpu="100"), *(builders.group(f"g{n}") for n in range(binds)))
    made.feed(*(builders.pod(f"p{n}", f"g{n}", cpu="1") for n in range(binds)))
    publish, order = made.cache.publish, []
    monkeypatch.setattr(made.cache, "publish", lambda session: (order.append(len(given)), publish(session)))
    bench.scheduler.cycle()
    assert len(made.world.binds) == binds
    expected = 1 if 0 < binds <= deciding.FEW else 0
    assert (len(given), order) == (expected, [expected])
