"""The tool that changes one thing at a time: what it changes, and that changed code is what runs."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys

import pytest

from tests.mutants import changing, noticing

SOURCE = """
LIMIT = 3


def room(free, asked, log):
    if free < asked or asked == 0:
        log.append("no")
        return False
    return free - asked > 1


class Box:
    def holds(self, what):
        return all(each in self.things for each in what)
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small_module.py"
    file.write_text(SOURCE)
    return str(file)


@pytest.fixture
def module(path, monkeypatch):
    spec = importlib.util.spec_from_file_location("small_module", path)
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "small_module", made)
    spec.loader.exec_module(made)
    return made


def test_comparisons_signs_limits_conditions_and_calls_are_changed_inside_functions_alone(path):
    found = [(each.function, each.before, each.after) for each in changing.mutants(path)]
    assert sorted(found) == sorted(
        [
            ("room", "free < asked or asked == 0", "free < asked and asked == 0"),
            ("room", "free < asked", "free <= asked"),
            ("room", "asked == 0", "asked != 0"),
            ("room", "0", "1"),
            ("room", "log.append('no')", "pass"),
            ("room", "False", "True"),
            ("room", "free - asked > 1", "free - asked >= 1"),
            ("room", "free - asked", "free + asked"),
            ("room", "1", "2"),
            ("Box.holds", "return all((each in self.things for each in what))", "return None"),
            ("Box.holds", "each in self.things", "each not in self.things"),
        ]
    )


def test_each_change_is_one_and_can_be_compiled(path):
    before = ast.unparse(ast.parse(SOURCE))
    texts = [ast.unparse(changing.changed(path, each.number)) for each in changing.mutants(path)]
    assert len({before, *texts}) == len(texts) + 1
    for text in texts:
        compile(text, path, "exec")


def test_functions_that_others_hold_run_the_changed_code(path, module):
    held = module.room
    (change,) = [each for each in changing.mutants(path) if each.after == "free + asked"]
    assert held(5, 4, []) is False
    assert noticing.put_in(change) == 1
    assert held(5, 4, []) is True


@pytest.mark.usefixtures("module")
def test_a_change_inside_a_comprehension_is_put_in(path):
    (change,) = [each for each in changing.mutants(path) if each.after == "each not in self.things"]
    box = sys.modules["small_module"].Box()
    box.things = [1]
    assert noticing.put_in(change) == 1
    assert not box.holds([1])


def test_the_quickest_tests_that_call_a_function_are_chosen_within_a_budget(path):
    (change,) = [each for each in changing.mutants(path) if each.after == "free + asked"]
    name = f"{os.path.realpath(path)}:room"
    called = {"slow": (9.0, [name]), "quick": (1.0, [name]), "other": (0.1, ["x:room"]), "usual": (2.0, [name])}
    assert noticing.those_who_call(change, called, 4.0) == ["quick", "usual"]
    assert noticing.those_who_call(change, called, 0.5) == ["quick"]
