"""Extension points as they are declared: every one exists, obeys its switch, and hears every tier that lists a plugin."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

from builders import Desk, group, node, pod
from pumice.framework import configuration, registry
from pumice.framework.breakdowns import Breakdowns, PluginBreakdownError
from pumice.framework.combining import All, ContextOrder, FirstAnswer, Refusals, Sum, Votes
from pumice.framework.configuration import SWITCHES, PluginSetting
from pumice.framework.configuration.switches import POINTS as GOVERNED
from pumice.framework.extensions import PERMIT, Point
from pumice.framework.ordering import Ordering
from pumice.framework.plugin import Plugin
from pumice.framework.points import EVERYTHING, POINTS
from pumice.framework.registration import Roster, Slot
from pumice.framework.subject import Demand
from pumice.model.job import Job
from pumice.model.queue import Queue

CONFIG = 'actions: "allocate"\ntiers:\n- plugins: [{{name: everywhere{switches}}}]\n'
NAMES = [point.name for point in POINTS]


class Everywhere(Plugin):
    """Registers a function at every point."""

    name = "everywhere"
    points = frozenset(NAMES)

    def open(self, session):
        for point in POINTS:
            getattr(session, point.attribute).add(lambda *_: None)


def registered(switches=""):
    session = Desk(CONFIG.format(switches=switches), Everywhere).session()
    return {point.name for point in POINTS if list(getattr(session, point.attribute))}


def switched_off(*names):
    return "".join(f", {name}: false" for name in names)


def test_every_point_is_registered_by_default():
    assert registered() == set(NAMES)


@pytest.mark.parametrize("point", [point for point in POINTS if point.switches], ids=lambda point: point.name)
def test_a_point_is_off_exactly_when_its_switches_are_off(point):
    others = [name for name in SWITCHES if name not in point.switches]
    assert point.name not in registered(switched_off(*point.switches))
    assert point.name in registered(switched_off(*others))


@pytest.mark.parametrize("off", ["enablePreemptable", "enabledAllocatable"])
def test_a_point_with_two_switches_is_on_while_one_of_them_is(off):
    assert {"SimulateAddTask", "SimulateRemoveTask"} <= registered(switched_off(off))


@pytest.mark.parametrize("point", [point for point in POINTS if not point.switches], ids=lambda point: point.name)
def test_points_without_a_switch_cannot_be_switched_off(point):
    assert point.name in registered(switched_off(*SWITCHES))


@pytest.mark.parametrize("point", [point for point in POINTS if point.switches], ids=lambda point: point.name)
def test_the_loader_and_the_dispatcher_agree_on_the_switch_of_a_point(point):
    assert sorted(point.switches) == sorted(name for name, points in GOVERNED.items() if point.name in points)


@pytest.mark.parametrize("switch", ["enableTargetJob", "enableReservedNodes", "enabledClusterOrder"])
def test_switches_of_points_that_nobody_asks_are_accepted_and_named(switch):
    config = f'actions: "allocate"\ntiers:\n- plugins: [{{name: gang, {switch}: true}}]\n'
    loaded = configuration.load(config, registry.catalog())
    assert loaded.plugin("gang").switches[switch] is True
    assert f'plugin "gang" has nothing that {switch} could switch on' in [w.message for w in loaded.warnings]


def test_functions_are_registered_in_open_only():
    session = Desk().session()
    with pytest.raises(RuntimeError, match=r"JobReady: functions are registered in Plugin\.open only"):
        session.job_ready.add(lambda _: True)


class Twice(Plugin):
    """Counts how often it is asked and told."""

    name = "twice"
    points = frozenset({"JobPipelined", "NodeOrder", "JobReady"})
    asked = 0

    def open(self, session):
        session.job_ready.add(self.answer)
        session.job_enqueued.add(self.answer)

    def answer(self, _job):
        Twice.asked += 1
        return PERMIT


@pytest.mark.parametrize(("second", "expected"), [("", 2), (", enableJobEnqueued: false", 1)])
def test_a_plugin_listed_in_two_tiers_is_consulted_twice_each_time_by_its_own_switches(second, expected):
    config = (
        f'actions: "enqueue"\ntiers:\n- plugins: [{{name: twice}}]\n- plugins: [{{name: gang}}]\n'
        f"- plugins: [{{name: twice{second}}}]\n"
    )
    Twice.asked = 0
    desk = Desk(config, Twice).feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    session = desk.session()
    assert [
        tier for tier, functions in enumerate(session.job_ready.tiers) for f in functions if f.plugin == "twice"
    ] == [
        0,
        2,
    ]
    session.job_enqueued(desk.cluster.jobs["a/g"])
    assert Twice.asked == expected


SIGNATURES = [
    (Refusals[[Job], str], "job", "(job: Job) -> str | None"),
    (Refusals[[Queue, Demand], str], "queue, demand", "(queue: Queue, demand: Demand) -> str | None"),
    (Votes[[Job]], "job", "(job: Job) -> Vote"),
    (All[[Job]], "job", "(job: Job) -> bool"),
    (Refusals[[npt.NDArray[np.float64]], str], "points", "(points: array of float64) -> str | None"),
    (Refusals[[list[Job]], str], "jobs", "(jobs: list[Job]) -> str | None"),
]


@pytest.mark.parametrize(("kind", "words", "signature"), SIGNATURES, ids=[row[2] for row in SIGNATURES])
def test_a_point_says_what_its_functions_take_and_give(kind, words, signature):
    assert Point("Made", kind, words, says="").signature == signature


class Held:
    """Somebody who has points before a session is open."""

    made = Point("Made", Refusals[[Job], str], "job", says="")


def test_there_are_no_points_before_a_session_has_declared_them():
    assert Held.made.attribute == "made"
    with pytest.raises(RuntimeError, match="Made: the session has no extension points yet"):
        Held().made  # noqa: B018  asking is what is refused


def asked(*_):
    """Stand for a function of a plugin."""
    return True


def extension(kind, rests, function=asked, parameters="job"):
    """Give an extension with one function, which rests about everybody if it has to."""
    streaks = {}
    for cycle in (1, 2) if rests else ():
        found = Breakdowns(cycle, streaks)
        found.note("test", "Made", asked, ValueError("no"))
        found.end()
    roster = Roster(1, breakdowns=Breakdowns(3, streaks))
    made = Point("Made", kind, parameters, says="").extension(roster)
    roster.slot = Slot(0, "test", PluginSetting("test", dict(SWITCHES), {}, 0), EVERYTHING)
    made.add(function)
    return made, roster.breakdowns


ANSWERS = [
    (Refusals[[Job], str], "no", True),
    (Refusals[[Job], str], 3, False),
    (Votes[[Job]], PERMIT, True),
    (Votes[[Job]], SimpleNamespace(value=1, reason=""), False),
    (FirstAnswer[[Job], list[int]], [3], True),
    (FirstAnswer[[Job], list[int]], "no", False),
    (FirstAnswer[[Job], npt.NDArray[np.float64]], np.zeros(2), True),
    (FirstAnswer[[Job], npt.NDArray[np.float64]], [0.0, 0.0], False),
]


@pytest.mark.parametrize(("kind", "answer", "right"), ANSWERS)
def test_an_answer_is_of_the_kind_that_its_point_declares_whatever_it_is_made_of(kind, answer, right):
    made, breakdowns = extension(kind, rests=False, function=lambda _job: answer)
    with contextlib.suppress(PluginBreakdownError):
        assert (made(None) is answer) is right
    assert bool(breakdowns.found) is not right


def broken(*_):
    raise ValueError("no")


@pytest.mark.parametrize(("function", "said"), [(lambda _: "full", "full"), (lambda _: None, None), (broken, "test")])
def test_those_that_refuse_can_be_asked_one_by_one_or_some_of_them(function, said):
    made, _ = extension(Refusals[[Job], str], rests=False, function=function)
    made.add(lambda _: "not today")
    first, second = made
    found = [made.ask(first, None), made.among(lambda each: each is first, None)]
    assert all(answer is None if said is None else said in answer for answer in found)
    assert made.among(lambda each: each is second, None) == "not today"
    assert made.among(lambda each: True, None) == (found[0] or "not today")
    assert made.among(lambda each: False, None) is None


def test_of_two_victims_the_one_with_the_smaller_key_for_the_claimant_goes_first():
    kind, said = ContextOrder[Queue, Queue], lambda each, claimant: each * claimant
    made, found = extension(kind, rests=False, function=said, parameters="victim, claimant")
    assert made.compare(1, 2, 1) < 0 < made.compare(1, 2, -1)
    assert made.compare(1, 1, 1) == made.compare(1, 2, 0) == 0
    assert not found.found


def test_scores_of_items_are_asked_with_whom_they_are_scored_for_and_all_items():
    assert Sum.taken((Job, Queue)) == (Job, Sequence[Queue])


@pytest.mark.parametrize("kind", [Refusals[[Job], str], All[[Job]], Votes[[Job]]])
def test_a_function_at_rest_about_everybody_refuses_where_plugins_refuse(kind):
    made, _ = extension(kind, rests=True)
    assert made.active
    answer = made(None)
    assert "plugin test broke down" in str(answer) if answer is not False else kind.__origin__ is All


def test_a_function_at_rest_about_everybody_is_left_out_where_plugins_order():
    made, found = extension(Ordering[Job], rests=True)
    assert not made.active
    assert [each.resting for each in found.found.values()] == [True]
    working, found = extension(Ordering[Job], rests=False)
    assert working.active
    assert found.found == {}
