"""JobFlows and JobTemplates: which Jobs are made when, and what is said of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from volcano_worlds import VolcanoWorld, end_job, job_flow, job_template, jobs, killed_anywhere

from builders import NOW, stamp
from drawing import drawn
from pumice.api import kinds, names
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.job_flows import flows, reporting
from pumice.controllers.volcano.job_flows.controlling import JobFlows
from pumice.controllers.volcano.job_flows.templates import JobTemplates

LIVELY = settings(max_examples=drawn(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENDED = ("Completed", "Failed", "Terminated")


def make():
    return [JobFlows(), JobTemplates()]


def begun(*steps, templates=None, **spec):
    world = VolcanoWorld(make)
    for name in (step if isinstance(step, str) else step[0] for step in steps) if templates is None else templates:
        world.create(job_template(name))
    world.create(job_flow("f", *steps, **spec))
    world.settle()
    return world


def status(world):
    return world.get(kinds.JOB_FLOW, "f").get("status", {})


def phase(world):
    return status(world)["state"]["phase"]


def end(world, step, how="Completed"):
    end_job(world, f"f-{step}", how)
    world.settle()


def test_a_job_is_made_when_those_before_it_are_completed():
    world = begun("a", ("b", ["a"]), ("c", ["a", "b"]))
    assert (phase(world), list(jobs(world))) == ("Pending", ["f-a"])
    assert status(world)["pendingJobs"] == ["f-a"]
    end(world, "a", "Running")
    assert (phase(world), list(jobs(world))) == ("Running", ["f-a"])
    end(world, "a")
    assert (phase(world), list(jobs(world))) == ("Running", ["f-a", "f-b"])
    end(world, "b")
    assert list(jobs(world)) == ["f-a", "f-b", "f-c"]
    end(world, "c")
    assert phase(world) == "Succeed"
    assert status(world)["completedJobs"] == ["f-a", "f-b", "f-c"]
    assert [note.reason for note in world.notes] == ["Created"] * 3
    lives = {
        each["name"]: [entry["state"] for entry in each["runningHistories"]] for each in status(world)["jobStatusList"]
    }
    assert lives == {
        "f-a": ["Pending", "Running", "Completed"],
        "f-b": ["Pending", "Completed"],
        "f-c": ["Pending", "Completed"],
    }
    assert {name: each["phase"] for name, each in status(world)["conditions"].items()} == dict.fromkeys(
        lives, "Completed"
    )


def test_a_job_is_the_template_with_its_origin():
    world = begun("a", templates=[])
    assert [note.reason for note in world.notes] == ["SyncJobFlow"]
    world.create(job_template("a", queue="q", plugins={"svc": []}))
    world.settle()
    job = world.get(kinds.JOB, "f-a")
    assert job["spec"] == {"minAvailable": 1, "queue": "q", "plugins": {"svc": []}}
    origin = {names.CREATED_BY_JOB_TEMPLATE: "a.a", names.CREATED_BY_JOB_FLOW: "a.f"}
    assert job["metadata"]["labels"] == job["metadata"]["annotations"] == origin
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobFlow", "f", True)
    assert world.get(kinds.JOB_TEMPLATE, "a")["status"] == {"jobDependsOnList": ["f-a"]}


@pytest.mark.parametrize("how", ["Failed", "Terminated"])
def test_a_flow_fails_with_one_job_and_makes_no_more_but_leaves_others_alone(how):
    world = begun("a", "b", ("c", ["b"]))
    end(world, "b", "Running")
    end(world, "a", how)
    assert phase(world) == "Failed"
    end(world, "b", "Completed")
    assert (phase(world), jobs(world)) == ("Failed", {"f-a": how, "f-b": "Completed"})


def test_a_job_that_was_removed_after_its_end_is_not_run_again_and_counts():
    world = begun("a", ("b", ["a"]))
    end(world, "a")
    world.delete(kinds.JOB, "f-a")
    world.settle()
    world.restart()
    world.settle()
    assert list(jobs(world)) == ["f-b"]
    assert status(world)["completedJobs"] == ["f-a"]
    end(world, "b")
    assert phase(world) == "Succeed"


def test_a_job_that_was_removed_after_its_end_before_anybody_looked_is_not_run_again():
    world = begun("a", ("b", ["a"]))
    end_job(world, "f-a")
    world.delete(kinds.JOB, "f-a")
    world.settle()
    assert list(jobs(world)) == ["f-b"]
    assert status(world)["completedJobs"] == ["f-a"]
    assert [each["state"] for each in status(world)["jobStatusList"]] == ["Completed", "Pending"]


def test_a_job_that_was_removed_before_its_end_is_made_again():
    world = begun("a")
    end(world, "a", "Running")
    world.delete(kinds.JOB, "f-a")
    world.settle()
    assert jobs(world) == {"f-a": ""}


@pytest.mark.parametrize(("policy", "left"), [("delete", []), ("retain", ["f-a", "f-b"]), (None, ["f-a", "f-b"])])
def test_what_becomes_of_jobs_at_the_end(policy, left):
    world = begun("a", "b", **({"jobRetainPolicy": policy} if policy else {}))
    end(world, "a")
    end(world, "b")
    assert (phase(world), list(jobs(world))) == ("Succeed", left)
    assert status(world)["completedJobs"] == ["f-a", "f-b"]
    assert [each["name"] for each in status(world)["jobStatusList"]] == ["f-a", "f-b"]


@pytest.mark.parametrize(
    ("how", "field"), [("", "pendingJobs"), ("Aborting", "unKnowJobs"), ("Restarting", "unKnowJobs")]
)
def test_jobs_stand_in_the_list_of_their_phase(how, field):
    world = begun("a")
    if how:
        end(world, "a", how)
    assert status(world)[field] == ["f-a"]
    assert phase(world) == "Pending"


def test_a_name_that_somebody_else_has_is_left_alone():
    world = VolcanoWorld(make)
    world.create(
        {"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": {"name": "f-a", "namespace": "a"}, "spec": {}}
    )
    world.create(job_template("a"))
    world.create(job_flow("f", "a"))
    world.settle()
    assert world.get(kinds.JOB, "f-a")["spec"] == {}
    assert "belongs to somebody else" in world.notes[0].message
    assert phase(world) == "Pending"


def test_a_name_too_long_for_a_label_is_an_annotation_only():
    long = "t" * 80
    world = begun(long)
    job = world.get(kinds.JOB, f"f-{long}")
    assert job["metadata"]["labels"] == {names.CREATED_BY_JOB_FLOW: "a.f"}
    assert job["metadata"]["annotations"][names.CREATED_BY_JOB_TEMPLATE] == f"a.{long}"
    assert world.get(kinds.JOB_TEMPLATE, long)["status"] == {"jobDependsOnList": [f"f-{long}"]}


def test_a_list_of_jobs_of_a_template_is_never_emptied():
    world = begun("a", jobRetainPolicy="delete")
    end(world, "a")
    assert jobs(world) == {}
    assert world.get(kinds.JOB_TEMPLATE, "a")["status"] == {"jobDependsOnList": ["f-a"]}


@pytest.mark.parametrize(
    "spec",
    [
        3,
        None,
        {"flows": 7},
        {"flows": [None, {"name": 3}, {"dependsOn": []}]},
        {"flows": [{"name": "a", "dependsOn": {"targets": [1, {}]}}]},
    ],
)
def test_a_flow_that_is_nonsense_costs_nobody_anything(spec):
    world = begun("a")
    world.create({**job_flow("bad"), "spec": spec})
    world.settle()
    assert not world.complaints
    assert list(jobs(world)) == ["f-a"]


def test_nothing_is_written_when_nothing_has_changed():
    world = begun("a", ("b", ["a"]))
    end(world, "a")
    before = world.store.resource_version
    world.restart()
    world.settle()
    assert world.store.resource_version == before


# ---- lives


def graphs():
    """Give flows without a ring: each step may wait for some of the earlier ones."""

    def built(drawn):
        return [
            (f"s{place}", sorted({f"s{target % place}" for target in targets})) if place and targets else f"s{place}"
            for place, targets in enumerate(drawn)
        ]

    return st.lists(st.lists(st.integers(0, 100), max_size=3), min_size=1, max_size=7).map(built)


@LIVELY
@given(graphs(), st.integers(0, 2**32), st.integers(0, 120), st.booleans(), st.booleans())
def test_any_flow_through_any_faults_makes_each_job_once_in_order_and_ends_as_its_jobs_do(
    steps, number, length, fails, cleans
):
    rng = random.Random(number)  # noqa: S311  tells a life again
    world = begun(*steps, **({"jobRetainPolicy": "delete"} if cleans else {}))
    before = {f"f-{step[0]}": [f"f-{each}" for each in step[1]] for step in steps if not isinstance(step, str)}
    made, ended = list(jobs(world)), {}

    def seen(key, event, _):
        if key.kind == kinds.JOB and event == "ADDED":
            made.append(key.name)
            assert all(ended.get(each) == "Completed" for each in before.get(key.name, [])), key.name

    world.store.observe(seen)
    for _ in range(length):
        match rng.choice(("deliver", "turn", "turn", "turn", "pass_time", "run", "run", "restart")):
            case "run":
                _run_one(world, rng, ended, fails=fails)
            case "restart":
                world.restart()
            case event:
                getattr(world, event)(rng.randrange(10_000))
    world.settle()
    while any(each not in ENDED for each in jobs(world).values()):
        _run_one(world, rng, ended, fails=False)
        world.settle()
    assert not world.complaints
    assert len(made) == len(set(made))
    failed = [name for name, how in ended.items() if how != "Completed"]
    assert phase(world) == ("Failed" if failed else "Succeed")
    found = status(world)
    assert found.get("completedJobs", []) == sorted(name for name, how in ended.items() if how == "Completed")
    assert found.get("failedJobs", []) == sorted(failed)
    assert not any(found.get(field) for field in ("pendingJobs", "runningJobs", "terminatedJobs", "unKnowJobs"))
    assert [each["name"] for each in found["jobStatusList"]] == sorted(ended)
    if not failed:
        assert len(made) == len(steps)
        assert bool(jobs(world)) is not cleans


def _run_one(world, rng, ended, *, fails):
    """Let a Job take a step: it runs, then ends."""
    alive = [(name, phase) for name, phase in jobs(world).items() if phase not in ENDED]
    if alive:
        name, phase = rng.choice(alive)
        how = "Running" if not phase else "Failed" if fails and rng.random() < 0.3 else "Completed"
        end_job(world, name, how)
        if how != "Running":
            ended[name] = how


def test_a_controller_that_is_killed_between_any_two_requests_is_replaced_without_harm():
    def happen(world):
        for step in ("a", "b", "c"):
            end_job(world, f"f-{step}")
            world.settled()

    def begin():
        world = VolcanoWorld(make)
        for name in "abc":
            world.create(job_template(name))
        world.create(job_flow("f", "a", ("b", ["a"]), ("c", ["b"]), jobRetainPolicy="delete"))
        world.settle()
        world.requests = 0
        return world

    world, ends = killed_anywhere(begin, happen)
    assert (phase(world), jobs(world)) == ("Succeed", {})
    assert len(ends) >= 20
    for number, performed, other in ends:
        assert other.everything() == world.everything(), (number, performed)


# ---- one look


def test_what_keeps_a_job_from_being_made_is_told_once_the_status_is_written():
    observed = Observed()
    flow = job_flow("f", "a")
    observed.feed(kinds.JOB_FLOW, "ADDED", flow)
    first = JobFlows().reconcile("a", "f", observed, Moment(NOW))
    assert (len(first.steps), first.notes) == (1, [])
    flow = {**flow, "status": first.steps[0].request.body["status"]}
    observed.feed(kinds.JOB_FLOW, "MODIFIED", {**flow, "metadata": {**flow["metadata"], "resourceVersion": "9"}})
    second = JobFlows().reconcile("a", "f", observed, Moment(NOW))
    assert second.steps == []
    assert [(kind, reason) for kind, reason, _ in second.notes] == [("Warning", "SyncJobFlow")]


def test_a_step_without_a_template_is_none():
    flow = {"metadata": {"name": "f"}, "spec": {"flows": [{"name": ""}, {"name": 5}, {}, {"name": "a"}]}}
    assert [step.job for step in flows.steps_of(flow)] == ["f-a"]


@pytest.mark.parametrize(
    ("phase_of", "retries", "ended", "restarts"),
    [
        ("Running", 0, None, None),
        ("Running", 2, None, 2),
        ("Completed", 0, stamp(9), None),
        ("Failed", 1, stamp(9), 1),
        ("Terminated", 0, stamp(9), None),
        ("Aborted", 0, None, None),
    ],
)
def test_the_life_of_a_job_says_when_it_ended_and_how_often_it_began_anew(phase_of, retries, ended, restarts):
    state = {"phase": phase_of, "lastTransitionTime": stamp(9)}
    job = {
        "metadata": {"name": "f-a", "creationTimestamp": stamp(1)},
        "status": {"state": state, "retryCount": retries},
    }
    flow = job_flow("f", "a")
    found = reporting.status(flow, flows.steps_of(flow), [job], {"f-a": phase_of}, Moment(NOW))
    (life,) = found["jobStatusList"]
    assert (life["startTimestamp"], life.get("endTimestamp"), life.get("restartCount")) == (stamp(1), ended, restarts)


@pytest.mark.parametrize(("origin", "concerned"), [("a.t", [("a", "t")]), ("a.gone", []), ("", [])])
def test_a_job_concerns_the_template_that_it_was_made_of(origin, concerned):
    observed = Observed()
    observed.feed(kinds.JOB_TEMPLATE, "ADDED", job_template("t"))
    job = {"metadata": {"name": "j", "namespace": "a", "labels": {names.CREATED_BY_JOB_TEMPLATE: origin}}}
    assert list(JobTemplates().concerns(kinds.JOB, job, observed)) == concerned
