"""Gangs of unequal members that are not ready in their own order: they may start some other way.

A member that waits for room which is being released may take it from one for whom there is room now, and a small one may take the only node on which a large one would fit. So first it is
looked for a way to start at once, on free room alone, in the order of the job and then with the largest first; then, if the gang could not even wait, for one to wait.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from pumice.actions.placing import largest_first, task_runs
from pumice.actions.placing.turns import Scope
from pumice.framework.runs import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.model.task import Task


def place(turn: Turn, tasks: Sequence[Task]) -> list[Task] | None:
    """Place a gang, which is not ready with what is in the statement of its turn, in another way that is better; returns the tasks for its next turn.

    None if there is none: it keeps the room that it waits for.
    """
    statement = turn.statement
    if not turn.session.gangs_are_kept or not largest_first.differ(tasks):
        return None
    # In its own order it would come to the same, were it not for those that wait.
    own = [None] if any(run.step is Step.PIPELINE for run in statement.runs) else []
    if not turn.session.is_pipelined(turn.job):
        statement.discard()
        left = _start(turn, tasks, own)
        return _wait(turn, tasks) if left is None else left
    saved = statement.save()
    statement.rollback(0)
    left = _start(turn, tasks, own)
    if left is None:
        statement.recover(saved)
    return left


def _start(turn: Turn, tasks: Sequence[Task], own: Sequence[None]) -> list[Task] | None:
    """Look for a way to start on free room alone."""
    now, is_ready = msgspec.structs.replace(turn, scope=Scope(now=True)), turn.session.readiness(turn.job)
    others = largest_first.reordered(turn, _everywhere(turn), tasks, None, released=False)
    ways = (_tried(now, tasks, order, is_ready) for order in itertools.chain(own, others))
    return next((left for left in ways if left is not None), None)


def _wait(turn: Turn, tasks: Sequence[Task]) -> list[Task] | None:
    """Look for a way to wait for room that is being released."""
    rows, table = _everywhere(turn), turn.session.cluster.nodes
    if not (table.future_idle_at(rows) > table.idle_at(rows)).any():
        return None
    others = largest_first.reordered(turn, rows, tasks, None, released=True)
    ways = (_tried(turn, tasks, order, lambda: turn.session.is_pipelined(turn.job)) for order in others)
    return next((left for left in ways if left is not None), None)


def _everywhere(turn: Turn) -> slice:
    return slice(turn.session.cluster.nodes.count)


def _tried(
    turn: Turn, tasks: Sequence[Task], order: Sequence[Task] | None, enough: Callable[[], bool]
) -> list[Task] | None:
    """Place a gang in an order; returns the tasks for its next turn, None, with nothing done or said, if it is not enough."""
    findings = turn.session.findings
    with turn.statement.trial() as trial:
        findings.forget_fit(turn.job)
        for task in tasks:
            findings.forget_transaction(task)
        left = task_runs.place_minimum(turn, tasks, order)
        if not enough():
            return None
        trial.keep()
        return left
