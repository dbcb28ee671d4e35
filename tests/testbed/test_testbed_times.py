"""`--times` adds up the processor time of tests by folder, workers of a parallel run and what tests start included."""

from __future__ import annotations

from pathlib import Path

from testbed import pytest_times

pytest_plugins = ["pytester"]

BUSY = """
import subprocess, sys, time

def used(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_a():
    used(0.2)

def test_b():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.4: pass"], check=True)

def test_c():
    pass
"""
ROOT = Path(__file__).parents[2]


def test_tables_tell_folders_and_the_longest_tests_first():
    seconds = {"tests/a/test_x.py::one": 1.0, "tests/b/test_y.py::two": 4.0, "tests/b/test_y.py::three[p/q]": 0.5}
    assert pytest_times.tables(seconds, 2) == [
        "processor time of 3 tests: 6 s",
        "      4.5 s       2 tests  tests/b",
        "      1.0 s       1 tests  tests/a",
        "      4.0 s  tests/b/test_y.py::two",
        "      1.0 s  tests/a/test_x.py::one",
    ]


def test_what_tests_and_the_processes_they_start_use_is_counted(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_busy=BUSY)
    for workers in ("0", "2"):
        run = pytester.runpytest_subprocess("-p", "testbed.pytest_times", "-p", "xdist", "-n", workers, "--times", "9")
        found = {line.split("::")[1]: float(line.split()[0]) for line in run.outlines if "::" in line}
        assert sorted(found, key=found.get) == ["test_c", "test_a", "test_b"]
        assert found["test_a"] >= 0.2
        assert found["test_b"] >= 0.4
