"""The page that says where things are decided names what is there."""

import importlib
import re
import traceback
from pathlib import Path

import pytest

import pumice
from builders import Desk, group, node, pod
from pumice.framework import fitting, shortcuts

SOURCE = Path(pumice.__file__).resolve().parent
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "where.md").read_text()
NAMES = sorted(set(re.findall(r"`(pumice(?:\.\w+)+)`", PAGE)))


def found(name):
    """Import the longest part of a name that is a module, and give what the rest of it names there."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_on_the_page_is_there(name):
    assert found(name) is not None


def test_every_question_has_an_answer():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| question")]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"\?.*\|.*`pumice\.", row)] == []


@pytest.mark.parametrize("name", ["pumice.nowhere", "pumice.model.cluster.Cluster.nothing", "elsewhere"])
def test_a_name_that_is_not_there_is_found_out(name):
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        found(name)


def test_why_a_pod_was_not_bound_is_found_in_the_six_files_that_the_page_names(monkeypatch):
    section = PAGE.partition("## Why was a pod not bound?")[2].partition("\n## ")[0]
    named = {found(name.rpartition(".")[0]) for name in re.findall(r"`(pumice(?:\.\w+)+)`", section)}
    files = {
        Path(getattr(each, "__file__", None) or importlib.import_module(each.__module__).__file__) for each in named
    }
    passed, summarise = [], fitting.summarise

    def seen(*asked):
        passed.extend(Path(frame.filename) for frame in traceback.extract_stack())
        return summarise(*asked)

    monkeypatch.setattr(fitting, "summarise", seen)
    Desk(taken=shortcuts.NONE).feed(node("n", cpu="1"), group("g", 1), pod("p", "g", cpu="2")).cycle()
    first = next(place for place, file in enumerate(passed) if file.is_relative_to(SOURCE / "actions"))
    deciding = {file for file in passed[first:] if file.is_relative_to(SOURCE)}
    assert len(files) == 6
    assert deciding | {Path(fitting.__file__), SOURCE / "framework" / "causes.py"} == files
