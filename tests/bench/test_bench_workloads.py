"""Workload files can be read, mean the worlds they describe, and cost the work that they have always cost."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench import counters
from pumice.bench import finding, measuring
from pumice.bench.staging import Stage
from pumice.bench.workloads import Jobs, Shapes, Steps, Workload
from pumice.cli.program import program

NAMES = finding.names()
FULL = """
name: full
nodes: {count: 2, cpu: 1, memory: 1}
existing: [{jobs: 2, size: 1, minimum: 1, shapes: {cpu: {first: 800}, memory: {first: 100}}}]
arrivals: [{jobs: 2, size: 1, minimum: 1, shapes: {count: 2, cpu: {first: 200, step: 1}, memory: {first: 100}}}]
"""


@pytest.fixture(autouse=True)
def frozen(monkeypatch):
    """Leave what was collected out of the search for garbage: a measurement takes it in again, and then looks through all of it four times."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


def made(text: str) -> Workload:
    return msgspec.convert(yaml.safe_load(text), Workload)


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_costs_the_work_that_is_written_down(name):
    pinned = json.loads(counters.FILE.read_text(encoding="utf-8"))
    found = counters.counted(name)
    assert found == pinned.get(name), f"the work has changed; if that is meant: {counters.HOW}"


def test_nothing_is_pinned_that_is_no_workload():
    assert sorted(json.loads(counters.FILE.read_text(encoding="utf-8"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_scan_beside_it_is_about_the_same_pods(name):
    found = finding.find(name).scaled(0.01)
    stage = Stage(found)
    for portion in range(found.portions):
        stage.feed(stage.arriving(portion))
    stage.apply()
    asked = sorted(
        (task.shape.request.amounts["cpu"], task.shape.request.amounts["memory"], 1)
        for task in stage.cache.cluster.tasks.values()
    )
    assert asked == sorted(found.requests())


def test_pods_that_run_already_hold_room():
    found = measuring.run(made(FULL), runs=0)
    assert (found.placed, found.arriving) == (1, 2)


def test_two_runs_count_the_same():
    assert counters.counted("churn-140000") == counters.counted("churn-140000")


@given(jobs=st.integers(1, 30), size=st.integers(1, 5), extra=st.integers(0, 30), part=st.floats(0.01, 1))
def test_pods_are_numbered_without_gaps_however_small_a_world_is_made(jobs, size, extra, part):
    shapes = Shapes(Steps(1), Steps(1))
    world = Workload("w", made(FULL).nodes, (Jobs(jobs, size, 1, shapes, min(extra, jobs)),))
    for found in (world, world.scaled(part)):
        (some,) = found.arrivals
        numbers = [some.first_pod(job) + i for job in range(some.jobs) for i in range(some.size_of(job))]
        assert numbers == list(range(some.pods))
        assert found.problems() == []


BAD = {
    "nodse: 3": "nodse",
    "portions: 0": "portions is 0",
    "runs: many": "Expected `int`",
    "nodes: {count: 0, cpu: 1, memory: 1}": "nodes.count is 0",
    "arrivals: []\nexisting: []": "nothing to measure",
    "arrivals: [{jobs: 1, size: 1, minimum: 2, shapes: {cpu: {first: 1}, memory: {first: 1}}}]": "above its size",
    "arrivals: []\nexisting: []\nchurn: {cycles: 1, percent: 1}": "without existing jobs",
    "name: [": "expected",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_wrong_with_a_file_is_said_with_its_name(line, tmp_path):
    path = tmp_path / "wrong.yaml"
    given_up = line.split(":")[0]
    kept = [other for other in FULL.splitlines() if not other.startswith(given_up)]
    if "existing: []" in line:
        kept = [other for other in kept if not other.startswith("existing")]
    path.write_text("\n".join([*kept, line]), encoding="utf-8")
    done = CliRunner().invoke(program, ["bench", str(path)])
    assert done.exit_code == 2
    assert "wrong.yaml: " in done.output
    assert BAD[line] in done.output


def test_a_name_that_was_probably_meant_is_named():
    done = CliRunner().invoke(program, ["bench", "ones-500"])
    assert done.exit_code == 2
    assert "did you mean ones-5000?" in done.output


def test_a_configuration_that_is_refused_is_told_of_before_anything_is_measured(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text('actions: "enqueue, alocate"\ntiers: []\n', encoding="utf-8")
    done = CliRunner().invoke(program, ["bench", "ones-5000", "--config", str(path)])
    assert done.exit_code == 2
    assert "alocate" in done.output


def test_a_workload_of_ones_own_is_measured_and_told_as_json(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(FULL + "expect: {pods_per_second: 1000000000}\n", encoding="utf-8")
    done = CliRunner().invoke(program, ["bench", str(path), "-o", "json", "-q", "--runs", "0", "--check"])
    assert done.exit_code == 1, done.output  # what is expected of it is out of reach
    (found,) = json.loads(done.output)["workloads"]
    assert (found["placed"], found["counters"]["binds"]) == (1, 1)
    assert "pods/s" in found["missed"][0]


def test_every_workload_is_listed_with_its_name():
    lines = CliRunner().invoke(program, ["bench", "--list"]).output.splitlines()
    assert [line.split()[0] for line in lines] == NAMES


def test_the_workloads_of_the_repository_are_those_of_the_program():
    assert (Path(counters.__file__).parent / "workloads").resolve() == finding.FOLDER.resolve()
