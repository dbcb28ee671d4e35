"""The page on performance: every figure has a command that exists, and the table is the one that was measured."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import figures
from bench.cluster import __main__ as cluster
from pumice.bench import finding, reporting
from pumice.cli.bench import command

PAGE = figures.PAGE.read_text(encoding="utf-8")
KNOWN = json.loads(figures.FILE.read_text(encoding="utf-8"))


def test_the_table_is_the_one_that_was_measured():
    assert figures.with_table(PAGE, KNOWN) == PAGE, "run `make figures`"


def test_every_row_is_of_a_workload_that_exists():
    assert KNOWN
    assert set(KNOWN) <= set(finding.names())


@pytest.mark.parametrize("line", re.findall(r"pumice bench ([^`\n|]+)", PAGE))
def test_every_command_of_the_page_is_understood(line):
    words = line.partition("#")[0].split()
    given = command.make_context(
        "bench", [word for word in words if not word.endswith(".yaml")], resilient_parsing=True
    )
    options = [word for word in words if word.startswith("-")]
    known = {name for parameter in command.params for name in parameter.opts}
    assert set(options) <= known
    for name in given.params["workloads"]:
        assert name == "NAME" or name in finding.names()


def test_every_column_that_is_printed_is_explained():
    columns = reporting.heading(10)[-1].split("workload", 1)[1]
    for name, _ in reporting.WIDE:
        assert name in columns
        assert re.search(rf"`[^`]*{re.escape(name.removesuffix(' ms'))}[^`]*`", PAGE), name


def test_every_measurement_of_a_cluster_that_is_named_can_be_chosen():
    named = re.findall(
        r"^\| `([a-z ]+)` \|", PAGE.partition("## Measure a cluster")[2].partition("## Figures")[0], re.MULTILINE
    )
    source = Path(cluster.__file__).read_text(encoding="utf-8")
    assert named
    for name in named:
        assert f'"{name}":' in source or f'made["{name}"]' in source


def test_every_target_of_make_that_is_named_exists():
    makefile = (figures.ROOT / "Makefile").read_text(encoding="utf-8")
    for name in set(re.findall(r"make ([a-z-]+)", PAGE)):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


def test_help_of_the_command_that_is_shown_first_works():
    assert CliRunner().invoke(command, ["--list"]).exit_code == 0
    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster", "--help"], capture_output=True, cwd=figures.ROOT, check=True
    )
    assert b"-k TEXT" in done.stdout
