"""Why a queue has no room for a job, in a sentence: what limits it, what it holds, what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
import numpy as np

from pumice.model import resources
from pumice.model.resources import PODS

if TYPE_CHECKING:
    from pumice.framework.announced import Announced
    from pumice.framework.explaining.queue_accounts import QueueAccount
    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector

Kind = Literal["ceiling", "due", "room"]


class Lack(msgspec.Struct, frozen=True, gc=False):
    """Of what a queue has too little left; written out when somebody reads it."""

    queue: str
    name: str
    held: int
    limit: int
    asked: int
    let_in: int = 0
    kind: Kind = "ceiling"
    whole: bool = False  # whether the limit is all that the nodes have

    def __str__(self) -> str:
        held, limit, asked, let_in = (
            resources.shown(self.name, max(0, units))
            for units in (self.held + self.let_in, self.limit, self.asked, self.let_in)
        )
        if self.asked > self.limit and self.whole:
            return f"all nodes together have {limit} {self.name}, the job asks for {asked}"
        if self.asked > self.limit and self.kind == "ceiling":
            return f"queue {self.queue} may hold {limit} {self.name} at the most, the job asks for {asked}"
        amount = f"{limit} {self.name}"
        of = {
            "ceiling": f"its {amount}",
            "due": f"the {amount} that are its share",
            "room": f"the {amount} that others leave it",
        }
        limited = f"all {amount} that there are" if self.whole else of[self.kind]
        unused = f" ({let_in} of it let in and not placed yet)" if self.let_in > 0 else ""
        return f"queue {self.queue} holds {held} of {limited}{unused}, the job asks for {asked} more"


class QueueSession(Protocol):
    """What the room of queues follows from."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def announced(self) -> Announced:
        """What plugins let know of themselves: how queues stand, as the one that shares sees it."""

    @property
    def scratch(self) -> dict[str, object]:
        """What is worked out once for this cycle."""


def lack(session: QueueSession, queue: Queue, amounts: Vector) -> Lack | None:
    """Say of what a queue, or one above it, has too little left for some amounts; None if nobody knows how it stands, or it has enough of everything."""
    accounts = session.announced.queue_accounts
    account = accounts(queue) if accounts is not None and not queue.bad else None
    if account is None:
        return None
    names, evicting = session.cluster.vocabulary.names, session.cluster.queue_sums.evicting
    for each in (account, *account.above):
        held = each.held + evicting[each.queue.row]
        for column in np.flatnonzero(amounts).tolist():
            kind, limit = tightest(each, column)
            if column != PODS and int(held[column] + amounts[column]) > limit:
                have, asked, whole = int(held[column]), int(amounts[column]), limit >= total(session)[column]
                return Lack(each.queue.name, names[column], have, limit, asked, 0, kind, whole)
    return None


def total(session: QueueSession) -> list[int]:
    """Return what all nodes have less what foreign pods hold there; asked about every job that is refused, so added up once a cycle."""
    found = session.scratch.get("all that there is")
    if found is None:
        found = session.scratch["all that there is"] = session.cluster.nodes.total("left by foreigners").tolist()
    assert isinstance(found, list)  # noqa: S101  kept under its own name
    return found


def tightest(account: QueueAccount, column: int) -> tuple[Kind, int]:
    """Return what limits a queue most in a resource: its ceiling, its due if it gets nothing beyond, or the room that others leave."""
    bounds: list[tuple[Kind, int]] = [("ceiling", int(account.ceiling[column]))]
    if account.due_limits:
        bounds.append(("due", int(account.due[column])))
    if account.room is not None:
        bounds.append(("room", int(account.room[column])))
    return min(bounds, key=lambda entry: entry[1])
