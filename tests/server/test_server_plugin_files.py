"""Plugins and actions from a folder."""

from __future__ import annotations

import pytest
from server_desk import Lines

from pumice.framework import configuration, registry
from pumice.server.configuration import plugin_files, policy

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
HEAD = "from pumice.framework.plugin import Action, Plugin\nfrom pumice.plugins.gang import Gang\n"
SETTINGS = """from pumice.framework.configuration import Configured, Settings, settings
class Told(Settings):
 weight = {}
class Mine(Plugin):
 name = 'm'
 settings = Configured(Told)
"""


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


LISTED = 'actions: "allocate"\ntiers: [{plugins: [{name: NAME}]}]\n'


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("class Mine(Plugin:\n", "one.py could not be loaded: SyntaxError: invalid syntax (one.py, line 1)"),
        ("\nimport nothing_of_this_name\n", "one.py could not be loaded: line 2: ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit(3)\n", "one.py could not be loaded: line 2: SystemExit: 3"),
        ("raise ValueError('two\\nlines')\n", "one.py could not be loaded: line 1: ValueError: two lines"),
        ("\x00", "one.py could not be loaded: "),
        (HEAD + "class Mine(Plugin): ...\n", "one.py: class Mine has no name of its own"),
        (HEAD + "class Mine(Gang): ...\n", "one.py: class Mine has no name of its own"),
        (HEAD + "class Mine(Plugin):\n name = 3\n", "one.py: class Mine: its name is 3, and must be a text"),
        (
            HEAD + "class Mine(Plugin):\n name = 'm'\n arguments = ['a']\n",
            "class Mine: its arguments are declared as settings",
        ),
        (HEAD + "class Mine(Plugin):\n name = 'm'\n points = ()\n", "class Mine: its points must be a frozenset"),
        (
            HEAD + SETTINGS.format("settings.whole('m.weight', '1', help='')"),
            "one.py: class Mine: setting m.weight has the default '1', a str, and must be an int",
        ),
        (
            HEAD + "class Mine(Plugin):\n name = 'gang'\n",
            "class Mine claims the name 'gang', as does the plugin that is",
        ),
        (HEAD + "class Mine(Plugin):\n name = 'my-own'\n", "good.py: class Mine claims the name 'my-own', as does "),
        (HEAD + "class Mine(Action):\n name = 'allocate'\n", "claims the name 'allocate', as does the action that is"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_that_names_it_and_costs_no_other_file(tmp_path, content, told):
    (tmp_path / "one.py").write_text(content)
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "other.py").write_text(GOOD.replace("my-own", "other").replace("step", "leap"))
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    assert "other" in known.plugins
    assert "leap" in known.actions
    lines = Lines()
    plugin_files.tell(known, str(tmp_path), lines.log)
    (line,) = lines.all
    assert (line["level"], line["msg"]) == ("warning", "a plugin or action cannot be used")
    assert told in line["problem"]
    assert str(tmp_path) in line["problem"]
    assert "\n" not in line["problem"]


def test_a_class_that_others_derive_from_needs_no_name(tmp_path):
    more = "class Base(Plugin): ...\nclass Mine(Base):\n name = 'mine'\nAlias = Mine\nclass _Aside(Plugin): ...\n"
    (tmp_path / "one.py").write_text(HEAD + more)
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    assert not known.broken
    assert "mine" in known.plugins


@pytest.mark.parametrize("name", ["gang", "proportion", "twice"])
def test_a_name_that_two_claim_is_refused_where_it_is_listed_and_nowhere_else(tmp_path, name):
    for file in ("one.py", "two.py"):
        (tmp_path / file).write_text(HEAD + f"class Mine(Plugin):\n name = {name!r}\n")
    known = plugin_files.extend(registry.installed(), str(tmp_path))
    with pytest.raises(
        configuration.ConfigurationError, match=rf"claims the name '{name}', as does .*two\.py: class Mine"
    ):
        configuration.load(LISTED.replace("NAME", name), known.catalog())
    configuration.load(LISTED.replace("NAME", "priority"), known.catalog())
    held = policy.Policy(known.catalog(), Lines().log)
    if name == "twice":
        assert held.use_default().plugins
    else:
        with pytest.raises(configuration.ConfigurationError, match="built-in default is not valid, 1 problem"):
            held.use_default()
    assert "two.py: class Mine" in held.unusable


def test_a_folder_without_files_and_the_files_of_another_are_told(tmp_path):
    lines = Lines(verbosity=2)
    plugin_files.tell(plugin_files.extend(registry.installed(), str(tmp_path)), str(tmp_path), lines.log)
    assert lines.all[0]["msg"] == "--plugins-dir names a folder without Python files"
    (tmp_path / "good.py").write_text(GOOD)
    plugin_files.tell(plugin_files.extend(registry.installed(), str(tmp_path)), str(tmp_path), lines.log)
    assert lines.all[-1]["files"] == "good.py"


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(plugin_files.FolderError, match="x: cannot be read: Not a directory"):
        plugin_files.extend(registry.installed(), str(tmp_path / "x"))


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(plugin_files.FolderError, match="no such folder"):
        plugin_files.extend(registry.installed(), str(tmp_path / "x"))
