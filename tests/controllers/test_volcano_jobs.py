"""The rules of Volcano's Jobs, each beside a slow and obvious version of it, and what a Job costs."""

import itertools
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_volcano_job_cuts import CutWorld, job
from unreliable_world import UnreliableWorld
from volcano_worlds import command

from pumice.api import duration, kinds, timestamp
from pumice.controllers.queueing import requests, running
from pumice.controllers.volcano.jobs import pod_groups, reading, states
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.controllers.volcano.jobs.members import Members
from pumice.sim.identity import Key

PHASES = ("Pending", "Running", "Succeeded", "Failed")
ACTIONS = (
    "SyncJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "nonsense",
)


# ---- where an action leads

ENDS = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing"}
RESTARTS = ("RestartTask", "RestartPod", "RestartPartition")


def table(phase, action):
    """Give the phase, whether a retry is counted and whether all pods go, as the contract's table has it; None: no change."""
    if phase in ("", "Pending", "Running"):
        if action == "RestartJob":
            return ("Restarting", True, True)
        if action in RESTARTS:
            return ("Restarting", True, False)
        return (ENDS[action], False, True) if action in ENDS else None
    if phase == "Restarting":
        return (ENDS[action], False, True) if action in ENDS else None
    if phase in ("Aborting", "Aborted"):
        return ("Restarting", True, True) if action == "ResumeJob" else None
    return None


@pytest.mark.parametrize(
    ("phase", "action"),
    list(
        itertools.product(
            (
                "",
                "Pending",
                "Running",
                "Restarting",
                "Aborting",
                "Aborted",
                "Completing",
                "Completed",
                "Terminating",
                "Terminated",
                "Failed",
            ),
            ACTIONS,
        )
    ),
)
def test_an_action_leads_where_the_table_says(phase, action):
    found = states.acted(reading.Job({**job(), "status": {"state": {"phase": phase}}}), action)
    assert (None if found is None else (found.phase, found.counts, found.whole)) == table(phase, action)


def test_a_restart_of_some_becomes_one_of_all_without_another_retry():
    status = {"state": {"phase": "Restarting", "reason": "RestartPod", "message": "pod j-a-0: why"}, "retryCount": 1}
    found = states.acted(reading.Job({**job(), "status": status}), "RestartJob")
    assert (found.phase, found.counts, found.whole) == ("Restarting", False, True)


# ---- where a Job goes by itself

ROLES = st.lists(
    st.tuples(st.lists(st.sampled_from(PHASES), max_size=3), st.none() | st.integers(0, 3)), min_size=1, max_size=3
)


def obvious(phase, roles, minimum, success, retries):
    """Say where a Job goes, word for word as the contract has it."""
    pods = [each for listed, _ in roles for each in listed]
    total, count = len(pods), pods.count
    if phase == "Pending":
        return "Running" if minimum <= count("Running") + count("Succeeded") + count("Failed") else "Pending"
    if phase == "Restarting":
        return "Failed" if retries >= 2 else "Pending"
    if total == 0:
        return "Running"
    if success is not None and count("Succeeded") >= success:
        return "Completed"
    if count("Succeeded") + count("Failed") == total:
        if minimum >= sum(len(listed) if least is None else least for listed, least in roles):
            for listed, least in roles:
                if listed and least is not None and listed.count("Succeeded") < least:
                    return "Failed"
        if success is not None:
            return "Failed"
        return "Completed" if count("Succeeded") >= minimum else "Failed"
    return "Pending" if count("Pending") > total - minimum else "Running"


@given(
    st.sampled_from(("Pending", "Running", "Restarting")),
    ROLES,
    st.integers(0, 9),
    st.none() | st.integers(1, 9),
    st.integers(0, 2),
)
def test_a_job_goes_where_its_pods_take_it(phase, roles, minimum, success, retries):
    check(phase, roles, minimum, success, retries)


ENDED = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["Succeeded", "Succeeded", "Failed"]), max_size=3), st.none() | st.integers(0, 3)
    ),
    min_size=1,
    max_size=3,
)


@given(ENDED, st.integers(0, 9), st.sampled_from([None, None, 9]))
@example([(["Succeeded"] * 3, 1), (["Failed"], 1)], 2, None)
@example([(["Succeeded"], 1), ([], 0)], 1, None)
def test_a_job_whose_pods_have_ended_has_ended_as_they_have(roles, minimum, success):
    check("Running", roles, minimum, success, 0)


