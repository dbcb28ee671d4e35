"""`pumice config`: check and show."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pumice.cli.program import program
from pumice.framework import configuration, registry

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang, enablePreemptable: false}, {name: binpack}, {name: predicates}]\n'
BAD = 'actions: "enqueue, alocate"\ntiers:\n- plugins: [{name: gang, enableJobOrdr: true}]\n'


def run(*arguments, text=None):
    return CliRunner().invoke(program, ["config", *arguments], input=text, prog_name="pumice")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)


def test_check_accepts_a_valid_file(files):
    result = run("check", "good.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "good.yaml: valid, 2 actions, 3 plugins"


def test_check_lists_all_problems_with_lines(files):
    result = run("check", "good.yaml", "bad.yaml")
    assert result.exit_code == 1
    lines = [line for line in result.output.splitlines() if line.startswith("bad.yaml:")]
    assert [line.split(":")[1:3] for line in lines[:2]] == [["1", " error"], ["3", " error"]]
    assert '"allocate"' in lines[0]
    assert '"enableJobOrder"' in lines[1]
    assert lines[2] == "bad.yaml: not valid, 2 problems"


def test_check_reads_the_standard_input():
    assert run("check", "-", text=GOOD).output.endswith("-: valid, 2 actions, 3 plugins\n")


def test_check_tells_warnings_of_a_valid_file():
    result = run("check", "-", text=GOOD.replace(", {name: predicates}", ""))
    assert result.exit_code == 0
    assert result.output.splitlines()[0].startswith('-:2: warning: tiers: plugin "predicates" is in no tier')
    assert result.output.endswith("-: valid, 2 actions, 2 plugins, 1 warning\n")


def test_check_of_a_missing_file_says_so(files):
    result = run("check", "none.yaml")
    assert result.exit_code == 1
    assert "none.yaml: error: the file cannot be read: No such file or directory" in result.output


def test_check_without_a_file_is_a_usage_error():
    assert run("check").exit_code == 2


def test_show_prints_the_built_in_default():
    result = run("show")
    assert result.exit_code == 0
    assert "actions: enqueue, allocate, backfill" in result.stdout
    assert configuration.load(result.stdout, registry.catalog()).action_names == ("enqueue", "allocate", "backfill")


def test_show_prints_what_loads_to_the_same_settings(files):
    known = registry.catalog()
    shown = configuration.load(run("show", "good.yaml").stdout, known)
    given = configuration.load(GOOD, known)
    assert [(plugin.name, plugin.switches, plugin.arguments) for plugin in shown.plugins] == [
        (plugin.name, plugin.switches, plugin.arguments) for plugin in given.plugins
    ]


def test_show_of_a_refused_file_says_why(files):
    result = run("show", "bad.yaml")
    assert result.exit_code == 1
    assert "bad.yaml:1: error" in result.output


PLUGIN = 'from pumice.framework.plugin import Plugin\n\n\nclass Mine(Plugin):\n    """Does nothing."""\n\n    name = "mine"\n'


@pytest.fixture
def folder(files, tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGIN)
    (tmp_path / "own.yaml").write_text(GOOD.replace("{name: gang, enablePreemptable: false}", "{name: mine}"))
    return tmp_path / "plugins"


def test_plugins_of_a_folder_are_known(folder):
    assert run("check", "own.yaml").exit_code == 1
    assert run("check", "own.yaml", "--plugins-dir", "plugins").exit_code == 0
    assert "name: mine" in run("show", "own.yaml", "--plugins-dir", "plugins").output


def test_a_file_that_cannot_be_loaded_is_told_and_costs_only_who_lists_it(folder):
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    result = run("check", "own.yaml", "good.yaml", "--plugins-dir", "plugins")
    assert result.exit_code == 0
    assert "warning: plugins/broken.py could not be loaded" in result.stderr
    (folder / "mine.py").write_text("class\n")
    result = run("check", "own.yaml", "good.yaml", "--plugins-dir", "plugins")
    assert result.exit_code == 1
    assert "good.yaml: valid" in result.output
    assert "could not be loaded" in result.stderr


def test_a_folder_that_is_not_there_is_said(files):
    result = run("check", "good.yaml", "--plugins-dir", "nowhere")
    assert result.exit_code == 2
    assert "--plugins-dir nowhere: no such folder" in result.stderr


def test_a_folder_without_python_files_is_told(folder):
    (folder / "mine.py").rename(folder / "mine.txt")
    result = run("check", "good.yaml", "--plugins-dir", "plugins")
    assert result.exit_code == 0
    assert result.stderr == "warning: --plugins-dir plugins: a folder without Python files\n"


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ("ours", 'unknown plugin "ours"; name the folder with --plugins-dir if it is in a file of yours\n'),
        ("gangs", 'did you mean "gang"? Or name the folder with --plugins-dir if it is in a file of yours\n'),
    ],
)
def test_refusal_of_an_unknown_plugin_says_how_to_give_a_folder(listed, told):
    assert told in run("check", "-", text=GOOD.replace("binpack", listed)).stderr


def test_refusal_of_an_unknown_plugin_names_no_option_that_is_given(folder):
    result = run("check", "-", "--plugins-dir", "plugins", text=GOOD.replace("binpack", "other"))
    assert result.stderr.startswith('-:3: error: tiers[0].plugins[1].name: unknown plugin "other"')
    assert "--plugins-dir" not in result.stderr
