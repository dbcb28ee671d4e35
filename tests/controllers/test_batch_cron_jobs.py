"""CronJobs of batch/v1 follow the rules of Volcano's, with Kubernetes' names and words, but for a start that an earlier Job forbade."""

from __future__ import annotations

import pytest
from test_cron_job_lives import BEGIN, act, reasons, stamp, until
from volcano_worlds import VolcanoWorld, killed_anywhere

from pumice.api import duration, kinds, timestamp
from pumice.controllers.cron_jobs import flavours
from pumice.controllers.cron_jobs.controlling import CronJobs
from pumice.sim.identity import Key


def make():
    return [CronJobs(flavours.BATCH)]


def cron_job(schedule="* * * * *", **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"template": {"spec": pod}}}
    stated = {"schedule": schedule, "jobTemplate": template, **spec}
    metadata = {"name": "c", "namespace": "a"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": stated}


def begun(**spec):
    world = VolcanoWorld(make)
    world.clock.advance(duration.SECOND)
    world.create(cron_job(**spec))
    return world


def end(world, minute, condition="Complete"):
    when = timestamp.format_timestamp(world.clock.now() // duration.SECOND * duration.SECOND)
    stated = {"conditions": [{"type": condition, "status": "True", "lastTransitionTime": when}]}
    stated |= {"completionTime": when} if condition == "Complete" else {}
    world.store.patch_status(Key(kinds.BATCH_JOB, "a", f"c-{BEGIN + minute}"), {"status": stated})


def minutes(world):
    found = world.store.scan(kinds.BATCH_JOB)
    return sorted(int(each["metadata"]["name"].rpartition("-")[2]) - BEGIN for each in found)


def status(world):
    return world.get(kinds.BATCH_CRON_JOB, "c").get("status", {})


def test_a_slot_becomes_a_job_with_the_names_of_kubernetes():
    world = begun(timeZone="Asia/Tokyo")
    until(world, 1)
    job = world.get(kinds.BATCH_JOB, f"c-{BEGIN + 1}")
    assert job["spec"] == cron_job()["spec"]["jobTemplate"]["spec"]
    assert job["metadata"]["labels"] == {"x": "y"}
    assert job["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T09:01:00+09:00"}  # fmt: skip
    owner = world.get(kinds.BATCH_CRON_JOB, "c")["metadata"]["uid"]
    [reference] = job["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"], reference["uid"]) == ("batch/v1", "CronJob", owner)
    assert [(each["apiVersion"], each["name"]) for each in status(world)["active"]] == [("batch/v1", f"c-{BEGIN + 1}")]
    assert status(world)["lastScheduleTime"] == stamp(1)


def test_a_forbidden_slot_is_made_up_for_when_the_earlier_job_ends():
    world = begun(concurrencyPolicy="Forbid")
    until(world, 3, 30)
    assert minutes(world) == [1]
    assert set(reasons(world)) == {"SuccessfulCreate", "JobAlreadyActive"}
    end(world, 1)
    act(world)
    assert minutes(world) == [1, 3]


def test_a_deadline_ends_what_can_be_made_up_for():
    world = begun(concurrencyPolicy="Forbid", startingDeadlineSeconds=10)
    until(world, 3, 30)
    end(world, 1)
    act(world)
    assert minutes(world) == [1]


def test_a_running_job_is_replaced():
    world = begun(concurrencyPolicy="Replace")
    until(world, 2)
    assert minutes(world) == [2]
    assert reasons(world) == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"]


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_only_so_many_ended_jobs_are_kept(condition):
    world = begun(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=2)
    for minute in range(1, 6):
        until(world, minute)
        end(world, minute, condition)
    act(world)
    assert minutes(world) == [4, 5]
    assert "active" not in status(world)
    assert status(world).get("lastSuccessfulTime") == (stamp(5) if condition == "Complete" else None)
    assert f"Saw completed job: c-{BEGIN + 1}, condition: {condition}" in [note.message for note in world.notes]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"schedule": "x"}, "UnparseableSchedule"), ({"timeZone": "Mars/X"}, "UnknownTimeZone")],
)
def test_a_cron_job_that_cannot_be_understood_is_told_of(spec, reason):
    world = begun(**spec)
    until(world, 2)
    assert minutes(world) == []
    assert reason in reasons(world)


def test_controllers_that_are_killed_anywhere_start_each_slot_once():
    def happen(world):
        for minute in (1, 2):
            try:
                until(world, minute)
            except world.killed:
                world.restart()
                until(world, minute)
        world.patch(kinds.BATCH_CRON_JOB, "c", {"spec": {"suspend": True}})
        world.settled()

    whole, ends = killed_anywhere(begun, happen)
    assert minutes(whole) == [1, 2]
    for number, performed, other in ends:
        assert other.everything() == whole.everything(), (number, performed)
