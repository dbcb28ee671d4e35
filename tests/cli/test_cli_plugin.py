"""`pumice plugin new`: what it writes passes, and it writes over nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from pumice.cli.program import program


def run(*arguments):
    return CliRunner().invoke(program, list(arguments), prog_name="pumice")


@pytest.mark.parametrize("name", ["mine", "few-pods-2"])
def test_what_is_written_passes_and_its_scenario_fails_without_the_plugin(name, tmp_path):
    folder = tmp_path / "plugins"
    written = run("plugin", "new", name, "--folder", str(folder))
    assert written.exit_code == 0
    call = f"test {folder}/{name}.yaml --plugins-dir {folder}"
    assert written.output.endswith(f"Try it:  pumice {call}\n")
    assert run(*call.split()).output.endswith("1 passed, 0 failed\n")
    scenario = folder / f"{name}.yaml"
    scenario.write_text(scenario.read_text().replace(f"{name}.pods: 2", f"{name}.pods: 3"))
    assert run(*call.split()).exit_code == 1


def test_what_is_written_passes_a_type_checker_and_the_linter(tmp_path):
    run("plugin", "new", "mine", "--folder", str(tmp_path))
    for tool in (
        ["mypy", "--strict"],
        ["ruff", "check", "--isolated"],
        ["ruff", "format", "--isolated", "--check", "--line-length=120"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *tool, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine.py").write_text("kept")
    result = run("plugin", "new", "mine", "--folder", str(tmp_path))
    assert result.exit_code == 1
    assert "mine.py exists already; nothing is written over it" in result.output
    assert (tmp_path / "mine.py").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Mine", "is no name of a plugin"),
        ("a--b", "is no name of a plugin"),
        ("1st", "is no name of a plugin"),
        ("../x", "is no name of a plugin"),
        ("x" * 64, "at most 63"),
        ("gang", "is the name of another plugin"),
        ("tdm", "is the name of another plugin"),
    ],
)
def test_name_that_cannot_be_listed_is_refused(name, told, tmp_path):
    result = run("plugin", "new", name, "--folder", str(tmp_path))
    assert result.exit_code == 2
    assert told in result.output
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("plugin", "new", "mine", "--folder", str(tmp_path / "file" / "deep"))
    assert result.exit_code == 1
    assert "cannot be written" in result.output
