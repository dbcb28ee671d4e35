"""The picture of `pumice top` fits the terminal it is drawn on, shows the numbers, and leaves the terminal as it was."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import command_objects as objects
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pumice.cli import drawing
from pumice.cli.top import picture
from pumice.study.following.scene import JobRow, NodeRow, QueueRow, Scene
from testbed import waiting

GIB = 2**30


def queue(name="research", **more):
    usual = {
        "state": "Open",
        "parent": "root",
        "weight": 1,
        "allocated": {"cpu": 36000},
        "deserved": {"cpu": 20000},
        "capability": {"cpu": 40000},
        "waiting": 1,
        "running": 2,
    }
    return QueueRow(name=name, **{**usual, **more})


def job(name="giant", **more):
    usual = {
        "namespace": "default",
        "title": name,
        "queue": "research",
        "phase": "Inqueue",
        "minimum": 40,
        "members": 40,
        "ready": 0,
        "created": objects.NOW,
        "since": objects.NOW - 65_000_000,
        "reason": "not enough",
    }
    return JobRow(name=name, **{**usual, **more})


def node(name="node-0", **more):
    usual = {
        "state": "",
        "allocatable": {"cpu": 32000, "memory": 128 * GIB},
        "used": {"cpu": 12000, "memory": 3 * GIB},
        "pods": 3,
    }
    return NodeRow(name=name, **{**usual, **more})


def scene(queues=(), jobs=(), nodes=(), missing=()):
    return Scene(
        time=objects.NOW,
        queues=tuple(queues),
        jobs=tuple(jobs),
        nodes=tuple(nodes),
        pods=7,
        total={"cpu": 128000, "memory": 512 * GIB},
        missing=tuple(missing),
    )


def drawn(seen, width=130, height=40, **more):
    console = Console(file=io.StringIO(), width=width, height=height, highlight=False, markup=False, color_system=None)
    console.print(picture.Picture("cluster", **more).draw(seen, console))
    return console.file.getvalue().splitlines()


def test_picture_shows_shares_waiting_jobs_and_use(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    lines = [line.rstrip() for line in drawn(scene([queue()], [job()], [node()]))]
    assert lines == [
        "Pumice  cluster  00:00:00  1 queue, 1 job, 1 waiting, 1 node, 7 pods",
        "",
        "QUEUE     STATE  CPU HELD/DUE/MOST    MEMORY HELD/DUE/MOST  WAITING  RUNNING",
        "research  Open   ▇▇▇▇▇│▇▇▇· 36/20/40  ·········· 0/-/-            1        2",
        "",
        "JOB            QUEUE     PHASE    READY/MIN  OF  WAITS  WHY",
        "default/giant  research  Inqueue       0/40  40    65s  not enough",
        "",
        "NODE    CPU IN USE           MEMORY IN USE            PODS  STATE",
        "node-0  ▇▇▇······· 12 of 32  ▇········· 3Gi of 128Gi     3  Ready",
    ]


@given(
    st.tuples(st.integers(0, 60), st.integers(0, 300), st.integers(0, 300)),
    st.integers(60, 250),
    st.integers(5, 100),
    st.sampled_from([picture.SECTIONS, ("jobs",), ("queues", "nodes")]),
)
def test_picture_never_leaves_the_terminal_and_says_what_is_hidden(counts, width, height, sections):
    queues, jobs, nodes = counts
    seen = scene(
        [queue(f"{'q' * 50}{i}") for i in range(queues)],
        [job(f"job-{i}", reason="why " * 100) for i in range(jobs)],
        [node(f"node-{i}") for i in range(nodes)],
        ["pods are left out " * 20],
    )
    lines = drawn(seen, width, height, sections=sections)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    for section, count in (("queues", queues), ("jobs", jobs), ("nodes", nodes)):
        hidden = [line for line in lines if line.split()[3:] in (["more", section], ["more", section[:-1]])]
        shown = sum(line.startswith({"queues": "q", "jobs": "default/", "nodes": "node-"}[section]) for line in lines)
        if section in sections and count and shown:
            assert shown + (int(hidden[0].split()[2]) if hidden else 0) == count


def test_rows_may_be_limited_and_without_a_limit_all_are_shown():
    seen = scene(nodes=[node(f"node-{i}") for i in range(90)])
    assert sum(line.startswith("node-") for line in drawn(seen, rows=0)) == 90
    assert sum(line.startswith("node-") for line in drawn(seen, rows=5)) == 5


@pytest.mark.parametrize(("height", "tables"), [(6, 1), (9, 2), (13, 3), (40, 3)])
def test_low_terminal_shows_few_tables_rather_than_none(height, tables):
    seen = scene(
        [queue(f"q{i}") for i in range(50)], [job(f"j{i}") for i in range(50)], [node(f"node-{i}") for i in range(50)]
    )
    lines = drawn(seen, width=100, height=height)
    assert sum(line.startswith(("QUEUE", "JOB", "NODE")) for line in lines) == tables
    assert sum("more " in line for line in lines) == tables


def test_terminal_of_eighty_characters_has_room_for_both_amounts_of_queues():
    lines = drawn(scene([queue("research")]), width=80)
    assert "36/20/40" in lines[3]
    assert lines[2].split()[-2:] == ["WAITING", "RUNNING"]


def test_narrow_terminal_leaves_queues_out_rather_than_reasons():
    cause = "no node has 64 cpu free: the freest of 4, node-2, has 12 cpu"
    lines = drawn(
        scene(jobs=[job(reason=cause), job("runs", since=None, phase="Running", reason="")]),
        width=80,
        sections=("jobs",),
    )
    assert [line.rstrip() for line in lines[2:5]] == [
        "JOB            READY/MIN  WAITS  PHASE OR WHY",
        "default/giant       0/40    65s  no node has 64 cpu free: the freest of 4, node…",
        "default/runs        0/40         Running",
    ]


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 40), st.one_of(st.none(), st.integers(0, 1200)))
def test_bar_is_empty_only_of_nothing_and_full_only_of_everything(used, whole, cells, mark):
    bar = drawing.share(used, whole, cells, mark=mark).plain
    assert len(bar) == cells
    plain = drawing.share(used, whole, cells).plain
    assert (drawing.FULL not in plain) == (used == 0 or (cells == 1 and used < whole))
    assert (drawing.EMPTY not in plain) == (used > 0 and used >= whole)


# -- on a terminal ---------------------------------------------------------------------------------------------------

RUN = "import sys; sys.argv = {argv!r}; from pumice.cli import main; main()"


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, argv, **environment):
        self.text = b""
        self._file, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 140, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUN.format(argv=argv)],
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
        os.close(other)

    def read_until(self, wanted):
        end = time.monotonic() + waiting.PATIENCE
        while wanted not in self.text:
            assert time.monotonic() < end, self.text[-2000:]
            if select.select([self._file], [], [], 1.0)[0]:
                self.text += os.read(self._file, 65536)

    def end(self, number=signal.SIGINT):
        """End it, read to the end, and give the exit status."""
        self._process.send_signal(number)
        with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
            while read := os.read(self._file, 65536):
                self.text += read
        os.close(self._file)
        return self._process.wait(timeout=waiting.PATIENCE)


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_terminal_is_left_as_it_was(commands, end, status):
    argv = ["pumice", "top", "--interval", "0.2", "-k", str(commands.server.kubeconfig)]
    terminal = Terminal(argv)
    terminal.read_until(b"QUEUE")
    assert terminal.end(end) == status
    for begun, ended in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h")):
        assert terminal.text.count(begun) == terminal.text.count(ended) == 1
    assert b"Traceback" not in terminal.text


def test_colours_are_left_out_where_nobody_wants_them(commands):
    argv = ["pumice", "top", "--interval", "0.2", "-k", str(commands.server.kubeconfig)]
    terminal = Terminal(argv, NO_COLOR="1")
    terminal.read_until(b"QUEUE")
    terminal.end()
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", terminal.text)


def test_pipe_gets_one_plain_picture(commands):
    commands.printed("queue", "create", "-n", "piped")
    text = commands.printed("top")
    assert "\x1b" not in text
    assert re.search(r"^piped +Open ", text, flags=re.MULTILINE)
    commands.printed("queue", "delete", "-n", "piped")


def test_server_that_is_away_is_an_error_and_no_empty_picture(commands, monkeypatch):
    monkeypatch.setattr("pumice.study.following.reading.MOST_FAILURES", 0)
    told = commands.failed("top", "--once", "-s", "https://127.0.0.1:9")
    assert told.startswith("Failed to execute top: the cluster cannot be read: ")
