"""No process stops in silence: whichever of its threads stands still, it is told with all stacks, and the process ends with an error."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from running_cluster import RunningCluster

import elections
import promql
from pumice.manifests import monitoring
from testbed import waiting

SCRIPT = Path(__file__).with_name("stalling.py")


class Stalling:
    """A command of ours, its output in a file, and the file that lets a part of it stand still."""

    def __init__(self, folder, part, *command):
        self.file = folder / f"stall-{part}"
        self.part = part
        with tempfile.NamedTemporaryFile(dir=folder, prefix="output-", delete=False) as output:
            arguments = [sys.executable, str(SCRIPT), part, str(self.file), *command]
            self.process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT)
        self.output = Path(output.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def text(self):
        return self.output.read_text()

    def wait_for(self, question):
        return waiting.until(question, lambda: self.text, ended=lambda: self.process.poll() is not None)

    def printed(self, text):
        """Wait until something was printed."""
        self.wait_for(lambda: text in self.text)
        return self

    def stall(self):
        self.file.touch()
        return self

    def end(self):
        """Let the process end by itself once it has stalled for long enough."""
        self.file.with_name(f"{self.file.name}.end").touch()
        return self

    def get(self, what, path):
        found = self.wait_for(lambda: re.search(rf"msg=serving what={what} address=(\S+)", self.text))
        try:
            with urllib.request.urlopen(f"http://{found[1]}{path}", timeout=waiting.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ended(self):
        """Wait for the end; gives the exit status."""
        return self.process.wait(waiting.PATIENCE)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A cluster that nobody serves yet."""
    arguments = ("--nodes", "1", "--scheduler", "none", "--controllers", "none")
    with RunningCluster(tmp_path_factory.mktemp("bare"), *arguments) as running:
        yield running


def serving(bare, command, *flags):
    servers = ("--enable-healthz", "--healthz-address=127.0.0.1:0", "--kubeconfig", bare.kubeconfig)
    return (command, *servers, *flags)


METRICS = ("--enable-metrics", "--listen-address=127.0.0.1:0")


def test_whichever_thread_of_a_local_cluster_stands_still_it_ends_with_an_error_and_tells_where_all_are(tmp_path):
    """They run side by side, since each waits for the same seconds to pass."""
    made = []
    try:
        for part in ("deciding", "io", "api", "journal"):
            data = ("--data", str(tmp_path / f"data-{part}"))
            made.append(Stalling(tmp_path, part, "up", "--no-web", "--nodes", "1", *data).printed("Ctrl-C ends it"))
        for each in made:
            each.end().stall()
        for each in made:
            assert each.ended() == 1
            assert f"msg=overdue part={each.part} problem=" in each.text
            # With the API server's loop stand still kubelets and controllers, too: which of them is told last does not matter.
            assert "msg=ending part=" in each.text
            for thread in ("MainThread", "api", "io", "journal"):
                assert f"msg=stack thread={thread} innermost_first=" in each.text
            assert " stalling" in each.text
    finally:
        for each in made:
            each.__exit__()


def test_kubelets_and_controllers_that_wait_for_ever_end_a_local_cluster_though_its_loop_goes_on(tmp_path):
    made = {}
    try:
        for part, told in (("kubelets", "kubelets"), ("local-controllers", "controllers")):
            made[told] = Stalling(tmp_path, part, "up", "--no-web", "--nodes", "1", "--scheduler", "none").printed(
                "Ctrl-C ends it"
            )
        for each in made.values():
            each.end().stall()
        for told, each in made.items():
            assert each.ended() == 1
            assert f"msg=ending part={told} problem=" in each.text
            assert "msg=ending part=api" not in each.text
    finally:
        for each in made.values():
            each.__exit__()


@pytest.mark.parametrize(("part", "told"), [("nodes", "nodes"), ("fleet", "kubelets")])
def test_simulated_nodes_that_do_not_go_on_end_with_an_error(bare, tmp_path, part, told):
    flags = ("nodes", "--prefix", f"n-{part}", "--kubeconfig", bare.kubeconfig)
    with Stalling(tmp_path, part, *flags) as process:
        process.printed("stop with Ctrl-C")
        process.end().stall()
        assert process.ended() == 1
        assert f"msg=ending part={told} problem=" in process.text
        assert "msg=stack thread=MainThread innermost_first=" in process.text


