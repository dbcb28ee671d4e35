"""What `docs/replay.md` shows is what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import recording_rig as rig
from click.testing import CliRunner

from pumice.cli.program import program

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"
CONFIG = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
"""
SHOWN = re.compile(r"```console\n\$ (pumice (?:replay|shrink|test) [^\n]*)\n(.*?)```", re.DOTALL)
PASSING = [(r"recording-\d+-[0-9a-f]{8}-", "recording-SECOND-RUN-"), (r"run [0-9a-f]{8}", "run RUN")]
PASSING += [(r"in [\d.]+s, [\d.,]+ times as fast", "in TIME"), (r"pumice \d+\.\d+\.\d+\S*,", "pumice VERSION,")]


def _node(name):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
    }


def _gang(name, size, cpu):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{i}",
                "namespace": "team-a",
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {"schedulerName": "volcano", "containers": [container]},
        }
        for i in range(size)
    ]
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"minMember": size},
    }
    return [group, *pods]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a recording of a gang that starts and one that is too large, and another policy."""
    stage = rig.stage(CONFIG, [_node("n1"), _node("n2"), *_gang("small", 2, "1")], tmp_path / "recording")
    stage.decide()
    stage.wait()
    stage.apply(_gang("train", 3, "3"))
    for _ in range(3):
        stage.decide()
        stage.wait()
    stage.end()
    (tmp_path / "binpack.yaml").write_text(CONFIG.replace("nodeorder", "binpack"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _steady(text):
    for pattern, word in PASSING:
        text = re.sub(pattern, word, text)
    return text.strip()


def test_every_command_prints_what_the_page_shows(here):
    blocks = SHOWN.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 5
    for command, shown in blocks:
        printed = CliRunner().invoke(program, command.split()[1:]).output
        assert _steady(printed) == _steady(shown), command


def test_the_scenario_that_the_page_shows_is_the_one_that_was_written(here):
    CliRunner().invoke(program, ["shrink", "recording", "--job", "team-a/train", "-o", "why.yaml"])
    shown = re.search(r"```yaml\n(# pumice shrink.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert shown == (here / "why.yaml").read_text()
