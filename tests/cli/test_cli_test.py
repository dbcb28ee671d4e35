"""`pumice test`: exit status, selection, reports, order."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from pumice.cli.program import program
from testbed import waiting

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4'}}}"
HOLDS = "- expect: {nodes: {n1: {pods: 0}}}"
FAILS = "- expect: {nodes: {n1: {pods: 1}, n2: {pods: 0}}}"


def scenario(name, expectation, plugin=""):
    listed = f"config: |\n  actions: allocate\n  tiers: [{{plugins: [{{name: {plugin}}}]}}]\n" if plugin else ""
    return f"scenario: {name}\n{listed}given:\n- {NODE}\nsteps:\n- cycles: 1\n{expectation}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write files by content into a folder that is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, content in files.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        return tmp_path

    return write


def run(*arguments):
    return CliRunner().invoke(program, ["test", *arguments], prog_name="pumice")


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"a": scenario("one", HOLDS)}, 0),
        ({"a": scenario("one", HOLDS), "b": scenario("two", FAILS)}, 1),
        ({"a": "scenario: n\n", "b": scenario("two", HOLDS)}, 2),
        ({"a": "scenario: n\n", "b": scenario("two", FAILS)}, 2),
        ({"a": ""}, 2),
    ],
)
def test_exit_status(files, status, folder):
    folder(**files)
    assert run(".").exit_code == status


def test_each_scenario_is_one_line_then_failures_then_the_summary(folder):
    folder(a=scenario("one", HOLDS) + "---\n" + scenario("the second", FAILS), b="scenario: n\n")
    lines = run("a.yaml", "b.yaml").output.splitlines()
    assert lines[:4] == [
        "ok       one         1 cycle, 0 binds, 0 evictions",
        "FAIL     the second  1 cycle, 0 binds, 0 evictions",
        "INVALID  b.yaml      2 problems",
        "",
    ]
    assert "failed: the second (a.yaml:8)" in lines
    assert "    expected  pods: 1" in lines
    assert "    found     no such node" in lines
    assert "  decision trace of the last cycle (1):" in lines
    assert lines[-1] == "1 passed, 1 failed, 1 invalid file"


def test_k_selects_by_name_and_x_stops_at_the_first_failure(folder):
    folder(a=scenario("one", FAILS), b=scenario("TWO", HOLDS), c=scenario("three", FAILS))
    assert run(".", "-k", "two").output.startswith("ok       TWO")
    assert run(".", "-k", "two").exit_code == 0
    assert run(".", "-x").output.endswith("0 passed, 1 failed\n")
    assert run(".").output.endswith("1 passed, 2 failed\n")


def test_an_invalid_file_is_told_by_the_exit_status_even_if_x_stopped_before_it(folder):
    folder(a=scenario("one", FAILS), b="nothing: here")
    result = run(".", "-x")
    assert "stopped before b.yaml:1: the document: the scenario has no name" in result.output
    assert result.output.endswith("0 passed, 1 failed\n")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name at least one scenario file or folder, for example: pumice test scenarios/"),
        (("none.yaml",), "none.yaml: no such file or folder"),
        (("empty",), "empty: no scenario in this folder"),
        ((".", "-k", "nothing"), "no scenario's name contains 'nothing'"),
    ],
)
def test_nothing_to_run_is_an_error_that_says_why(arguments, told, folder):
    (folder(a=scenario("one", HOLDS)) / "empty").mkdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.output


def test_reports_are_written(folder):
    path = folder(a=scenario("one", HOLDS), b=scenario("two", FAILS), c="x: y\n")
    assert run(".", "--json", "out.json", "--junit", "out.xml").exit_code == 2
    entries = json.loads((path / "out.json").read_text())["scenarios"]
    assert [(entry["name"], entry["file"], entry["passed"]) for entry in entries] == [
        ("one", "a.yaml", True),
        ("two", "b.yaml", False),
        ("c.yaml", "c.yaml", False),
    ]
    assert all(
        list(entry) == ["name", "file", "passed", "failures", "cycles", "binds", "evictions"] for entry in entries
    )
    assert [len(entry["failures"]) for entry in entries] == [0, 2, 3]
    assert len(list(ET.parse(path / "out.xml").iter("testcase"))) == 3  # noqa: S314  our own output


def test_report_that_cannot_be_written_is_an_error(folder):
    folder(a=scenario("one", HOLDS))
    result = run(".", "--json", "missing/out.json")
    assert result.exit_code == 1
    assert "missing/out.json: the report cannot be written" in result.output


def test_output_is_the_same_each_time_and_on_any_number_of_processes(folder):
    folder(**{f"f{number}": scenario(f"number {number}", HOLDS if number % 3 else FAILS) for number in range(7)})
    first = run(".", "--json", "one.json")
    assert run(".", "--json", "two.json").output == first.output
    command = "import sys; from pumice.cli import main; sys.argv = ['pumice', 'test', '.', '--jobs', '2', '--json', 'three.json']; main()"
    parallel = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert parallel.stdout == first.output
    assert parallel.returncode == 1
    assert len({Path(f"{name}.json").read_text() for name in ("one", "two", "three")}) == 1


PLUGIN = """
from pathlib import Path
from pumice.framework.plugin import Plugin

