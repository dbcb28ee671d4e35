"""A recording as a trace: jobs as users made them, with run times as they happened, and nothing that the scheduler decided."""

from __future__ import annotations

import pytest
from simulating import GREEDY, SECOND, simulated, starts

from pumice.simulate import recorded
from pumice.simulate.trace import TraceError
from recording import recording_rig as rig

CONFIG = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}]
"""


def node(name, cpu="4"):
    """Make a node."""
    offered = {"cpu": cpu, "memory": "8Gi"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": offered}}


def gang(name, size, cpu, run="", priority="", **notes):
    """Make a group with its pods, which end after some time, or never."""
    more = {"priorityClassName": priority} if priority else {}
    own = {"pumice.dev/run-time": run} if run else {}
    about = {"annotations": {"scheduling.k8s.io/group-name": name, "volcano.sh/preemptable": "true", **own}}
    asked = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "namespace": "a", **about},
            "spec": {
                "schedulerName": "volcano",
                "terminationGracePeriodSeconds": 2,
                "containers": [asked],
                **more,
            },
        }
        for i in range(size)
    ]
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a", "annotations": notes},
        "spec": {"minMember": size, **more},
    }
    return [group, *pods]


def go_on(stage, cycles):
    """Let cycles pass, one a second."""
    for _ in range(cycles):
        stage.decide()
        stage.wait()


@pytest.fixture
def folder(tmp_path):
    """Record a gang that runs for five seconds, one that has to wait for it, a node that comes later, and a job that never ends."""
    stage = rig.stage(CONFIG, [node("n1"), *gang("first", 2, "2", "5s")], tmp_path / "r")
    go_on(stage, 2)
    stage.apply(gang("second", 1, "3", "4s", **{"pumice.dev/estimate": "10s"}))
    go_on(stage, 3)
    stage.apply([node("n2", "2"), *gang("endless", 1, "2")])
    go_on(stage, 10)
    stage.end()
    return tmp_path / "r"


def test_jobs_are_what_users_made_with_run_times_as_they_happened(folder):
    trace = recorded.read(str(folder))
    assert [each.name for each in trace.jobs] == ["first", "second", "endless"]
    first, second, endless = trace.jobs
    assert (first.size, first.min_member, first.submit) == (2, 2, 0)
    assert [each.run_time // SECOND for each in first.members] == [5, 5]
    assert (second.run_time // SECOND, second.estimate // SECOND, second.submit // SECOND) == (4, 10, 1)
    assert (endless.run_time, endless.estimate) == (None, None)
    assert all(member.spec.node_name == "" for job in trace.jobs for member in job.members)
    assert [found.metadata.name for kind, found in trace.cluster if kind.name == "Node"] == ["n1"]
    assert [(each.at // SECOND, each.object.metadata.name) for each in trace.changes if each.kind.name == "Node"] == [
        (5, "n2")
    ]


def test_a_recording_runs_under_another_policy_with_nodes_that_come_when_they_came(folder):
    result = simulated(recorded.read(str(folder)), GREEDY)
    assert starts(result) == [0, 5, 5]
    assert [each.end is None for each in result.jobs] == [False, False, True]
    assert [result.jobs[2].runs[0].node, result.jobs[2].runs[0].end] == ["n2", None]


def test_who_was_evicted_is_no_further_member_of_its_job(tmp_path):
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    stage = rig.stage(CONFIG, [node("n1"), high, *gang("low", 1, "4")], tmp_path)
    go_on(stage, 2)
    stage.apply(gang("urgent", 1, "4", "3s", priority="high"))
    go_on(stage, 4)
    stage.apply(gang("low", 1, "4", "2s")[1:])  # its controller makes another pod of the same name
    go_on(stage, 10)
    stage.end()
    found = {each.name: each for each in recorded.read(str(tmp_path)).jobs}
    assert [each.size for each in found.values()] == [1, 1]
    assert (found["low"].run_time // SECOND, found["urgent"].run_time // SECOND) == (2, 3)
    assert found["urgent"].priority == "high"


def test_what_is_no_recording_is_told_by_name(tmp_path):
    with pytest.raises(TraceError, match="no recording in this folder; pumice scheduler --record writes one"):
        recorded.read(str(tmp_path))
    broken = tmp_path / "recording-1-aaaaaaaa-000001.jsonl.gz"
    broken.write_bytes(b"nothing that was packed")
    with pytest.raises(TraceError, match="aaaaaaaa-000001"):
        recorded.read(str(tmp_path))
