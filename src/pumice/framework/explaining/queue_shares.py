"""How all queues share a cluster, in numbers that can be drawn: what each holds, asks for and is due, in stored units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.framework.explaining import queues
from pumice.framework.explaining.amounts import UNLIMITED
from pumice.model.resources import PODS

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector


class QueueAmounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a queue stands in one resource; None is what nobody says, or nobody limits."""

    held: int
    asked: int
    due: int | None = None
    guarantee: int | None = None
    ceiling: int | None = None


class QueueShare(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a queue stands: `share` is the part of its due that it holds, by the plugin that shares."""

    queue: str
    plugin: str = ""
    share: float | None = None
    amounts: dict[str, QueueAmounts] = {}


def shares(session: Session) -> tuple[QueueShare, ...]:
    """Say how every queue stands, by name."""
    return tuple(_share(session, queue) for _, queue in sorted(session.cluster.queues.items()))


def _share(session: Session, queue: Queue) -> QueueShare:
    account = queues.account_of(session, queue)
    sums, vocabulary = session.cluster.queue_sums, session.cluster.vocabulary
    held, asked = sums.held(queue.row), sums.pending[queue.row]
    if account is None:
        amounts = {
            name: QueueAmounts(held=int(held[column]), asked=int(asked[column]))
            for column, name in enumerate(vocabulary.names)
            if column != PODS and (held[column] or asked[column])
        }
        return QueueShare(queue=queue.name, amounts=amounts)
    amounts = {}
    for column, name in enumerate(vocabulary.names):
        told = (account.held, asked, account.due, account.guarantee)
        if column != PODS and (any(each[column] for each in told) or 0 < account.ceiling[column] < UNLIMITED):
            amounts[name] = QueueAmounts(
                held=int(account.held[column]),
                asked=int(asked[column]),
                due=_limited(account.due, column),
                guarantee=_limited(account.guarantee, column),
                ceiling=_limited(account.ceiling, column),
            )
    return QueueShare(queue=queue.name, plugin=account.plugin, share=round(account.share, 4), amounts=amounts)


def _limited(vector: Vector, column: int) -> int | None:
    return int(vector[column]) if vector[column] < UNLIMITED else None
