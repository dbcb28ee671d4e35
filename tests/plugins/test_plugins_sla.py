"""sla: jobs that have waited long enough."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, Desk, group, node, pod

MINUTE = 60 * SECOND


def configuration(tiers, waiting=None):
    listed = "\n".join("- plugins: [" + ", ".join(f"{{name: {name}}}" for name in tier) + "]" for tier in tiers)
    text = f'actions: "enqueue, allocate"\ntiers:\n{listed}\n'
    return (
        text
        if waiting is None
        else text.replace("{name: sla}", f'{{name: sla, arguments: {{sla-waiting-time: "{waiting}"}}}}')
    )


def limited(name, text, **more):
    return group(name, annotations={"volcano.sh/sla-waiting-time": text} if text else None, **more)


def votes(desk, name):
    session = desk.session()
    job = desk.cluster.jobs[f"a/{name}"]
    sla = next(p for tier in desk.scheduler.engine.plugins for p in tier if p.name == "sla")
    return sla.vote(session, job).value, session


@pytest.mark.parametrize(("minutes", "value"), [(61, 1), (60, 1), (30, 0)])
def test_sl1_after_the_global_time_a_job_is_permitted(minutes, value):
    desk = Desk(configuration([["sla"]], "1h")).feed(group("g", minResources={"cpu": "1"}))
    desk.now = NOW + minutes * MINUTE
    found, session = votes(desk, "g")
    assert found == value
    assert session.wake == (None if value else NOW + 60 * MINUTE)
    assert not session.reads_time


def test_sl2_the_job_that_is_due_first_comes_first_and_without_a_limit_last():
    desk = Desk(configuration([["sla"]])).feed(
        group("none"),
        limited("ten", "10m", created=1),
        limited("two", "2m", created=301),
        limited("bad", "soon", created=2),
    )
    session = desk.session()
    assert [job.name for job in session.job_order.sort(desk.cluster.jobs.values())] == ["two", "ten", "none", "bad"]


def test_older_annotation_and_global_time_stand_behind():
    desk = Desk(configuration([["sla"]], "3m")).feed(
        group("older", annotations={"sla-waiting-time": "1m"}), limited("own", "2m"), limited("zero", "0s")
    )
    session = desk.session()
    assert [job.name for job in session.job_order.sort(desk.cluster.jobs.values())] == ["older", "own", "zero"]


@pytest.mark.parametrize("text", ["0s", "-5m", "soon"])
def test_time_that_is_not_above_zero_is_none(text):
    desk = Desk(configuration([["sla"]], text)).feed(group("g"))
    desk.now = NOW + 1000 * MINUTE
    found, session = votes(desk, "g")
    assert (found, session.wake) == (0, None)


@pytest.mark.parametrize(
    ("tiers", "phase"),
    [
        ([["sla", "overcommit"]], "Pending"),
        ([["overcommit", "sla"]], "Pending"),
        ([["sla"], ["overcommit"]], "Inqueue"),
    ],
)
def test_sl3_sla_overrides_only_later_tiers(tiers, phase):
    desk = Desk(configuration([*tiers, ["gang"]], "1m")).feed(node("m", "1"), group("g", minResources={"cpu": "50"}))
    desk.now = NOW + 2 * MINUTE
    desk.cycle()
    assert desk.cluster.jobs["a/g"].phase == phase


def test_quiet_cycles_are_skipped_until_a_job_is_due():
    desk = Desk(configuration([["sla"], ["gang", "overcommit"]], "1m")).feed(
        node("m", "1"), group("g", minResources={"cpu": "50"})
    )
    skipped = [desk.cycle(seconds=20).skipped for _ in range(6)]
    # Created at 0 and asked at 0, 20, 40: only the first cycle, the one at 60 and the one after that look at anything.
    assert skipped[:3] == [False, True, True]
    assert not skipped[3]
    assert desk.cluster.jobs["a/g"].phase == "Inqueue"


def test_due_job_may_hold_room_though_its_gang_is_not_complete():
    desk = Desk(configuration([["sla"], ["gang"], ["predicates"]])).feed(node("m", "2"))
    desk.feed(limited("g", "1m", phase="Inqueue", minimum=2), *(pod(f"g-{i}", "g", cpu="2") for i in range(2)))
    desk.feed(group("h", phase="Inqueue", created=5), pod("h-0", "h", cpu="2"))
    desk.now = NOW + 2 * MINUTE
    record = desk.cycle()
    assert desk.world.binds == {}
    assert "holds room: 1 of 2 members placed" in record.explain("a/g")
