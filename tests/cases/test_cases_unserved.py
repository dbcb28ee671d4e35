"""Workloads of Volcano in a cluster where none of its controllers runs."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, Desk, group, metadata, pod, stamp
from pumice.api import duration
from pumice.framework import configuration, registry
from pumice.scenario.stage import SimulatedStage
from pumice.scheduler import Options


def workload(kind, name="train", group="batch", **fields):
    api_version = f"{group}.volcano.sh/v1alpha1"
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {},
        **fields,
    }


def test_a_workload_that_nobody_touches_for_a_minute_gets_an_event_and_no_status():
    known = registry.installed()
    stage = SimulatedStage(configuration.default(known.catalog()), Options(), known)
    served = workload("Job", "served", status={"state": {"phase": "Pending"}})
    given = [workload("Job"), workload("CronJob", "nightly"), workload("JobFlow", "steps", "flow"), served]
    stage.apply(given)
    stage.connect()
    stage.advance(57 * duration.SECOND)
    stage.cycle(duration.SECOND)
    told = stage.cluster.events
    assert not [event for event in told if event.note.reason == "NotServed"]
    for _ in range(4):
        stage.cycle(duration.SECOND)
    texts = {event.reference: event.note.message for event in told if event.note.reason == "NotServed"}
    assert set(texts) == {"job/ml/train", "cronjob/ml/nightly", "jobflow/ml/steps"}
    assert "nobody has touched this Job for 60 s" in texts["job/ml/train"]
    assert "unless the first run is still to come" in texts["cronjob/ml/nightly"]
    assert (stage.counts().binds, stage.counts().status_writes) == (0, 0)


def test_the_scheduler_asks_to_be_woken_when_the_minute_of_the_first_workload_is_over_and_tells_of_it_then():
    desk = Desk()
    desk.now = NOW + 10 * SECOND
    for name, created in (("later", 9), ("first", 5)):
        desk.feed(workload("Job", metadata=metadata(name, "ml", created=created)))
    assert desk.apply().cache.next_wake() == NOW + 65 * SECOND
    for now, told in ((65 * SECOND - 1, []), (65 * SECOND, ["first"])):
        desk.now = NOW + now
        desk.apply()
        assert [name for name, reason, _ in desk.world.notes if reason == "NotServed"] == told
    assert desk.cache.next_wake() == NOW + 69 * SECOND


def test_a_workload_that_says_it_was_created_later_is_told_of_a_minute_after_it_was_found():
    desk = Desk()
    desk.feed(workload("Job", metadata=metadata("job", "ml", created=3600)))
    for now, told in ((0, []), (60 * SECOND - 1, []), (60 * SECOND, ["job"])):
        desk.now = NOW + now
        desk.apply()
        assert [name for name, reason, _ in desk.world.notes if reason == "NotServed"] == told
        assert told or desk.cache.next_wake() == NOW + 60 * SECOND


@pytest.mark.parametrize("end", ["goes", "is gone", "is served"])
def test_of_a_workload_that_is_served_or_goes_before_its_minute_is_over_nothing_is_told(end):
    desk, job = Desk(), workload("Job", metadata=metadata("job", "ml"))
    desk.feed(job).apply()
    match end:
        case "goes":
            desk.modify({**job, "metadata": {**job["metadata"], "deletionTimestamp": stamp(1)}})
        case "is gone":
            desk.delete(job)
        case _:
            desk.modify({**job, "status": {"state": {"phase": "Pending"}}})
    assert desk.apply().cache.next_wake() is None
    desk.now += 60 * SECOND
    desk.apply()
    assert [name for name, reason, _ in desk.world.notes if reason == "NotServed"] == []


def test_a_workload_is_told_of_once_and_again_if_it_is_created_anew():
    desk, job = Desk(), workload("Job", metadata=metadata("job", "ml"))
    desk.now += 60 * SECOND

    def told():
        return len([reason for _, reason, _ in desk.apply().world.notes if reason == "NotServed"])

    for number in (1, 2):
        desk.feed(job)
        assert told() == number
        desk.modify({**job, "metadata": {**job["metadata"], "labels": {"any": "change"}}})
        assert told() == number
        desk.delete(job)


@pytest.mark.parametrize(
    ("created", "told"), [(-10, 0), (-4, 6), (0, 10), (3, 13), (9, 19), (10, 0), (3600, 0)], ids="{}".format
)
def test_a_group_waits_a_while_for_its_queue_and_not_for_a_clock_that_is_far_ahead(created, told):
    desk, begun = Desk(), 100
    desk.now = NOW + begun * SECOND
    desk.feed(group("g", created=begun + created, queue="nope"), pod("p", "g", cpu="1"))
    for second in range(30):
        desk.cycle()
        if desk.world.patches("PodGroup"):
            assert second == told
            return
    raise AssertionError("nobody was told")
