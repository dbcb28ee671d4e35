"""`pumice web` says what is wrong before it serves anything, and ends in good order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
import web_worlds as worlds
from click.testing import CliRunner

from pumice.cli.program import program
from recording import recording_rig as rig
from testbed import waiting
from tests.lives import scripts


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--listen", "0.0.0.0:80"), 2, "the page is served on this machine alone; write 127.0.0.1:80"),
        (("--listen", "127.0.0.1"), 2, "has no port"),
        (("--scenario", "x"), 2, "need --from FILE"),
        (("--recording", "nothing-here"), 2, "No such file"),
        (("--recording", ".", "--from", "x"), 2, "--recording is read alone"),
        (("--from", "nothing-here.json"), 1, "nothing-here.json cannot be read"),
        (("--from", "other.json"), 1, "without kind or metadata.name"),
        (("--from", "cut.json"), 1, "cut.json is not valid JSON"),
    ],
)
def test_what_cannot_be_shown_is_told(tmp_path, monkeypatch, arguments, status, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"version": 9}')
    (tmp_path / "cut.json").write_text('[{"kind": "Pod", "meta')
    done = CliRunner().invoke(program, ["web", *arguments])
    assert done.exit_code == status, done.output
    assert words in done.stderr


def test_recording_that_is_cut_off_is_served_and_said_to_be(tmp_path):
    rig.live(scripts.draw(3, cycles=6), tmp_path)
    (path,) = rig.files(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    command = [sys.executable, "-c", "from pumice.cli import main; main()", "web", "--recording", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        assert any("/#token=" in line for line in lines)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=waiting.PATIENCE) == 0
        assert f"note: the end of {path.name} is missing: what is shown ends after" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_file_is_served_until_a_signal_ends_it(tmp_path, number):
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps([worlds.node("n-0"), worlds.queue("default")]))
    command = [sys.executable, "-c", "from pumice.cli import main; main()", "web", "--from", str(dump)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        assert any("http://127.0.0.1:" in line and "/#token=" in line for line in lines)
        process.send_signal(number)
        assert process.wait(timeout=waiting.PATIENCE) == 0
        assert process.stderr.read() == ""
