"""A configuration written out again: tiered YAML that, loaded, gives the same settings."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import yaml

from pumice.api import duration
from pumice.framework.configuration import SWITCHES, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.configuration import Argument, Catalog, Configuration, PluginSetting


def render(loaded: Configuration, known: Catalog) -> str:
    """Write every action and plugin, the switches that differ from their default, and every argument that has a value."""
    document: dict[str, Any] = {"actions": ", ".join(loaded.action_names)}
    compatibility = "kube-batch" if loaded.rules == "kube-batch" else loaded.compatibility
    if compatibility:
        document["compatibility"] = compatibility
    document["tiers"] = [{"plugins": [_plugin(setting, known) for setting in tier]} for tier in loaded.tiers]
    tuned = [
        {"name": action.name, "arguments": written}
        for action in loaded.actions
        if (written := _arguments(action.arguments, known.actions[action.name].arguments))
    ]
    document |= {"configurations": tuned} if tuned else {}
    document |= {"metrics": dict(loaded.metrics)} if loaded.metrics else {}
    text: str = yaml.safe_dump(document, sort_keys=False, default_flow_style=False, allow_unicode=True)
    return f"# {loaded.source}\n{text}"


def _plugin(setting: PluginSetting, known: Catalog) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": setting.name}
    entry |= {name: value for name, value in setting.switches.items() if value != SWITCHES.get(name)}
    written = _arguments(setting.arguments, known.plugins[setting.name].arguments)
    return entry | ({"arguments": written} if written else {})


def _arguments(values: dict[str, Any], declared: Iterable[Argument]) -> dict[str, Any]:
    known = tuple(declared)
    return {key: _written(value, arguments.match(known, key)) for key, value in values.items() if value is not None}


def _written(value: Any, argument: Argument | None) -> Any:
    """Turn a value back into what a file would say."""
    if argument is not None and argument.kind == "duration" and isinstance(value, int):
        return duration.format_duration(value)
    if argument is not None and argument.kind == "strings" and isinstance(value, tuple | list):
        return ", ".join(value)
    return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case Fraction():
            return int(value) if value.denominator == 1 else float(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
