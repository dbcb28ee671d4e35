"""What a configuration may name: the plugins and actions that exist here, and those known only from the peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping  # noqa: TC003  msgspec reads the annotations at run time
from typing import Any, Final

import msgspec

from pumice.api import documents
from pumice.framework.configuration.arguments import Argument  # noqa: TC001  msgspec reads the annotations at run time
from pumice.framework.configuration.settings import Settings

PEER_PLUGINS: Final = (
    "binpack",
    "capacity",
    "cdp",
    "conformance",
    "crossquota",
    "deviceshare",
    "drf",
    "extender",
    "gang",
    "network-topology-aware",
    "nodegroup",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "rescheduling",
    "resource-strategy-fit",
    "resourcequota",
    "sla",
    "task-topology",
    "tdm",
    "usage",
)
PEER_ACTIONS: Final = (
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "shuffle",
    "gangpreempt",
    "gangreclaim",
)
ALIASES: Final[Mapping[str, str]] = {"numaaware": "numa-aware"}


class PluginDescription(msgspec.Struct, frozen=True):
    """A plugin as the loader sees it.

    `settings` makes what the plugin is told out of the arguments, once per configuration. `points` names the extension points it may register (`JobStarving`); one that reads the option `enableHierarchy` also lists `Hierarchy`.
    `objections` looks at arguments that are right one by one, and says where and why they are not right together; `remarks` says of what is allowed that it has no effect.
    """

    name: str
    arguments: tuple[Argument, ...] = ()
    points: frozenset[str] = frozenset()
    objections: Callable[[Mapping[str, Any]], Iterable[tuple[documents.Path, str]]] | None = None
    settings: type[Settings] = Settings
    remarks: Callable[[Mapping[str, Any]], Iterable[tuple[documents.Path, str]]] | None = None


class ActionDescription(msgspec.Struct, frozen=True):
    """An action as the loader sees it."""

    name: str
    arguments: tuple[Argument, ...] = ()
    settings: type[Settings] = Settings


class Catalog(msgspec.Struct, frozen=True):
    """Everything that can be configured, and what is installed but cannot be used, with the reason."""

    plugins: Mapping[str, PluginDescription]
    actions: Mapping[str, ActionDescription]
    broken: Mapping[str, str] = {}

    def plugin_refusal(self, name: str) -> str:
        """Say why a plugin cannot be listed; empty when it can."""
        return self._refusal("plugin", name, self.plugins, PEER_PLUGINS)

    def action_refusal(self, name: str) -> str:
        """Say why an action cannot be run; empty when it can."""
        return self._refusal("action", name, self.actions, PEER_ACTIONS)

    def _refusal(self, what: str, name: str, provided: Mapping[str, object], peers: tuple[str, ...]) -> str:
        if name not in provided and name in self.broken:
            return f"{what} {documents.quoted(name)} is installed but broken: {self.broken[name]}"
        return _refusal(what, name, provided, peers)


def _refusal(what: str, name: str, provided: Mapping[str, object], peers: tuple[str, ...]) -> str:
    if name in provided:
        return ""
    if name in peers:
        return f"{what} {documents.quoted(name)} is known from Volcano but not provided by this version"
    return f"unknown {what} {documents.quoted(name)}{suggestion(name, provided)}"


def suggestion(word: str, candidates: Mapping[str, object]) -> str:
    """End a message with the name that was probably meant, or with all of them where they are few."""
    if (found := documents.nearest(word, candidates)) is not None:
        return f"; did you mean {documents.quoted(found)}?"
    if 0 < len(candidates) <= 10:
        return f"; known are {', '.join(sorted(candidates))}"
    return ""