class Mine(Plugin):
    name = "mine"

    def open(self, session):
        with Path("opened").open("a") as file:
            file.write("x")
"""


@pytest.fixture
def plugins(folder):
    """A folder with a plugin that leaves a trace, a file that cannot be loaded, and scenarios that need the first."""
    files = folder(**{name: scenario(f"scenario {name}", HOLDS, "mine") for name in ("a", "b", "c")}) / "plugins"
    files.mkdir()
    (files / "mine.py").write_text(PLUGIN)
    (files / "broken.py").write_text("import nothing_of_this_name\n")
    return files


def test_plugins_of_a_folder_take_part(plugins, tmp_path):
    result = run(".", "--plugins-dir", "plugins")
    assert result.stdout.endswith("3 passed, 0 failed\n")
    assert (tmp_path / "opened").read_text() == "xxx"
    assert result.stderr.count("warning: ") == 1
    assert "plugins/broken.py could not be loaded" in result.stderr


def test_plugins_of_a_folder_take_part_on_several_processes_and_are_told_once(plugins, tmp_path):
    command = "import sys; from pumice.cli import main; sys.argv = ['pumice', 'test', '.', '--jobs', '2', '--plugins-dir', 'plugins']; main()"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=waiting.PATIENCE
    )
    assert done.stdout == run(".", "--plugins-dir", "plugins").stdout
    assert (tmp_path / "opened").read_text() == "xxxxxx"
    assert done.stderr.count("warning: ") == 1


def test_scenario_that_lists_an_unknown_plugin_is_told_how_to_give_a_folder(plugins):
    result = run("a.yaml")
    assert result.exit_code == 1
    assert 'unknown plugin "mine"; ' in result.output
    assert "name the folder with --plugins-dir if it is in a file of yours" in result.output


def test_scenario_may_replace_its_policy_by_one_with_a_plugin_of_the_folder(plugins, folder):
    folder(d=scenario("d", "- config: |\n    actions: allocate\n    tiers: [{plugins: [{name: mine}]}]\n" + HOLDS))
    assert run("d.yaml", "--plugins-dir", "plugins").exit_code == 0
    assert run("d.yaml").exit_code == 1


def test_folder_of_plugins_that_is_not_there_is_an_error_of_the_call(plugins):
    result = run(".", "--plugins-dir", "nowhere")
    assert result.exit_code == 2
    assert "--plugins-dir nowhere: no such folder" in result.stderr


def test_folder_of_plugins_that_has_gone_since_leaves_other_processes_with_what_is_installed(plugins):
    from pumice.cli import own_plugins

    sent = pickle.dumps(own_plugins.load(str(plugins)))
    plugins.rename(plugins.with_name("gone"))
    arrived = pickle.loads(sent)  # noqa: S301  our own
    assert "mine" not in arrived.plugins
    assert "gang" in arrived.plugins
    assert "no such folder" in arrived.broken[str(plugins)]


# -- another configuration for all --------------------------------------------------------------------------------

SHARING = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: proportion}]}]\n'


def test_config_runs_every_scenario_with_one_configuration_and_the_reports_say_so(folder):
    path = folder(a=scenario("one", HOLDS) + "---\n" + scenario("two", HOLDS, "unknown"))
    (path / "conf").write_text(SHARING)
    result = run("a.yaml", "--config", "conf", "--json", "out.json", "--junit", "out.xml")
    assert result.output.endswith("2 passed, 0 failed, all with the configuration conf\n")
    assert json.loads((path / "out.json").read_text())["config"] == "conf"
    properties = ET.parse(path / "out.xml").iter("property")  # noqa: S314  our own output
    assert [(each.get("name"), each.get("value")) for each in properties] == [("config", "conf")]
    assert run("a.yaml").exit_code == 1


@pytest.mark.parametrize(
    ("given", "text", "told"),
    [
        ("none", "", "--config none: cannot be read: No such file"),
        ("conf", SHARING.replace("gang", "gnag"), 'conf:2: tiers[0].plugins[0].name: unknown plugin "gnag"'),
        (
            "conf",
            "kind: ConfigMap\ndata: {a: x, b: y}",
            "it has the keys a, b; say which with `key`, or FILE#KEY on the command line",
        ),
        (
            "conf#b",
            "kind: ConfigMap\ndata:\n  a: x\n  b: |\n    actions: [allocate]\n",
            "conf:5: actions: expected one string",
        ),
    ],
)
def test_configuration_for_all_that_cannot_be_used_is_told_once(given, text, told, folder):
    path = folder(a=scenario("one", HOLDS) + "---\n" + scenario("two", HOLDS))
    (path / "conf").write_text(text)
    result = run("a.yaml", "--config", given)
    assert result.exit_code == 2
    assert result.output.count(told) == 1
