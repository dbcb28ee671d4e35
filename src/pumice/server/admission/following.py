"""What the process follows: queues and whatever else its rules look at, its webhook configurations, and the file of resource groups."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pumice.admission import pod_rules, surroundings
from pumice.api import kinds
from pumice.kube.watches.watching import WatchSpec
from pumice.server.admission import injecting
from pumice.server.configuration import sources
from pumice.server.logs import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.admission.requests import PodRule
    from pumice.admission.rules import Rule
    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.server.admission.injecting import Injector
    from pumice.server.logs.logs import Log


def specs(rules: tuple[Rule, ...]) -> list[WatchSpec]:
    """Name what must be followed for these rules: nothing that none of them looks at."""
    paths = {rule.path for rule in rules}
    wanted = []
    if paths & {"/jobs/validate", "/podgroups/validate", "/queues/validate"}:
        wanted.append(kinds.QUEUE)
    if "/podgroups/mutate" in paths:
        wanted.append(kinds.NAMESPACE)
    if "/jobs/validate" in paths:
        wanted.append(kinds.PRIORITY_CLASS)
    configurations = list(dict.fromkeys(injecting.kind_of(rule) for rule in rules))
    return [WatchSpec(kind, keep_raw=True) for kind in (*wanted, *configurations)]


class Feed:
    """Gives each change to whoever wants it."""

    def __init__(self, around: surroundings.KnownObjects, injector: Injector) -> None:
        self._around = around
        self._injector = injector

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change."""
        if kind not in surroundings.FOLLOWED:
            self._injector.feed(kind, event_type, found, raw)
        elif event_type == "DELETED" or not raw:
            self._around.drop(kind, found.metadata.name)
        else:
            self._around.put(kind, msgspec.json.decode(raw))


class PodRules:
    """The file of resource groups: what it says now is in force, or refused, and then the last good one is."""

    def __init__(self, path: str, changed: Callable[[tuple[PodRule, ...]], None], log: Log) -> None:
        self._source = sources.FileSource(path)
        self._changed = changed
        self._log = log
        self._text: str | None = None
        self.problem = ""

    def start(self) -> None:
        """Read the file for the first time; raises `SourceError` or `PodRulesError`."""
        self._text = self._source.read_now()
        self._use(pod_rules.load(self._text, self._source.name))

    async def run(self) -> None:
        """Look every so often, until cancelled."""
        while True:
            await asyncio.sleep(self._source.pause)
            await self.look()

    async def look(self) -> None:
        """Take what the file says now."""
        try:
            text = await self._source.read()
            if text == self._text:
                return
            self._text = text
            self._use(pod_rules.load(text, self._source.name))
        except (sources.SourceError, pod_rules.PodRulesError) as error:
            if str(error) != self.problem:
                self._log.error("resource groups refused; the last good ones stay in force", problem=str(error))
            self.problem = str(error)

    def _use(self, found: tuple[PodRule, ...]) -> None:
        self.problem = ""
        self._changed(found)
        self._log.detail(logs.CONFIGURATION, "resource groups loaded", groups=", ".join(each.group for each in found))
