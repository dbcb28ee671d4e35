"""When the engine looks at an object again: what cuts a pause short, who is left alone, and what has to be read before."""

from __future__ import annotations

import pytest

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, name_book, requests, work_queue

NEVER = 10**15


def job(version=1, name="j", **more):
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(version), **more}}


def pod(version=2, name="p", **more):
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(version)}, **more}


def creation(name):
    return requests.Step(
        request=effects.Create(kind=kinds.POD, manifest={"metadata": {"name": name, "namespace": "a"}})
    )


class Planned:
    """Does at each look what a test says, at last nothing; takes Commands for orders."""

    kind = kinds.JOB
    watched = (kinds.POD, kinds.COMMAND)
    orders = (kinds.COMMAND,)

    def __init__(self, *plans):
        self.plans = list(plans)
        self.looks = []

    def concerns(self, kind, manifest, observed):
        return [("a", "j")]

    def reconcile(self, namespace, name, observed, moment):
        self.looks.append((moment.now, moment.refusals))
        return self.plans.pop(0) if self.plans else requests.Reconciled()


def looked(turns, answers, now=0):
    """Take one turn, and give what was asked for; `answers` gives the answer to a request."""
    turn, asked = turns.take(requests.Moment(now)), []
    while turn is not None and turn.left:
        for step in turns.next_steps(turn):
            asked.append(step.request)
            turns.answered(turn, step, answers(step.request), now)
    if turn is not None:
        turns.finish(turn, requests.Moment(now))
    return asked


def well(_):
    return requests.Answer()


@pytest.mark.parametrize(
    ("kind", "event_type", "manifest", "cuts"),
    [
        (kinds.JOB, "MODIFIED", job(9, generation=1), False),
        (kinds.JOB, "MODIFIED", job(9, generation=2), True),
        (kinds.POD, "ADDED", pod(9, "q"), False),
        (kinds.POD, "MODIFIED", pod(9), False),
        (kinds.COMMAND, "ADDED", pod(9, "new"), True),
        (kinds.COMMAND, "MODIFIED", pod(9), False),
    ],
)
def test_a_pause_after_a_failure_is_cut_short_by_another_spec_and_by_a_new_order_alone(
    kind, event_type, manifest, cuts
):
    planned = Planned(requests.Reconciled(stuck="no"))
    turns = engine.Engine([planned])
    turns.feed(kinds.POD, "ADDED", pod())
    turns.feed(kinds.COMMAND, "ADDED", pod())
    turns.feed(kinds.JOB, "ADDED", job(generation=1))
    looked(turns, well)
    turns.feed(kind, event_type, manifest)
    looked(turns, well)
    assert len(planned.looks) == (2 if cuts else 1)


def test_who_was_spared_is_looked_at_when_it_is_spared_no_longer():
    spared, planned = [True], Planned()
    turns = engine.Engine([planned], spares=lambda *_: bool(spared))
    turns.feed(kinds.JOB, "ADDED", job())
    looked(turns, well)
    assert planned.looks == []
    spared.clear()
    turns.feed(kinds.JOB, "MODIFIED", job(2))
    looked(turns, well)
    assert len(planned.looks) == 1


def test_who_has_put_something_off_waits_as_long_as_others_are_busy():
    planned = Planned(requests.Reconciled(patient=True))
    turns = engine.Engine([planned])
    turns.feed(kinds.JOB, "ADDED", job())
    turns.take(requests.Moment(0, busy=True))
    turns.take(requests.Moment(1, busy=True))
    assert len(planned.looks) == 1
    turns.take(requests.Moment(2))
    assert len(planned.looks) == 2


def test_nobody_is_looked_at_again_at_once_who_wants_to_be_in_the_past():
    turns = engine.Engine([Planned(requests.Reconciled(again=5))])
    turns.feed(kinds.JOB, "ADDED", job())
    now = duration.SECOND
    looked(turns, well, now)
    assert turns.queue.next_due(now) == now + 10 * duration.MILLISECOND


@pytest.mark.parametrize(("code", "writes"), [("", 1), ("refused", 0), ("unavailable", 0)])
def test_writes_that_went_well_are_counted(code, writes):
    turns = engine.Engine([Planned(requests.Reconciled(steps=[creation("p")]))])
    turns.feed(kinds.JOB, "ADDED", job())
    assert turns.writes == 0
    looked(turns, lambda _: requests.Answer(code=code))
    assert turns.writes == writes


def test_a_read_after_a_lost_answer_counts_as_no_refusal():
    planned = Planned(requests.Reconciled(steps=[creation("p")]))
    turns = engine.Engine([planned])
    turns.feed(kinds.JOB, "ADDED", job())
    looked(turns, lambda _: requests.Answer(code="unknown"))
    (read,) = looked(turns, lambda _: requests.Answer(code="notfound"), work_queue.FIRST_PAUSE)
    assert isinstance(read, effects.Read)
    looked(turns, well, work_queue.LONGEST_PAUSE)
    assert [refusals for _, refusals in planned.looks] == [0, 0]


def test_what_is_still_in_doubt_is_read_again_though_something_else_could_be_read():
    plan = requests.Reconciled(steps=[creation(name) for name in ("first", "p", "q")])
    turns = engine.Engine([Planned(plan)])
    turns.feed(kinds.JOB, "ADDED", job())
    looked(
        turns, lambda asked: requests.Answer(code="" if asked.manifest["metadata"]["name"] == "first" else "unknown")
    )
    missing = {"p": "notfound", "q": "unavailable"}
    asked = [
        [each.name for each in looked(turns, lambda read: requests.Answer(code=missing[read.name]), now)]
        for now in (duration.SECOND, 2 * duration.SECOND)
    ]
    assert asked == [["p", "q"], ["q"]]


def test_whom_a_deletion_concerns_is_looked_at_before_a_watch_tells_of_it():
    deletion = requests.Step(request=requests.Delete(kind=kinds.POD, namespace="a", name="p", uid="p"))
    planned = Planned(requests.Reconciled(steps=[deletion]))
    turns = engine.Engine([planned])
    turns.feed(kinds.POD, "ADDED", pod())
    turns.feed(kinds.JOB, "ADDED", job())
    looked(turns, well)
    looked(turns, well)
    assert len(planned.looks) == 2


@pytest.mark.parametrize("has", ["selectors", "trimmed"])
def test_who_says_only_one_of_what_is_wanted_and_what_is_kept_of_it_is_told_all(has):
    half = Planned()
    setattr(half, has, {kinds.POD: "x"} if has == "selectors" else lambda kind, manifest: {})
    turns = engine.Engine([half])
    assert turns.selector(kinds.POD) == ""
    assert turns.trimmed(kinds.POD, pod(spec={"large": True})) == pod(spec={"large": True})


def test_of_what_is_read_no_more_is_kept_than_of_what_a_watch_tells():
    read = requests.Step(request=effects.Read(kind=kinds.POD, namespace="a", name="p"))
    frugal = Planned(requests.Reconciled(steps=[read]))
    frugal.selectors, frugal.trimmed = {}, lambda kind, manifest: {"metadata": manifest["metadata"]}
    turns = engine.Engine([frugal])
    turns.feed(kinds.JOB, "ADDED", job())
    looked(turns, lambda _: requests.Answer(object=pod(spec={"large": True})))
    assert turns.observed.find(kinds.POD, "a", "p") == pod()


def test_who_is_gone_is_known_no_longer_as_inherited():
    book = name_book.NameBook()
    book.inherit(["u"], "7")
    assert book.origin("u") == "7"
    book.forget("u")
    assert book.origin("u") == ""
