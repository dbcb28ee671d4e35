"""`pumice up` on systems that lack something: it says what, and what to do; and where few files may be open, it asks for more."""

from __future__ import annotations

import importlib.util
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from running_cluster import RunningCluster

from pumice.cli import up
from pumice.local_cluster import options, platforms
from pumice.server import reporting
from testbed import waiting


@pytest.fixture
def windows(monkeypatch):
    """A Python that lacks what it lacks on Windows."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "resource" else find(name))
    for place, name in ((signal, "SIGUSR1"), (signal, "SIGUSR2"), (socket, "AF_UNIX")):
        monkeypatch.delattr(place, name)


def test_where_the_scheduler_cannot_run_it_is_said_in_one_line(windows):
    del windows
    done = CliRunner().invoke(up.command, ["--nodes", "1"])
    assert done.exit_code == 1
    told = "Error: the scheduler needs Linux or macOS: this system has no module resource, no signal SIGUSR1, no signal SIGUSR2, no sockets of the file system; run pumice up in WSL or in a container, or with --scheduler none and the scheduler elsewhere\n"  # fmt: skip
    assert done.output == told


def test_without_the_scheduler_nothing_of_that_is_missing(windows):
    del windows
    assert platforms.missing(options.Options(pools=[], scheduler="none")) == ""
    assert platforms.allow_many_files() == 0


def test_data_needs_a_python_with_sqlite(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sqlite3" else object())
    assert "no sqlite3" in platforms.missing(options.Options(pools=[], scheduler="none", data=Path("x")))
    assert platforms.missing(options.Options(pools=[], scheduler="none")) == ""


def test_the_api_server_is_imported_without_what_windows_lacks():
    """What `--scheduler none` runs must not import what is missing there."""
    code = (
        "import sys, signal, socket\n"
        "sys.modules['resource'] = sys.modules['fcntl'] = sys.modules['termios'] = sys.modules['sqlite3'] = None\n"
        "del signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP\n"
        "import pumice.local_cluster.starting, pumice.cli.up, pumice.cli.demo.performing\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_idle_connections_beyond_the_usual_number_of_files_keep_nobody_waiting(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    sockets = []
    try:
        running = RunningCluster(tmp_path, "--nodes", "1", "--scheduler", "none")
        running.start()  # with the 256 files that macOS begins with
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        address = ("127.0.0.1", running.caller.port)
        sockets += [socket.create_connection(address, timeout=waiting.PATIENCE) for _ in range(600)]
        assert running.caller.answer("GET", "/api/v1/nodes", timeout=waiting.PATIENCE).status == 200
    finally:
        for made in sockets:
            made.close()
        running.stop()


@pytest.mark.parametrize(("system", "most"), [("linux", 2048 * 1024), ("darwin", 2048 * 1024 * 1024)])
def test_memory_is_read_in_the_unit_of_the_system(system, most):
    assert reporting.memory_mib(most, system) == 2048
