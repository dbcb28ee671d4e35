"""The help of every command, under every name of the program: it fits a hundred columns and says the name that it was called by."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pumice.cli import program
from pumice.cli.volcano import programs

ROOTS = {"pumice": program.program, **{name: programs.find(name) for name in programs.NAMES}}
WIDEST = 100
README = Path(__file__).parents[2] / "README.md"


def paths(root: str) -> list[tuple[str, ...]]:
    """Name every command below a root, itself included."""

    def below(command: click.Command, path: tuple[str, ...], above: click.Context | None) -> list[tuple[str, ...]]:
        found = [path]
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=path[-1], parent=above)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                found += below(inner, (*path, name), context)
        return found

    return below(ROOTS[root], (root,), None)


def helped(path: tuple[str, ...], called: str = "") -> str:
    done = CliRunner().invoke(
        ROOTS[path[0]], [*path[1:], "--help"], prog_name=called or path[0], env={"COLUMNS": "300"}
    )
    assert done.exit_code == 0, done.output
    return done.output


EVERY = [path for root in ROOTS for path in paths(root)]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_no_line_of_help_is_beyond_a_hundred_columns(path):
    text = helped(path)
    assert [line for line in text.splitlines() if len(line) > WIDEST] == []
    assert text.startswith(f"Usage: {' '.join(path)} ")


@pytest.mark.parametrize("path", [path for path in EVERY if path[0] != "pumice"], ids=" ".join)
def test_examples_under_another_name_say_that_name(path):
    shown = re.findall(r"(?m)^    (\w+) (\w+)", helped(path).partition("Examples:")[2])
    assert [(name, verb) for name, verb in shown if name == "pumice" and verb != "explain"] == []


def test_examples_say_kubectl_where_kubectl_calls():
    text = helped(("pumice", "job", "list"), "kubectl pumice")
    assert "    kubectl pumice job list -n research\n" in text
    assert "    pumice job list -n research\n" in helped(("pumice", "job", "list"))


def test_the_readme_names_every_command():
    row = next(line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| commands |"))
    assert [name for name in program.COMMANDS if not re.search(rf"`{name}( \w+)?`", row)] == []


def test_every_command_of_the_program_was_asked():
    assert {path[1] for path in EVERY if path[0] == "pumice" and len(path) > 1} == set(program.COMMANDS)
    assert ("vcctl", "queue", "operate") in EVERY
