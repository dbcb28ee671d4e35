"""A configuration that was read and found sound, and the problems of one that was not."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pumice.framework.configuration.settings import Settings

Compatibility = Literal["", "volcano", "kube-batch"]
Rules = Literal["current", "kube-batch"]


class Problem(msgspec.Struct, frozen=True):
    """One thing to correct or to know: where, about what, and why. Line 0 stands for no line in particular."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        """Give it in one line."""
        return ": ".join(part for part in (f"line {self.line}" if self.line else "", self.key, self.message) if part)


class ConfigurationError(ValueError):
    """A configuration that is refused, with everything that is wrong with it."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "configuration") -> None:
        many = f"{len(problems)} problems" if len(problems) != 1 else "1 problem"
        super().__init__("\n".join([f"{source} is not valid, {many}:", *(f"  {problem}" for problem in problems)]))
        self.problems = problems
        self.source = source


class PluginSetting(msgspec.Struct, frozen=True):
    """A plugin as one tier lists it: every switch, and every declared argument, has its value; `settings` are what it is told."""

    name: str
    switches: dict[str, bool]
    arguments: dict[str, Any]
    line: int
    settings: Settings = Settings()


class ActionSetting(msgspec.Struct, frozen=True):
    """An action with the value of every argument it declares; `settings` are what it is told."""

    name: str
    arguments: dict[str, Any]
    line: int
    settings: Settings = Settings()


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler runs each cycle, in which order, under which rules."""

    actions: tuple[ActionSetting, ...]
    tiers: tuple[tuple[PluginSetting, ...], ...]
    metrics: dict[str, str] = {}
    compatibility: Compatibility = ""
    rules: Rules = "current"
    warnings: tuple[Problem, ...] = ()
    source: str = "configuration"
    text: str = ""  # what it was read from

    @property
    def action_names(self) -> tuple[str, ...]:
        """Return the names of the actions in their order."""
        return tuple(action.name for action in self.actions)

    @property
    def plugins(self) -> tuple[PluginSetting, ...]:
        """Return the plugins of all tiers in their order."""
        return tuple(plugin for tier in self.tiers for plugin in tier)

    def plugin(self, name: str) -> PluginSetting | None:
        """Return the first setting of a plugin, None if no tier lists it."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)
