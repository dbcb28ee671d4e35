"""Mistakes that can be read: settings that contradict each other, or that leave an action without anything to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.framework.configuration import switches

if TYPE_CHECKING:
    from pumice.framework.configuration.model import ActionSetting, PluginSetting
    from pumice.framework.configuration.reading import Draft

Tiers = tuple[tuple["PluginSetting", ...], ...]

_VICTIM_POINT: Final = {
    "preempt": "Preemptable",
    "reclaim": "Reclaimable",
    "gangpreempt": "UnifiedEvictable",
    "gangreclaim": "UnifiedEvictable",
}
_SHUFFLED: Final = ("tdm", "rescheduling")
_MEASURED: Final = ("usage", "rescheduling")


class Meaning:
    """Checks one configuration as a whole."""

    def __init__(self, draft: Draft, actions: tuple[ActionSetting, ...], tiers: Tiers) -> None:
        self._draft = draft
        self._actions = [action.name for action in actions]
        self._tiers = tiers
        self._plugins = {plugin.name: plugin for tier in reversed(tiers) for plugin in reversed(tier)}

    def check(self) -> None:
        """Refuse contradictions and warn of what is probably not meant."""
        self._check_hierarchy()
        self._check_sharing()
        self._check_order()
        self._check_gangs()
        self._check_eviction()
        self._check_shuffle()
        self._check_metrics()
        if "predicates" not in self._plugins and "allocate" in self._actions:
            self._warn(
                'plugin "predicates" is in no tier: node selectors, affinity, taints and ports are ignored', "tiers"
            )

    def _warn(self, message: str, section: str = "actions") -> None:
        present = section in self._draft.document.data
        self._draft.warn((section,) if present or section == "actions" else ("plugins",), message)

    def _provided(self, point: str) -> bool:
        known = self._draft.catalog.plugins
        listed = (plugin for tier in self._tiers for plugin in tier)
        return any(switches.provides(known[plugin.name].points, plugin.switches, point) for plugin in listed)

    def _check_hierarchy(self) -> None:
        """Refuse hierarchical drf beside proportion in one tier, as Volcano does; across tiers it is only rarely meant."""
        deep = [(at, p.line) for at, p in self._placed("drf") if p.switches[switches.HIERARCHY]]
        shares = {at: p.line for at, p in self._placed("proportion")}
        together = next(((at, line) for at, line in deep if at in shares), None)
        if together is not None:
            at, line = together
            text = f"{_deep(line)} and {_share(shares[at])} are in one tier; keep only one of them"
            self._draft.refuse(("tiers", at), text)
        elif deep and shares:
            at, line = deep[0]
            text = f"{_deep(line)} and {_share(next(iter(shares.values())))} both share out the cluster; keep only one of them"
            self._draft.warn(("tiers", at), text)

    def _placed(self, name: str) -> list[tuple[int, PluginSetting]]:
        return [(at, plugin) for at, tier in enumerate(self._tiers) for plugin in tier if plugin.name == name]

    def _check_sharing(self) -> None:
        if "capacity" in self._plugins and "proportion" in self._plugins:
            lines = self._plugins["capacity"].line, self._plugins["proportion"].line
            both = f'plugins "capacity" (line {lines[0]}) and "proportion" (line {lines[1]})'
            self._warn(f"{both} both set what a queue deserves; keep only one of them", "tiers")

    def _check_order(self) -> None:
        names = self._actions
        if names and "allocate" not in names:
            self._warn('action "allocate" is not listed: only best-effort pods, if any, are placed')
        if "enqueue" in names and "allocate" in names and names.index("enqueue") > names.index("allocate"):
            self._warn('action "enqueue" is listed after "allocate": a group that is let in waits one more cycle')
        for plain in ("preempt", "reclaim"):
            if plain in names and f"gang{plain}" in names:
                self._warn(
                    f'actions "{plain}" and "gang{plain}" are both listed: they take the same victims by different rules'
                )

    def _check_gangs(self) -> None:
        placing = [name for name in self._actions if name in ("enqueue", "allocate")]
        gang = self._plugins.get("gang")
        if placing and gang is None:
            self._warn('plugin "gang" is in no tier: pods are bound below minMember', "tiers")
        elif placing and gang is not None and not gang.switches["enableJobReady"]:
            self._warn(f'plugin "gang" (line {gang.line}) has JobReady off: pods are bound below minMember', "tiers")

    def _check_eviction(self) -> None:
        evicting = [name for name in self._actions if name in _VICTIM_POINT]
        if evicting and not self._provided("JobStarving"):
            self._warn(f"no plugin says which jobs starve (JobStarving), so {', '.join(evicting)} will do nothing")
        for name in dict.fromkeys(evicting):
            if not self._provided(_VICTIM_POINT[name]):
                self._warn(f'no plugin offers victims ({_VICTIM_POINT[name]}), so action "{name}" will do nothing')

    def _check_shuffle(self) -> None:
        naming = [name for name in _SHUFFLED if name in self._plugins]
        if naming and "shuffle" not in self._actions:
            self._warn(f'action "shuffle" is not listed: nobody is evicted whom {", ".join(naming)} would name')

    def _check_metrics(self) -> None:
        source = self._draft.document.data.get("metrics")
        for name in _MEASURED:
            if name in self._plugins and not (isinstance(source, dict) and source.get("type")):
                text = f"plugin {name!r} (line {self._plugins[name].line}) goes by the load of nodes, and metrics names no source (type, address): it will do nothing"
                self._warn(text.replace("'", '"'), "tiers")


def _deep(line: int) -> str:
    return f'plugin "drf" with {switches.HIERARCHY} (line {line})'


def _share(line: int) -> str:
    return f'plugin "proportion" (line {line})'
