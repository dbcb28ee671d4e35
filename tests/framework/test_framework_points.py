"""Extension points as they are declared: every one exists, obeys its switch, and hears every tier that lists a plugin."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod
from pumice.framework import configuration, registry
from pumice.framework.configuration import SWITCHES
from pumice.framework.configuration.switches import POINTS as GOVERNED
from pumice.framework.extensions import PERMIT
from pumice.framework.plugin import Plugin
from pumice.framework.points import POINTS

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
