"""Leaders that die, or are cut off, between two binds of a gang: the next one finishes it, and the former one writes nothing more."""

from __future__ import annotations

import signal

import pytest
from faults_process import Scheduler
from rig import Rig

import elections
from pumice.api import kinds
from pumice.kube.writes.world import WORKERS
from testbed import faults, waiting
from testbed.proxy import Proxy

BINDING = "/binding$"
MEMBERS = {"gang-0", "gang-1", "gang-2"}


@pytest.fixture
def another_proxy(defined):
    """A way of its own for the second leader, so that it is known who wrote what."""
    with Proxy(defined.url, defined.token, defined.ca_file) as running:
        yield running


def check(view, proxy):
    """Let a scheduler in this process look at what two others have left, and find nothing to do."""
    before = view.end_state()
    with Rig(view, proxy) as rig:
        rig.check()
    assert view.end_state() == before


@pytest.mark.parametrize(
    "then", [faults.Cut, faults.Pass], ids=["bind never arrives", "bind arrives after the take-over"]
)
def test_a_gang_whose_leader_is_killed_between_two_binds_is_finished_by_the_next(view, proxy, another_proxy, then):
    view.node("n1", 3)
    held = faults.Hold(then())
    proxy.disturb(held, "POST", f"/pods/gang-2{BINDING}")
    with Scheduler(proxy, *elections.flags(view.namespace)) as first:
        first.says("leading")
        with Scheduler(another_proxy, *elections.flags(view.namespace)) as second:
            second.says("standing by")
            view.gang("gang", 3)
            waiting.until(lambda: held.held and view.bound() == {"gang-0", "gang-1"}, tell=lambda: first.log)
            view.gang("rival", 1)
            first.kill()
            elections.let_go(view.server, view.namespace)
            waiting.until(lambda: view.phases().get("gang") == "Running", tell=lambda: second.log)
            held.release()
            waiting.until(lambda: not proxy.busy)
            assert second.stop() == 0
            assert another_proxy.count("POST", BINDING) == another_proxy.count("POST", f"/pods/gang-2{BINDING}") == 1
    assert view.bound() == MEMBERS
    check(view, another_proxy)


def test_a_gang_left_incomplete_is_finished_before_a_job_of_a_queue_that_has_nothing(view, proxy, another_proxy):
    """What the first leader had decided was never written down: 3 of 4 cpu are used, and the gang's whole minimum could not be let in beside that."""
    view.create(kinds.QUEUE, "idle", spec={"weight": 1})
    view.node("n1", 4)
    view.pod("agent", "", spec={"nodeName": "n1", "schedulerName": "else"})
    held = faults.Hold(faults.Cut())
    proxy.disturb(held, "POST", f"/pods/gang-2{BINDING}")
    proxy.disturb(faults.Answer(503), "PATCH", "/podgroups/", times=None)
    with Scheduler(proxy, *elections.flags(view.namespace)) as first:
        first.says("leading")
        with Scheduler(another_proxy, *elections.flags(view.namespace)) as second:
            second.says("standing by")
            view.gang("gang", 3, minResources={"cpu": "3"})
            waiting.until(lambda: held.held and view.bound("gang") == {"gang-0", "gang-1"}, tell=lambda: first.log)
            view.gang("rival", 1, queue="idle")
            first.kill()
            elections.let_go(view.server, view.namespace)
            waiting.until(lambda: view.phases().get("gang") == "Running", tell=lambda: second.log)
            assert second.stop() == 0
    assert view.bound("gang") == MEMBERS
    assert view.bound("rival") == set()
    check(view, another_proxy)


def test_a_leader_that_was_asleep_writes_nothing_after_another_has_taken_over(view, proxy, another_proxy):
    """More binds than can be on their way at once are decided; while the first ones are held up, the leader is stopped in its tracks."""
    size = WORKERS + 8
    members = {f"gang-{index}" for index in range(size)}
    view.node("n1", size)
    held = faults.Hold(faults.Cut())
    proxy.disturb(held, "POST", BINDING, times=None)
    flags = elections.flags(view.namespace, lasts=30)
    with Scheduler(proxy, *flags) as first:
        first.says("leading")
        view.gang("gang", size)
        waiting.until(lambda: held.held == WORKERS, tell=lambda: first.log)
        with Scheduler(another_proxy, *flags) as second:
            second.says("standing by")
            first.signal(signal.SIGSTOP)
            waiting.until(lambda: view.bound() == members, tell=lambda: second.log)
            waiting.until(lambda: view.phases() == {"gang": "Running"}, tell=lambda: second.log)
            writes = len(proxy.writes)
            first.signal(signal.SIGCONT)
            held.release()
            assert first.wait() == 1
            assert "lease is lost" in first.log
            assert proxy.writes[writes:] == []
            assert second.stop() == 0
    check(view, another_proxy)
