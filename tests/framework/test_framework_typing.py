"""The public API as a plugin's author meets it, seen by a strict type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AUTHOR = Path(__file__).parent / "typed_author.py"


@pytest.fixture(scope="module")
def complaints():
    """What mypy says about the author's file, by line."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
        "--no-pretty",
        str(AUTHOR),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(?P<file>[^:]+):(?P<line>\d+): (?P<kind>error|note): (?P<text>.*)", line)
        assert match is not None, line
        assert Path(match["file"]).name == AUTHOR.name, line
        found[int(match["line"])] = f"{found.get(int(match['line']), '')}{match['text']}\n"
    return found


def expected(mark):
    """Lines that end in a comment with a mark, and the text after it."""
    lines = AUTHOR.read_text(encoding="utf-8").splitlines()
    return {number: line.partition(mark)[2] for number, line in enumerate(lines, 1) if mark in line}


def test_mistakes_of_an_author_are_found_and_nothing_else_is(complaints):
    refused = expected("# refused: ")
    revealed = expected("# is: ")
    assert set(complaints) == set(refused) | set(revealed)
    for line, text in refused.items():
        assert text in complaints[line], complaints[line]


def test_answers_of_points_have_the_types_that_their_declarations_say(complaints):
    for line, text in expected("# is: ").items():
        assert f'Revealed type is "{text}"' in complaints[line], complaints[line]
