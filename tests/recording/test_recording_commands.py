"""`pumice replay` and `pumice shrink` as a user calls them."""

from __future__ import annotations

import gzip

import pytest
import recording_rig as rig
from click.testing import CliRunner

from pumice.cli.program import program

CONFIG = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n- plugins: [{name: predicates}, {name: nodeorder}]\n'


def _node(name):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
    }


def _gang(name, size, cpu):
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{i}",
                "namespace": "a",
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
            },
        }
        for i in range(size)
    ]
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"minMember": size},
    }
    return [group, *pods]


@pytest.fixture
def folder(tmp_path):
    """A recording of a gang that starts and one that is too large."""
    stage = rig.stage(CONFIG, [_node("n1"), _node("n2"), *_gang("small", 2, "1")], tmp_path / "r")
    stage.decide()
    stage.wait()
    stage.apply(_gang("large", 3, "3"))
    for _ in range(3):
        stage.decide()
        stage.wait()
    stage.end()
    return tmp_path / "r"


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


def test_a_replay_says_that_it_decided_the_same(folder):
    result = run("replay", folder)
    assert result.exit_code == 0
    assert result.output.endswith("the same decisions, bit for bit\n")
    assert "played 4 cycles" in result.output
    assert "2 binds, 0 evictions" in result.output
    assert run("replay", rig.files(folder)[0]).exit_code == 0


def test_one_cycle_is_shown_with_what_came_in_what_was_decided_and_why(folder):
    result = run("replay", folder, "--cycle", 2)
    assert result.exit_code == 0
    assert result.output.startswith("cycle 2 at ")
    assert "ADDED PodGroup a/large" in result.output
    assert "allocate: a/large: " in result.output
    assert run("replay", folder, "--cycle", 99).exit_code == 1


@pytest.mark.parametrize(
    ("condition", "cycle"),
    [
        ("bound=a/small-*", 1),
        ("pending=a/large", 2),
        ("said=a/large", 2),
        ("time=+1s", 2),
        ("cycle=3", 3),
        ("evicted=a/*", None),
        ("nominated=*", None),
        ("bound=a/large-0", None),
        ("time=9999-01-01T00:00:00Z", None),
    ],
)
def test_a_replay_stops_where_a_condition_first_holds(folder, condition, cycle):
    result = run("replay", folder, "--until", condition)
    if cycle is None:
        assert result.exit_code == 1
        assert f"--until {condition}: not in this recording" in result.output
    else:
        assert result.exit_code == 0
        assert result.output.startswith(f"cycle {cycle} at ")


@pytest.mark.parametrize("condition", ["bond=a/x", "bound", "time=soon", "cycle=x", "time=+x"])
def test_a_condition_that_makes_no_sense_is_refused(folder, condition):
    result = run("replay", folder, "--until", condition)
    assert result.exit_code == 2
    assert "--until" in result.output


def test_another_policy_is_compared_cycle_by_cycle(folder, tmp_path):
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(CONFIG)
    other.write_text(CONFIG.replace("nodeorder", "binpack"))
    result = run("replay", folder, "--config", same)
    assert result.exit_code == 0
    assert "both policies decide the same in every cycle" in result.output
    result = run("replay", folder, "--config", other)
    assert result.exit_code == 1
    lines = [line.split("  ") for line in result.output.splitlines() if line.startswith("1 ")]
    assert any("pod a/small-1" in line for line in lines)
    assert "the policies part in " in result.output


def test_what_cannot_be_read_ends_with_status_2_and_its_name(folder, tmp_path):
    none = tmp_path / "none"
    none.mkdir()
    bad = tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress(b"{}\n"))
    for arguments in (
        ("replay", tmp_path / "absent"),
        ("replay", none),
        ("replay", bad),
        ("shrink", bad, "--job", "x"),
        ("replay", folder, "--config", bad),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert "Error: " in result.output


def test_an_end_that_is_missing_is_said(folder):
    path = rig.files(folder)[0]
    path.write_bytes(path.read_bytes()[:-20])
    result = run("replay", folder)
    assert result.exit_code == 0
    assert f"{path}: its end is missing" in result.output


def test_shrink_writes_a_scenario_that_passes(folder, tmp_path):
    file = tmp_path / "why.yaml"
    result = run("shrink", folder, "--job", "large", "-o", file)
    assert result.exit_code == 0, result.output
    assert "a/large waits" in result.output
    assert run("test", file).exit_code == 0
    assert "small" not in file.read_text()
    assert run("shrink", folder, "--job", "absent").exit_code == 1
    assert run("shrink", folder, "--job", "a/small", "--cycle", 3).exit_code == 1
