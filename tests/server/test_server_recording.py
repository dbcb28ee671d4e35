"""`pumice scheduler --record` on a real API server, and what is made of the recording afterwards."""

from __future__ import annotations

import gzip
import re

import pytest
from click.testing import CliRunner
from server_process import ROOT, Process, gang, node, placed, wait_for

from pumice.cli.program import program

pytestmark = pytest.mark.kube


@pytest.fixture
def server(empty_api_server):
    """An API server with our kinds, two nodes of four cores, and nothing else."""
    empty_api_server.crds(ROOT / "deploy" / "crds")
    for name in ("n1", "n2"):
        node(empty_api_server, name)
    return empty_api_server


def run(*arguments):
    return CliRunner().invoke(program, [str(each) for each in arguments])


def test_a_run_on_a_real_cluster_is_recorded_replayed_and_shrunk(server, namespace, tmp_path):
    folder = tmp_path / "recording"
    with Process(server, "--leader-elect=false", f"--record={folder}") as scheduler:
        scheduler.deciding()
        gang(server, namespace, "g", 3, cpu="2")
        wait_for(lambda: len(placed(server, namespace)) == 3, scheduler)
        gang(server, namespace, "big", 5, cpu="2")
        wait_for(
            lambda: "Unschedulable" in server.kubectl("get", "podgroup", "big", "-n", namespace, "-o", "yaml"),
            scheduler,
        )
        _, text = scheduler.get("metrics", "/metrics")
        assert "pumice_recording_dropped_total 0.0" in text
        assert float(re.search(r"^pumice_recording_bytes_total (\S+)$", text, re.MULTILINE)[1]) > 0
        assert scheduler.stop() == 0
    files = list(folder.iterdir())
    assert len(files) == 1
    assert gzip.decompress(files[0].read_bytes()).endswith(b'{"is":"end","last":true}\n')
    result = run("replay", folder)
    assert result.exit_code == 0, result.output
    assert "3 binds, 0 evictions" in result.output
    assert result.output.endswith("the same decisions, bit for bit\n")
    scenario = tmp_path / "why.yaml"
    assert run("shrink", files[0], "--job", f"{namespace}/big", "-o", scenario).exit_code == 0
    assert run("test", scenario).exit_code == 0


def test_a_recording_survives_a_kill(server, namespace, tmp_path):
    folder = tmp_path / "recording"
    with Process(server, "--leader-elect=false", f"--record={folder}") as scheduler:
        scheduler.deciding()
        gang(server, namespace, "g", 2, cpu="1")
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        wait_for(lambda: "2 binds" in run("replay", folder).output, scheduler)
        scheduler.kill()
    result = run("replay", folder)
    assert result.exit_code == 0, result.output
    assert "its end is missing" in result.output


def test_a_folder_that_cannot_be_written_keeps_nobody_from_scheduling(server, namespace, tmp_path):
    place = tmp_path / "file"
    place.write_text("in the way")
    with Process(server, "--leader-elect=false", f"--record={place}") as scheduler:
        scheduler.deciding()
        gang(server, namespace, "g", 2, cpu="1")
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        assert scheduler.log.count("recording fails, scheduling goes on") == 1
        _, text = scheduler.get("metrics", "/metrics")
        assert float(re.search(r"^pumice_recording_dropped_total (\S+)$", text, re.MULTILINE)[1]) > 0
        assert scheduler.stop() == 0
