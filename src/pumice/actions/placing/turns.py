"""A job's turn: who is served, where its members may go, and the statement that everything goes into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.framework.reasons import FitSummary

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue


class Scope(msgspec.Struct, frozen=True):
    """Where tasks are placed, and how: in one hyper-node or anywhere; if `waits`, on room that evictions make, so that all of them wait for it; if `now`, only on room that is free."""

    domain: HyperNode | None = None
    waits: bool = False
    now: bool = False

    @property
    def room(self) -> tuple[bool, ...]:
        """Which room is looked at, one kind after the other: False is what is free now, True what will be."""
        return (True,) if self.waits else (False,) if self.now else (False, True)

    @property
    def within(self) -> Rows | None:
        """The nodes that are looked at, None for all."""
        return None if self.domain is None else self.domain.rows

    def failure(self, evaluation: Evaluation) -> FitSummary:
        """Say why no node here takes a task."""
        if self.domain is None:
            return evaluation.failure(released=not self.now)
        found = evaluation.failure(released=not self.now, within=self.domain.rows)
        prefix = f"In hyperNode {self.domain.name}: 0/{found.nodes} nodes are unavailable"
        return FitSummary(found.nodes, found.counts, prefix)


class Turn(msgspec.Struct, frozen=True):
    """A job's turn: everything it does goes into one statement. On trial, what each sub-group scores in its domain is noted in `points`."""

    session: Session
    statement: Statement
    queue: Queue
    job: Job
    scope: Scope = Scope()
    points: list[float] | None = None

    def inside(self, domain: HyperNode | None, *, now: bool = False) -> Turn:
        """Return the same turn, with tasks placed inside one hyper-node, if `now` only on room that is free."""
        return msgspec.structs.replace(self, scope=Scope(domain, self.scope.waits, now))
