"""What controllers keep of objects that came and went: as much after many of them as after one."""

from __future__ import annotations

import pytest

from containers import entries
from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, name_book, observed, requests

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": True}


def manifest(name, uid, version, **more):
    return {"metadata": {"name": name, "namespace": "a", "uid": uid, "resourceVersion": str(version), **more}}


def kept(known):
    """Count all entries."""
    return sum(entries(known).values())


@pytest.mark.parametrize("owned", [{}, {"ownerReferences": [OWNER]}])
def test_of_pods_that_we_deleted_nothing_is_known_when_they_are_gone(owned):
    known, counts = observed.Observed(), []
    for turn in range(20):
        uid = f"u{turn}"
        known.feed(kinds.POD, "ADDED", manifest("p", uid, 10 * turn + 1, **owned))
        known.deleted(kinds.POD, "a", "p", uid)
        known.feed(kinds.POD, "MODIFIED", manifest("p", uid, 10 * turn + 2, **owned, **GOING))
        known.feed(kinds.POD, "DELETED", manifest("p", uid, 10 * turn + 3, **owned, **GOING))
        counts.append(kept(known))
    assert counts == counts[:1] * 20


def test_of_names_that_were_given_one_after_the_other_a_number_is_known():
    book, counts = name_book.NameBook(), []
    for expected in range(20):
        number = next(book.free("u", ("p",)))
        assert number == expected
        book.ask("u", ("p",), number, f"p-{number}")
        book.spend("u", f"p-{number}")
        counts.append(kept(book))
    assert counts == counts[:1] * 20
    book.forget("u")
    assert not kept(book)


class Once:
    """Makes a pod for each Job."""

    kind = kinds.JOB
    watched = (kinds.POD,)

    def concerns(self, kind, manifest, observed):
        return []

    def reconcile(self, namespace, name, observed, moment):
        if observed.has(kinds.POD, namespace, name):
            return requests.Reconciled()
        made = {"metadata": {"name": name, "namespace": namespace}}
        return requests.Reconciled(steps=[requests.Step(request=effects.Create(kind=kinds.POD, manifest=made))])


def test_of_a_write_without_an_answer_nothing_is_known_when_it_was_read_and_its_job_is_gone():
    turns, counts, now, asked = engine.Engine([Once()]), [], 0, []
    for number in range(20):
        job, pod = (
            manifest(f"j{number}", f"j{number}", 10 * number + 1),
            manifest(f"j{number}", f"p{number}", 10 * number + 2),
        )
        turns.feed(kinds.JOB, "ADDED", job)
        while (turn := turns.take(requests.Moment(now))) is not None or (due := turns.queue.next_due(now)) is not None:
            if turn is None:
                now = due
                continue
            while turn.left:
                for step in turns.next_steps(turn):
                    asked.append(type(step.request).__name__)
                    read = isinstance(step.request, effects.Read)
                    turns.answered(
                        turn, step, requests.Answer(object=pod) if read else requests.Answer(code="unknown"), now
                    )
            turns.finish(turn, requests.Moment(now))
        turns.feed(kinds.POD, "ADDED", pod)
        turns.feed(kinds.POD, "DELETED", pod)
        turns.feed(kinds.JOB, "DELETED", job)
        while (turn := turns.take(requests.Moment(now))) is not None:
            turns.finish(turn, requests.Moment(now))
        counts.append(kept(turns))
    assert asked == ["Create", "Read"] * 20
    assert counts == counts[:1] * 20
