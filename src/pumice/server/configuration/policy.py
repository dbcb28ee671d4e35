"""The configuration in force, followed at its source while the process runs."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import TYPE_CHECKING

from pumice.framework import configuration, registry
from pumice.server.configuration.sources import SourceError
from pumice.server.logs import logs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.framework.configuration import Catalog, Configuration
    from pumice.server.configuration.sources import Source
    from pumice.server.logs.logs import Log


class Policy:
    """Holds the last good configuration and what is wrong with the one that is there now.

    Only a change of the text counts. A text that is refused is told of once, with its lines, and changes nothing.
    """

    def __init__(self, known: Catalog, log: Log) -> None:
        self.loads = 0
        self._catalog = known
        self._log = log
        self._text: str | None = None
        self._unreadable = ""
        self._refusal = ""
        self._holder: configuration.ConfigurationHolder | None = None

    @property
    def problem(self) -> str:
        """What is wrong with the configuration that is there now; empty if it is in force."""
        return self._unreadable or self._refusal

    @property
    def unusable(self) -> str:
        """What is installed, or lies in the folder of plugins, and cannot be used."""
        return "; ".join(self._catalog.broken.values())

    @property
    def current(self) -> Configuration | None:
        """The configuration in force, if there is one yet."""
        return self._holder.current if self._holder is not None else None

    def use_default(self) -> Configuration:
        """Start with the built-in configuration, or raise `ConfigurationError` if something claims the name of a plugin in it."""
        usual = configuration.default(registry.catalog())
        refusals = [self._catalog.plugin_refusal(plugin.name) for plugin in usual.plugins]
        if problems := tuple(configuration.Problem(0, "", refusal) for refusal in refusals if refusal):
            raise configuration.ConfigurationError(problems, usual.source)
        return self._start(configuration.default(self._catalog))

    def use(self, text: str, name: str) -> Configuration:
        """Start with a text, or raise `ConfigurationError`: at the start nothing else could be in force."""
        self._text = text
        return self._start(configuration.load(text, self._catalog, name))

    def _start(self, first: Configuration) -> Configuration:
        self._holder = configuration.ConfigurationHolder(self._catalog, first)
        self._tell_of(first)
        return first

    async def follow(
        self,
        source: Source,
        changed: Callable[[Configuration], None],
        refused: Callable[[Source, str], Awaitable[None]],
    ) -> None:
        """Look at the source every so often, until cancelled; what it holds now is in force, or refused and told of once."""
        told = ""
        while True:
            await asyncio.sleep(source.pause)
            if (loaded := await self._look(source)) is not None:
                changed(loaded)
            if self.problem and self.problem != told:
                await refused(source, self.problem)
            told = self.problem

    async def _look(self, source: Source) -> Configuration | None:
        try:
            text = await source.read()
        except SourceError as error:
            self._could_not_read(str(error))
            return None
        self._unreadable = ""
        # Beside the loop, which must not miss the renewal of a lease over a text that takes seconds to read.
        return await asyncio.to_thread(self.offer, text, source.name)

    def offer(self, text: str, name: str) -> Configuration | None:
        """Take a text if it is new and sound."""
        holder = self._holder
        if text == self._text or holder is None:
            return None
        self._text = text
        self._refusal = "; ".join(map(str, holder.offer(text, name)))
        if self._refusal:
            self._log.error(
                "configuration refused; the last good one stays in force", source=name, problem=self._refusal
            )
            return None
        self._tell_of(holder.current)
        return holder.current

    def _could_not_read(self, problem: str) -> None:
        """Say once that the source is gone; while links are swapped it may be, for a moment."""
        if problem != self._unreadable:
            self._log.error("configuration cannot be read; the last good one stays in force", problem=problem)
        self._unreadable = problem

    def _tell_of(self, loaded: Configuration) -> None:
        self.loads += 1
        for warning in loaded.warnings:
            self._log.warning("configuration", source=loaded.source, problem=str(warning))
        self._log.detail(
            logs.CONFIGURATION, "configuration loaded", source=loaded.source, actions=", ".join(loaded.action_names)
        )
        for number, tier in enumerate(loaded.tiers, 1):
            for plugin in tier:
                off = [
                    switch for switch, value in plugin.switches.items() if value != configuration.SWITCHES.get(switch)
                ]
                self._log.detail(
                    logs.CONFIGURATION,
                    "configuration plugin",
                    tier=number,
                    plugin=plugin.name,
                    switched=",".join(off),
                    arguments=_shown(plugin.arguments),
                )


def _shown(arguments: dict[str, object]) -> str:
    return ", ".join(f"{name}={_plain(value)}" for name, value in arguments.items() if value not in (None, ()))


def _plain(value: object) -> object:
    """Write a value as a configuration file would."""
    match value:
        case bool():
            return str(value).lower()
        case Fraction():
            return f"{float(value):g}"
        case tuple():
            return " ".join(map(str, value))
    return value