def test_a_leader_that_stops_deciding_says_so_and_gives_its_lease_to_the_standby(bare, tmp_path):
    """The lease would last for five minutes: the standby leads because it is released."""
    flags = serving(bare, "scheduler", *METRICS, *elections.flags("default"))
    with Stalling(tmp_path, "deciding", *flags) as first:
        first.printed("msg=leading")
        first.wait_for(lambda: "pumice_leading 1.0" in first.get("metrics", "/metrics")[1])
        assert first.get("health", "/readyz")[0] == 200
        assert told_at_once(first) == set()
        with Stalling(tmp_path, "cycle", *flags) as second:
            second.printed('msg="standing by"')
            first.stall()
            status, text = waiting.until(lambda: (found := first.get("health", "/readyz"))[0] == 503 and found)
            assert (status, "[-]progress failed: deciding: a cycle was due" in text) == (503, True)
            assert first.get("health", "/livez")[0] == 503
            waiting.until(lambda: "PumiceStalled" in told_at_once(first))
            first.end()
            assert first.ended() == 1
            assert "msg=stack thread=MainThread" in first.text
            second.printed("msg=leading")


def test_a_cycle_that_does_not_end_is_noted_and_ended_after_its_deadline(bare, tmp_path):
    flags = serving(bare, "scheduler", *METRICS, "--leader-elect=false", "--cycle-deadline=20s", "--scheduler-name=x")
    with Stalling(tmp_path, "cycle", *flags) as process:
        process.wait_for(lambda: "pumice_leading 1.0" in process.get("metrics", "/metrics")[1])
        process.stall()
        process.printed("msg=overdue part=deciding")
        status, text = process.get("health", "/readyz?verbose")
        assert (status, "[!]progress: deciding: a cycle has been going on for" in text) == (200, True)
        assert process.ended() == 1
        assert re.search(r'msg=ending part=deciding problem="a cycle has been going on for 2\ds"', process.text)


def test_a_recording_that_cannot_be_written_is_told_of_and_ends_nothing(bare, tmp_path):
    record = ("--leader-elect=false", f"--record={tmp_path / 'recording'}", "--scheduler-name=y")
    with Stalling(tmp_path, "recording", *serving(bare, "scheduler", *METRICS, *record)) as process:
        process.wait_for(lambda: "pumice_leading 1.0" in process.get("metrics", "/metrics")[1])
        process.stall()
        process.printed("msg=overdue part=recording")
        process.end()
        process.wait_for(lambda: _overdue(process, "recording") > 14)
        assert process.get("health", "/readyz")[0] == 200
        assert "[!]progress: recording: a write was due" in process.get("health", "/readyz?verbose")[1]


def told_at_once(process):
    """Name the alerts that fire on what a process shows now; those that have to last for a while are left to another test."""
    scrapes = promql.Scrapes()
    scrapes.add(0, "a", process.get("metrics", "/metrics")[1])
    chosen = [alert for alert in monitoring.ALERTS if alert.lasts == "0m"]
    return {alert.name for alert in chosen if promql.evaluate(scrapes, alert.expression, 0)}


def _overdue(process, part):
    found = re.search(rf'pumice_overdue_seconds{{part="{part}"}} (\S+)', process.get("metrics", "/metrics")[1])
    return float(found[1])


@pytest.mark.parametrize(
    ("part", "flags"),
    [
        ("controllers", ("controllers", "--leader-elect=false")),
        ("turns", ("controllers", "--leader-elect=false")),
        ("webhooks", ("admission", "--port=0", "--webhook-url=https://127.0.0.1", "--webhook-namespace=default")),
    ],
)
def test_controllers_and_webhooks_whose_loop_stands_still_end_with_an_error(bare, tmp_path, part, flags):
    with Stalling(tmp_path, part, *serving(bare, *flags)) as process:
        process.printed("msg=serving what=health")
        process.end().stall()
        assert process.ended() == 1
        assert f"msg=ending part={part} problem=" in process.text
        assert "msg=stack thread=MainThread innermost_first=" in process.text
