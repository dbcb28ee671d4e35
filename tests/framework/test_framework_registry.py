"""What packages declare: broken entries are named with the reason, cost nobody else anything, and replace nothing of ours."""

from __future__ import annotations

from importlib import metadata

import pytest

from pumice.framework import configuration, registry
from pumice.framework.plugin import Action, Plugin
from pumice.plugins.gang import Gang


class Good(Plugin):
    name = "good"


class Other(Plugin):
    name = "other"


class Nowhere(Plugin):
    name = "bad"
    points = frozenset({"Hierarchy", "JobRedy"})


class Attribute(Plugin):
    name = "bad"
    points = frozenset({"score"})


class Step(Action):
    name = "step"


class Thief(Plugin):
    name = "gang"


class Unsettled(Plugin):
    name = "bad"
    settings = int


class Told(Plugin):
    name = "bad"
    settings = "weight"


HERE = "test_framework_registry"


@pytest.mark.parametrize("part", [Unsettled, Told])
def test_arguments_are_declared_as_settings(part):
    assert registry.misdeclared(part).startswith("its arguments are declared as settings = Configured(")
    assert registry.misdeclared(Good) == ""


def found(monkeypatch, plugins=None, actions=None):
    """Load a registry from entries by name."""
    listed = {"pumice.plugins": plugins or {}, "pumice.actions": actions or {}}

    def entry_points(*, group):
        return [metadata.EntryPoint(name.strip(), value, group) for name, value in listed[group].items()]

    monkeypatch.setattr(registry.metadata, "entry_points", entry_points)
    return registry.installed.__wrapped__()


def test_classes_are_found_by_their_entry_points(monkeypatch):
    made = found(monkeypatch, {"good": f"{HERE}:Good"}, {"step": f"{HERE}:Step"})
    assert {name: each.__name__ for name, each in made.plugins.items()} == {"good": "Good"}
    assert {name: each.__name__ for name, each in made.actions.items()} == {"step": "Step"}
    assert made.broken == {}
    assert set(made.catalog().plugins) == {"good"}


BROKEN = [
    ("no such module", "nowhere_at_all:X", "could not be loaded: ModuleNotFoundError"),
    ("no such name in it", "json:Nothing", "could not be loaded: AttributeError"),
    ("not a class", "json:dumps", "is not a subclass of Plugin"),
    ("an action among plugins", f"{HERE}:Step", "is not a subclass of Plugin"),
    ("another name", f"{HERE}:Other", "calls itself 'other', not 'bad'"),
    ("an attribute", f"{HERE}:Attribute", "but there is no extension point score; did you mean NodeOrder?"),
    ("an unknown point", f"{HERE}:Nowhere", "but there is no extension point JobRedy; did you mean JobReady?"),
]


@pytest.mark.parametrize(("case", "value", "reason"), BROKEN, ids=[case for case, *_ in BROKEN])
def test_a_broken_entry_is_named_with_the_reason_and_the_rest_is_loaded(monkeypatch, case, value, reason):
    made = found(monkeypatch, {"bad": value, "good": f"{HERE}:Good"})
    assert set(made.plugins) == {"good"}
    assert set(made.broken) == {"bad"}
    assert made.broken["bad"].startswith(f"{value} in group pumice.plugins ")
    assert reason in made.broken["bad"]


def test_a_configuration_that_names_a_broken_plugin_is_told_why(monkeypatch):
    made = found(monkeypatch, {"bad": "nowhere_at_all:X"}, {"step": f"{HERE}:Step"})
    with pytest.raises(
        configuration.ConfigurationError, match=r"line 3: .*No module named 'nowhere_at_all'"
    ) as refused:
        configuration.load('actions: "step"\ntiers:\n- plugins: [{name: bad}]\n', made.catalog())
    assert 'plugin "bad" is installed but broken: nowhere_at_all:X in group pumice.plugins' in str(refused.value)


def test_no_package_replaces_a_plugin_of_ours(monkeypatch):
    made = found(monkeypatch, {"gang ": f"{HERE}:Thief", "gang": "pumice.plugins.gang:Gang"})
    assert made.plugins["gang"] is Gang
    assert made.broken["gang"] == (
        f"{HERE}:Thief in group pumice.plugins has the name of another one: pumice.plugins.gang"
    )


def test_everything_that_is_installed_here_can_be_loaded():
    assert registry.installed().broken == {}
    assert {"gang", "priority", "predicates", "nodeorder", "binpack"} <= set(registry.installed().plugins)
    assert {"enqueue", "allocate", "backfill"} <= set(registry.installed().actions)
