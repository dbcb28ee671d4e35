"""Dues that give way: room that nobody within the due of his queue can use is given to whoever waits beyond his own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.model.queue import Queue
    from pumice.model.resources import Vector


class Lending:
    """Whether dues give way in this cycle, and whether they do so just now.

    A plugin that holds queues to their dues enables it, and says of a refusal that it is `reasons.BeyondDue`. While dues are lifted it gives none such, and while a plan
    of eviction is made none for what its queue held before: inside a queue that was lent room one pod goes for one.
    """

    __slots__ = ("_planning", "enabled", "lifted")

    def __init__(self) -> None:
        self.enabled = False
        self.lifted = False
        self._planning: tuple[int, Vector] | None = None

    @contextlib.contextmanager
    def beyond_dues(self) -> Iterator[None]:
        """Lift the dues that give way; everything else that limits queues holds."""
        before, self.lifted = self.lifted, self.enabled
        try:
            yield
        finally:
            self.lifted = before

    @contextlib.contextmanager
    def planning(self, queue: Queue, held: Vector) -> Iterator[None]:
        """Make a plan for a queue that holds some amounts now."""
        before, self._planning = self._planning, (queue.row, held)
        try:
            yield
        finally:
            self._planning = before

    def held_before(self, queue: Queue) -> Vector | None:
        """Return what a queue held before the plan that is being made for it; None if none is."""
        return self._planning[1] if self._planning is not None and self._planning[0] == queue.row else None
