"""What a plugin that shares says about a queue, for explanations: they have to show the numbers that the plugin decides by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector


class QueueAccount(msgspec.Struct, frozen=True):
    """How a queue stands, in vectors over the vocabulary: what is due to it, its ceiling, what is guaranteed in effect, its room (None: nobody is guaranteed anything).

    `due_limits` tells whether the queue gets nothing beyond its due. `above` are the queues above it, the nearest first.
    """

    plugin: str
    queue: Queue
    held: Vector
    let_in: Vector
    due: Vector
    ceiling: Vector
    guarantee: Vector
    room: Vector | None
    share: float
    due_limits: bool = False
    above: tuple[QueueAccount, ...] = ()


Accounts = Callable[["Queue"], QueueAccount | None]
