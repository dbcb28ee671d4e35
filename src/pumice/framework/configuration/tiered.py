"""Tiers of plugins: Volcano's form with `enable…` switches, and kube-batch 0.4's with `disable…` ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import documents
from pumice.framework.configuration import catalog, documented, model, switches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.configuration.reading import Draft

TOP_LEVEL: Final = dict.fromkeys(("actions", "tiers", "configurations", "metrics", "compatibility"))
_TIER: Final = dict.fromkeys(("plugins",))
_PLUGIN: Final = dict.fromkeys(("name", "arguments", *switches.SWITCHES, *switches.DISABLING))


def disabling_key(document: documents.Located) -> documents.Path | None:
    """Find the first switch of kube-batch 0.4's form, which selects kube-batch's rules."""
    return next((path for path in _switch_keys(document.data) if path[-1] in switches.DISABLING), None)


def read_tiers(draft: Draft) -> tuple[tuple[model.PluginSetting, ...], ...]:
    """Read `tiers`, every plugin with all its switches and arguments."""
    data = draft.document.data
    _check_top_level(draft, data)
    _check_one_form(draft, data)
    tiers = []
    for index in range(len(draft.list_at(("tiers",)))):
        path: documents.Path = ("tiers", index)
        tier = draft.item_at(path)
        draft.keys_within(path, tier or {}, _TIER)
        tiers.append(() if tier is None else _read_tier(draft, (*path, "plugins")))
    return tuple(tiers)


def _check_top_level(draft: Draft, data: dict[str, Any]) -> None:
    for key in data:
        if key in TOP_LEVEL:
            continue
        if key == "plugins" or key.startswith("plugin."):
            hint = 'add plugins: "…", one string by which it is recognised, or use tiers'
            draft.refuse((key,), f"key {documents.quoted(key)} belongs to kube-batch's flat map; {hint}")
        else:
            draft.refuse((key,), f"unknown key {documents.quoted(key)}{catalog.suggestion(key, TOP_LEVEL)}")


def _check_one_form(draft: Draft, data: dict[str, Any]) -> None:
    keys = list(_switch_keys(data))
    disabling = next((path for path in keys if path[-1] in switches.DISABLING), None)
    enabling = next((path for path in keys if path[-1] in switches.SWITCHES), None)
    if disabling is not None and enabling is not None:
        other = draft.document.line_of(enabling)
        draft.refuse(
            disabling, f"disable… switches cannot be mixed with enable… ones, such as {enabling[-1]} on line {other}"
        )


def _switch_keys(data: Any) -> Iterator[documents.Path]:
    """Walk over every switch written in the tiers, whatever else is wrong with them."""
    tiers = data.get("tiers") if isinstance(data, dict) else None
    for at, tier in enumerate(tiers if isinstance(tiers, list) else ()):
        plugins = tier.get("plugins") if isinstance(tier, dict) else None
        for index, plugin in enumerate(plugins if isinstance(plugins, list) else ()):
            for key in plugin if isinstance(plugin, dict) else ():
                if key in switches.DISABLING or key in switches.SWITCHES:
                    yield ("tiers", at, "plugins", index, key)


def _read_tier(draft: Draft, root: documents.Path) -> tuple[model.PluginSetting, ...]:
    settings: list[model.PluginSetting] = []
    lines: dict[str, int] = {}
    for index in range(len(draft.list_at(root))):
        path = (*root, index)
        written = draft.item_at(path)
        if written is None:
            continue
        draft.keys_within(path, written, _PLUGIN)
        values = _read_switches(draft, path, written)
        name = _read_name(draft, path, written)
        if name is None:
            continue
        line = draft.document.line_of((*path, "name"))
        if name in lines:
            draft.refuse(
                (*path, "name"), f'plugin "{name}" is already in this tier on line {lines[name]}; list it once'
            )
        lines.setdefault(name, line)
        if name in documented.PLUGINS and name not in draft.catalog.plugins:
            draft.warn((*path, "name"), f"{documents.quoted(name)}: {documented.remark(documented.PLUGINS[name])}")
            continue
        if refusal := draft.catalog.plugin_refusal(name):
            draft.refuse((*path, "name"), refusal)
            continue
        given = _read_arguments(draft, (*path, "arguments"), name)
        _warn_of_idle_switches(draft, path, name)
        settings.append(model.PluginSetting(name, values, given, line, draft.plugin_settings(name, given)))
    return tuple(settings)


def _read_arguments(draft: Draft, path: documents.Path, name: str) -> dict[str, Any]:
    known = draft.catalog.plugins[name]
    before = len(draft.problems)
    given = draft.arguments_at(path, f'plugin "{name}"', known.arguments)
    if known.objections is not None and len(draft.problems) == before:
        for where, why in known.objections(given):
            draft.refuse((*path, *where), why)
    for where, why in known.remarks(given) if known.remarks is not None and len(draft.problems) == before else ():
        draft.warn((*path, *where), why)
    return given


def _read_name(draft: Draft, path: documents.Path, written: dict[str, Any]) -> str | None:
    name = written.get("name")
    if isinstance(name, str) and name:
        return catalog.ALIASES.get(name, name)
    draft.refuse((*path, "name"), f"expected the name of a plugin, found {documents.described(name)}")
    return None


def _read_switches(draft: Draft, path: documents.Path, written: dict[str, Any]) -> dict[str, bool]:
    values = dict(switches.SWITCHES)
    for key in written:
        if key in switches.SWITCHES and (value := draft.switch_at((*path, key))) is not None:
            values[key] = value
        elif key in switches.DISABLING and (value := draft.switch_at((*path, key))) is not None:
            values[switches.DISABLING[key]] = not value
    return values


def _warn_of_idle_switches(draft: Draft, path: documents.Path, name: str) -> None:
    points = draft.catalog.plugins[name].points
    for key, value in draft.document.at(path).items():
        if value is True and key in switches.SWITCHES and points.isdisjoint(switches.POINTS[key]):
            draft.warn((*path, key), f'plugin "{name}" has nothing that {key} could switch on')
