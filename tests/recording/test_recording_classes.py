"""The list of classes that a state may hold is complete, and nothing on it runs anything when it is made.

Whoever lets a scheduler remember objects of a new class between cycles enters it in `recording/known_classes.py`: the first test names it. A class may be entered
if it is made of its fields alone and reaches nothing beyond the process, and needs no entry if the field that holds it is left out (`recording/state.py`).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from enum import Enum
from pathlib import Path

import msgspec
import pytest

import pumice.api
from drawing import FUZZ, drawn
from pumice.api import decoding, meta
from pumice.recording import classes, graph_reading, known_classes, state, writing
from pumice.recording.effects import Ledger
from pumice.recording.graph import Table
from pumice.scenario import format as scenario_format
from pumice.scenario import runner, stage, suite
from tests.lives import scripts
from tests.lives.player import Player
from tests.lives.stage import KNOWN, Stage

ROOT = Path(__file__).parents[2]
EVERY = 1 if FUZZ else 16  # of the scenarios
LIVES = drawn(60, 4)
LISTED = [
    (code, module, name) for code, known in known_classes.BY_CODE.items() for module in known for name in known[module]
]


class Missing(dict):
    """Classes that are in a state and on no list, with who holds them."""

    def look(self, scheduler, where):
        captured = state.capture(scheduler, Ledger(), None)
        for group in captured.groups:
            listed = known_classes.BY_CODE.get(group.code)
            kind = group.kind
            if listed is not None and kind.__qualname__ not in listed.get(kind.__module__, ()):
                self.setdefault(f"{kind.__module__}.{kind.__qualname__}", where)


def _said(missing):
    return "; ".join(
        f"{name} is in the state of a scheduler ({where}): enter it in src/pumice/recording/known_classes.py, or leave the field that holds it out in recording/state.py"
        for name, where in missing.items()
    )


def test_every_class_that_scenarios_bring_into_a_state_is_on_the_list(monkeypatch):
    missing, looked = Missing(), []

    class Watched(stage.SimulatedStage):
        def cycle(self, period):
            super().cycle(period)
            looked.append(1)
            missing.look(self.scheduler, "scenarios")

    monkeypatch.setattr(stage, "SimulatedStage", Watched)
    found = [
        each for each in suite.collect([str(ROOT / "scenarios")]) if not isinstance(each, scenario_format.ScenarioFile)
    ]
    for scenario in found[::EVERY]:
        runner.run(scenario, lambda given: stage.build(given, KNOWN))
    assert len(looked) > 100
    assert not missing, _said(missing)


def test_every_class_that_random_lives_bring_into_a_state_is_on_the_list():
    missing = Missing()

    class Watched(Stage):
        def decide(self):
            found = super().decide()
            missing.look(self.scheduler, "lives")
            return found

    for seed in range(LIVES):
        Player(scripts.draw(seed), stage=Watched).play()
    assert not missing, _said(missing)


def test_every_part_of_an_object_of_the_api_server_is_on_the_list():
    """Which of them a plugin or the model keeps is up to objects of users, so all are listed but those that are never kept."""
    for each in pkgutil.walk_packages(pumice.api.__path__, "pumice.api."):
        importlib.import_module(each.name)
    never = {meta.KubeObject, decoding.Opaque}
    todo, found = [meta.Wire], set()
    while todo:
        found.update(below := todo.pop().__subclasses__())
        todo += below
    expected = {
        (kind.__module__, kind.__qualname__)
        for kind in found - never
        if kind.__module__.startswith(("pumice.api.", "pumice.model."))
        and not kind.__qualname__.startswith(("Older", "_"))
        and kind.__module__ != "pumice.api.coordination"
    }
    assert {(module, name) for module, names in known_classes.WIRE.items() for name in names} == expected


@pytest.mark.parametrize(("code", "module", "name"), LISTED)
def test_what_is_listed_is_defined_where_it_is_named_and_runs_nothing_when_it_is_made(code, module, name):
    kind = classes.find_class(module, name, code)
    assert classes.runs_code(kind) == ""
    assert issubclass(kind, Enum) == (code == "e")
    if not issubclass(kind, msgspec.Struct | Enum):
        assert not [
            field
            for field in classes.slots_of(kind)
            if not inspect.ismemberdescriptor(inspect.getattr_static(kind, field))
        ]


class Runs(msgspec.Struct):
    """A class that would run something."""

    field: int

    def __post_init__(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("named", "listed", "said"),
    [
        (("os", "system", "o"), (), "is no class that a state may hold"),
        (("pumice.cli.program", "main", "o"), (), "is no class that a state may hold"),
        (("pumice.model.records", "Job", "e"), (), "is no class that a state may hold"),  # listed as something else
        (("pumice.model.statuses", "Status", "o"), (), "is no class that a state may hold"),
        (("pumice.model.records", "Job.__init__", "o"), (), "is no class that a state may hold"),
        (("pumice.api.kinds", "find", "o"), ("find",), "defines no class"),
        (("pumice.api.kinds", "KubeObject", "o"), ("KubeObject",), "defines no class"),  # imported there
        (("pumice.model.records", "Nothing", "o"), ("Nothing",), "defines no class"),
        (("pumice.model.records", "Job", "w"), ("Job",), "cannot be made of its fields alone"),
    ],
)
def test_only_what_is_listed_for_that_use_and_defined_there_is_found(named, listed, said, monkeypatch):
    module, name, code = named
    if listed:
        monkeypatch.setitem(known_classes.BY_CODE, code, {module: listed})
    with pytest.raises(classes.StateError, match=said):
        classes.find_class(module, name, code)


def test_a_class_with_code_of_its_own_is_told_from_one_without():
    Runs.__module__ = "pumice.model.records"
    assert classes.runs_code(Runs) == "__post_init__"


def test_a_state_of_every_listed_class_with_plain_values_comes_back():
    """Fields are filled as they are: nothing looks at them while they are."""
    kept = []
    for module, names in known_classes.OBJECTS.items():
        for name in names:
            kind = classes.find_class(module, name, "o")
            fields = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else tuple(classes.slots_of(kind))
            kept.append((classes.Layout(module, name, tuple(fields)), fields))
    layouts = [layout for layout, _ in kept]
    groups = [{"code": "l", "count": 1, "columns": [{"objects": list(range(1, len(kept) + 1))}], "sizes": [len(kept)]}]
    groups += [
        {"code": "o", "count": 1, "layout": place, "columns": [{"values": [7]} for _ in fields]}
        for place, (_, fields) in enumerate(kept)
    ]
    table = msgspec.convert({"layouts": layouts, "groups": groups}, Table, from_attributes=True)
    for made, (layout, fields) in zip(graph_reading.Reader(table).root(), kept, strict=True):
        assert type(made).__qualname__ == layout.name
        assert [getattr(made, field) for field in fields] == [7] * len(fields)


def test_what_is_not_listed_is_not_written_either():
    with pytest.raises(classes.StateError, match=r"Path is no class that a state may hold"):
        writing.state(state.graph.capture([Path("x")], state.graph.Rules({}, {})))
