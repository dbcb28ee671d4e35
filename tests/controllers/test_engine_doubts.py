"""What the engine does about what it cannot be sure of: a look that breaks down, and a write that no watch tells of."""

from __future__ import annotations

import pytest

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, requests, work_queue

CONFIRMATION = 30 * duration.SECOND  # how long a watch may take to tell of a write
POD = {"metadata": {"name": "p", "namespace": "a", "uid": "p", "resourceVersion": "5"}}


def job(name="j"):
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"}}


class Planned:
    """Does at each look what a test says; an exception is raised."""

    kind = kinds.JOB
    watched = (kinds.POD,)

    def __init__(self, *plans):
        self.plans = list(plans)
        self.looks = []

    def concerns(self, kind, manifest, observed):
        return []

    def reconcile(self, namespace, name, observed, moment):
        self.looks.append((name, moment.now))
        plan = self.plans.pop(0) if self.plans else requests.Reconciled()
        if isinstance(plan, Exception):
            raise plan
        return plan


def test_who_breaks_down_is_complained_of_and_looked_at_again_after_pauses_that_double():
    said = []
    planned = Planned(*[ValueError("bad")] * 3)
    turns = engine.Engine([planned], complain=said.append)
    turns.feed(kinds.JOB, "ADDED", job())
    now, expected = 0, [0]
    for failures in range(3):
        assert turns.take(requests.Moment(now)) is None
        pause = work_queue.FIRST_PAUSE << failures
        assert turns.take(requests.Moment(now + pause - 1)) is None
        now += pause
        expected.append(now)
    assert turns.take(requests.Moment(now)) is None
    assert planned.looks == [("j", at) for at in expected]
    assert said == ["Job a/j: ValueError: bad"] * 3
    assert turns.queue.next_due(now) is None


def test_who_breaks_down_costs_the_next_nothing():
    planned = Planned(ValueError("bad"))
    turns = engine.Engine([planned])
    turns.feed(kinds.JOB, "ADDED", job("i"))
    turns.feed(kinds.JOB, "ADDED", job("j"))
    assert turns.take(requests.Moment(0)) is None
    assert planned.looks == [("i", 0), ("j", 0)]


@pytest.mark.parametrize("told", [True, False])
def test_what_was_written_is_read_if_no_watch_tells_of_it_in_time(told):
    write = requests.Step(
        request=effects.Create(kind=kinds.POD, manifest={"metadata": {"name": "p", "namespace": "a"}})
    )
    planned = Planned(requests.Reconciled(steps=[write]))
    turns = engine.Engine([planned])
    turns.feed(kinds.JOB, "ADDED", job())
    turn = turns.take(requests.Moment(0))
    (step,) = turns.next_steps(turn)
    turns.answered(turn, step, requests.Answer(object=POD), 0)
    turns.finish(turn, requests.Moment(0))
    if told:
        turns.feed(kinds.POD, "ADDED", POD)
    assert turns.take(requests.Moment(CONFIRMATION - 1)) is None
    turn = turns.take(requests.Moment(CONFIRMATION))
    assert (turn is None) == told
    if not told:
        (step,) = turns.next_steps(turn)
        assert isinstance(step.request, effects.Read)
        assert requests.target(step.request) == (kinds.POD, "a", "p")
        turns.answered(turn, step, requests.Answer(code="notfound"), CONFIRMATION)
        turns.finish(turn, requests.Moment(CONFIRMATION))
        assert turns.observed.find(kinds.POD, "a", "p") is None


def test_what_is_still_there_though_we_deleted_it_is_not_read_again_and_again():
    deletion = requests.Step(request=requests.Delete(kind=kinds.POD, namespace="a", name="p", uid="p"))
    turns = engine.Engine([Planned(requests.Reconciled(steps=[deletion]))])
    turns.feed(kinds.POD, "ADDED", POD)
    turns.feed(kinds.JOB, "ADDED", job())
    turn = turns.take(requests.Moment(0))
    (step,) = turns.next_steps(turn)
    turns.answered(turn, step, requests.Answer(), 0)
    turns.finish(turn, requests.Moment(0))
    turn = turns.take(requests.Moment(CONFIRMATION))
    (step,) = turns.next_steps(turn)
    assert isinstance(step.request, effects.Read)
    turns.answered(turn, step, requests.Answer(object=POD), CONFIRMATION)
    turns.finish(turn, requests.Moment(CONFIRMATION))
    assert turns.take(requests.Moment(CONFIRMATION + duration.SECOND)) is None
