"""The program: help, version, names, and a start that costs nothing."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.program import COMMANDS, program

RUN = "import sys; sys.argv = {argv!r}; from pumice.cli import main; main()"


def run(*arguments):
    return CliRunner().invoke(program, list(arguments), prog_name="pumice")


def start(*argv):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(argv=list(argv))], capture_output=True, text=True, check=False
    )


def test_version():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"pumice {pumice.__version__}\n")


def test_help_lists_every_command_with_examples():
    output = run("--help").output
    assert all(f"  {name}" in output for name in COMMANDS)
    assert "pumice test scenarios/" in output


@pytest.mark.parametrize(
    "command",
    [
        ["test"],
        ["explain"],
        ["what-if"],
        ["config"],
        ["config", "diff"],
        ["config", "check"],
        ["config", "show"],
        ["completion"],
        ["plugin", "new"],
    ],
)
def test_every_command_has_help(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output or command == ["config"]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("tset", "no command 'tset'; did you mean 'test'?"),
        (
            "xyzzy",
            "no command 'xyzzy'; there are bench, completion, config, demo, explain, install, nodes, plugin, replay, scheduler, shrink, test",
        ),
    ],
)
def test_unknown_command_names_the_nearest(typed, told):
    result = run(typed)
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize(
    ("called", "named"), [("/usr/bin/pumice", "pumice"), ("/usr/bin/kubectl-pumice", "kubectl pumice")]
)
def test_usage_names_the_program_as_it_was_called(called, named):
    assert start(called, "test").stderr.startswith(f"Usage: {named} test ")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from pumice.cli.program import program; "
        "assert CliRunner().invoke(program, ['--help']).exit_code == 0; "
        "print(sorted({'numpy', 'yaml', 'rich', 'msgspec', 'pumice.scenario', 'pumice.framework'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_module_without_a_click_command_is_a_clear_error(monkeypatch):
    monkeypatch.setitem(COMMANDS, "odd", ("json.decoder", "Odd."))
    monkeypatch.setattr("json.decoder.command", 3, raising=False)
    with pytest.raises(TypeError, match="no click command but int"):
        program.get_command(click.Context(program), "odd")
