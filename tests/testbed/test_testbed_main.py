"""`python -m testbed`: an API server in the foreground, and how to use it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import fake_programs
import pytest

from testbed import waiting

ROOT = Path(__file__).parents[2]


@pytest.fixture
def start():
    """Run the program with a changed environment; end what is left of it."""
    begun = []

    def begin(**environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "testbed"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_without_the_programs_it_says_how_to_get_them(bare, start):
    process = start()
    _, told = process.communicate(timeout=waiting.PATIENCE)
    assert told == "error: there is no real API server: run `make kube` to get one\n"
    assert process.returncode == 1


def test_told_to_end_while_it_starts_it_ends_cleanly(start, tmp_path):
    assets = fake_programs.programs(tmp_path / "assets", "kube-apiserver", "kubectl")
    fake_programs.program(
        assets, "etcd", f"pwd > {tmp_path}/where.new; mv {tmp_path}/where.new {tmp_path}/where; exec sleep 60"
    )
    process = start(KUBEBUILDER_ASSETS=str(assets))
    waiting.until((tmp_path / "where").exists)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=waiting.PATIENCE) == ("the API server has ended\n", "")
    assert process.returncode == 0
    assert not Path((tmp_path / "where").read_text().strip()).exists()


@pytest.mark.kube
def test_it_serves_with_the_lines_it_prints_until_it_is_told_to_end(start):
    process = start()
    printed = ""
    while not printed.endswith("everything in it is gone.\n"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        printed += line
    exports = "\n".join(re.findall(r"^  (export .*)$", printed, flags=re.MULTILINE))
    script = f"{exports}\nkubectl get namespaces -o name\nkubectl get crds -o name\ncommand -v pumice\necho $KUBECONFIG"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    *namespaces, pumice, kubeconfig = done.stdout.splitlines()
    assert "namespace/default" in namespaces
    assert not [line for line in namespaces if line.startswith("customresourcedefinition")]
    assert pumice == str(Path(sys.executable).parent / "pumice")
    for named in re.findall(r"docs/\S+", printed):
        assert (ROOT / named).exists(), named
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=waiting.PATIENCE) == ("the API server has ended\n", "")
    assert process.returncode == 0
    assert not Path(kubeconfig).parent.exists()
