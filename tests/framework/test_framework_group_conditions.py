"""What becomes of the conditions of a group in a cycle: which are put in, which stay as they are, and which end."""

from __future__ import annotations

import msgspec
import pytest

from pumice.api.scheduling import PodGroupCondition, PodGroupStatus
from pumice.framework import group_conditions

TOLD = "no node has 4 cpu free: the freest of {0}, n{0}, has {0} cpu; 1/1 tasks in gang unschedulable: x"
CROWDED, CROWDED_TOO, OTHER = TOLD.format(1), TOLD.format(2), "queue q is Closed"
EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def said(type_="Unschedulable", message=CROWDED, status="True", reason="NotEnoughResources", at=EARLIER):
    return PodGroupCondition(
        type=type_, status=status, reason=reason, message=message, transition_id="1", last_transition_time=at
    )


def stamp(condition):
    return msgspec.structs.replace(condition, transition_id="2", last_transition_time=NOW)


def ended(type_, why):
    return stamp(said(type_, f"the group is {why}", "False", ""))


UNUSABLE = "QueueUnusable"
FORECAST = said("StartForecast", "starts in 5 minutes", reason="Planned")
LATER = said("StartForecast", "starts in 9 minutes", reason="Planned")
PUT_IN = [
    ("the first", [], [said()], "Pending", [stamp(said())]),
    ("beside others", [said("Custom")], [said()], "Pending", [said("Custom"), stamp(said())]),
    ("in the place of one of its type", [said(message=OTHER)], [said()], "Pending", [stamp(said())]),
    ("not if it says the same", [said()], [said()], "Pending", [said()]),
    ("not if nothing but numbers are others", [said()], [said(message=CROWDED_TOO)], "Pending", [said()]),
    ("but with the numbers of another phase", [said()], [said(message=CROWDED_TOO)], "Inqueue", [stamp(said(message=CROWDED_TOO))]),
    ("though not if they are the same", [said()], [said()], "Inqueue", [said()]),
    ("if it holds again", [said(status="False")], [said()], "Pending", [stamp(said())]),
    ("if it holds for another reason", [said(reason=UNUSABLE)], [said()], "Pending", [stamp(said())]),
    ("a forecast with its numbers, and the time of the first", [FORECAST], [LATER], "Pending", [msgspec.structs.replace(LATER, transition_id="2", last_transition_time=EARLIER)]),
    ("a forecast of another kind with its own time", [FORECAST], [msgspec.structs.replace(LATER, reason="Blocked")], "Pending", [stamp(msgspec.structs.replace(LATER, reason="Blocked"))]),
    ("two at once", [], [said(), FORECAST], "Pending", [stamp(said()), stamp(FORECAST)]),
]  # fmt: skip


@pytest.mark.parametrize("known_phase", ["", "Pending"])
@pytest.mark.parametrize(
    ("known", "given", "phase", "found"), [row[1:] for row in PUT_IN], ids=[row[0] for row in PUT_IN]
)
def test_a_condition_is_put_in_where_it_says_something_else(known, given, phase, found, known_phase):
    status = PodGroupStatus(phase=known_phase, conditions=tuple(known))
    assert group_conditions.merged(status, given, phase, stamp) == tuple(found)


UNSCHEDULABLE, SCHEDULED = said(), said("Scheduled", "ready", reason="tasks in gang are ready to be scheduled")
ENDS = [
    ("it runs", [UNSCHEDULABLE], [], "Running", {}, [ended("Unschedulable", "Running")]),
    ("it has run", [UNSCHEDULABLE], [], "Completed", {}, [ended("Unschedulable", "Completed")]),
    ("it may be refused yet", [UNSCHEDULABLE], [], "Inqueue", {}, [UNSCHEDULABLE]),
    ("it was let in without pods", [UNSCHEDULABLE], [], "Inqueue", {"empty": True}, [ended("Unschedulable", "let in and has no pods yet")]),
    ("it was not let in", [UNSCHEDULABLE], [], "Pending", {"empty": True}, [UNSCHEDULABLE]),
    ("its queue can be used again", [said(reason=UNUSABLE)], [], "Pending", {}, [stamp(said(message="the group is served again", status="False", reason=""))]),
    ("it is not ready any more", [SCHEDULED], [UNSCHEDULABLE], "Pending", {}, [ended("Scheduled", "Unschedulable"), stamp(UNSCHEDULABLE)]),
    ("it tries again", [SCHEDULED], [UNSCHEDULABLE], "Pending", {"retries": True}, [SCHEDULED, stamp(UNSCHEDULABLE)]),
    ("it is ready still", [SCHEDULED], [SCHEDULED], "Pending", {}, [SCHEDULED]),
    ("nothing is said of it", [SCHEDULED], [], "Running", {}, [SCHEDULED]),
    ("it has started", [FORECAST], [], "Running", {}, [ended("StartForecast", "Running")]),
    ("it has not", [FORECAST], [], "Inqueue", {}, [FORECAST]),
    ("it is none of ours", [said("Custom")], [], "Running", {}, [said("Custom")]),
    ("it is over", [said(status="False")], [], "Running", {}, [said(status="False")]),
    ("it holds though it runs", [UNSCHEDULABLE], [UNSCHEDULABLE], "Running", {}, [UNSCHEDULABLE]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("known", "given", "phase", "how", "found"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_a_condition_ends_when_it_no_longer_holds_and_says_what_the_group_is_now(known, given, phase, how, found):
    status = PodGroupStatus(phase=phase, conditions=tuple(known))
    assert group_conditions.merged(status, given, phase, stamp, **how) == tuple(found)


RENEWED = [
    ("other numbers", [said()], [said(message=CROWDED_TOO)], [said(message=CROWDED_TOO)]),
    ("the same", [said()], [said()], None),
    ("another reason", [said()], [said(message=OTHER)], None),
    ("it is over", [said(status="False")], [said(message=CROWDED_TOO)], None),
    ("of another nothing is said", [said("Scheduled"), said()], [said(message=CROWDED_TOO)], [said("Scheduled"), said(message=CROWDED_TOO)]),
    ("nothing is said", [said()], [], None),
]  # fmt: skip


@pytest.mark.parametrize(("known", "given", "found"), [row[1:] for row in RENEWED], ids=[row[0] for row in RENEWED])
def test_numbers_of_a_reason_that_stays_are_put_in_without_another_time(known, given, found):
    status = PodGroupStatus(phase="Pending", conditions=tuple(known))
    renewed = group_conditions.renewed(status, given)
    assert renewed == (None if found is None else msgspec.structs.replace(status, conditions=tuple(found)))


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({}, True),
        ({"at": NOW}, True),
        ({"type_": "Scheduled"}, False),
        ({"status": "False"}, False),
        ({"reason": "Other"}, False),
        ({"message": CROWDED_TOO}, False),
    ],
)
def test_conditions_differ_in_all_but_their_time(other, is_same):
    assert group_conditions.same([said()], [said(**other)]) is is_same
    assert not group_conditions.same([said()], [])
