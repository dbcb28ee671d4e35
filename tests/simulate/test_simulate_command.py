"""`pumice simulate` as it is called: what it prints, writes, and exits with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner
from simulating import EVICTING, GREEDY

from pumice.cli.simulate import command

NODES = """
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "10", nvidia.com/gpu: "4", pods: "50"}}}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 3}}
"""
JOBS = (
    {
        "name": "a/train",
        "submit": 0,
        "queue": "research",
        "runTime": 100,
        "members": [{"requests": {"cpu": "6", "nvidia.com/gpu": "2"}}],
        "minMember": 0,
    },
    {"name": "a/wide", "submit": 0, "queue": "research", "runTime": 50, "members": [{"requests": {"cpu": "8"}}]},
    {
        "name": "a/urgent",
        "submit": 10,
        "queue": "research",
        "priority": "high",
        "runTime": 80,
        "members": [{"requests": {"cpu": "10"}}],
    },
    {"name": "a/huge", "submit": 10, "queue": "default", "runTime": 80, "members": [{"requests": {"cpu": "11"}}]},
)


@pytest.fixture
def files(tmp_path):
    """Write a small cluster, its jobs, and two policies."""
    (tmp_path / "nodes.yaml").write_text(NODES, encoding="utf-8")
    (tmp_path / "jobs.jsonl").write_text("\n".join(map(json.dumps, JOBS)), encoding="utf-8")
    (tmp_path / "greedy.yaml").write_text(GREEDY, encoding="utf-8")
    (tmp_path / "evicting.yaml").write_text(
        EVICTING.replace("gang", "gang\n    enableJobOrder: false"), encoding="utf-8"
    )
    return tmp_path


def run(files, *arguments):
    """Run the command with two policies."""
    given = [str(files / "jobs.jsonl"), "--cluster", str(files / "nodes.yaml"), "-q"]
    policies = ["--config", str(files / "greedy.yaml"), "--config", f"second={files / 'evicting.yaml'}"]
    return CliRunner().invoke(command, [*given, *policies, *arguments])


def without_time(text):
    return [line for line in text.splitlines() if not line.startswith("processor time")]


def test_policies_stand_side_by_side_and_differences_have_reasons(files):
    result = run(files)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["greedy", "second"]
    assert any(line.startswith("wait, mean ") for line in lines)
    assert "jobs that never fit" in result.output
    assert "a/huge: no node has 11 cpu at all" in result.output
    assert "Jobs that start at the most different times under greedy and second:" in result.output
    assert "a/urgent: at 50 s under greedy and at 40 s under second" in result.output
    assert "evictions" in result.output
    assert "*" in next(line for line in lines if line.startswith("evictions"))


def test_the_same_input_gives_the_same_bytes(files):
    made = []
    for name, jobs in (("one", "1"), ("two", "2")):
        result = run(files, "--out", str(files / name), "--json", str(files / f"{name}.json"), "--jobs", jobs)
        assert result.exit_code == 0, result.output
        document = json.loads((files / f"{name}.json").read_bytes())
        for policy in document["policies"]:
            assert policy["figures"].pop("seconds") >= 0
        plots = {path.name: path.read_bytes() for path in sorted((files / name).iterdir())}
        made.append((without_time(result.output.replace(f"/{name}/", "/")), document, plots))
    assert made[0] == made[1]
    document, plots = made[0][1:]
    assert {
        "index.html",
        "waits.svg",
        "wait-by-size.svg",
        "queue-length.svg",
        "allocated-1.svg",
        "gpu-allocation.svg",
    } <= set(plots)
    for name, content in plots.items():
        if name.endswith(".svg"):
            ET.fromstring(content)  # noqa: S314  our own
            assert content.decode() in plots["index.html"].decode()
    assert b"http" not in plots["index.html"].replace(b"http://www.w3.org/2000/svg", b"")
    jobs = {job["name"]: job for job in document["policies"][1]["jobs"]}
    assert jobs["a/train"]["evictions"] == 1
    assert jobs["a/train"]["nodes"] == {"n1": 2}
    assert (jobs["a/train"]["submit"], jobs["a/train"]["start"]) == (0.0, 0.0)
    assert jobs["a/huge"]["start"] is None
    assert document["differences"][0]["job"] in jobs


@pytest.mark.parametrize(
    ("claim", "status", "told"),
    [
        ("greedy.wait.mean > 0", 0, "assertion holds: greedy.wait.mean > 0"),
        ("second.evictions < greedy.evictions", 1, "assertion does not hold"),
        ("greedy.wiat.mean > 0", 2, "there is no figure 'wiat'; did you mean greedy.wait?"),
        ("greedy.wait.man > 0", 2, "there is no figure 'wait.man'; did you mean greedy.wait.mean?"),
        ("third.wait.mean > 0", 2, "third.wait.mean names no policy; there are greedy, second"),
        ("__import__('os').abort()", 2, "nothing known begins at"),
    ],
)
def test_an_assertion_makes_it_a_test(files, claim, status, told):
    result = run(files, "--assert", claim)
    assert result.exit_code == status, result.output
    assert told in result.output


def test_repetitions_are_told_with_their_deviation(files):
    result = run(files, "--shake", "3", "--isolated")
    assert result.exit_code == 0, result.output
    assert " ± " in next(line for line in result.output.splitlines() if line.startswith("wait, mean"))
    assert "queue research: rho" in result.output


def test_what_cannot_be_used_is_refused_with_its_place(files):
    (files / "jobs.jsonl").write_text('{"submit": 0, "runtime": 5}', encoding="utf-8")
    result = run(files)
    assert result.exit_code == 2
    assert "jobs.jsonl:1: runtime: unknown key; did you mean 'runTime'?" in result.output
    bad = files / "bad.yaml"
    bad.write_text("actions: alocate\n", encoding="utf-8")
    result = run(files, "--config", str(bad))
    assert result.exit_code == 2
    assert "bad.yaml is refused" in result.output
    assert run(files, "--config", str(files / "greedy.yaml")).exit_code == 2
    assert run(files, "--period", "0s").exit_code == 2


def test_an_interruption_leaves_a_partial_report_that_says_so(files):
    rows = [
        f'{{"submit": {n}, "runTime": 7, "members": [{{"requests": {{"cpu": "{n % 9 + 1}"}}}}]}}' for n in range(9_000)
    ]
    (files / "jobs.jsonl").write_text("\n".join(rows), encoding="utf-8")
    given = ["simulate", str(files / "jobs.jsonl"), "--cluster", str(files / "nodes.yaml"), "--out", str(files / "out")]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from pumice.cli.program import main; main()",
            *given,
            "--config",
            str(files / "greedy.yaml"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    assert "jobs have arrived" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert output.startswith("INTERRUPTED: this report is partial")
    assert "jobs unfinished" in output
    assert "Interrupted: this report is partial" in (files / "out" / "index.html").read_text(encoding="utf-8")
