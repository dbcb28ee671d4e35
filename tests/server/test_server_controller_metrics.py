"""What controllers are measured by: phases of jobs, flows and groups as they change, and requests by verb."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, requests
from pumice.server.logs import logs
from pumice.server.metrics import exposition, series
from pumice.server.metrics.controllers import ControllersMeter

SECOND = 1_000_000
CREATED = "2024-05-01T10:00:00Z"
NOW = 1_714_557_600 * SECOND  # the same moment


@pytest.fixture
def board():
    return Board()


class Board:
    """A meter, and what it says."""

    def __init__(self):
        self.exposition = exposition.Exposition(self._samples, series.CONTROLLERS)
        self.stream = io.StringIO()
        self.now = NOW
        self.meter = ControllersMeter(self.exposition, logs.Log(3, stream=self.stream), lambda: self.now)
        self.engine = engine.Engine([])
        self.meter.look_at(self.engine)

    def _samples(self):
        return self.meter.samples()

    def values(self, name):
        return {labels: value for found, labels, value in self.meter.samples() if found == name}


def job(name, phase="", uid=None, **status):
    metadata = {
        "name": name,
        "namespace": "n",
        "uid": uid or name,
        "creationTimestamp": CREATED,
        "resourceVersion": "1",
    }
    return {"metadata": metadata, "spec": {"queue": "q"}, "status": {"state": {"phase": phase}, **status}}


def test_a_job_that_ends_is_counted_once_and_forgotten_with_its_object(board):
    for phase in ("Pending", "Running", "Completed", "Completed"):
        board.meter.noticed(kinds.JOB, "MODIFIED", job("a", phase))
    board.meter.noticed(kinds.JOB, "MODIFIED", job("b", "Failed"))
    assert board.values("volcano_job_completed_phase_count") == {("n/a", "q"): 1}
    assert board.values("volcano_job_failed_phase_count") == {("n/b", "q"): 1}
    board.meter.noticed(kinds.JOB, "DELETED", job("a"))
    assert board.values("volcano_job_completed_phase_count") == {}


def test_flows_are_counted_by_namespace_when_they_end_and_not_when_they_are_listed(board):
    def flow(name, phase):
        metadata = {"name": name, "namespace": "n", "uid": name}
        return {"metadata": metadata, "status": {"state": {"phase": phase}}}

    board.meter.noticed(kinds.JOB_FLOW, "ADDED", flow("old", "Succeed"))
    for phase in ("Running", "Succeed", "Succeed"):
        board.meter.noticed(kinds.JOB_FLOW, "MODIFIED", flow("new", phase))
    for phase in ("Running", "Failed"):
        board.meter.noticed(kinds.JOB_FLOW, "MODIFIED", flow("bad", phase))
    assert board.values("volcano_jobflow_succeed_phase_count") == {("n",): 1}
    assert board.values("volcano_jobflow_failed_phase_count") == {("n",): 1}


PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed", "")
CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["q1", "q2"]), st.sampled_from([*PHASES, None])), max_size=40
)


@given(CHANGES)
def test_groups_are_counted_by_queue_and_phase_as_a_recount_would(changes):
    board, there = Board(), {}
    for name, queue, phase in changes:
        metadata = {"name": name, "namespace": "n", "uid": name}
        manifest = {"metadata": metadata, "spec": {"queue": queue}, "status": {"phase": phase}}
        board.meter.noticed(kinds.POD_GROUP, "MODIFIED" if phase is not None else "DELETED", manifest)
        there.pop(name, None)
        if phase is not None:
            there[name] = queue, (phase or "Pending").lower()
    counted = Counter()
    for phase in ("inqueue", "pending", "running", "unknown", "completed"):
        for (queue,), count in board.values(f"volcano_queue_pod_group_{phase}_count").items():
            counted[queue, phase] = count
    assert +counted == Counter(there.values())


def test_a_queue_that_is_gone_takes_its_series_with_it(board):
    manifest = {"metadata": {"name": "g", "uid": "g"}, "spec": {"queue": "q"}, "status": {"phase": "Running"}}
    board.meter.noticed(kinds.POD_GROUP, "ADDED", manifest)
    board.meter.noticed(kinds.QUEUE, "DELETED", {"metadata": {"name": "q"}})
    assert board.values("volcano_queue_pod_group_running_count") == {}
    board.meter.noticed(kinds.POD_GROUP, "DELETED", manifest)


def pod(owner):
    reference = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": owner, "uid": owner, "controller": True}
    return {"metadata": {"name": f"{owner}-w-0", "namespace": "n", "ownerReferences": [reference]}}


def test_the_wait_for_the_first_pod_is_measured_once_for_each_job_and_not_after_a_restart(board):
    for name, version in (("a", 0), ("again", 1)):
        board.engine.feed(kinds.JOB, "ADDED", job(name, version=version))
    board.engine.observed.feed(kinds.JOB, "ADDED", job("a"))
    board.engine.observed.feed(kinds.JOB, "ADDED", job("again", version=1))
    board.now = NOW + 2 * SECOND
    for name in ("a", "a", "again"):
        board.meter.performed(effects.Create(kind=kinds.POD, manifest=pod(name)), requests.Answer(), 0.01)
    text = board.exposition.text().decode()
    assert "volcano_controller_job_to_pod_creation_latency_milliseconds_count 1.0" in text
    assert "volcano_controller_job_to_pod_creation_latency_milliseconds_sum 2000.0" in text


def test_requests_are_counted_by_verb_and_what_fails_is_told_with_its_object(board):
    patch = effects.Patch(kind=kinds.JOB, namespace="n", name="a", uid="a", body={})
    delete = requests.Delete(kind=kinds.COMMAND, namespace="n", name="c", uid="c")
    apply = requests.Apply(kind=kinds.QUEUE, namespace="", name="q", uid="q", body={}, manager="m")
    for request in (patch, delete, apply):
        board.meter.performed(request, requests.Answer(), 0.0)
    board.meter.performed(patch, requests.Answer(code="conflict", message="m"), 0.0)
    refused = effects.Create(kind=kinds.POD, manifest=pod("a"))
    board.meter.performed(refused, requests.Answer(code="refused", message="exceeded quota"), 0.0)
    assert board.values("pumice_controllers_requests_total") == {
        ("patch", "jobs"): 2,
        ("delete", "commands"): 1,
        ("apply", "queues"): 1,
        ("create", "pods"): 1,
    }
    assert board.values("pumice_controllers_request_failures_total") == {
        ("patch", "conflict"): 1,
        ("create", "refused"): 1,
    }
    log = board.stream.getvalue()
    assert 'msg="create failed" object="Pod n/a-w-0" code=refused reason="exceeded quota"' in log
    assert "kind=Job object=n/a" in log


def test_a_breakdown_is_logged_and_shown(board):
    board.meter.complain("Job n/a: ValueError: x")
    assert board.values("pumice_controllers_breakdowns_total") == {(): 1}
    assert board.meter.last_breakdown == "Job n/a: ValueError: x"
    assert "a controller broke down" in board.stream.getvalue()


def test_every_sample_has_its_series(board):
    board.meter.noticed(kinds.JOB, "MODIFIED", job("a", "Completed"))
    names = {name for name, _, _ in board.meter.samples()}
    assert names <= {each.name for each in series.CONTROLLERS}
    assert board.exposition.text()


@pytest.mark.parametrize(("code", "told"), [("", "create"), ("exists", "exists"), ("conflict", "conflict")])
def test_a_line_says_what_became_of_a_request(board, code, told):
    board.meter.performed(effects.Create(kind=kinds.POD, manifest=pod("a")), requests.Answer(code=code), 0.0)
    (line,) = [each for each in board.stream.getvalue().splitlines() if "kind=Pod" in each]
    assert f"msg={told} " in line
    assert ("asked=create" in line) == bool(code)
