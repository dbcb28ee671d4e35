"""`pumice up --demo`: the demonstration's story on a cluster that kubectl can look at, and afterwards change."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from running_cluster import RunningCluster

from pumice.cli.demo import performing, snapshot
from pumice.cli.program import program
from testbed.waiting import until

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/research/podgroups"
PODS = "/api/v1/namespaces/research/pods"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The cluster when the story is over, and the lines that were told."""
    with RunningCluster(tmp_path_factory.mktemp("demo"), "--demo", "--speed", "40") as running:
        lines = []
        for line in running.lines:
            lines.append(line.rstrip("\n"))
            if line.rstrip().endswith("and it starts"):
                break
        yield running, lines


def test_every_job_is_told_from_its_arrival_to_its_end(told):
    running, lines = told
    text = running.text + "\n".join(lines)  # the story may begin before the guide is printed
    cluster = text.index("cluster: 4 nodes with 32 cpu, queues default, production, research")
    assert cluster < text.index(": submitted")
    jobs = ("research/resnet", "production/nightly", "research/bert", "production/crawler", "tools/probe")
    for job in jobs:
        order = [text.index(f"{job}: submitted"), text.index(f"{job}: ", text.index(f"{job}: submitted") + 1)]
        assert order == sorted(order)
        assert re.search(rf"{job}: \d+ pods? finished, 0 still running", text)
    assert "research/bert: waits: " in text
    assert "research/bert: 6 pods placed after" in text
    assert "research/giant: waits: even empty nodes hold 8 of the 9 pods that it needs" in text


def test_a_gang_is_never_told_in_part(told):
    _, lines = told
    has = [re.search(r"has (\d+) of \d+, needs (\d+)", line) for line in lines]
    assert all(int(found[1]) >= int(found[2]) for found in has if found)
    assert sum(found is not None for found in has) >= 4


def test_the_end_says_who_waits_and_what_helps_does(told):
    running, lines = told
    assert "research/giant still waits: it needs 9 pods at once, and 8 fit." in "\n".join(lines)
    patch = {"spec": {"minMember": 8}}
    running.caller.call("PATCH", f"{GROUPS}/giant", patch, content_type="application/merge-patch+json")

    def started():
        pods = running.caller.call("GET", PODS)["items"]
        return sum(pod["metadata"]["name"].startswith("giant-") and "nodeName" in pod["spec"] for pod in pods) >= 8

    until(started)


def test_explain_decides_by_the_policy_of_the_cluster_without_being_told_where_it_is(told):
    running, _ = told
    found = CliRunner().invoke(program, ["explain", "job", "research/giant", "--kubeconfig", running.kubeconfig])
    assert found.exit_code == 0
    assert re.search(r"; configuration: \S+/scheduler\.yaml; scheduler ", found.output)


def seen(minimum, cpu=4000, state=snapshot.State.WAITING):
    members = tuple(snapshot.Member(f"p-{each}", state, "", cpu, None) for each in range(minimum))
    job = snapshot.Job("a/j", "j", "default", minimum, "Inqueue", 0, members, "", "")
    nodes = tuple(snapshot.Node(f"n-{each}", 8000, ()) for each in range(4))
    return snapshot.Snapshot(0, 0, 0, 0, (job,), nodes, ())


@pytest.mark.parametrize(
    ("minimum", "cpu", "state", "quiet", "over"),
    [
        (9, 4000, snapshot.State.WAITING, 2.0, True),
        (8, 4000, snapshot.State.WAITING, 2.0, False),
        (8, 4000, snapshot.State.WAITING, 60.0, True),
        (1, 0, snapshot.State.WAITING, 2.0, False),
        (8, 4000, snapshot.State.DONE, 2.0, True),
        (9, 4000, snapshot.State.WAITING, 1.9, False),
    ],
)
def test_the_story_is_not_over_while_somebody_waits_who_would_fit(minimum, cpu, state, quiet, over):
    assert performing.is_told(seen(minimum, cpu, state), quiet) is over
