"""Arguments of job plugins: flags as Go's programs take them, `--port=22`, `-port 22` or, for what is true or false, `--wait`."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pumice.controllers.volcano.job_plugins.protocol import PluginError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Value = str | int | bool
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_LARGEST_PORT = 65535
_MOST_DIGITS = 18


class Flags:
    """The values of a plugin's flags."""

    def __init__(self, plugin: str, values: Mapping[str, Value]) -> None:
        self._plugin = plugin
        self._values = values

    def text(self, name: str) -> str:
        """Give a text."""
        return str(self._values[name])

    def number(self, name: str) -> int:
        """Give a number."""
        return int(self._values[name])

    def port(self, name: str) -> int:
        """Give the number of a port."""
        found = self.number(name)
        if not 0 < found <= _LARGEST_PORT:
            raise PluginError(f"plugin {self._plugin}: --{name}={found} is no port; write 1 to {_LARGEST_PORT}")
        return found

    def switch(self, name: str) -> bool:
        """Give whether something is on."""
        return bool(self._values[name])


def parse(plugin: str, arguments: Sequence[str], defaults: Mapping[str, Value]) -> Flags:
    """Read arguments over defaults, which say by their type what a flag takes."""
    values, left = dict(defaults), list(arguments)
    while left:
        word = _first_word(left)
        if word in ("", "--"):
            continue
        name, given, text = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            # What stands behind = may be a key that was meant to stay secret.
            raise PluginError(f"plugin {plugin}: {name[:40]!r} is no flag; write --NAME=VALUE")
        if name not in defaults:
            raise PluginError(f"plugin {plugin}: --{name[:40]} is no flag of it; {_nearest(name, defaults)}")
        if not given and isinstance(defaults[name], bool):
            text = "true"
        elif not given:
            if not left:
                raise PluginError(f"plugin {plugin}: --{name} has no value; write --{name}=VALUE")
            text = left.pop(0)
        values[name] = _value(plugin, name, text, defaults[name])
    return Flags(plugin, values)


def _first_word(left: list[str]) -> str:
    """Take the next flag: the whole argument if it gives a value with `=`, which may have blanks in it as keys have; else its first word."""
    argument = left.pop(0)
    first, *others = argument.split() or [""]
    if "=" in first:
        return argument.lstrip()
    left[:0] = others
    return first


def _value(plugin: str, name: str, text: str, default: Value) -> Value:
    if isinstance(default, bool):
        if text not in (*_TRUE, *_FALSE):
            raise PluginError(f"plugin {plugin}: --{name}={text[:40]} is neither true nor false")
        return text in _TRUE
    if isinstance(default, int):
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise PluginError(f"plugin {plugin}: --{name}={text[:40]} is no whole number that it can use")
        return int(text)
    return text


def _nearest(name: str, known: Mapping[str, Value]) -> str:
    if not known:
        return "it takes none"
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean --{close[0]}?" if close else f"it takes {', '.join(f'--{each}' for each in sorted(known))}"
