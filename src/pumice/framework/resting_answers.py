"""What a pod that waits on the node held for it would be told if it were tried again; asked once for all that are equal (`resting.py`).

There is an answer only where it is the same at any time while allocate runs: no node has room for the pod, nothing but amounts decides that, and its queue says the same however much it comes to hold meanwhile.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from pumice.framework import reason_keys, reservations, standings
from pumice.framework.reasons import BeyondDue, FitSummary, of_queue
from pumice.framework.subject import Demand, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Request, Vector
    from pumice.model.task import Task

MOST_SHAPES: Final = 64
"""Of so many shapes it is looked whether anybody who waits finds room."""


class Answer(msgspec.Struct, frozen=True):
    """Why a queue does not take a pod on, if it does not, in the words of this cycle; and what of all that is told would be news."""

    refusal: FitSummary | None
    told: object


def growth(cluster: Cluster, awake: Iterable[Task]) -> Vector:
    """Return how much more queues can come to hold, at the most, while allocate runs: nothing if nobody who waits, or holds room and is tried, finds more room, else no more than waits, and no more than there is room for."""
    table = cluster.nodes
    now, later = table.idle_at(slice(table.count)), table.future_idle_at(slice(table.count))
    none: Vector = np.zeros(len(cluster.vocabulary), dtype=np.int64)
    waiting = itertools.chain(awake, *(job.pending.values() for job in cluster.pending_jobs.values()))
    shapes = {task.shape for task in waiting}
    if len(shapes) <= MOST_SHAPES and not any(_fits(shape.request, later) for shape in shapes):
        return none
    room = np.maximum(np.minimum(now, later), 0).sum(axis=0) + np.maximum(later, 0).sum(axis=0)
    most: Vector = np.minimum(room, cluster.queue_sums.pending.sum(axis=0))
    return most


def _fits(request: Request, room: Matrix) -> bool:
    """Tell whether any node has room for a request."""
    return not request.unoffered and bool((room[:, request.asked] >= request.needed).all(axis=1).any())


def answer(session: Session, queue: Queue, task: Task, own: Rows, growth: Vector) -> Answer | None:
    """Say what a pod that waits on its node would be told, if it were tried at any time in allocate, and all its equals, which are on some rows; None if it may go elsewhere, or that may depend on when it is asked."""
    job = task.job
    if job is None:
        return None
    looked_for = Subject(task, queue)
    with session.attempt(job):
        if session.overused(queue) is not None or session.pre_predicate(looked_for) is not None:
            return None
        evaluation = session.evaluate(looked_for)
        for released in (False, True):
            evaluation.mask(released=released)  # after which it is known what decides
            if not evaluation.is_by_amounts(released=released):
                return None
        allowed = session.evaluator.static_mask(looked_for)
        if not allowed[own].all() or _has_room(session, task, allowed, own):
            return None
        lifted = reservations.lift(session, job)
        try:
            is_sure, refusal = _refusal(session, queue, task, growth)
        finally:
            reservations.put_back(session, session.reservations, lifted)
        return Answer(refusal, told(session, job, refusal)) if is_sure else None
    return None


def told(session: Session, job: Job, refusal: FitSummary | None) -> object:
    """Return what is news to a holder if it is another: why its queue does not take it on, and what will always keep it from starting."""
    never = reason_keys.cause_key(session.never_running.verdict(job) or "")
    return None if refusal is None else standings.essence(refusal), never


def _has_room(session: Session, task: Task, allowed: np.ndarray[tuple[int], np.dtype[np.bool_]], own: Rows) -> bool:
    """Tell whether a node has free room for a pod, be it only for the one that waits there."""
    table, request = session.cluster.nodes, task.shape.request
    at = (slice(table.count), request.asked)
    now, later = table.idle_at(at), table.future_idle_at(at)
    later[own] = now[own]
    fits = (np.minimum(now, later) >= request.needed).all(axis=1)
    return bool((fits & allowed).any())


def _refusal(session: Session, queue: Queue, task: Task, growth: Vector) -> tuple[bool, FitSummary | None]:
    """Tell whether what a queue says of a pod in the end is the same whenever it is asked, and why it does not take it on, if it does not.

    What a queue says of its amounts may be put otherwise when they are others; that it has room it says even if all comes that can. Dues give way to whoever nothing else keeps waiting.
    """
    if not session.allocatable.active:
        return True, None
    own = task.shape.request.vector
    refusal = session.allocatable(queue, Demand([task], own))
    if refusal is None:
        more = Demand([task], own + growth * (own > 0))
        return not growth.any() or session.allocatable(queue, more) is None, None
    if growth.any():
        return False, None
    if isinstance(refusal, BeyondDue):
        with session.lending.beyond_dues():
            refusal = session.allocatable(queue, Demand([task], own))
    return True, None if refusal is None else of_queue(queue.name, refusal)
