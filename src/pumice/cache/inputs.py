"""Whoever listens to what a scheduler rests its decisions on: times, events and outcomes in the order in which they are taken, and configurations.

Nothing else enters a cycle. Whoever records writes it down; whoever replays hands it in, right before it is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.effects import Outcome
    from pumice.cache.reflector import EventType
    from pumice.framework.configuration import Configuration


class InputListener:
    """The hooks, called by the deciding thread; a listener overrides those it has a use for. They must neither fail nor block."""

    def configured(self, configuration: Configuration, now: int) -> None:
        """Take note of a configuration that is about to be brought to life."""

    def begins(self, now: int, *, standby: bool) -> None:
        """Take note that a cycle begins, or that a standby takes in what has come."""

    def looking(self) -> None:
        """Take note that events are about to be taken: at the start of a cycle, and each time before binds leave."""

    def looked(self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed) -> None:
        """Take note of an event that is taken."""

    def settling(self) -> None:
        """Take note that outcomes are about to be taken."""

    def settled(self, outcome: Outcome) -> None:
        """Take note of an outcome that is taken."""

    def ends(self, *, skipped: bool) -> None:
        """Take note that what began has ended."""


NOBODY: Final = InputListener()
