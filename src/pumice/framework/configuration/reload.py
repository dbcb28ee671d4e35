"""The configuration in force, and what happened to those offered since: a refused one changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.framework.configuration import loader
from pumice.framework.configuration.model import Configuration, ConfigurationError, Problem

if TYPE_CHECKING:
    from pumice.framework.configuration.catalog import Catalog

REMEMBERED: Final = 20


class Offer(msgspec.Struct, frozen=True):
    """One text that was offered: accepted when it has no problems."""

    number: int
    source: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]

    @property
    def accepted(self) -> bool:
        """Tell whether it came into force."""
        return not self.problems


class ConfigurationHolder:
    """Holds the last good configuration."""

    def __init__(self, known: Catalog, current: Configuration) -> None:
        self._catalog = known
        self._current = current
        self._history: tuple[Offer, ...] = ()
        self._offers = 0

    @property
    def current(self) -> Configuration:
        """Return the configuration in force."""
        return self._current

    @property
    def history(self) -> tuple[Offer, ...]:
        """Return the latest offers, oldest first."""
        return self._history

    @property
    def last_refusal(self) -> Offer | None:
        """Return the latest offer if it was refused; an accepted one ends the matter."""
        return self._history[-1] if self._history and not self._history[-1].accepted else None

    def offer(self, text: str, source: str | None = None) -> tuple[Problem, ...]:
        """Put a text into force from the next cycle on, or return why it is refused."""
        name = self._current.source if source is None else source
        problems: tuple[Problem, ...] = ()
        warnings: tuple[Problem, ...] = ()
        try:
            self._current = loader.load(text, self._catalog, name)
            warnings = self._current.warnings
        except ConfigurationError as error:
            problems = error.problems
        self._offers += 1
        self._history = (*self._history, Offer(self._offers, name, problems, warnings))[-REMEMBERED:]
        return problems
