"""kube-batch's flat map (up to 0.3): `actions`, `plugins` and `plugin.<name>.<switch>`, all on the top level.

It is recognised by its `plugins` string. The peer also had a default for a map without one; such a map cannot be told from a tiered file
that has lost its tiers, so it is refused with that hint. A map without `actions` runs `allocate, preempt`, as it did there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import documents
from pumice.framework.configuration import arguments, catalog, model, switches

if TYPE_CHECKING:
    from pumice.framework.configuration.reading import Draft

DEFAULT_ACTIONS: Final = "allocate, preempt"
_KEYS: Final = dict.fromkeys(("actions", "plugins", "compatibility"))


def is_flat(document: documents.Located) -> bool:
    """Tell the flat map from a tiered file."""
    return isinstance(document.data, dict) and isinstance(document.data.get("plugins"), str)


def read_plugins(draft: Draft) -> tuple[tuple[model.PluginSetting, ...], ...]:
    """Read the plugins of a flat map; they form one tier."""
    path: documents.Path = ("plugins",)
    names = [catalog.ALIASES.get(name, name) for name in draft.names_at(path, "plugin")]
    written = _read_switches(draft, names)
    line = draft.document.line_of(path)
    settings = []
    for position, name in enumerate(names):
        if name in names[:position]:
            draft.refuse(path, f"plugin {documents.quoted(name)} is listed twice; list it once")
        elif refusal := draft.catalog.plugin_refusal(name):
            draft.refuse(path, refusal)
        else:
            off = dict.fromkeys(switches.FLAT.values(), False)
            values = {**switches.SWITCHES, **off, **written.get(name, {})}
            given = arguments.defaults(draft.catalog.plugins[name].arguments)
            settings.append(model.PluginSetting(name, values, given, line, draft.plugin_settings(name, given)))
    return (tuple(settings),)


def _read_switches(draft: Draft, names: list[str]) -> dict[str, dict[str, bool]]:
    """Read every key that is not a section, by plugin."""
    found: dict[str, dict[str, bool]] = {}
    listed = dict.fromkeys(names)
    for key in draft.document.data:
        if key in _KEYS:
            continue
        prefix, _, rest = key.partition(".")
        name, _, part = rest.rpartition(".")
        name = catalog.ALIASES.get(name, name)
        if prefix != "plugin" or not name:
            known = {**_KEYS, **{f"plugin.{name}.{part}": None for name in names for part in switches.FLAT}}
            draft.refuse(
                (key,), f"unknown key {documents.quoted(key)} in kube-batch's flat map{catalog.suggestion(key, known)}"
            )
        elif part not in switches.FLAT:
            hint = catalog.suggestion(part, switches.FLAT)
            draft.refuse((key,), f"unknown switch {documents.quoted(part)} of plugin {documents.quoted(name)}{hint}")
        elif (value := draft.switch_at((key,))) is not None:
            found.setdefault(name, {})[switches.FLAT[part]] = value
            _check_listed(draft, key, name, listed)
    return found


def _check_listed(draft: Draft, key: str, name: str, listed: dict[str, None]) -> None:
    if name in listed:
        return
    if name in draft.catalog.plugins or name in catalog.PEER_PLUGINS:
        draft.warn((key,), f'plugin "{name}" is not among the plugins, so its switch has no effect')
    else:
        draft.refuse((key,), draft.catalog.plugin_refusal(name))
