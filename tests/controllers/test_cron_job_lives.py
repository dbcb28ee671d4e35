"""CronJobs: which slots become Jobs, under policies, deadlines, late controllers, lost answers and kills."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from volcano_worlds import VolcanoWorld, cron_job, end_job, jobs, killed_anywhere

from drawing import drawn
from pumice.api import duration, kinds, names, timestamp
from pumice.controllers.cron_jobs import flavours, records
from pumice.controllers.cron_jobs.controlling import CronJobs
from pumice.controllers.queueing import running
from pumice.controllers.queueing.observed import Observed
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key

MINUTE = duration.MINUTE
BEGIN = 1_767_225_600 // 60  # minutes of the virtual clock's start
CRON = Key(kinds.CRON_JOB, "a", "c")
LIVELY = settings(max_examples=drawn(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def make():
    return [CronJobs()]


def begun(**spec):
    """Make a world in which a CronJob was created a second after the start, so that the first slot is the next minute."""
    world = VolcanoWorld(make)
    world.clock.advance(duration.SECOND)
    world.create(cron_job(**spec))
    return world


def act(world):
    """Let the controllers do what is due now; no time passes."""
    for kind, waiting in world.late.items():
        while waiting:
            world.engine.feed(kind, *waiting.popleft())
    running.run_due(world.engine, world, world.moment)


def until(world, minute, second=0):
    """Let time pass, with the controllers at work, to a minute after the start."""
    end = (BEGIN + minute) * MINUTE + second * duration.SECOND
    act(world)
    while (due := world.engine.queue.next_due(world.clock.now())) is not None and due <= end:
        world.clock.advance_to(max(due, world.clock.now()))
        act(world)
    world.clock.advance_to(end)
    act(world)


def minutes(world):
    return sorted(int(name.rpartition("-")[2]) - BEGIN for name in jobs(world))


def status(world):
    return world.get(kinds.CRON_JOB, "c").get("status", {})


def reasons(world):
    return [note.reason for note in world.notes]


def stamp(minute, second=0):
    return timestamp.format_timestamp((BEGIN + minute) * MINUTE + second * duration.SECOND)


def test_a_slot_becomes_a_job_named_after_its_minute():
    start = 1_700_000_000 * duration.SECOND
    world = VolcanoWorld(make, clock=VirtualClock(start))
    world.create(cron_job("cj", "*/5 * * * *", timeZone="Asia/Tokyo"))
    act(world)
    world.clock.advance_to(1_700_000_100 * duration.SECOND - 1)
    act(world)
    assert jobs(world) == {}
    world.clock.advance(1)
    act(world)
    assert jobs(world) == {"cj-28333335": ""}
    job = world.get(kinds.JOB, "cj-28333335")
    owner = world.get(kinds.CRON_JOB, "cj")["metadata"]
    assert job["metadata"]["labels"] == {"x": "y"}
    assert job["metadata"]["annotations"] == {names.CRON_JOB_SCHEDULED: "2023-11-15T07:15:00+09:00"}
    assert [(each["uid"], each["controller"]) for each in job["metadata"]["ownerReferences"]] == [(owner["uid"], True)]
    assert job["spec"] == {"tasks": [{"name": "t", "replicas": 1}]}
    found = world.get(kinds.CRON_JOB, "cj")["status"]
    assert found["lastScheduleTime"] == "2023-11-14T22:15:00Z"
    assert [(each["name"], each["uid"]) for each in found["active"]] == [("cj-28333335", job["metadata"]["uid"])]
    assert reasons(world) == ["SuccessfulCreate"]


def test_a_slot_is_started_at_its_very_time_and_once():
    world = begun()
    until(world, 3)
    assert minutes(world) == [1, 2, 3]
    assert world.requests == 6  # for each slot the Job and the status


def test_of_missed_slots_only_the_latest_is_started():
    world = begun()
    world.clock.advance(7 * MINUTE)
    act(world)
    assert minutes(world) == [7]
    assert status(world)["lastScheduleTime"] == stamp(7)
    assert reasons(world) == ["SuccessfulCreate"]


@pytest.mark.parametrize(("missed", "told"), [(100, False), (101, True)])
def test_more_than_a_hundred_missed_slots_are_told_of(missed, told):
    world = begun()
    world.clock.advance(missed * MINUTE)
    act(world)
    assert minutes(world) == [missed]
    assert ("TooManyMissedTimes" in reasons(world)) is told


@pytest.mark.parametrize(
    ("deadline", "late", "starts"), [(30, 29, True), (30, 30, False), (0, 0, False), (3600, 59, True)]
)
def test_a_deadline_bounds_how_late_a_slot_is_started(deadline, late, starts):
    world = begun(schedule="*/10 * * * *", startingDeadlineSeconds=deadline)
    world.clock.advance_to((BEGIN + 10) * MINUTE + late * duration.SECOND)
    act(world)
    assert (minutes(world) == [10]) is starts


def test_nothing_is_started_while_suspended_and_the_latest_afterwards():
    world = begun(suspend=True)
    until(world, 5, 30)
    assert minutes(world) == []
    world.patch(kinds.CRON_JOB, "c", {"spec": {"suspend": False}})
    act(world)
    assert minutes(world) == [5]


def test_of_forbidden_slots_the_latest_is_started_when_the_job_ends():
    world = begun(concurrencyPolicy="Forbid")
    until(world, 3, 30)
    assert minutes(world) == [1]
    assert status(world)["lastScheduleTime"] == stamp(1)
    assert set(reasons(world)) == {"SuccessfulCreate", "ForbidConcurrent"}
    end_job(world, f"c-{BEGIN + 1}")
    act(world)
    assert minutes(world) == [1, 3]
    assert status(world)["lastScheduleTime"] == stamp(3)
    until(world, 3, 59)
    assert minutes(world) == [1, 3]


def test_a_forbidden_slot_that_is_too_old_is_lost():
    world = begun(concurrencyPolicy="Forbid", startingDeadlineSeconds=20)
    until(world, 3, 30)
    end_job(world, f"c-{BEGIN + 1}")
    act(world)
    assert minutes(world) == [1]
    until(world, 4)
    assert minutes(world) == [1, 4]


@pytest.mark.parametrize("field", ["lastScheduleTime", "lastSuccessfulTime"])
@pytest.mark.parametrize("value", [["a", 5], {"a": 1}, 7, "yesterday", True])
def test_a_time_that_is_none_starts_nothing_and_is_told(field, value):
    world = begun()
    world.store.patch_status(CRON, {"status": {field: value}})
    until(world, 3)
    assert minutes(world) == []
    assert "InvalidStatus" in reasons(world)
    world.store.patch_status(CRON, {"status": {field: None}})
    act(world)
    assert minutes(world) == [3]


def test_a_running_job_is_replaced():
    world = begun(concurrencyPolicy="Replace")
    until(world, 2)
    assert minutes(world) == [2]
    assert [each["name"] for each in status(world)["active"]] == [f"c-{BEGIN + 2}"]
    assert reasons(world) == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate", "ReplaceConcurrent"]


def test_ended_jobs_are_told_of_once_and_only_so_many_are_kept():
    world = begun(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for minute in range(1, 9):
        until(world, minute)
        phase = ("Completed", "Failed", "Terminated", "Completed")[minute % 4]
        end_job(world, f"c-{BEGIN + minute}", phase)
    until(world, 8, 30)
    assert jobs(world) == {
        f"c-{BEGIN + 2}": "Terminated",
        f"c-{BEGIN + 5}": "Failed",
        f"c-{BEGIN + 6}": "Terminated",
        f"c-{BEGIN + 7}": "Completed",
        f"c-{BEGIN + 8}": "Completed",
    }
    assert "active" not in status(world)
    assert status(world)["lastSuccessfulTime"] == stamp(8)
    assert reasons(world).count("SawCompletedJob") == 8
    assert reasons(world).count("SuccessfulDelete") == 3


def test_jobs_that_go_missing_or_belong_to_others_are_no_longer_active():
    world = begun(schedule="0 * * * *")
    act(world)
    key = Key(kinds.CRON_JOB, "a", "c")
    entries = [{"name": name, "namespace": "a", "uid": f"uid-{name}"} for name in ("gone", "other")]
    world.store.patch_status(key, {"status": {"active": entries}})
    metadata = {"name": "other", "namespace": "a"}
    world.create({"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {}})
    owner = {"apiVersion": kinds.CRON_JOB.api_version, "kind": "CronJob", "name": "c", "controller": True}
    owner["uid"] = world.get(kinds.CRON_JOB, "c")["metadata"]["uid"]
    metadata = {"name": "forgotten", "namespace": "a", "ownerReferences": [owner]}
    world.create({"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {}})
    act(world)
    assert sorted(reasons(world)) == ["ForeignJob", "OrphanedJob", "StaleReference"]
    assert [each["name"] for each in status(world)["active"]] == ["forgotten"]
    act(world)
    assert len(reasons(world)) == 3


@pytest.mark.parametrize("listed", [False, True])
def test_a_job_that_nobody_here_has_made_is_told_of_until_it_is_listed(listed):
    made = {"metadata": {"name": "j", "namespace": "a", "uid": "u"}}
    stated = {"status": {"active": [{"name": "j", "namespace": "a", "uid": "u"}] if listed else []}}
    owner = {"metadata": {"name": "c", "namespace": "a", "uid": "c"}, **stated}
    found = records.notes(flavours.VOLCANO, owner, [made], [], Observed())
    assert [reason for _, reason, _ in found] == ([] if listed else ["OrphanedJob"])


@pytest.mark.parametrize(("phase", "reason"), [("Completed", "SawCompletedJob"), ("", "StaleReference")])
def test_a_job_that_is_gone_before_anybody_looked_has_run(phase, reason):
    world = begun()
    until(world, 1)
    if phase:
        end_job(world, f"c-{BEGIN + 1}", phase)
    world.delete(kinds.JOB, f"c-{BEGIN + 1}")
    until(world, 1, 30)
    assert minutes(world) == []
    assert reasons(world) == ["SuccessfulCreate", reason]
    assert status(world).get("lastSuccessfulTime") == (stamp(1) if phase else None)


def test_a_job_that_is_deleted_before_its_start_is_written_down_is_not_started_again():
    world = begun()
    until(world, 0, 59)
    world.clock.advance(duration.SECOND)
    turn = world.engine.take(world.moment())
    (step,) = world.engine.next_steps(turn)
    world.engine.answered(turn, step, world.perform(step.request), world.clock.now())
    world.engine.finish(turn, world.moment())
    world.delete(kinds.JOB, f"c-{BEGIN + 1}")
    until(world, 1, 30)
    assert minutes(world) == []
    assert status(world)["lastScheduleTime"] == stamp(1)


def test_a_name_that_somebody_else_has_is_left_alone():
    world = begun()
    metadata = {"name": f"c-{BEGIN + 1}", "namespace": "a"}
    world.create({"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {"theirs": 1}})
    until(world, 1, 30)
    assert world.get(kinds.JOB, f"c-{BEGIN + 1}")["spec"] == {"theirs": 1}
    assert "FailedCreate" in reasons(world)
    until(world, 2)
    assert minutes(world) == [1, 2]


def test_nothing_is_started_in_a_namespace_that_is_being_deleted():
    world = begun()
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "finalizers": ["x"]}})
    world.store.delete(Key(kinds.NAMESPACE, "", "a"))
    until(world, 1)
    assert minutes(world) == []
    assert reasons(world) == ["NamespaceTerminating"]


@pytest.mark.parametrize(
    ("spec", "reason", "starts"),
    [
        ({"schedule": "* * * *"}, "UnParseableCronJobSchedule", False),
        ({"schedule": None}, "UnParseableCronJobSchedule", False),
        ({"timeZone": "Moon/Crater"}, "InvalidTimeZone", False),
        ({"timeZone": "Local"}, "InvalidTimeZone", False),
        ({"schedule": "0 0 30 2 *"}, "InvalidSchedule", False),
        ({"schedule": "TZ=Asia/Tokyo * * * * *"}, "UnsupportedSchedule", True),
        ({"schedule": "TZ=Asia/Tokyo * * * * *", "timeZone": "UTC"}, "UnParseableCronJobSchedule", False),
    ],
)
def test_what_is_wrong_with_a_schedule_is_told(spec, reason, starts):
    world = begun(**spec)
    until(world, 1)
    assert reason in reasons(world)
    assert (minutes(world) == [1]) is starts


@pytest.mark.parametrize(
    "bad", [{"spec": 3}, {"spec": {"schedule": "* * * * *", "jobTemplate": [], "startingDeadlineSeconds": "x"}}]
)
def test_a_cron_job_that_is_nonsense_costs_nobody_anything(bad):
    world = begun()
    world.create({**cron_job("bad"), **bad})
    until(world, 1)
    assert not world.complaints
    assert f"c-{BEGIN + 1}" in jobs(world)


# ---- lives


@LIVELY
@given(st.integers(0, 2**32), st.integers(0, 60), st.sampled_from(("Allow", "Forbid", "Replace")))
def test_through_faults_and_restarts_no_slot_is_started_twice_and_the_status_equals_a_recount(number, length, policy):
    rng = random.Random(number)  # noqa: S311  tells a life again
    world = begun(concurrencyPolicy=policy, successfulJobsHistoryLimit=1)
    made = []
    world.store.observe(
        lambda key, event, _: made.append(key.name) if key.kind == kinds.JOB and event == "ADDED" else None
    )
    for _ in range(length):
        match rng.choice(("deliver", "turn", "turn", "turn", "pass_time", "pass_time", "end", "restart")):
            case "end":
                running = [name for name, phase in jobs(world).items() if not phase]
                if running:
                    end_job(world, rng.choice(running), rng.choice(("Completed", "Completed", "Failed")))
            case "restart":
                world.restart()
            case event:
                getattr(world, event)(rng.randrange(10_000))
    world.patch(kinds.CRON_JOB, "c", {"spec": {"suspend": True}})
    world.settle()
    assert not world.complaints
    assert len(made) == len(set(made))
    found, running = status(world), [name for name, phase in jobs(world).items() if not phase]
    assert sorted(each["name"] for each in found.get("active", [])) == sorted(running)
    assert list(jobs(world).values()).count("Completed") <= 1
    assert list(jobs(world).values()).count("Failed") <= 1
    if policy != "Allow":
        assert len(running) <= 1
    if made:
        assert found["lastScheduleTime"] == stamp(int(made[-1].rpartition("-")[2]) - BEGIN)


def test_a_controller_that_is_killed_between_any_two_requests_is_replaced_without_harm():
    def happen(world):
        for minute in range(1, 5):
            try:
                until(world, minute)
            except world.killed:
                world.restart()
                until(world, minute)
            running = [name for name, phase in jobs(world).items() if not phase]
            if minute == 2:
                end_job(world, running[0], "Failed")
                end_job(world, running[1], "Completed")
        world.patch(kinds.CRON_JOB, "c", {"spec": {"suspend": True}})
        world.settled()

    world, ends = killed_anywhere(lambda: begun(successfulJobsHistoryLimit=0), happen)
    assert minutes(world) == [1, 3, 4]
    assert len(ends) >= 16
    for number, performed, other in ends:
        assert other.everything() == world.everything(), (number, performed)


@pytest.mark.parametrize("flavour", [flavours.VOLCANO, flavours.BATCH], ids=["volcano", "batch"])
def test_who_does_not_say_how_many_are_kept_keeps_three_that_went_well_and_one_that_failed(flavour):
    def ended(number, phase):
        conditions = [{"type": phase, "status": "True"}]
        metadata = {"name": f"{phase}-{number}", "namespace": "a", "creationTimestamp": stamp(number)}
        return {"metadata": metadata, "status": {"state": {"phase": phase}, "conditions": conditions}}

    listed = [ended(number, phase) for phase in (flavour.completed, "Failed") for number in range(5)]
    gone = [step.request.name for step in records.pruned(flavour, {"metadata": {"name": "c"}}, listed)]
    assert gone == [f"{flavour.completed}-0", f"{flavour.completed}-1", *(f"Failed-{number}" for number in range(4))]
