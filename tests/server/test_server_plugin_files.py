"""Plugins and actions from a folder."""

from __future__ import annotations

import pytest

from pumice.framework import configuration, registry
from pumice.server import plugin_files

GOOD = '''
from pumice.framework.plugin import Action, Plugin

class Mine(Plugin):
    """Mine."""
    name = "my-own"

class Step(Action):
    """A step."""
    name = "step"
    def execute(self, session): ...

class _Base(Plugin):
    """Has no name."""
'''


def test_files_of_a_folder_are_loaded_and_used_when_listed(tmp_path):
    (tmp_path / "my-plugins.py").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("not read")
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    text = 'actions: "step, allocate"\ntiers: [{plugins: [{name: my-own}, {name: gang}]}]\n'
    loaded = configuration.load(text, known.catalog())
    assert [plugin.name for plugin in loaded.plugins] == ["my-own", "gang"]
    assert registry.installed().plugins.get("my-own") is None


def test_a_file_that_cannot_be_loaded_is_named_and_stops_nobody(tmp_path):
    (tmp_path / "bad.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "good.py").write_text(GOOD)
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    assert "ModuleNotFoundError" in known.broken["bad"]
    assert "my-own" in known.plugins
    with pytest.raises(configuration.ConfigurationError, match=r"bad\.py could not be loaded"):
        configuration.load('actions: "allocate"\ntiers: [{plugins: [{name: bad}]}]\n', known.catalog())


def test_a_name_that_is_taken_stays_with_who_has_it(tmp_path):
    (tmp_path / "gang.py").write_text(GOOD.replace("my-own", "gang"))
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    assert known.plugins["gang"] is registry.installed().plugins["gang"]
    assert "is taken" in known.broken["gang.gang"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(plugin_files.FolderError, match="no such folder"):
        plugin_files.extend(registry.installed(), str(tmp_path / "x"))