def check(phase, roles, minimum, success, retries):
    """See whether a Job of some roles, of which so many pods are the least, goes where the contract has it."""
    total = sum(len(listed) for listed, _ in roles)
    minimum = min(minimum, total)
    spec = {"minAvailable": minimum, "maxRetry": 2, **({"minSuccess": success} if success is not None else {})}
    tasks, pods = [], []
    for place, (listed, least) in enumerate(roles):
        task = {"name": f"t{place}", "replicas": len(listed)}
        tasks.append(task | ({"minAvailable": least} if least is not None else {}))
        pods += [_pod(f"t{place}", index, each) for index, each in enumerate(listed)]
    manifest = {"metadata": {"name": "j", "namespace": "a", "uid": "u"}, "spec": {**spec, "tasks": tasks}}
    read = reading.Job({**manifest, "status": {"state": {"phase": phase}, "retryCount": retries}})
    assert states.moved(read, Members(read, pods)) == obvious(phase, roles, minimum, success, retries)


def _pod(role, index, phase, **metadata):
    annotations = {"volcano.sh/job-name": "j", "volcano.sh/job-version": "0", "volcano.sh/task-spec": role}
    named = {"name": f"j-{role}-{index}", "namespace": "a", "uid": f"{role}{index}", "annotations": annotations}
    return {"metadata": {**named, **metadata}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("phase", "end"), [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")]
)
@pytest.mark.parametrize("left", ["Pending", "Running", "Unknown", "going", "Succeeded", "Failed", ""])
@pytest.mark.parametrize("beside", ["Unknown", "Failed", ""])
def test_what_is_ending_has_ended_when_nobody_runs_or_goes(phase, end, left, beside):
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if left == "going" else {}
    pods = [_pod("a", 0, "Succeeded" if left == "going" else left, **going)] if left else []
    pods += [_pod("a", 1, beside)] if beside else []
    read = reading.Job({**job(), "status": {"state": {"phase": phase}}})
    over = {left, beside} <= {"Succeeded", "Failed", ""}
    assert states.moved(read, Members(read, pods)) == (end if over else phase)


@pytest.mark.parametrize("needed", [1, 2, 3])
@pytest.mark.parametrize("succeeded", [0, 1, 2, 3])
def test_a_job_is_complete_with_as_many_successes_as_it_asks_for(succeeded, needed):
    spec = {"minAvailable": 1, "minSuccess": needed, "tasks": [{"name": "a", "replicas": 4}]}
    manifest = {"metadata": {"name": "j", "namespace": "a", "uid": "u"}, "spec": spec}
    read = reading.Job({**manifest, "status": {"state": {"phase": "Running"}}})
    pods = [_pod("a", index, "Succeeded" if index < succeeded else "Running") for index in range(4)]
    assert states.moved(read, Members(read, pods)) == ("Completed" if succeeded >= needed else "Running")


# ---- what it costs


class CountingWorld(CutWorld):
    """Counts requests by verb and kind."""

    def __init__(self):
        self.asked = []
        super().__init__({})

    def perform(self, request, fault=""):
        self.asked.append((type(request).__name__, request.kind.name))
        return super().perform(request, fault)


def test_a_hundred_jobs_of_ten_pods_cost_at_most_one_and_six_tenths_writes_for_each_pod():
    world, rng, jobs = CountingWorld(), random.Random(1), 100  # noqa: S311  the same each time
    for number in range(jobs):
        made = job((("w", 10),), plugins={})
        made["metadata"] |= {"name": f"j{number}", "uid": f"u{number}"}
        world.create(made)
    for tick in range(1200):
        for kind, waiting in world.late.items():
            while waiting:
                world.engine.feed(kind, *waiting.popleft())
        running.run_due(world.engine, world, world.moment)
        world.let_in(1)
        for pod in list(world.store.scan(kinds.POD)):
            # Pods start within a second and run for 20 seconds, those of a Job more or less together.
            age = world.clock.now() - _created(pod)
            jitter = sum(pod["metadata"]["name"].encode()) * 37 % 1000 * duration.MILLISECOND
            end = "Succeeded" if age > 20 * duration.SECOND + jitter else None
            if age > jitter and (end or pod.get("status", {}).get("phase", "Pending") == "Pending"):
                world.step_pod(pod, end)
        world.clock.advance(100 * duration.MILLISECOND + rng.randrange(1000))
        if tick > 300 and all(each["status"]["state"]["phase"] == "Completed" for each in world.store.scan(kinds.JOB)):
            break
    statuses = [each["status"] for each in world.store.scan(kinds.JOB)]
    assert {(each["state"]["phase"], each["succeeded"]) for each in statuses} == {("Completed", 10)}
    assert not [each for each in world.asked if each[0] == "Read"]
    assert len(world.asked) <= 1.6 * 10 * jobs, len(world.asked)


def _created(pod):
    return timestamp.parse(pod["metadata"]["creationTimestamp"])


@pytest.mark.parametrize("busy", [False, True])
def test_a_new_job_is_pending_at_once_and_if_there_is_much_to_do_together_with_its_counts(busy):
    world = CountingWorld()
    world.busy = busy
    world.create(job((("w", 10),), plugins={}))
    _caught_up(world)
    first = [("Create", "PodGroup"), *([] if busy else [("Patch", "Job")])]
    assert world.asked == first
    world.let_in(1)
    world.clock.advance(duration.SECOND)
    _caught_up(world)
    assert world.asked == first + [("Create", "Pod")] * 10
    world.busy = False
    world.clock.advance(30 * duration.SECOND)
    _caught_up(world)
    assert world.asked == first + [("Create", "Pod")] * 10 + [("Patch", "Job")]
    status = world.get(kinds.JOB, "j")["status"]
    assert (status["state"]["phase"], status["pending"]) == ("Pending", 10)


def test_that_a_new_job_is_pending_is_told_within_half_a_minute_however_much_there_is_to_do():
    world = CountingWorld()
    world.busy = True
    world.create(job((("w", 10),), plugins={}))
    begun, told = world.clock.now(), []
    for _ in range(60):
        _caught_up(world)
        told += [world.clock.now()] if "status" in world.get(kinds.JOB, "j") else []
        world.clock.advance(duration.SECOND)
    assert 29 * duration.SECOND <= told[0] - begun <= 32 * duration.SECOND
    assert world.asked == [("Create", "PodGroup"), ("Patch", "Job")]


@pytest.mark.parametrize("busy", [False, True])
def test_a_job_is_patient_if_it_puts_something_off_because_there_is_much_to_do(busy):
    world = CountingWorld()
    world.busy = True
    world.create(job((("w", 1),), plugins={}))
    _caught_up(world)
    plan = Jobs().reconcile("a", "j", world.engine.observed, requests.Moment(world.clock.now(), busy=busy))
    assert plan.patient is (plan.again is not None) is busy


def test_what_happens_to_pods_of_a_new_job_is_told_at_once_however_much_there_is_to_do():
    world = CountingWorld()
    world.busy = True
    world.create(job((("w", 2),), plugins={}))
    _caught_up(world)
    world.let_in(1)
    _caught_up(world)
    world.fate("j-w-0", "Running")
    _caught_up(world)
    assert world.get(kinds.JOB, "j")["status"]["state"]["phase"] == "Pending"
    world.fate("j-w-1", "Running")
    world.clock.advance(duration.SECOND)
    _caught_up(world)
    assert world.get(kinds.JOB, "j")["status"]["state"]["phase"] == "Running"


def _caught_up(world):
    """Let the controller hear of everything and do what is due."""
    for _ in range(5):
        world.clock.advance(60 * duration.MILLISECOND)  # who has nothing to do rests for a moment
        for kind, waiting in world.late.items():
            while waiting:
                world.engine.feed(kind, *waiting.popleft())
        running.run_due(world.engine, world, world.moment)


def test_a_job_that_runs_on_asks_for_nothing():
    world = CountingWorld()
    world.create(job())
    world.calm()
    world.clock.advance(duration.HOUR)
    world.asked.clear()
    world.settle()
    assert not world.asked
    assert world.engine.queue.next_due(world.clock.now()) is None


# ---- what others left

LEFT = {
    "minAvailable": 4,
    "running": 4,
    "state": {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    "taskStatusCount": {"a": {"phase": {"Running": 2}}, "b": {"phase": {"Running": 2}}},
    "conditions": [{"status": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "controlledResources": {"plugin-svc": "svc"},
}


@pytest.mark.parametrize("older", [False, True])
def test_a_job_that_volcano_has_started_is_taken_over_without_a_write(older):
    """Make what Volcano's own controller would have made: no stamp of a version on the group, no zeros in the status."""
    made = CountingWorld()
    made.create(job())
    made.calm()
    world = CountingWorld()
    for kind in (kinds.POD_GROUP, kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY, kinds.POD):
        for each in made.store.scan(kind):
            metadata = {key: value for key, value in each["metadata"].items() if key not in ("resourceVersion", "uid")}
            if kind is kinds.POD_GROUP:
                metadata["annotations"] = {}
                metadata["name"] = "j" if older else metadata["name"]
            world.create({**each, "metadata": metadata})
    world.create({**job(), "status": LEFT})
    world.calm()
    assert not world.asked
    world.fate("j-a-0", "Failed")
    world.calm()
    assert world.told()[0]["failed"] == 1


# ---- refusals


def test_a_job_whose_pods_are_refused_is_given_up_at_the_fifteenth_try_and_says_why():
    world = CountingWorld()
    plain = world.perform

    def perform(request, fault=""):
        pod = isinstance(request, requests.effects.Create) and request.kind is kinds.POD
        tried.extend([world.clock.now()] if pod else [])
        return requests.Answer(code="refused", message="exceeded quota: q") if pod else plain(request)

    world.perform, tried = perform, []
    world.create(job())
    world.calm()
    assert world.told()[0]["state"] == {"phase": "Terminated", "reason": "TerminateJob"}
    said = {(note.type, note.reason): note.message for note in world.notes}
    assert "exceeded quota: q" in said["Warning", "FailedCreate"]
    assert said["Warning", "ExecuteAction"] == "Job failed on action SyncJob for retry limit reached: exceeded quota: q"
    assert sum(note.reason == "FailedCreate" for note in world.notes) == 14  # the last try is to end it
    (given_up,) = [
        each for each in world.get(kinds.JOB, "j")["status"]["conditions"] if each["status"] == "Terminating"
    ]
    took = timestamp.parse(given_up["lastTransitionTime"]) - tried[0]
    assert 160 * duration.SECOND < took < 180 * duration.SECOND


def test_a_job_is_not_given_up_because_the_server_is_away():
    world = CountingWorld()
    plain, away = world.perform, [True]
    world.perform = lambda request, fault="": plain(request, "away" if away else "")
    world.create(job())
    for _ in range(40):
        running.run_due(world.engine, world, world.moment)
        world.clock.advance(30 * duration.SECOND)
    away.clear()
    world.calm()
    assert world.told()[0]["state"]["phase"] == "Running"


def test_a_limit_of_refusals_below_nothing_is_none():
    world = UnreliableWorld(lambda: [Jobs(most_refusals=-1)])
    world.create(job(queue="nowhere"))
    for _ in range(40):
        running.run_due(world.engine, world, world.moment)
        world.clock.advance(duration.MINUTE)
    assert "status" not in world.get(kinds.JOB, "j")
    world.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "nowhere"}})
    world.settle()
    assert world.get(kinds.JOB, "j")["status"]["state"]["phase"] == "Pending"


def test_a_claim_is_named_and_made_once_however_often_it_is_asked_for():
    volumes = [{"mountPath": "/d", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}]
    plain = CutWorld({})
    plain.create(job(volumes=volumes))
    plain.calm()
    (claim,) = plain.store.scan(kinds.PERSISTENT_VOLUME_CLAIM)
    for number, fault in itertools.product(range(1, plain.count + 1), ("killed", "lost", "away")):
        world = CutWorld({number: fault})
        world.create(job(volumes=volumes))
        world.calm()
        (found,) = world.store.scan(kinds.PERSISTENT_VOLUME_CLAIM)
        assert found["metadata"]["name"] == claim["metadata"]["name"]
        assert world.told() == plain.told()


def test_a_command_for_a_job_that_is_being_deleted_is_dropped_and_does_nothing():
    world = CutWorld({})
    made = job()
    world.create({**made, "metadata": {**made["metadata"], "finalizers": ["a.b/c"]}})
    world.calm()
    world.store.delete(Key(kinds.JOB, "a", "j"))
    before = world.get(kinds.JOB, "j")
    assert before["metadata"]["deletionTimestamp"]
    world.create(command("late", "AbortJob", "j", kind=kinds.JOB))
    world.calm()
    assert world.get(kinds.COMMAND, "late") is None
    assert world.get(kinds.JOB, "j") == before
    assert ("Warning", "Command late comes too late: the Job is being deleted") in {
        (note.type, note.message) for note in world.notes
    }


def test_a_claim_that_is_missing_is_warned_of_once():
    world = CutWorld({})
    world.create(job(volumes=[{"mountPath": "/d", "volumeClaimName": "mine"}]))
    world.calm()
    assert [(note.type, note.reason) for note in world.notes] == [("Warning", "PVCError")]
    assert "pvc mine is not found" in world.notes[0].message


def test_counts_of_the_end_are_kept_when_pods_are_cleared_away():
    world = CutWorld({})
    world.create(job(minAvailable=1))
    world.calm()
    world.calm("Succeeded")
    for name in ("j-a-0", "j-b-1"):
        world.store.remove(Key(kinds.POD, "a", name))
    world.calm()
    status = world.told()[0]
    assert (status["state"]["phase"], status["succeeded"]) == ("Completed", 4)
    assert status["taskStatusCount"] == {"a": {"phase": {"Succeeded": 2}}, "b": {"phase": {"Succeeded": 2}}}


def test_a_name_that_is_free_again_is_noticed_also_where_others_pods_are_not_watched():
    world = CutWorld({})
    plain = world.engine.feed
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "j-a-0", "namespace": "a", "annotations": {"volcano.sh/job-version": "0"}},
    }
    world.create(stranger)
    world.create(job())

    def feed(kind, event_type, manifest):
        if kind is not kinds.POD or manifest["metadata"].get("ownerReferences"):
            plain(kind, event_type, manifest)

    world.engine.feed = feed
    for round_ in range(40):
        world.let_in(1)
        for kind, waiting in world.late.items():
            while waiting:
                world.engine.feed(kind, *waiting.popleft())
        running.run_due(world.engine, world, world.moment)
        world.clock.advance(duration.SECOND)
        if round_ == 10:
            world.store.remove(Key(kinds.POD, "a", "j-a-0"))
    assert [pod["metadata"]["name"] for pod in world.pods("u")] == ["j-a-1", "j-b-0", "j-b-1", "j-a-0"]


