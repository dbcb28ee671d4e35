"""Which plugins and actions exist: those of this package and those of installed packages, found through entry points.

A third-party package names its classes under the groups `pumice.plugins` and `pumice.actions`. One that cannot be loaded is named in
`Registry.broken` and costs nobody else anything.
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import TypeVar

import msgspec

from pumice.framework import points
from pumice.framework.configuration import (
    ActionDescription,
    Catalog,
    PluginDescription,
    Settings,
    arguments,
    switches,
)
from pumice.framework.plugin import Action, Plugin, told

PLUGINS = "pumice.plugins"
ACTIONS = "pumice.actions"

C = TypeVar("C", Plugin, Action)


class Registry(msgspec.Struct, frozen=True):
    """Classes by name, and what could not be loaded, with the reason."""

    plugins: dict[str, type[Plugin]]
    actions: dict[str, type[Action]]
    broken: dict[str, str] = {}

    def catalog(self) -> Catalog:
        """Describe everything for the configuration loader."""
        return Catalog(
            plugins={
                n: PluginDescription(n, told(c).arguments, c.points, c.objections, told(c), c.remarks)
                for n, c in self.plugins.items()
            },
            actions={n: ActionDescription(n, told(c).arguments, told(c)) for n, c in self.actions.items()},
            broken=self.broken,
        )


@functools.cache
def installed() -> Registry:
    """Load what the installed packages declare; read once per process."""
    broken: dict[str, str] = {}
    plugins = _load(PLUGINS, Plugin, broken)
    actions = _load(ACTIONS, Action, broken)
    return Registry(plugins, actions, broken)


def catalog() -> Catalog:
    """Describe everything installed."""
    return installed().catalog()


def misdeclared(part: type[Plugin | Action]) -> str:
    """Say what is wrong with what a class declares about itself; empty if nothing is. Nobody else could read it then."""
    kind: object = told(part)
    if "arguments" in vars(part) or not (isinstance(kind, type) and issubclass(kind, Settings)):
        return "its arguments are declared as settings = Configured(…), with a subclass of pumice.framework.configuration.Settings"
    if problem := arguments.misdeclared(kind.arguments):
        return problem
    listed: object = part.points if issubclass(part, Plugin) else frozenset()
    if not isinstance(listed, frozenset):
        return "its points must be a frozenset of names of extension points"
    known = {*points.BY_NAME, switches.HIERARCHICAL}
    return next(
        (
            f"it lists {name} among its points, but {points.unknown(name)}"
            for name in sorted(listed)
            if name not in known
        ),
        "",
    )


def _load(group: str, base: type[C], broken: dict[str, str]) -> dict[str, type[C]]:
    found: dict[str, type[C]] = {}
    # Our own come first, so that no installed package replaces a built-in by accident.
    entries = sorted(
        metadata.entry_points(group=group), key=lambda e: (not e.value.startswith("pumice."), e.name, e.value)
    )
    for entry in entries:
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001  any failure of a foreign package is its own
            broken[entry.name] = f"{entry.value} in group {group} could not be loaded: {type(error).__name__}: {error}"
            continue
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            broken[entry.name] = f"{entry.value} in group {group} is not a subclass of {base.__name__}"
        elif loaded.name != entry.name:
            broken[entry.name] = f"{entry.value} in group {group} calls itself {loaded.name!r}, not {entry.name!r}"
        elif problem := misdeclared(loaded):
            broken[entry.name] = f"{entry.value} in group {group} cannot be used: {problem}"
        elif entry.name in found:
            broken[entry.name] = (
                f"{entry.value} in group {group} has the name of another one: {found[entry.name].__module__}"
            )
        else:
            found[entry.name] = loaded
    return found
