"""What the page shows of `pumice simulate` is what it prints and draws."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.program import program

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "simulate.md").read_text()
SHOWN = re.findall(r"```console\n\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Stand where the examples are."""
    shutil.copytree(DOCS / "examples" / "simulate", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.usefixtures("here")
def test_every_command_prints_what_the_page_shows():
    assert len(SHOWN) == 2
    for command, output in SHOWN:
        typed, _, told = command.replace("\\\n", " ").partition(";")
        result = CliRunner().invoke(program, shlex.split(typed)[1:])
        printed = [line for line in result.stdout.splitlines() if not line.startswith("processor time")]
        assert [*printed, *([str(result.exit_code)] if told else [])] == output.splitlines()


@pytest.mark.usefixtures("here")
def test_the_pictures_of_the_page_are_those_that_it_draws():
    pictures = re.findall(r"!\[.*?\]\(examples/simulate/(.*?)\)", PAGE)
    assert pictures
    CliRunner().invoke(program, shlex.split(SHOWN[0][0])[1:], catch_exceptions=False)
    for name in pictures:
        assert Path("report", name).read_bytes() == Path(name).read_bytes()
