"""Workloads of Volcano in a cluster where none of its controllers runs."""

from __future__ import annotations

from builders import NOW, SECOND, Desk, metadata
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
    for name, created in (("later", 9), ("first", 5)):
        desk.feed(workload("Job", metadata=metadata(name, "ml", created=created)))
    assert desk.apply().cache.next_wake() == NOW + 65 * SECOND
    for now, told in ((65 * SECOND - 1, []), (65 * SECOND, ["first"])):
        desk.now = NOW + now
        desk.apply()
        assert [name for name, reason, _ in desk.world.notes if reason == "NotServed"] == told
    assert desk.cache.next_wake() == NOW + 69 * SECOND