# ---- phases and counts are one write


@pytest.mark.parametrize(
    ("event", "phase", "terminating", "left"),
    [
        ("AbortJob", "Aborting", 3, 0),
        ("TerminateJob", "Terminating", 3, 0),
        ("CompleteJob", "Completing", 3, 0),
        ("RestartJob", "Restarting", 4, 0),
        ("RestartTask", "Restarting", 2, 2),
        ("RestartPod", "Restarting", 1, 3),
    ],
)
def test_a_phase_is_first_stored_with_the_number_of_pods_that_go_for_it(event, phase, terminating, left):
    world, stored = CountingWorld(), []
    world.create(job(policies=[{"event": "PodFailed", "action": event}]))
    world.calm()
    assert world.told()[0]["running"] == 4
    world.store.observe(lambda key, _, manifest: stored.append(manifest["status"]) if key.kind is kinds.JOB else None)
    world.fate("j-a-0", "Failed")
    world.calm()
    first = next(each for each in stored if each["state"]["phase"] == phase)
    assert (first["terminating"], first["running"] + first["pending"]) == (terminating, left)
    assert sum(each["state"]["phase"] == phase for each in stored) == 1


def test_a_command_that_outran_its_job_is_carried_out_and_one_for_nobody_is_taken_away():
    world = CountingWorld()
    world.create(job())
    world.late[kinds.JOB], late = type(world.late[kinds.JOB])(), world.late[kinds.JOB]
    world.create(command("c1", "AbortJob", "j", kind=kinds.JOB))
    world.create(command("c2", "AbortJob", "nobody", kind=kinds.JOB))
    while world.late[kinds.COMMAND]:
        world.engine.feed(kinds.COMMAND, *world.late[kinds.COMMAND].popleft())
    running.run_due(world.engine, world, world.moment)
    world.late[kinds.JOB].extend(late)
    world.calm()
    assert world.told()[0]["state"] == {"phase": "Aborted", "reason": "AbortJob"}
    assert list(world.store.scan(kinds.COMMAND)) == []


@pytest.mark.parametrize("order", [0, 1])
def test_when_a_group_is_expected_to_start_is_no_reason_against_it(order):
    conditions = [
        {"type": "Unschedulable", "status": "True", "message": "no room; 1/1", "lastTransitionTime": "2026-01-01T00:00:01Z"},
        {"type": "StartForecast", "status": "True", "message": "expected at 1", "lastTransitionTime": "2026-01-01T00:00:02Z"},
    ]  # fmt: skip
    group = {"status": {"conditions": conditions[::-1] if order else conditions}}
    assert pod_groups.why_it_waits(group) == "no room; 1/1"
    assert pod_groups.why_it_waits({"status": {"conditions": conditions[1:]}}) == ""
