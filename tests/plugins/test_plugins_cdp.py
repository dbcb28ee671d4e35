"""cdp: running pods are left alone for a while after they were scheduled."""

import pytest

from builders import SECOND, Desk, group, node, pod, stamp
from pumice.plugins.cdp import Cooldown

CONFIGURATION = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: cdp}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
TIME = "volcano.sh/cooldown-time"
MINUTE = 60


def opened(*pods, minutes):
    """A session some minutes after the pods were scheduled."""
    made = Desk(CONFIGURATION).feed(node("m1"), group("g", 0, phase="Running"), *pods)
    made.now += int(minutes * MINUTE * SECOND)
    session = made.session()
    plugin = next(p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, Cooldown))
    return made, session, plugin


def scheduled(name="t", *, label=None, annotation=None, phase="Running", status="True", condition="PodScheduled"):
    made = pod(
        name,
        "g",
        cpu="1",
        node="m1",
        phase=phase,
        labels={TIME: label} if label else None,
        annotations={TIME: annotation} if annotation else None,
    )
    made["status"]["conditions"] = [{"type": condition, "status": status, "lastTransitionTime": stamp(0)}]
    return made


@pytest.mark.parametrize(
    ("given", "minutes", "evictable"),
    [
        pytest.param(scheduled(label="10m"), 4, False, id="CD1: 4 minutes ago"),
        pytest.param(scheduled(label="10m"), 12, True, id="CD1: 12 minutes ago"),
        pytest.param(scheduled(label="10m"), 10, True, id="CD1: the time is over at its end"),
        pytest.param(scheduled(label="5m", annotation="1h"), 20, True, id="CD2: the label wins"),
        pytest.param(scheduled(label="1h", annotation="5m"), 20, False, id="CD2: the label wins when longer"),
        pytest.param(scheduled(annotation="600s"), 4, False, id="an annotation"),
        pytest.param(scheduled(label="10x"), 4, True, id="CD3: unreadable"),
        pytest.param(scheduled(label="10x", annotation="1h"), 4, True, id="an unreadable label hides the annotation"),
        pytest.param(scheduled(label="10m", phase="Pending"), 4, True, id="CD3: not running"),
        pytest.param(scheduled(label="10m", status="False"), 4, True, id="not scheduled"),
        pytest.param(scheduled(label="10m", condition="Ready"), 4, True, id="no such condition"),
        pytest.param(scheduled(label="-5m"), 0, True, id="negative"),
        pytest.param(scheduled(), 0, True, id="no time at all"),
    ],
)
def test_a_pod_is_withheld_only_during_its_cooldown(given, minutes, evictable):
    made, _, plugin = opened(given, minutes=minutes)
    task = made.task("t")
    assert plugin.cooled_down(None, [task]) == ([task] if evictable else [])
    assert (plugin.protection(None, task, "gangreclaim") is None) is evictable


def test_the_reason_names_the_pod_and_the_time_left():
    made, _, plugin = opened(scheduled(label="10m"), minutes=4)
    assert plugin.protection(None, made.task("t"), "preempt") == (
        "a/t was scheduled less than its cooldown time ago, 6m0s are left"
    )


def test_others_keep_their_order():
    made, _, plugin = opened(scheduled("t1"), scheduled("t2", label="10m"), scheduled("t3"), minutes=4)
    tasks = [made.task(name) for name in ("t3", "t2", "t1")]
    assert plugin.cooled_down(None, tasks) == [tasks[0], tasks[2]]
