"""A plugin that is in order everywhere but at one point, where it does one thing wrong about whoever is called bad."""

from __future__ import annotations

import numpy as np

from pumice.framework.extensions import ABSTAIN, PERMIT, Vote
from pumice.framework.plugin import Plugin
from pumice.framework.points import POINTS
from pumice.framework.subject import Demand

ORDERS = {"job_order", "queue_order", "task_order", "sub_job_order", "victim_queue_order"}
VECTORS = {"score", "hyper_node_order"}
TRUTHS = {"job_ready", "job_starving", "sub_job_ready"}
VOTES = {"job_enqueueable", "job_pipelined", "sub_job_pipelined"}
CHOICES = {"preemptable", "reclaimable", "unified_evictable"}
GIVING_UP = {
    "job_enqueued",
    "job_blocked",
    "best_node",
    "job_gradient",
    "sub_job_gradient",
    "due",
    "score",
    "hyper_node_order",
}
ATTRIBUTES = [point.attribute for point in POINTS]


def in_order(point, *args):
    """An answer that changes nothing."""
    if point in ORDERS:
        return 0
    if point in TRUTHS:
        return True
    if point in VOTES:
        return ABSTAIN if point != "job_pipelined" else PERMIT
    if point in VECTORS:
        return np.zeros(len(args[1]))
    if point == "predicate":
        return np.zeros(len(args[1]), dtype=np.int16)
    return [] if point == "victim_tasks" else None


class FaultError(Exception):
    """What the faulty plugin raises."""


def _wrong_type(point, *_args):
    return {"job_valid": "not valid", "victim_tasks": 7}.get(point, object())


def _wrong_length(point, *args):
    if point in VECTORS:
        return np.zeros(len(args[1]) + 1)
    if point == "predicate":
        return np.zeros(len(args[1]) + 1, dtype=np.int16)
    return [object(), *args[-1]]


def _not_a_number(point, *args):
    if point in VECTORS:
        return np.full(len(args[1]), np.nan)
    if point == "predicate":
        return np.full(len(args[1]), np.nan)
    return Vote(float("nan")) if point in VOTES else float("nan")


def _raises(point, *_args):
    raise FaultError(f"in {point}")


FAULTS = {"raises": _raises, "wrong type": _wrong_type, "wrong length": _wrong_length, "NaN": _not_a_number}


def faults_of(point):
    """Which faults a point can have: lengths have only vectors and choices, NaN only what is a number."""
    found = ["raises"]
    if point not in ("job_enqueued", "job_blocked"):  # whose answers nobody looks at
        found.append("wrong type")
    if point in VECTORS | CHOICES | {"predicate", "victim_tasks"}:
        found.append("wrong length")
    if point in VECTORS | ORDERS | VOTES | {"predicate"}:
        found.append("NaN")
    return found


TABLE = [(point, fault) for point in ATTRIBUTES for fault in faults_of(point)]


def is_bad(item):
    """Whether something is called bad, belongs to a job or a queue that is, or asks for one."""
    if isinstance(item, Demand):
        return is_bad(item.tasks[0])
    if isinstance(item, (list, tuple)):
        return any(map(is_bad, item))
    named = [getattr(item, name, "") for name in ("name", "key", "job_key")]
    owned = [getattr(item, name, None) for name in ("job", "task")]
    return any("bad" in str(name) for name in named) or any(each is not None and is_bad(each) for each in owned)


class Faulty(Plugin):
    """Does one thing wrong at one point."""

    name = "faulty"
    points = frozenset(point.name for point in POINTS)
    point = ""
    fault = "raises"
    calls = 0

    def open(self, session):
        if self.point == "open":
            _raises("open")
        if self.point == "handler":
            session.add_handler(self.handler)
        if self.point in ATTRIBUTES:
            getattr(session, self.point).add(self.asked)

    def close(self, _session):
        if self.point == "close":
            _raises("close")

    def asked(self, *args):
        about = args[1:2] if self.point == "protection" else args[:2] if self.point in LIMITS else args[:1]
        if any(map(is_bad, about)):
            type(self).calls += 1
            return FAULTS[self.fault](self.point, *args)
        return in_order(self.point, *args)

    def handler(self, run, _sign):
        if is_bad(run.tasks[0]):
            raise FaultError("in handler")


# Asked with a queue, on behalf of tasks.
LIMITS = {"allocatable", "preemptive", "simulate_allocatable"}
