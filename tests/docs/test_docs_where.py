"""The page that says where things are decided names what is there."""

import importlib
import re
from pathlib import Path

import pytest

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
