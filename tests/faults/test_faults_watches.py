"""Watches that are cut, silenced or told that their version is gone: the model ends up as the API server is."""

from __future__ import annotations

import pytest
from rig import Rig

from pumice.api import kinds
from pumice.cache import assumptions, evictions, retry_pauses
from testbed import faults, waiting

WATCHES = {
    "pods": r"/pods\?.*spec\.schedulerName=volcano.*watch=",
    "nodes": r"/nodes\?.*watch=",
    "groups": r"scheduling\.volcano\.sh/v1beta1/podgroups\?.*watch=",
}
MEMBERS = {"gang-0", "gang-1", "gang-2"}
SCHEDULED = {"bound": MEMBERS, "pods": MEMBERS, "phases": {"gang": "Running"}}
LINES = 10  # more than any watch has in one story


def begin(view):
    """A gang of three and two nodes that it fills."""
    view.node("n1", 2)
    view.node("n2", 1)
    view.gang("gang", 3)


def end(view):
    """Everything goes; nobody plays the kubelet, so at once."""
    for name in MEMBERS:
        view.delete(kinds.POD, name, gracePeriodSeconds=0)
    view.delete(kinds.POD_GROUP, "gang")
    for name in ("n1", "n2"):
        view.delete(kinds.NODE, name)


def test_watches_cut_after_any_line_lose_nothing(rig):
    for line in range(LINES):
        waiting.until(lambda: all(rig.proxy.serving(pattern) for pattern in WATCHES.values()))
        rules = [rig.proxy.disturb(faults.CutWatch(line), "GET", pattern) for pattern in WATCHES.values()]
        for pattern in WATCHES.values():
            assert rig.proxy.cut(pattern) == 1
        waiting.until(lambda rules=rules: all(rule.hits for rule in rules))
        begin(rig.view)
        waiting.until(lambda: rig.view.end_state() == SCHEDULED, tell=rig.view.story)
        rig.check()
        end(rig.view)
        waiting.until(lambda: not rig.cluster.tasks and not rig.cluster.nodes.count)
        rig.proxy.calm()
    rig.check()
    assert not rig.cluster.jobs


@pytest.mark.parametrize("line", range(5))
def test_a_first_list_cut_after_any_line_is_begun_anew(view, proxy, line):
    begin(view)
    rules = [proxy.disturb(faults.CutWatch(line), "GET", pattern) for pattern in WATCHES.values()]
    with Rig(view, proxy) as rig:
        waiting.until(lambda: view.end_state() == SCHEDULED, tell=view.story)
        rig.check()
    assert all(rule.hits for rule in rules)


def test_watches_that_break_after_every_line_go_on_nevertheless(rig):
    for pattern in WATCHES.values():
        rig.proxy.disturb(faults.CutWatch(1), "GET", pattern, times=None)
        rig.proxy.cut(pattern)
    begin(rig.view)
    waiting.until(lambda: rig.view.end_state() == SCHEDULED, tell=rig.view.story)
    rig.proxy.calm()
    rig.check()


def test_watches_on_which_nothing_comes_any_more_are_opened_again(view, proxy):
    with Rig(view, proxy, silence=1.5) as rig:
        rules = [proxy.disturb(faults.SilenceWatch(1), "GET", pattern, times=2) for pattern in WATCHES.values()]
        for pattern in WATCHES.values():
            proxy.cut(pattern)
        begin(view)
        waiting.until(lambda: view.end_state() == SCHEDULED, tell=view.story)
        rig.check()
    assert all(rule.hits for rule in rules)


def test_what_happened_before_a_version_was_forgotten_is_found_by_listing(rig):
    begin(rig.view)
    waiting.until(lambda: rig.view.end_state() == SCHEDULED, tell=rig.view.story)
    rig.check()
    lists = rig.lists()
    rig.proxy.disturb(faults.Cut(), "GET", "watch=", times=None)
    rig.proxy.cut("watch=")
    end(rig.view)
    begin(rig.view)
    rig.view.node("n3", 1)
    rig.view.gang("more", 1)
    rig.view.server.forget_history()
    rig.proxy.calm()
    members = {
        "bound": MEMBERS | {"more-0"},
        "pods": MEMBERS | {"more-0"},
        "phases": {"gang": "Running", "more": "Running"},
    }
    waiting.until(lambda: rig.view.end_state() == members, tell=rig.view.story)
    rig.check()
    assert all(
        rig.lists()[watch] > lists[watch] for watch in lists if watch.startswith(("pods spec.schedulerName=", "nodes"))
    )


def test_binds_that_land_after_everybody_has_given_up_waiting_are_counted_once(view, proxy):
    """The API server hangs with the binds in its hands, and does them when it wakes up."""
    with Rig(view, proxy, timeout=1.0) as rig:
        held = faults.Hold()
        proxy.disturb(held, "POST", "/binding$", times=3)
        begin(view)
        waiting.until(lambda: held.held == 3, tell=view.story)
        with view.server.frozen():
            held.release()
            rig.stopped_for(4.0)
        waiting.until(lambda: view.end_state() == SCHEDULED, tell=view.story)
        rig.check()


OUTAGE = 10.0


def test_an_outage_between_two_binds_of_a_gang_leaves_no_trace(rig, monkeypatch):
    """The answer to the third bind, its repetitions, and everything else fails for as long as patience lasts; somebody else waits for the room."""
    # a third of what they are in the product, like the outage
    for module in (assumptions, evictions):
        monkeypatch.setattr(module, "PATIENCE", module.PATIENCE // 3)
    monkeypatch.setattr(retry_pauses, "LONGEST_PASSING", retry_pauses.LONGEST_PASSING // 3)
    assert assumptions.PATIENCE <= OUTAGE * 1_000_000
    rig.view.node("n1", 3)
    held = faults.Hold()
    rig.proxy.disturb(held, "POST", "/pods/gang-2/binding$")
    rig.view.gang("gang", 3)
    waiting.until(lambda: held.held and rig.view.bound() == {"gang-0", "gang-1"}, tell=rig.view.story)
    rig.view.gang("rival", 1)
    waiting.until(lambda: rig.task("rival-0"))
    with rig.view.server.down():
        held.release()
        rig.stopped_for(OUTAGE)
    waiting.until(lambda: rig.view.phases().get("gang") == "Running", tell=rig.view.story)
    rig.check()
    assert rig.view.bound() == MEMBERS
    rig.view.node("n2", 1)
    waiting.until(lambda: rig.view.phases() == {"gang": "Running", "rival": "Running"}, tell=rig.view.story)
    rig.check()
