"""What controllers know of objects: from watches and answers, whichever is newer; what is confirmed, what is gone, and which names are spent."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, name_book, observed, requests

POD = (kinds.POD, "a", "p")
OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": True}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def pod(version, uid="u", **more):
    return {"metadata": {"name": "p", "namespace": "a", "uid": uid, "resourceVersion": str(version), **more}}


def test_a_watch_event_that_is_not_newer_is_no_news():
    known = observed.Observed()
    assert known.feed(kinds.POD, "ADDED", pod(5))
    for version in (5, 4):
        assert not known.feed(kinds.POD, "MODIFIED", pod(version, labels={"late": "yes"}))
    assert known.find(*POD) == pod(5)
    assert known.feed(kinds.POD, "MODIFIED", pod(6))
    assert not known.feed(kinds.POD, "DELETED", pod(7, "another"))
    assert known.feed(kinds.POD, "DELETED", pod(7))


def test_what_an_answer_has_told_is_confirmed_by_the_watch_of_that_very_object():
    known = observed.Observed()
    assert known.learned(kinds.POD, pod(5))
    known.feed(kinds.POD, "ADDED", pod(6, "another"))
    assert known.unconfirmed == {POD: "5"}
    known.feed(kinds.POD, "MODIFIED", pod(7, "another"))
    assert known.unconfirmed == {}


def test_what_we_have_deleted_is_confirmed_when_it_is_seen_to_go():
    known = observed.Observed()
    known.feed(kinds.POD, "ADDED", pod(5))
    known.deleted(*POD, "another")
    assert known.unconfirmed == {}
    known.deleted(*POD, "u")
    assert known.find(*POD)["metadata"]["deletionTimestamp"]
    known.feed(kinds.POD, "MODIFIED", pod(6))
    assert known.unconfirmed == {POD: ""}
    assert known.find(*POD)["metadata"]["deletionTimestamp"]
    known.feed(kinds.POD, "MODIFIED", pod(7, **GOING))
    assert known.unconfirmed == {}


def test_an_answer_behind_the_watch_tells_of_what_is_gone():
    known = observed.Observed()
    other = {"metadata": {"name": "q", "namespace": "a", "uid": "q", "resourceVersion": "10"}}
    known.feed(kinds.POD, "ADDED", other)
    for version in (7, 10):
        assert not known.learned(kinds.POD, pod(version))
        assert not known.has(*POD)
    assert known.learned(kinds.POD, pod(11))
    assert not known.learned(kinds.POD, pod(9))
    assert known.find(*POD) == pod(11)


@pytest.mark.parametrize("how", ["a watch", "a read"])
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("by_us", [True, False])
def test_what_others_take_from_its_owner_is_told_once(how, owned, by_us):
    known = observed.Observed()
    manifest = pod(5, **({"ownerReferences": [OWNER]} if owned else {}))
    known.feed(kinds.POD, "ADDED", manifest)
    if by_us:
        known.deleted(*POD, "u")
    if how == "a read":
        known.lost(*POD)
    else:
        known.feed(kinds.POD, "DELETED", manifest)
    assert [known.taken(*POD) for _ in range(2)] == [owned and not by_us, False]


@pytest.mark.parametrize("by_us", [True, False])
@pytest.mark.parametrize("how", ["a watch", "a read"])
def test_what_we_delete_is_not_taken_by_others_though_it_goes_after_a_grace_period(how, by_us):
    known = observed.Observed()
    known.feed(kinds.POD, "ADDED", pod(5, ownerReferences=[OWNER]))
    if by_us:
        known.deleted(*POD, "u")
    if how == "a watch":
        known.feed(kinds.POD, "MODIFIED", pod(6, ownerReferences=[OWNER], **GOING))
    else:
        known.learned(kinds.POD, pod(6, ownerReferences=[OWNER], **GOING), read=True)
    known.feed(kinds.POD, "DELETED", pod(7, ownerReferences=[OWNER], **GOING))
    assert known.taken(*POD) == (not by_us)


def test_what_we_wanted_to_delete_and_is_read_to_stay_is_taken_by_others_if_it_goes_later():
    known = observed.Observed()
    known.feed(kinds.POD, "ADDED", pod(5, ownerReferences=[OWNER]))
    known.deleted(*POD, "u")
    known.learned(kinds.POD, pod(5, ownerReferences=[OWNER]), read=True)
    known.feed(kinds.POD, "DELETED", pod(6, ownerReferences=[OWNER]))
    assert known.taken(*POD)


def test_kinds_that_are_packed_are_kept_as_json_and_no_others():
    known = observed.Observed(packed=[kinds.POD])
    known.feed(kinds.POD, "ADDED", pod(5))
    known.feed(kinds.NODE, "ADDED", {"metadata": {"name": "n", "uid": "n", "resourceVersion": "6"}})
    assert isinstance(known._objects[kinds.POD]["a"]["p"], bytes)  # noqa: SLF001  how much memory it takes shows nowhere else
    assert isinstance(known._objects[kinds.NODE][""]["n"], dict)  # noqa: SLF001  how much memory it takes shows nowhere else
    assert known.find(*POD) == pod(5)


@pytest.mark.parametrize("how", ["a watch", "an answer"])
def test_a_name_that_was_seen_in_use_is_free_no_longer(how):
    known = observed.Observed()
    known.names.ask("x", (), 0, "p")
    assert next(known.names.free("x", ())) == 0
    manifest = pod(5, ownerReferences=[OWNER])
    if how == "a watch":
        known.feed(kinds.POD, "ADDED", manifest)
    else:
        known.learned(kinds.POD, manifest)
    assert next(known.names.free("x", ())) == 1


def test_a_watch_event_that_says_what_an_answer_has_said_is_an_echo_once():
    known = observed.Observed()
    known.learned(kinds.POD, pod(5))
    assert [known.echoed(*POD, version) for version in ("", "4", "5", "5")] == [False, False, True, False]
    assert known.unconfirmed == {}


def test_of_what_has_vanished_only_what_was_told_is_forgotten():
    known = observed.Observed([(kinds.JOB, kinds.POD)])
    metadata = {"name": "x", "namespace": "a", "uid": "x", "resourceVersion": "1"}
    known.feed(kinds.JOB, "ADDED", {"metadata": metadata})
    owner = {**OWNER, "apiVersion": kinds.JOB.api_version, "kind": "Job"}
    for uid in ("u", "v"):
        known.feed(kinds.POD, "ADDED", pod(5, uid, ownerReferences=[owner]))
        known.feed(kinds.POD, "DELETED", pod(6, uid, ownerReferences=[owner]))
    known.forget(kinds.JOB, "a", "x", ["u"])
    assert known.untold(kinds.JOB, "a", "x") == ["v"]


def test_nothing_is_kept_of_an_owner_that_is_gone():
    known = observed.Observed([(kinds.JOB, kinds.POD)])
    job = {"metadata": {"name": "x", "namespace": "a", "uid": "x", "resourceVersion": "1"}}
    known.feed(kinds.JOB, "ADDED", job)
    known.names.ask("x", (), 0, "p")
    owned = pod(5, ownerReferences=[{**OWNER, "apiVersion": kinds.JOB.api_version, "kind": "Job"}])
    known.feed(kinds.POD, "ADDED", owned)
    known.feed(kinds.POD, "DELETED", owned)
    assert known.untold(kinds.JOB, "a", "x") == ["u"]
    known.feed(kinds.JOB, "DELETED", job)
    assert known.untold(kinds.JOB, "a", "x") == []
    assert next(known.names.free("x", ())) == 0


@pytest.mark.parametrize(
    ("references", "uid"),
    [
        (None, None),
        ("x", None),
        (["x"], None),
        ([OWNER], "x"),
        ([{**OWNER, "controller": False}], None),
        ([{**OWNER, "controller": "yes"}], None),
        ([{**OWNER, "uid": ""}], None),
        ([{**OWNER, "uid": 5}], None),
        ([{**OWNER, "uid": None}, {**OWNER, "uid": "y"}], "y"),
    ],
)
def test_a_controller_is_the_owner_that_says_so_and_has_a_uid(references, uid):
    found = observed.controller({"metadata": {"ownerReferences": references}})
    assert (found or {}).get("uid") == uid


@given(numbers=st.lists(st.integers(0, 12), max_size=20), parts=st.sampled_from([("w",), ("w", 1)]))
def test_the_numbers_that_are_free_are_those_that_nobody_has_used(numbers, parts):
    book = name_book.NameBook()
    for number in numbers:
        book.ask("u", parts, number, f"n{number}")
        book.ask("u", parts, 50, "asked in vain")
        book.spend("u", f"n{number}")
        book.spend("another", "n0")
    wanted = [number for number in range(60) if number not in numbers]
    assert list(itertools.islice(book.free("u", parts), len(wanted))) == wanted
    assert next(book.free("u", ("other",))) == next(book.free("another", parts)) == 0
    book.forget("u")
    assert next(book.free("u", parts)) == 0


# -- answers -----------------------------------------------------------------------------------------------------------


class Asking:
    """Takes the steps that it was given, and counts its looks."""

    kind = kinds.JOB
    watched = (kinds.POD,)

    def __init__(self, *steps):
        self.steps = list(steps)
        self.looks = 0

    def concerns(self, kind, manifest, observed):
        return [("a", "j")]

    def reconcile(self, namespace, name, observed, moment):
        self.looks += 1
        steps, self.steps = self.steps, []
        return requests.Reconciled(steps=steps)


def answered(step, answer, tell=lambda _: None, known=None):
    """Give how often a Job is looked at if a step that it takes is answered so."""
    asking = Asking(step)
    turns = engine.Engine([asking], tell=tell)
    if known is not None:
        turns.feed(kinds.POD, "ADDED", known)
    turns.feed(kinds.JOB, "ADDED", {"metadata": {"name": "j", "namespace": "a", "uid": "j", "resourceVersion": "1"}})
    turn = turns.take(requests.Moment(0))
    (first,) = turns.next_steps(turn)
    turns.answered(turn, first, answer, 0)
    turns.finish(turn, requests.Moment(0))
    while (turn := turns.take(requests.Moment(10**9))) is not None:
        turns.finish(turn, requests.Moment(10**9))
    return asking.looks


READ = requests.Step(request=effects.Read(kind=kinds.POD, namespace="a", name="p"))


def test_what_is_read_is_looked_at_if_it_is_news():
    assert answered(READ, requests.Answer(object=pod(5))) == 2
    assert answered(READ, requests.Answer(object=pod(5)), known=pod(5)) == 1
    assert answered(READ, requests.Answer(code="notfound"), known=pod(5)) == 2


def test_a_refusal_is_told_with_its_reason_and_what_the_server_said():
    heard = []
    create = requests.Step(
        request=effects.Create(kind=kinds.POD, manifest=pod(0)), refused=("FailedCreate", "Error creating: ")
    )
    answered(create, requests.Answer(code="refused", message="no room"), heard.append)
    assert [(note.type, note.reason, note.message) for note in heard] == [
        ("Warning", "FailedCreate", "Error creating: no room")
    ]
