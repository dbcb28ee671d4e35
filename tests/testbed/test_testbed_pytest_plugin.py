import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fake_programs import programs

from testbed import provide, pytest_plugin

ROOT = Path(provide.__file__).parents[1]
TESTS = """
import pytest

def test_plain(): pass
@pytest.mark.kube
def test_marked(): pass
def test_by_fixture(api_server): pass
def test_through_another_fixture(namespace): pass
@pytest.mark.parametrize("how", [1, pytest.param(2, marks=pytest.mark.kube)])
def test_by_parameter(how): pass
"""
LEFT_OUT = "4 tests against a real API server were left out: run `make kube` to get one"


@pytest.fixture
def run(bare):
    """Run pytest on the tests above, in a process of its own."""
    (bare / "test_some.py").write_text(TESTS)

    def start(*arguments, tests="", **settings):
        if tests:
            (bare / "test_some.py").write_text(tests)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "testbed.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "--strict-markers",
        ]
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
        # plugins that happen to be installed take longer to import than these tests to run
        environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **settings}
        done = subprocess.run(
            [*command, *arguments], cwd=bare, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.splitlines()

    return start


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_without_a_server_one_line_says_how_many_tests_were_left_out(run, workers):
    code, lines = run(*workers)
    assert code == 0
    assert [line for line in lines if "left out" in line] == [LEFT_OUT]
    assert "2 passed" in lines[-1]


def test_only_tests_that_were_asked_for_are_counted(run):
    code, lines = run("-k", "plain or marked")
    assert code == 0
    assert "1 test against a real API server was left out: run `make kube` to get one" in lines


def test_nothing_is_said_where_nothing_was_left_out(run):
    _, lines = run("-m", "not kube")
    assert not [line for line in lines if "left out" in line]
    assert "2 passed, 4 deselected" in lines[-1]


def test_in_ci_a_missing_server_is_a_failure(run):
    code, lines = run(CI="true")
    assert code == 1
    assert "this test needs a real API server, and CI=true: run `make kube` to get one" in lines
    assert "2 passed" in lines[-1]
    assert "4 " in lines[-1]


def test_with_programs_nothing_is_left_out(run, bare):
    assets = programs(bare / "assets", *provide.PROGRAMS)
    code, lines = run("-k", "marked or parameter", KUBEBUILDER_ASSETS=str(assets))
    assert code == 0
    assert "3 passed" in lines[-1]


def test_workers_run_first_what_needs_a_server(run, bare):
    assets = programs(bare / "assets", *provide.PROGRAMS)
    chosen = ("-v", "-k", "plain or marked", "-p", "xdist", "-n", "1")
    _, lines = run(*chosen, KUBEBUILDER_ASSETS=str(assets))
    assert [line.split("::")[1].strip() for line in lines if "PASSED" in line] == ["test_marked", "test_plain"]


def test_workers_begin_with_what_takes_long(run):
    tests = "import pytest\ndef test_short(): pass\n@pytest.mark.long\ndef test_long(): pass\n"
    _, lines = run("-v", "-p", "xdist", "-n", "1", tests=tests)
    assert [line.split("::")[1].strip() for line in lines if "PASSED" in line] == ["test_long", "test_short"]


def test_workers_run_what_needs_another_server_after_what_needs_that_of_all(run, bare):
    assets = programs(bare / "assets", *provide.PROGRAMS)
    tests = (
        "import pytest\ndef test_plain(): pass\n@pytest.mark.kube\n@pytest.mark.apart\ndef test_other(): pass\n"
        "@pytest.mark.kube\ndef test_usual(): pass\n"
    )
    _, lines = run("-v", "-p", "xdist", "-n", "1", tests=tests, KUBEBUILDER_ASSETS=str(assets))
    passed = [line.split("::")[1].strip() for line in lines if "PASSED" in line]
    assert passed == ["test_usual", "test_other", "test_plain"]


class Item:
    """A test as it was collected: where it stands, and its markers."""

    def __init__(self, nodeid, *markers):
        self.nodeid, self.markers = nodeid, markers

    def get_closest_marker(self, name):
        return name if name in self.markers else None


@pytest.mark.parametrize("seed", range(20))
def test_the_first_worker_begins_with_a_server_and_the_last_one_with_what_waits(seed):
    chance = random.Random(seed)  # noqa: S311  drawn the same each time
    kinds = {"served": ("tests/a.py", "kube"), "slow": ("tests/b.py", "long"), "waits": ("tests/up/c.py",)}
    drawn = [chance.choice([*kinds, *["quick"] * 9]) for _ in range(chance.randint(60, 99))]
    items = [Item(*kinds.get(kind, ("tests/d.py",))) for kind in drawn]
    workers = chance.randint(1, 4)
    given = pytest_plugin.dealt(items, workers)
    assert sorted(map(id, given)) == sorted(map(id, items))
    served = sum("kube" in item.markers for item in items)
    assert all("kube" in item.markers for item in given[:served])
    slow = {id(item) for item in items if "long" in item.markers or item.nodeid.startswith("tests/up/")}
    first = served if workers == 1 else len(items) - -(-len(items) // workers)
    assert {id(item) for item in given[first : first + len(slow)]} == slow


SHARING = """
import pathlib, pytest
@pytest.fixture(scope="session")
def shared(api_server):
    yield
    pathlib.Path("ended").touch()
@pytest.fixture(scope="session")
def api_server(): pass
def test_without_one(): assert pathlib.Path("ended").exists()
def test_with_one(shared): assert not pathlib.Path("ended").exists()
def test_with_the_same(shared): assert not pathlib.Path("ended").exists()
"""


def test_what_tests_with_a_server_share_ends_before_those_without(run, bare):
    assets = programs(bare / "assets", *provide.PROGRAMS)
    code, lines = run("-p", "xdist", "-n", "1", tests=SHARING, KUBEBUILDER_ASSETS=str(assets))
    assert code == 0, lines
    assert "3 passed" in lines[-1]


def test_an_old_etcd_needs_a_server_too(run):
    _, lines = run(tests="def test_old(old_api_server): pass")
    assert "1 test against a real API server was left out: run `make kube` to get one" in lines


def test_an_operator_that_ci_does_not_build_leaves_its_tests_out_there_too(run, bare):
    assets = programs(bare / "assets", *provide.PROGRAMS)
    tests = "import pytest\n@pytest.mark.argo\ndef test_workflow(): pass\ndef test_plain(): pass\n"
    code, lines = run(tests=tests, CI="true", KUBEBUILDER_ASSETS=str(assets))
    assert code == 0
    assert "1 test against the operator argo was left out: run `make kube WITH=argo` to get one" in lines
